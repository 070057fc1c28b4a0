import assert from "node:assert/strict";
import { test } from "node:test";
import {
  axisFormat,
  compact,
  digits3,
  extent,
  grouped,
  linear,
  niceDomain,
  scientific,
  ticks,
  tickStep,
  tidy,
} from "../../crates/serve/page/scale.js";

test("extent leaves out what is not a number", () => {
  assert.deepEqual(extent([3, NaN, -1, Infinity, null, 2]), [-1, 3]);
  assert.equal(extent([NaN]), null);
  assert.equal(extent([]), null);
});

test("a straight scale, also backwards and without width", () => {
  assert.equal(linear([0, 10], [100, 200])(5), 150);
  assert.equal(linear([0, 10], [200, 0])(10), 0);
  assert.equal(linear([4, 4], [0, 100])(4), 50);
});

test("ticks are round and inside", () => {
  assert.deepEqual(ticks(0, 1, 5), [0, 0.2, 0.4, 0.6, 0.8, 1]);
  assert.deepEqual(ticks(-1, 1, 4), [-1, -0.5, 0, 0.5, 1]);
  assert.deepEqual(ticks(3, 97, 5), [20, 40, 60, 80]);
  assert.deepEqual(ticks(7, 7), [7]);
  assert.equal(tickStep(0, 0.0007, 5), 0.0001);
});

test("a domain is widened to ticks", () => {
  assert.deepEqual(niceDomain([0.3, 4.7], 5), [0, 5]);
  assert.deepEqual(niceDomain([2, 2]), [1, 3]);
  assert.deepEqual(niceDomain([0, 0]), [-0.5, 0.5]);
});

test("the numbers of an axis share their unit and decimals", () => {
  const written = (low, high, count) => {
    const { format, note } = axisFormat(low, high, tickStep(low, high, count));
    return [...ticks(low, high, count).map(format), note];
  };
  assert.deepEqual(written(-1, 1, 4), ["−1.0", "−0.5", "0", "0.5", "1.0", ""]);
  assert.deepEqual(written(0, 60, 3), ["0", "20", "40", "60", ""]);
  assert.deepEqual(written(0, 20000, 4), ["0", "5 k", "10 k", "15 k", "20 k", ""]);
  assert.deepEqual(written(0, 0.0014, 4), ["0", "0.5", "1.0", "× 10⁻³"]);
  assert.deepEqual(written(0, 0.001, 2), ["0", "0.5", "1.0", "× 10⁻³"]);
  assert.deepEqual(written(0, 0, 2), ["0", ""]);
});

test("large numbers are short", () => {
  assert.equal(compact(61450240), "61.5 M");
  assert.equal(compact(512), "512");
  assert.equal(compact(9999), "9,999");
  assert.equal(compact(37000), "37 k");
  assert.equal(compact(999960), "1 M");
  assert.equal(compact(2.5e9), "2.5 G");
});

test("groups and digits", () => {
  assert.equal(grouped(1234567), "1,234,567");
  assert.equal(grouped(-1000), "−1,000");
  assert.equal(grouped(12), "12");
  assert.equal(digits3(3.14159), "3.14");
  assert.equal(digits3(-27.31), "−27.3");
  assert.equal(digits3(12345.6), "12346");
  assert.equal(digits3(0.00035), "3.5 × 10⁻⁴");
  assert.equal(digits3(NaN), "–");
  assert.equal(scientific(0.0007), "7 × 10⁻⁴");
  assert.equal(tidy(0.12345), "0.123");
  assert.equal(tidy(-0.5), "−0.500");
  assert.equal(tidy(16), "16");
});
