import assert from "node:assert/strict";
import test from "node:test";
import { confidence, layout } from "../../crates/serve/page/decoding.js";

test("confidence has five levels", () => {
  assert.deepEqual([1, 0.9, 0.89, 0.6, 0.35, 0.1, null].map(confidence), [0, 0, 1, 2, 3, 4, 0]);
});

test("the best translation is a straight line at the top", () => {
  const node = (parent, length, best, log_probability) => ({ parent, length, best, log_probability });
  const nodes = [
    node(null, 1, false, -0.1),
    node(null, 1, true, -0.2),
    node(1, 2, false, -0.3),
    node(1, 2, true, -0.4),
    node(0, 2, false, -0.5),
  ];
  const { x, y, rows } = layout(nodes);
  assert.deepEqual(x, [0, 0, 1, 1, 1]);
  assert.equal(y[1], 0);
  assert.equal(y[3], 0, "the best child continues its parent's row");
  assert.equal(y[4], y[0]);
  assert.equal(new Set([y[1], y[2], y[0]]).size, 3);
  assert.equal(rows, 3);
});

test("nothing is no tree", () => {
  assert.deepEqual(layout([]).y, []);
});
