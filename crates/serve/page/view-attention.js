// Attention: what every head of every layer looked at.
import * as api from "./api.js";
import { byId, choice, h, notice, roving, segmented, wordsOf } from "./dom.js";
import { heatMap, thumbnail } from "./heatmap.js";
import { meanOfHeads } from "./heads.js";
import { Latest } from "./latest.js";
import { lineView } from "./lines.js";
import { tidy } from "./scale.js";
import { isEnd, pieceLabel, readByDecoder } from "./text.js";

const KINDS = [
  ["cross", "Cross"],
  ["encoder", "Encoder"],
  ["decoder", "Decoder"],
];
const KIND_TEXTS = {
  cross: "Every word of the translation looks at the sentence.",
  encoder: "Every word of the sentence looks at the sentence itself.",
  decoder: "Every word of the translation looks at what was said before it.",
};

const latest = new Latest();
const state = { data: null, kind: "cross", layer: null, head: "mean", view: "matrix" };
let pairs = [];

export async function start(shared) {
  byId("attention-form").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  try {
    pairs = await api.models();
    byId("attention-pair").replaceChildren(...pairs.map((p, i) => h("option", { value: i }, p.label)));
    byId("attention-pair").addEventListener("change", () => {
      byId("attention-translation").value = "";
      look();
    });
    const asked = shared.look;
    if (asked) take(asked);
    else if (!byId("attention-q").value.trim()) byId("attention-q").value = firstSentence(pairs[0]);
    shared.look = null;
    await look();
  } catch (error) {
    byId("attention-result").replaceChildren(notice("error", wordsOf(error)));
  }
}

/** A sentence that the Translate view sent here. */
export function shown(shared) {
  if (!shared.look || pairs.length === 0) return;
  take(shared.look);
  shared.look = null;
  look();
}

export function redraw() {
  if (state.data) render();
}

function take({ q, source, target }) {
  byId("attention-q").value = q.trim().split("\n")[0];
  byId("attention-translation").value = "";
  const index = pairs.findIndex((p) => p.source === source && p.target === target);
  if (index >= 0) byId("attention-pair").value = String(index);
}

function firstSentence(pair) {
  return pair.examples?.find((e) => e.source.length <= 80)?.source ?? "";
}

async function look() {
  const q = byId("attention-q").value.trim();
  const translation = byId("attention-translation").value.trim();
  const result = byId("attention-result");
  const pair = pairs[Number(byId("attention-pair").value)];
  if (!pair) return;
  if (q === "") {
    latest.cancel();
    result.replaceChildren(notice("empty", "Type a sentence, then press “Look”."));
    return;
  }
  const body = { q, source: pair.source, target: pair.target, ...(translation ? { translation } : {}) };
  result.replaceChildren(notice("loading", "Looking …"));
  try {
    const data = await latest.run((signal) => api.attention(body, signal));
    if (data === undefined) return;
    adopt(data, pair, q);
    render();
  } catch (error) {
    result.replaceChildren(notice("error", wordsOf(error), { name: "Try again", run: look }));
  }
}

function adopt(data, pair, sentence) {
  const read = readByDecoder(data.target);
  const axes = {
    encoder: [data.source, data.source],
    decoder: [data.target, read],
    cross: [data.target, data.source],
  };
  state.data = { weights: data, layers: {}, axes, pair, sentence, translation: data.translation ?? "" };
  const count = layersOf(state.kind).length;
  // The first look is at the layer that the server finds clearest.
  state.layer = Math.max(0, Math.min(state.layer ?? data.sharpest[state.kind] ?? 0, count - 1));
  if (state.head !== "mean" && state.head >= (layersOf(state.kind)[state.layer]?.heads.length ?? 0)) state.head = "mean";
}

/** The heads of every layer with their average and what the server says of them. A long sentence has much to add up: made when first shown. */
function layersOf(kind) {
  const { weights, layers } = state.data;
  layers[kind] ??= (weights[kind] ?? []).map((heads, layer) => ({
    heads,
    mean: meanOfHeads(heads),
    hints: weights.hints[kind][layer].heads,
    meanHint: weights.hints[kind][layer].mean,
  }));
  return layers[kind];
}

function render() {
  const result = byId("attention-result");
  const focused = document.activeElement?.dataset?.keep;
  result.replaceChildren(sentences(), h("div", { class: "split" }, h("div", { class: "card" }, controls(), drawing()), gridCard()));
  if (focused) result.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
}

function sentences() {
  const { axes, pair, sentence, translation } = state.data;
  const pieces = (list, lang) =>
    h("p", { class: "pieces", lang }, list.map((p) => h("span", { class: isEnd(p) ? "piece end" : "piece" }, pieceLabel(p))));
  const whole = (text, lang) => h("p", { class: "whole", lang }, text);
  return h(
    "div",
    { class: "card sentences" },
    h("div", {}, h("h3", {}, "Sentence"), whole(sentence, pair.source), pieces(axes.cross[1], pair.source)),
    h("div", {}, h("h3", {}, "Translation"), whole(translation, pair.target), pieces(axes.cross[0], pair.target)),
  );
}

function change(update, keep) {
  Object.assign(state, update);
  const layers = layersOf(state.kind);
  // An encoder may have no attention at all.
  state.layer = Math.max(0, Math.min(state.layer, layers.length - 1));
  const heads = layers[state.layer]?.heads.length ?? 0;
  if (state.head !== "mean") state.head = heads > 0 ? Math.min(state.head, heads - 1) : "mean";
  render();
  if (keep) byId("attention-result").querySelector(keep)?.focus();
}

function controls() {
  const layers = layersOf(state.kind);
  const heads = layers[state.layer]?.heads ?? [];
  return h(
    "div",
    { class: "controls" },
    segmented("kind", "Attention", KINDS, state.kind, (kind) => change({ kind }, "[name=kind]:checked")),
    choice("attention-layer", "Layer", layers.map((_, i) => [i, String(i + 1)]), state.layer, (layer) =>
      change({ layer: Number(layer) }, "#attention-layer"),
    ),
    choice(
      "attention-head",
      "Head",
      [["mean", "average"], ...heads.map((_, i) => [i, String(i + 1)])],
      state.head,
      (head) => change({ head: head === "mean" ? head : Number(head) }, "#attention-head"),
    ),
    segmented("view", "Drawn as", [["matrix", "Matrix"], ["lines", "Lines"]], state.view, (view) =>
      change({ view }, "[name=view]:checked"),
    ),
  );
}

function drawing() {
  const { axes } = state.data;
  const layer = layersOf(state.kind)[state.layer];
  if (!layer) return notice("empty", "This model has no attention of this kind.");
  const [rowPieces, columnPieces] = axes[state.kind];
  const matrix = state.head === "mean" ? layer.mean : layer.heads[state.head];
  const names = {
    cross: ["translation", "sentence"],
    encoder: ["from", "to"],
    decoder: ["about to say", "has read"],
  }[state.kind];
  const rows = { name: names[0], labels: rowPieces.map(pieceLabel) };
  const columns = { name: names[1], labels: columnPieces.map(pieceLabel) };
  const head = state.head === "mean" ? "all heads averaged" : `head ${state.head + 1}`;
  const title = `${KINDS.find(([k]) => k === state.kind)[1]} attention, layer ${state.layer + 1}, ${head}`;
  const hint = state.head === "mean" ? layer.meanHint : layer.hints[state.head];
  const description = `${title}. ${hint.text}`;
  const common = { title, description, matrix, rows, columns };
  const figure =
    state.view === "lines"
      ? lineView({ ...common, colour: state.head === "mean" ? 0 : state.head })
      : heatMap({ ...common, range: [0, 1], say: (i, j, w) => `“${rows.labels[i]}” looks at “${columns.labels[j]}”: ${tidy(w)}` });
  return h("div", {}, h("p", { class: "muted" }, KIND_TEXTS[state.kind]), hintLine(hint), figure);
}

function hintLine(hint) {
  const share = hint.share > 0 ? ` ${Math.round(100 * hint.share)} % of its weight.` : "";
  const spread = `It spreads over ${hint.spread.toFixed(1)} tokens on average.`;
  return h(
    "p",
    { id: "hint", class: "hint" },
    h("strong", {}, hint.text),
    hint.name === "even" || hint.name === "mixed" || hint.name === "short" ? "" : share,
    ` ${spread}`,
  );
}

function gridCard() {
  const layers = layersOf(state.kind);
  const width = Math.max(0, ...layers.map((l) => l.heads.length));
  const grid = h("div", { class: "heads", role: "group", "aria-label": "All heads" });
  grid.style.setProperty("--heads", String(width));
  grid.append(h("span", { class: "corner" }, "layer"));
  for (let head = 0; head < width; head += 1) grid.append(h("span", { class: "top" }, `${head + 1}`));
  layers.forEach((layer, i) => {
    grid.append(h("span", { class: "side" }, `${i + 1}`));
    layer.heads.forEach((weights, j) => grid.append(headButton(i, j, weights, layer.hints[j])));
  });
  roving(grid, "button", () => width);
  return h(
    "div",
    { class: "card" },
    h("h3", {}, "All heads"),
    h("p", { class: "muted" }, "Select a head. The label says what it does in this sentence."),
    h("div", { class: "heat-scroll" }, grid),
    summary(layers),
  );
}

function headButton(layer, head, weights, hint) {
  const chosen = state.layer === layer && state.head === head;
  const tabStop = chosen || (state.head === "mean" && state.layer === layer && head === 0);
  return h(
    "button",
    {
      type: "button",
      class: "head",
      "aria-pressed": String(chosen),
      "aria-label": `Layer ${layer + 1}, head ${head + 1}: ${hint.short}`,
      title: hint.text,
      tabindex: tabStop ? "0" : "-1",
      "data-keep": `${layer}-${head}`,
      onclick: () => change({ layer, head }),
    },
    thumbnail(weights, 44),
    h("span", { "aria-hidden": "true" }, hint.short),
  );
}

// How many heads do what, the commonest first.
function summary(layers) {
  const counts = new Map();
  for (const hint of layers.flatMap((l) => l.hints)) {
    counts.set(hint.name, { hint, count: (counts.get(hint.name)?.count ?? 0) + 1 });
  }
  const sorted = [...counts.values()].sort((a, b) => b.count - a.count);
  return h(
    "ul",
    { class: "tally" },
    sorted.map(({ hint, count }) => h("li", { title: hint.text }, h("b", {}, String(count)), ` ${hint.short}`)),
  );
}
