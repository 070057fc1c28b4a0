import assert from "node:assert/strict";
import { test } from "node:test";
import { describe, entropy, HINTS, meanOfHeads } from "../../crates/serve/page/hints.js";

const SENTENCE = ["▁the", "▁cat", "▁sat", ",", "▁and", "▁the", "▁dog", "</s>"];
const n = SENTENCE.length;

/** Rows that hold `share` at the cells that `picks` names, the rest spread over what can be seen. */
function head(rows, columns, picks, share = 0.9, causal = false) {
  return Array.from({ length: rows }, (_, i) => {
    const seen = causal ? i + 1 : columns;
    const row = Array.from({ length: columns }, (_, j) => (j < seen ? 1 : 0));
    const chosen = row.map((v, j) => v > 0 && picks(i, j));
    const count = chosen.filter(Boolean).length;
    if (count === 0) return row.map((v) => v / seen);
    const others = seen - count;
    return row.map((v, j) => (v === 0 ? 0 : chosen[j] ? (others ? share : 1) / count : (1 - share) / others));
  });
}

const encoder = (picks, share) => describe("encoder", head(n, n, picks, share), SENTENCE, SENTENCE);

test("each simple head of an encoder is recognised", () => {
  assert.equal(encoder((i, j) => i === j).name, "diagonal");
  assert.equal(encoder((i, j) => j === i - 1).name, "previous");
  assert.equal(encoder((i, j) => j === i + 1).name, "next");
  assert.equal(encoder((i, j) => j === 0).name, "first");
  assert.equal(encoder((i, j) => j === n - 1).name, "end");
  assert.equal(encoder((i, j) => j === 3).name, "punctuation");
  assert.equal(encoder((i, j) => j === 2).name, "one");
  assert.equal(encoder((i, j) => Math.abs(i - j) <= 2).name, "near");
  assert.equal(encoder(() => true).name, "even");
});

test("the same token elsewhere", () => {
  const tokens = ["▁a", "▁b", "▁a", "▁b", "▁a", "▁b"];
  const weights = head(6, 6, (i, j) => i !== j && tokens[i] === tokens[j]);
  assert.equal(describe("encoder", weights, tokens, tokens).name, "same");
});

test("heads without a pattern are called mixed", () => {
  const weights = Array.from({ length: n }, (_, i) =>
    Array.from({ length: n }, (_, j) => (j === (i * 3 + 2) % n ? 0.8 : 0.2 / (n - 1))),
  );
  assert.equal(describe("encoder", weights, SENTENCE, SENTENCE).name, "mixed");
});

test("the share is the weight that the pattern holds", () => {
  const hint = encoder((i, j) => j === 0, 0.7);
  assert.equal(hint.name, "first");
  assert.ok(Math.abs(hint.share - 0.7) < 1e-9, String(hint.share));
  assert.equal(hint.text, HINTS.first.text);
});

test("a weak pattern is not claimed", () => {
  assert.notEqual(encoder((i, j) => j === i - 1, 0.3).name, "previous");
});

test("the decoder's first row, which sees one token, does not decide", () => {
  const read = ["<start>", "▁a", "▁b", "▁c", "▁d", "▁e"];
  const said = ["▁a", "▁b", "▁c", "▁d", "▁e", "</s>"];
  const decoder = (picks, share) => describe("decoder", head(6, 6, picks, share, true), said, read).name;
  assert.equal(decoder((i, j) => j === i), "read");
  assert.equal(decoder((i, j) => j === i - 1), "previous");
  assert.equal(decoder((i, j) => j === 0), "first");
  assert.equal(decoder(() => true), "even");
});

test("cross-attention along the diagonal, also between unequal lengths", () => {
  const said = ["▁1", "▁2", "▁3", "▁4", "▁5", "▁6", "▁7", "▁8", "▁9", "▁10", "▁11", "▁12", "▁13", "</s>"];
  const slope = (n - 1) / (said.length - 1);
  const weights = head(said.length, n, (i, j) => j === Math.round(i * slope));
  assert.equal(describe("cross", weights, said, SENTENCE).name, "aligned");
  const late = head(said.length, n, (i, j) => j === Math.round(i * slope) - 2);
  assert.equal(describe("cross", late, said, SENTENCE).name, "aligned");
  assert.equal(describe("cross", head(said.length, n, (i, j) => j === n - 1), said, SENTENCE).name, "end");
  assert.equal(describe("cross", head(said.length, n, () => true), said, SENTENCE).name, "even");
});

test("a sentence of two tokens tells nothing", () => {
  assert.equal(describe("encoder", [[1, 0], [0, 1]], ["▁a", "</s>"], ["▁a", "</s>"]).name, "short");
  assert.equal(describe("encoder", [[1]], ["</s>"], ["</s>"]).name, "short");
});

test("spread is the number of tokens that share the weight evenly", () => {
  assert.ok(Math.abs(encoder(() => true).spread - n) < 1e-9);
  assert.ok(Math.abs(encoder((i, j) => i === j, 1).spread - 1) < 1e-9);
});

test("entropy scales its weights and takes zeros", () => {
  assert.equal(entropy([1, 0, 0]), 0);
  assert.ok(Math.abs(entropy([2, 2]) - Math.LN2) < 1e-12);
  assert.equal(entropy([0, 0]), 0);
});

test("the mean of heads is taken cell by cell", () => {
  assert.deepEqual(meanOfHeads([[[1, 0]], [[0, 1]]]), [[0.5, 0.5]]);
});
