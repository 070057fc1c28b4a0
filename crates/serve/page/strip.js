// A vector as a strip of cells: blue below zero, orange above.
import { css, palette } from "./colour.js";
import { h, isDark } from "./dom.js";
import { t } from "./i18n.js";
import { tidy } from "./scale.js";

const HEIGHT = 14;
const CELL = 5;

/** `values` as cells; `most` is the magnitude of the strongest colour. `norm` is the length of the whole vector. */
export function strip(values, { most, norm } = {}) {
  const shown = values.slice(0, 32);
  const size = most ?? largest([shown]);
  const canvas = h("canvas", { class: "strip", role: "img", "aria-label": describe(shown, norm) });
  canvas.width = shown.length * CELL;
  canvas.height = HEIGHT;
  const colours = palette("diverging", isDark());
  const context = canvas.getContext("2d");
  shown.forEach((value, i) => {
    const level = Math.round(127.5 + (127.5 * value) / (size || 1));
    context.fillStyle = css(colours[Math.max(0, Math.min(255, level))]);
    context.fillRect(i * CELL, 0, CELL - 1, HEIGHT);
  });
  canvas.title = shown.slice(0, 8).map((v) => tidy(v)).join("  ") + (shown.length > 8 ? " …" : "");
  return canvas;
}

/** The strongest colour for vectors that are compared: most of their numbers lie below it. */
export function largest(rows) {
  const sizes = rows.flat().map(Math.abs).sort((a, b) => a - b);
  return sizes.length ? sizes[Math.floor(0.98 * (sizes.length - 1))] || 1 : 1;
}

function describe(values, norm) {
  const first = values.slice(0, 4).map((v) => tidy(v)).join(", ");
  return norm === undefined ? t("vector.begins", { first }) : t("vector.length", { norm: tidy(norm), first });
}
