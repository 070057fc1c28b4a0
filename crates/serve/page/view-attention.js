// Attention: what every head of every layer looked at.
import * as api from "./api.js";
import { byId, choice, h, notice, roving, segmented, wordsOf } from "./dom.js";
import { heatMap, thumbnail } from "./heatmap.js";
import { meanOfHeads } from "./heads.js";
import { has, t } from "./i18n.js";
import { Latest } from "./latest.js";
import { lineView } from "./lines.js";
import { tidy } from "./scale.js";
import { currentSentence, onsentence, ready } from "./sentence.js";
import { isEnd, pieceLabel, readByDecoder } from "./text.js";

const KINDS = ["cross", "encoder", "decoder"];

const latest = new Latest();
// Without a head of one's own, the sharpest of the layer is shown.
const state = { data: null, kind: "cross", layer: null, head: null, view: "lines", translation: "", ends: true };

export async function start() {
  onsentence(() => {
    Object.assign(state, { data: null, layer: null, head: null, translation: "" });
    if (!byId("view-attention").hidden) look();
  });
  await begin();
}

async function begin() {
  try {
    await ready();
    await look();
  } catch (error) {
    byId("attention-result").replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: begin }));
  }
}

export function shown() {
  if (currentSentence() && !state.data) look();
}

export function redraw() {
  if (state.data) render();
}

async function look() {
  const { q, source, target } = currentSentence() ?? {};
  const { translation } = state;
  const result = byId("attention-result");
  if (!q) {
    latest.cancel();
    result.replaceChildren(notice("empty", t("sentence.empty")));
    return;
  }
  const body = { q, source, target, ...(translation ? { translation } : {}) };
  if (!state.data) result.replaceChildren(notice("loading", t("looking")));
  try {
    const data = await latest.run((signal) => api.attention(body, signal));
    if (data === undefined) return;
    adopt(data);
    render();
  } catch (error) {
    state.data = null;
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: look }));
  }
}

function adopt(data) {
  const read = readByDecoder(data.target);
  const axes = {
    encoder: [data.source, data.source],
    decoder: [data.target, read],
    cross: [data.target, data.source],
  };
  state.data = { weights: data, layers: {}, axes, translation: data.translation ?? "" };
  settle();
}

/** The layer and head that the server finds clearest, as `regard look` does, unless the reader has chosen; both within what there is. */
function settle() {
  const layers = layersOf(state.kind);
  const { sharpest } = state.data.weights;
  state.layer = Math.max(0, Math.min(state.layer ?? sharpest[state.kind] ?? 0, layers.length - 1));
  const heads = layers[state.layer]?.heads ?? [];
  if (state.head === null) state.head = layers[state.layer]?.sharpest ?? "mean";
  else if (state.head !== "mean") state.head = heads.length ? Math.min(state.head, heads.length - 1) : "mean";
}

/** The heads of every layer with their average and what the server says of them. A long sentence has much to add up: made when first shown. */
function layersOf(kind) {
  const { weights, layers } = state.data;
  layers[kind] ??= (weights[kind] ?? []).map((heads, layer) => ({
    heads,
    mean: meanOfHeads(heads),
    hints: weights.hints[kind][layer].heads,
    meanHint: weights.hints[kind][layer].mean,
    sharpest: weights.hints[kind][layer].sharpest,
  }));
  return layers[kind];
}

function render() {
  const result = byId("attention-result");
  const focused = document.activeElement?.dataset?.keep;
  result.replaceChildren(
    h("div", { class: "split attention" }, h("div", { class: "card" }, translationField(), controls(), drawing()), gridCard()),
  );
  if (focused) result.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
}

/** The translation that is looked at; another one can be written over it. */
function translationField() {
  const field = h("input", {
    id: "attention-translation",
    type: "text",
    autocomplete: "off",
    lang: currentSentence().target,
    "data-keep": "translation",
    onchange: (event) => {
      const text = event.target.value.trim();
      state.translation = text === state.data.translation ? state.translation : text;
      look();
    },
  });
  field.value = state.data.translation;
  return h("div", { class: "field wide" }, h("label", { for: "attention-translation" }, t("attention.translation")), field);
}

function change(update, keep) {
  Object.assign(state, update);
  settle();
  render();
  if (keep) byId("attention-result").querySelector(keep)?.focus();
}

function controls() {
  const layers = layersOf(state.kind);
  const heads = layers[state.layer]?.heads ?? [];
  return h(
    "div",
    { class: "controls" },
    segmented("kind", t("attention.kind"), KINDS.map((kind) => [kind, t(`kind.${kind}`)]), state.kind, (kind) =>
      change({ kind, layer: null, head: null }, "[name=kind]:checked"),
    ),
    choice("attention-layer", t("layer"), layers.map((_, i) => [i, String(i + 1)]), state.layer, (layer) =>
      change({ layer: Number(layer), head: state.head === "mean" ? "mean" : null }, "#attention-layer"),
    ),
    choice(
      "attention-head",
      t("head"),
      [["mean", t("average")], ...heads.map((_, i) => [i, String(i + 1)])],
      state.head,
      (head) => change({ head: head === "mean" ? head : Number(head) }, "#attention-head"),
    ),
    segmented("view", t("drawn.as"), [["lines", t("drawn.lines")], ["matrix", t("drawn.matrix")]], state.view, (view) =>
      change({ view }, "[name=view]:checked"),
    ),
    h(
      "label",
      { class: "check" },
      h("input", { id: "hide-ends", type: "checkbox", checked: !state.ends, onchange: (event) => change({ ends: !event.target.checked }, "#hide-ends") }),
      h("span", {}, t("ends.hide")),
    ),
  );
}

function drawing() {
  const { axes } = state.data;
  const layer = layersOf(state.kind)[state.layer];
  if (!layer) return notice("empty", t("kind.none"));
  // The end of the sentence takes much of the weight of heads that have nothing to do; without it,
  // the rest is easier to see.
  const seen = (pieces) => pieces.map((_, i) => i).filter((i) => state.ends || !isEnd(pieces[i]));
  const [shownRows, shownColumns] = axes[state.kind].map(seen);
  const [rowPieces, columnPieces] = [shownRows.map((i) => axes[state.kind][0][i]), shownColumns.map((j) => axes[state.kind][1][j])];
  const whole = state.head === "mean" ? layer.mean : layer.heads[state.head];
  const matrix = shownRows.map((i) => shownColumns.map((j) => whole[i][j]));
  const names = {
    cross: [t("axis.translation"), t("axis.sentence")],
    encoder: [t("axis.from"), t("axis.to")],
    decoder: [t("axis.say"), t("axis.read")],
  }[state.kind];
  const rows = { name: names[0], labels: rowPieces.map(pieceLabel) };
  const columns = { name: names[1], labels: columnPieces.map(pieceLabel) };
  const place = { kind: t(`kind.${state.kind}`), layer: state.layer + 1, head: state.head + 1 };
  const title = t(state.head === "mean" ? "attention.of.mean" : "attention.of.head", place);
  const hint = state.head === "mean" ? layer.meanHint : layer.hints[state.head];
  const description = `${title}. ${textOf(hint)}`;
  const common = { title, description, matrix, rows, columns };
  const figure =
    state.view === "lines"
      ? lineView({ ...common, colour: state.head === "mean" ? 0 : state.head })
      : heatMap({ ...common, range: [0, 1], say: (i, j, w) => t("looks.at", { from: rows.labels[i], to: columns.labels[j], weight: tidy(w) }) });
  return h("div", {}, h("p", { class: "muted" }, t(`kind.${state.kind}.text`)), hintLine(hint), figure);
}

/** What a head does, in the reader's language where there are words for it. */
const textOf = (hint) => (has(`pattern.${hint.name}`) ? t(`pattern.${hint.name}`) : hint.text);
const shortOf = (hint) => (has(`pattern.${hint.name}.short`) ? t(`pattern.${hint.name}.short`) : hint.short);

function hintLine(hint) {
  const share = hint.share > 0 ? ` ${t("hint.share", { share: Math.round(100 * hint.share) })}` : "";
  const spread = t("hint.spread", { spread: hint.spread.toFixed(1) });
  return h(
    "p",
    { id: "hint", class: "hint" },
    h("strong", {}, textOf(hint)),
    hint.name === "even" || hint.name === "mixed" || hint.name === "short" ? "" : share,
    ` ${spread}`,
  );
}

function gridCard() {
  const layers = layersOf(state.kind);
  const width = Math.max(0, ...layers.map((l) => l.heads.length));
  const grid = h("div", { class: "heads", role: "group", "aria-label": t("heads.all") });
  grid.style.setProperty("--heads", String(width));
  grid.append(h("span", { class: "corner" }, t("heads.layer")));
  for (let head = 0; head < width; head += 1) grid.append(h("span", { class: "top" }, `${head + 1}`));
  layers.forEach((layer, i) => {
    grid.append(h("span", { class: "side" }, `${i + 1}`));
    layer.heads.forEach((weights, j) => grid.append(headButton(i, j, weights, layer.hints[j], width > 8 ? 42 : width > 4 ? 48 : 84)));
  });
  roving(grid, "button", () => width);
  return h(
    "div",
    { class: "card" },
    h("h3", {}, t("heads.all")),
    h("p", { class: "muted" }, t("heads.select")),
    h("div", { class: "heat-scroll" }, grid),
    summary(layers),
  );
}

function headButton(layer, head, weights, hint, size) {
  const chosen = state.layer === layer && state.head === head;
  const tabStop = chosen || (state.head === "mean" && state.layer === layer && head === 0);
  return h(
    "button",
    {
      type: "button",
      class: "head",
      "aria-pressed": String(chosen),
      "aria-label": t("heads.label", { layer: layer + 1, head: head + 1, hint: shortOf(hint) }),
      title: textOf(hint),
      tabindex: tabStop ? "0" : "-1",
      "data-keep": `${layer}-${head}`,
      onclick: () => change({ layer, head }),
    },
    thumbnail(weights, size),
    h("span", { "aria-hidden": "true" }, shortOf(hint)),
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
    sorted.map(({ hint, count }) => h("li", { title: textOf(hint) }, h("b", {}, String(count)), ` ${shortOf(hint)}`)),
  );
}
