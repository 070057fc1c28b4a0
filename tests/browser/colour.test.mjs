import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { css, diverging, oklch, palette, sequential } from "../../crates/serve/page/colour.js";

const page = new URL("../../crates/serve/page/", import.meta.url);
const style = readFileSync(new URL("style.css", page), "utf8");

function luminance([r, g, b]) {
  const linear = [r, g, b].map((v) => (v / 255 <= 0.04045 ? v / 255 / 12.92 : ((v / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2];
}

function contrast(a, b) {
  const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
  return (high + 0.05) / (low + 0.05);
}

/** The colours of the style sheet: name → [light, dark]. */
function variables() {
  const found = {};
  for (const [, name, light, dark] of style.matchAll(/--([\w-]+): light-dark\((#\w{6}), (#\w{6})\);/g)) {
    found[name] = [light, dark].map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  }
  return found;
}

test("OKLCH gives the corners of sRGB", () => {
  assert.deepEqual(oklch(0, 0, 0), [0, 0, 0]);
  assert.deepEqual(oklch(1, 0, 0), [255, 255, 255]);
  assert.equal(css([1, 2, 3]), "rgb(1 2 3)");
});

test("more weight is darker on light ground and brighter on dark", () => {
  for (let t = 0.1; t <= 1.001; t += 0.1) {
    assert.ok(luminance(sequential(t, false)) < luminance(sequential(t - 0.1, false)), `light ${t}`);
    assert.ok(luminance(sequential(t, true)) > luminance(sequential(t - 0.1, true)), `dark ${t}`);
  }
});

test("the diverging palette has the ground in its middle and two sides of different hue", () => {
  for (const dark of [false, true]) {
    const [below, above] = [diverging(-1, dark), diverging(1, dark)];
    assert.ok(below[2] > below[0] && above[0] > above[2]);
    const [r, g, b] = diverging(0, dark);
    assert.ok(Math.max(r, g, b) - Math.min(r, g, b) <= 2);
  }
  assert.equal(palette("diverging", false).length, 256);
  assert.deepEqual(palette("sequential", true)[255], sequential(1, true));
});

test("texts have a contrast of 4.5, edges and curves of 3", () => {
  const colours = variables();
  const pairs = [
    ["ink", "ground", 4.5],
    ["ink", "card", 4.5],
    ["ink", "raised", 4.5],
    ["ink", "own", 4.5],
    ["ink", "linked", 4.5],
    ["ink", "accent-soft", 4.5],
    ["muted", "ground", 4.5],
    ["muted", "card", 4.5],
    ["muted", "sunken", 4.5],
    ["accent", "ground", 4.5],
    ["accent", "card", 4.5],
    ["accent", "sunken", 4.5],
    ["accent", "accent-soft", 4.5],
    ["on-accent", "accent", 4.5],
    ["error", "error-soft", 4.5],
    ["error", "card", 4.5],
    ["edge", "card", 3],
    ...Array.from({ length: 8 }, (_, i) => [`series-${i}`, "card", 3]),
  ];
  for (const [front, back, least] of pairs) {
    for (const theme of [0, 1]) {
      const found = contrast(colours[front][theme], colours[back][theme]);
      assert.ok(found >= least, `${front} on ${back}, ${theme ? "dark" : "light"}: ${found.toFixed(2)}`);
    }
  }
});

test("nothing is fetched from elsewhere and nothing is inline", () => {
  const html = readFileSync(new URL("index.html", page), "utf8");
  assert.doesNotMatch(html, /\sstyle=|\son\w+=|<style|https?:/);
  assert.doesNotMatch(html, /<script(?![^>]*\ssrc=)/);
  assert.doesNotMatch(style, /url\(|@import/);
});
