// Positions: how a model knows where a word stands.
import * as api from "./api.js";
import { lineChart } from "./chart.js";
import { byId, choice, h, notice, segmented, wordsOf } from "./dom.js";
import { heatMap } from "./heatmap.js";
import { has, t } from "./i18n.js";
import { formula, withMath } from "./math.js";
import { digits3, extent, tidy } from "./scale.js";
import { column, similarity, sinusoidal, wavelength } from "./sinusoid.js";

const COLUMNS = 4;
const FIRST_COLUMN = 6;
// The width that textbooks draw: its columns differ enough to be told apart by eye.
const SMALL = 32;

const state = { models: [], model: 0, data: null, kind: "sinusoidal", width: "small", first: FIRST_COLUMN, count: 60, row: 20 };

export async function start() {
  const result = byId("positions-result");
  result.replaceChildren(notice("loading", t("loading")));
  try {
    state.models = await api.models();
    await load();
  } catch (error) {
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: start }));
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
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: load }));
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
      ? choice("positions-model", t("model"), models.map((m, i) => [i, m.label]), state.model, (i) => {
          state.model = Number(i);
          load().then(() => byId("positions-model")?.focus());
        })
      : null,
    segmented(
      "positions-kind",
      t("positions.table"),
      [["sinusoidal", t("positions.sine")], ["own", t("positions.own"), !data.own]],
      state.kind,
      (kind) => change({ kind }, "[name=positions-kind]:checked"),
    ),
    state.kind === "sinusoidal"
      ? segmented(
          "positions-width",
          t("positions.width"),
          [["small", t("positions.small", { d: SMALL })], ["full", t("positions.full", { d: ownWidth ?? "–" }), !ownWidth]],
          state.width,
          (width) => change({ width }, "[name=positions-width]:checked"),
        )
      : null,
    numeric("positions-first", t("positions.first"), state.first, 0, d - COLUMNS, "first"),
    numeric("positions-count", t("positions.count"), count, 4, most, "count"),
  ];
}

function about(d) {
  const { kind, own } = state.data;
  const model = has(`positions.kind.${kind}`) ? t(`positions.kind.${kind}`) : t("positions.kind.other", { kind });
  const none = own ? "" : ` ${t("positions.no.table")}`;
  const shown = state.kind === "sinusoidal" ? h("div", { class: "formula" }, formula("sine"), formula("cosine"), h("span", {}, withMath(`d = ${d}`))) : null;
  return h("div", { class: "about" }, h("p", {}, model, none), shown);
}

function curves(shown, d) {
  const list = Array.from({ length: COLUMNS }, (_, i) => state.first + i);
  const name = (c) =>
    state.kind === "sinusoidal"
      ? t("positions.period", { c, period: digits3(Number(wavelength(c, d).toPrecision(3))) })
      : t("positions.column", { c });
  const last = list[list.length - 1];
  return lineChart({
    title: t("positions.columns", { first: list[0], last }),
    description: t("positions.columns.text", { first: list[0], last, count: shown.length }),
    x: { label: t("positions.p"), format: String },
    y: { label: t("positions.value"), format: tidy },
    series: list.map((c) => ({ name: name(c), points: column(shown, c) })),
    height: 280,
    domain: state.kind === "sinusoidal" ? [-1, 1] : undefined,
  });
}

function heat(shown) {
  const about =
    state.kind === "sinusoidal"
      ? t("positions.counter")
      : t(has(`positions.order.${state.data.kind}`) ? `positions.order.${state.data.kind}` : "positions.order.other");
  return h(
    "div",
    {},
    heatMap({
      title: t("positions.the.table"),
      description: `${t("positions.heat", { rows: shown.length, columns: shown[0].length })} ${about}`,
      matrix: shown,
      rows: { name: t("positions.p") },
      columns: { name: t("positions.col") },
      scale: "diverging",
      height: 340,
      say: (p, c, value) => t("positions.cell", { p, c, value: tidy(value) }),
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
        title: t("positions.dot.with", { p }),
        x: { label: t("positions.q"), format: String },
        y: { label: t("positions.dot"), format: tidy },
        series: [{ name: t("positions.with", { p }), points: products[p].map((v, q) => [q, v]) }],
        height: 200,
      }),
    );
  };
  drawRow(Math.min(state.row, shown.length - 1));
  const map = heatMap({
    title: t("positions.similarity"),
    description: t("positions.similarity.text"),
    matrix: products,
    rows: { name: t("positions.p") },
    columns: { name: t("positions.q") },
    // Products of one sign take the whole palette.
    scale: low < 0 ? "diverging" : "sequential",
    range: low < 0 ? undefined : [low, high],
    height: 340,
    say: (p, q, value) => t("positions.pair", { p, q, value: tidy(value) }),
    onrow: (p) => {
      if (p !== state.row) drawRow(p);
    },
  });
  const text = t("positions.similarity.tip");
  return [h("div", {}, map, h("p", { class: "muted" }, text)), curve];
}
