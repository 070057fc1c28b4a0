// Positions: how a model knows where a word stands.
import * as api from "./api.js";
import { lineChart } from "./chart.js";
import { byId, choice, h, notice, segmented, wordsOf } from "./dom.js";
import { heatMap } from "./heatmap.js";
import { digits3, extent, tidy } from "./scale.js";
import { column, similarity, sinusoidal, wavelength } from "./sinusoid.js";

const COLUMNS = 4;
const FIRST_COLUMN = 6;
// The width that textbooks draw: its columns differ enough to be told apart by eye.
const SMALL = 32;

const state = { models: [], model: 0, data: null, kind: "sinusoidal", width: "small", first: FIRST_COLUMN, count: 60, row: 20 };

export async function start() {
  const result = byId("positions-result");
  result.replaceChildren(notice("loading", "Loading the model …"));
  try {
    state.models = await api.models();
    await load();
  } catch (error) {
    result.replaceChildren(notice("error", wordsOf(error), { name: "Try again", run: start }));
  }
}

export function redraw() {
  if (state.data) render();
}

const nameOf = (model) => `${model.source}-${model.target}`;

async function load() {
  const result = byId("positions-result");
  try {
    state.data = await api.positions(nameOf(state.models[state.model]));
    if (!state.data.own) state.kind = "sinusoidal";
    render();
  } catch (error) {
    state.data = null;
    result.replaceChildren(notice("error", wordsOf(error), { name: "Try again", run: load }));
  }
}

/** The table that the settings ask for. */
function tableShown() {
  const { interleaved, own } = state.data;
  if (state.kind === "own") return own;
  if (state.width === "small" || !interleaved?.length) return sinusoidal(Math.max(state.count, 128), SMALL);
  return interleaved;
}

function render() {
  const whole = tableShown();
  const most = whole.length;
  const count = Math.min(state.count, most);
  const d = whole[0].length;
  state.first = Math.max(0, Math.min(state.first, d - COLUMNS));
  const shown = whole.slice(0, count);
  const [map, curve] = likeness(shown);
  const result = byId("positions-result");
  result.replaceChildren(
    h("div", { class: "card controls" }, controls(most, count, d)),
    about(d),
    h("div", { class: "card curves" }, curves(shown, d)),
    h("div", { class: "split" }, card(heat(shown)), card(map)),
    card(curve),
  );
}

const card = (content) => h("div", { class: "card" }, content);

function change(update, focus) {
  Object.assign(state, update);
  render();
  if (focus) byId("positions-result").querySelector(focus)?.focus();
}

function controls(most, count, d) {
  const { models, data } = state;
  const ownWidth = data.interleaved?.[0]?.length;
  const numeric = (id, label, value, low, high, key) =>
    h(
      "div",
      { class: "field" },
      h("label", { for: id }, label),
      h("input", {
        id,
        type: "number",
        min: low,
        max: high,
        value,
        onchange: (event) => {
          const wanted = Math.round(event.target.valueAsNumber);
          const given = Number.isFinite(wanted) ? Math.max(low, Math.min(high, wanted)) : value;
          change({ [key]: given }, `#${id}`);
        },
      }),
    );
  return [
    models.length > 1
      ? choice("positions-model", "Model", models.map((m, i) => [i, m.label]), state.model, (i) => {
          state.model = Number(i);
          load().then(() => byId("positions-model")?.focus());
        })
      : null,
    segmented(
      "positions-kind",
      "Table",
      [["sinusoidal", "Sine and cosine"], ["own", "The model's own", !data.own]],
      state.kind,
      (kind) => change({ kind }, "[name=positions-kind]:checked"),
    ),
    state.kind === "sinusoidal"
      ? segmented(
          "positions-width",
          "Width d",
          [["small", `${SMALL}, textbook`], ["full", `${ownWidth ?? "–"}, the model`, !ownWidth]],
          state.width,
          (width) => change({ width }, "[name=positions-width]:checked"),
        )
      : null,
    numeric("positions-first", "First column", state.first, 0, d - COLUMNS, "first"),
    numeric("positions-count", "Positions", count, 4, most, "count"),
  ];
}

const KIND_TEXTS = {
  sinusoidal: "This model adds these sines and cosines to its embeddings.",
  learned: "This model learned a vector for every position.",
  relative: "This model learned vectors for distances between tokens instead of positions.",
  none: "This model has no position information.",
};

const OWN_TEXTS = {
  sinusoidal: "The same columns in the order of the model: first all sines, then all cosines. The order does not matter.",
  learned: "One row for each position, as the model learned it.",
};

function about(d) {
  const model = KIND_TEXTS[state.data.kind] ?? `The positions of this model are of the kind “${state.data.kind}”.`;
  const none = state.data.own ? "" : " It has no table of its own to show.";
  const formula =
    state.kind === "sinusoidal"
      ? h(
          "p",
          { class: "formula" },
          "PE(p, 2i) = sin(p / 10000",
          h("sup", {}, "2i/d"),
          "), PE(p, 2i+1) = cos(p / 10000",
          h("sup", {}, "2i/d"),
          `), d = ${d}`,
        )
      : null;
  return h("div", { class: "about" }, h("p", {}, model, none), formula);
}

function curves(shown, d) {
  const list = Array.from({ length: COLUMNS }, (_, i) => state.first + i);
  const wave = (c) => (state.kind === "sinusoidal" ? `, period ${digits3(Number(wavelength(c, d).toPrecision(3)))}` : "");
  const last = list[list.length - 1];
  return lineChart({
    title: `Columns ${list[0]} to ${last} over the position`,
    description: `Columns ${list[0]} to ${last} of the position table, as curves over ${shown.length} positions.`,
    x: { label: "position p", format: String },
    y: { label: "value", format: tidy },
    series: list.map((c) => ({ name: `column ${c}${wave(c)}`, points: column(shown, c) })),
    height: 280,
    domain: state.kind === "sinusoidal" ? [-1, 1] : undefined,
  });
}

function heat(shown) {
  const about =
    state.kind === "sinusoidal"
      ? "Columns to the left turn fast, columns to the right slowly, as the digits of a counter do."
      : OWN_TEXTS[state.data.kind] ?? "One row for each position.";
  return h(
    "div",
    {},
    heatMap({
      title: "The table",
      description: `Heat map of ${shown.length} positions by ${shown[0].length} columns. ${about}`,
      matrix: shown,
      rows: { name: "position p" },
      columns: { name: "column" },
      scale: "diverging",
      height: 340,
      say: (p, c, value) => `position ${p}, column ${c}: ${tidy(value)}`,
    }),
    h("p", { class: "muted" }, about),
  );
}

/** The heat map of all dot products, and the curve of the row that the pointer is at. */
function likeness(shown) {
  const products = similarity(shown);
  const [low, high] = extent(products.flat());
  const curve = h("div", { id: "likeness-curve" });
  const drawRow = (p) => {
    state.row = p;
    curve.replaceChildren(
      lineChart({
        title: `Dot product with position ${p}`,
        x: { label: "position q", format: String },
        y: { label: "dot product", format: tidy },
        series: [{ name: `with position ${p}`, points: products[p].map((v, q) => [q, v]) }],
        height: 200,
      }),
    );
  };
  drawRow(Math.min(state.row, shown.length - 1));
  const map = heatMap({
    title: "Similarity of positions",
    description: "Heat map of the dot product of every two positions.",
    matrix: products,
    rows: { name: "position p" },
    columns: { name: "position q" },
    // Products of one sign take the whole palette.
    scale: low < 0 ? "diverging" : "sequential",
    range: low < 0 ? undefined : [low, high],
    height: 340,
    say: (p, q, value) => `positions ${p} and ${q}: dot product ${tidy(value)}`,
    onrow: (p) => {
      if (p !== state.row) drawRow(p);
    },
  });
  const text = "Each cell is the dot product of two positions. The curve below shows the row under the pointer.";
  return [h("div", {}, map, h("p", { class: "muted" }, text)), curve];
}
