import assert from "node:assert/strict";
import test from "node:test";
import { changed, revealed, sharpestHead, stepsOf, variantOf, withoutOf } from "../../crates/serve/page/steps.js";

const ids = (list) => list.map((step) => step.id);

test("an encoder hides nothing and has no next word", () => {
  const list = ids(stepsOf("encoder", "attention"));
  assert.deepEqual(list, ["tokens", "embedding", "positions", "query", "scores", "scale", "softmax", "sum", "heads", "norm", "ffn", "norm"]);
});

test("a decoder has a mask, cross-attention and the next word", () => {
  const list = ids(stepsOf("decoder", "attention"));
  assert.equal(list.filter((id) => id === "mask").length, 1);
  assert.ok(list.indexOf("query-cross") > list.indexOf("heads"));
  assert.equal(list.at(-1), "next");
});

test("an SSRU stands in the place of self-attention", () => {
  const list = stepsOf("decoder", "ssru");
  assert.deepEqual(ids(list).slice(3, 7), ["candidate", "forget", "state", "norm"]);
  assert.ok(list.every((step) => step.id !== "mask"));
  assert.equal(list.find((step) => step.id === "state").section, null);
});

test("a model that departs from the paper is described as it is", () => {
  const paper = { positions: "sinusoidal", scale_scores: true, norm_kind: "layer", gated: false };
  const steps = [...stepsOf("encoder", "attention"), ...stepsOf("decoder", "attention")];
  assert.ok(steps.every((step) => variantOf(step, paper) === ""));
  const t5 = { positions: "bucketed", scale_scores: false, norm_kind: "rms", gated: true };
  const found = new Set(steps.map((step) => variantOf(step, t5, false)).filter(Boolean));
  assert.deepEqual([...found].sort(), [".bucketed", ".distance", ".gated", ".none", ".rms"]);
  const cross = stepsOf("decoder", "attention").find((step) => step.id === "scores" && step.part === "cross");
  assert.equal(variantOf(cross, t5, false), "", "distances count in self-attention alone");
  assert.equal(variantOf({ id: "positions" }, { positions: "none" }, false), ".none");
});

test("columns are revealed one after the other", () => {
  assert.deepEqual(["query-cross", "scores", "scale", "mask", "softmax", "sum"].map(revealed), [0, 1, 2, 3, 4, 5]);
});

test("the sharpest head has the highest weights", () => {
  assert.equal(sharpestHead([[[0.5, 0.5]], [[0.1, 0.9]], [[0.4, 0.6]]]), 1);
});

test("what is switched off is told in one order", () => {
  assert.equal(withoutOf(new Set(["scale", "cross.0.1", "mask"])), "cross.0.1 mask scale");
});

test("changed tokens are those outside of a longest common run", () => {
  assert.deepEqual(changed(["a", "b", "c"], ["a", "x", "c"]), [false, true, false]);
  assert.deepEqual(changed(["a"], ["a", "b"]), [false, true]);
  assert.deepEqual(changed([], ["a"]), [true]);
});

test("a model that normalises first has another step", () => {
  assert.equal(ids(stepsOf("encoder", "attention", true)).filter((id) => id === "prenorm").length, 2);
});
