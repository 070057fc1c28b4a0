// Positions: how a model knows where a word stands.
import * as api from "./api.js";
import { lineChart } from "./chart.js";
import { byId, choice, h, notice, segmented, wordsOf } from "./dom.js";
import { heatMap } from "./heatmap.js";
import { digits3, tidy } from "./scale.js";
import { column, similarity, sinusoidal, wavelength } from "./sinusoid.js";

const COLUMNS = 4;
const FIRST_COLUMN = 6;
// The width that textbooks draw: its columns differ enough to be told apart by eye.
const SMALL = 32;

const state = { models: [], model: 0, data: null, kind: "sinusoidal", width: "small", first: FIRST_COLUMN, count: 60, row: 20 };

export async function start() {
  const result = byId("positions-result");
  result.replaceChildren(notice("loading", "Reading the model …"));
  try {
    state.models = await api.models();
    if (state.models.length === 0) throw new Error("The server has no model.");
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
  const result = byId("positions-result");
  result.replaceChildren(
    h("div", { class: "card controls" }, controls(most, count, d)),
    about(d),
    h("div", { class: "card curves" }, curves(shown, d)),
    h("div", { class: "split even" }, h("div", { class: "card" }, heat(shown)), h("div", { class: "card" }, likeness(shown))),
  );
}

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
      ? choice("positions-model", "Model", models.map((m, i) => [i, `${m.source} → ${m.target}`]), state.model, (i) => {
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
          [["small", `${SMALL}, as in textbooks`], ["full", `${ownWidth ?? "–"}, this model's`, !ownWidth]],
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
  none: "This model is told nothing about positions.",
};

function about(d) {
  const model = KIND_TEXTS[state.data.kind] ?? `The positions of this model are of the kind “${state.data.kind}”.`;
  const none = state.data.own ? "" : " It has no learned table of its own to show.";
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
  return h("div", { class: "about" }, h("p", {}, model, state.data.kind === "sinusoidal" ? "" : none), formula);
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
      : "One row for each position, as the model learned it.";
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

function likeness(shown) {
  const products = similarity(shown);
  const row = Math.min(state.row, shown.length - 1);
  const place = h("div", {});
  const curve = (p) => {
    state.row = p;
    place.replaceChildren(
      lineChart({
        title: `Dot product with position ${p}`,
        x: { label: "position p", format: String },
        y: { label: "dot product", format: tidy },
        series: [{ name: `with position ${p}`, points: products[p].map((v, q) => [q, v]) }],
        height: 190,
      }),
    );
  };
  curve(row);
  let drawn = row;
  return h(
    "div",
    {},
    heatMap({
      title: "Similarity of positions",
      description: "Heat map of the dot product of every two positions.",
      matrix: products,
      rows: { name: "position p" },
      columns: { name: "position q" },
      scale: "diverging",
      height: 340,
      say: (p, q, value) => `positions ${p} and ${q}: dot product ${tidy(value)}`,
      onrow: (p) => {
        if (p !== drawn) curve((drawn = p));
      },
    }),
    place,
  );
}
