import assert from "node:assert/strict";
import { test } from "node:test";
import { meanOfHeads } from "../../crates/serve/page/heads.js";

test("the average of heads is that of their cells", () => {
  assert.deepEqual(meanOfHeads([[[1, 0]], [[0, 1]]]), [[0.5, 0.5]]);
  assert.deepEqual(meanOfHeads([[[0.25, 0.75], [1, 0]]]), [[0.25, 0.75], [1, 0]]);
});
