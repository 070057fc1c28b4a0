import assert from "node:assert/strict";
import { test } from "node:test";
import { column, similarity, sinusoidal, wavelength } from "../../crates/serve/page/sinusoid.js";

const near = (a, b) => assert.ok(Math.abs(a - b) < 1e-12, `${a} is not ${b}`);

test("sine and cosine stand side by side with the same frequency", () => {
  const table = sinusoidal(5, 8);
  assert.deepEqual(table[0], [0, 1, 0, 1, 0, 1, 0, 1]);
  near(table[3][0], Math.sin(3));
  near(table[3][1], Math.cos(3));
  near(table[3][4], Math.sin(3 / 10000 ** (4 / 8)));
  near(table[3][5], Math.cos(3 / 10000 ** (4 / 8)));
});

test("a column is a list of points", () => {
  assert.deepEqual(column([[1, 2], [3, 4]], 1), [[0, 2], [1, 4]]);
});

test("similarity is d/2 on the diagonal and depends on the distance only", () => {
  const products = similarity(sinusoidal(12, 16));
  near(products[7][7], 8);
  near(products[2][5], products[8][11]);
  near(products[2][5], products[5][2]);
});

test("a column comes back after its wavelength", () => {
  near(wavelength(0, 32), 2 * Math.PI);
  near(wavelength(6, 32), wavelength(7, 32));
  near(Math.sin(wavelength(6, 32) / 10000 ** (6 / 32)), 0);
});
