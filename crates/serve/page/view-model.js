// Model: what it is made of and how it was trained.
import * as api from "./api.js";
import { lineChart, stackedBar } from "./chart.js";
import { byId, choice, h, notice, table, wordsOf } from "./dom.js";
import { compact, digits3, grouped } from "./scale.js";

// The settings that say most, with the names that people use.
const KNOWN = [
  ["d_model", "width d"],
  ["encoder_layers", "encoder layers"],
  ["decoder_layers", "decoder layers"],
  ["heads", "heads"],
  ["d_ff", "feed-forward width"],
  ["source_vocabulary", "source words"],
  ["target_vocabulary", "target words"],
];

const state = { models: [], chosen: 0 };

export async function start() {
  const result = byId("model-result");
  result.replaceChildren(notice("loading", "Loading the model …"));
  try {
    state.models = await api.models(true);
    render();
  } catch (error) {
    result.replaceChildren(notice("error", wordsOf(error), { name: "Try again", run: start }));
  }
}

/** Counters and logs grow while the page is open. */
export async function shown() {
  if (state.models.length === 0) return;
  try {
    state.models = await api.models(true);
    render();
  } catch {
    // What was read before stays.
  }
}

function render() {
  const model = state.models[Math.min(state.chosen, state.models.length - 1)];
  byId("model-result").replaceChildren(
    h("div", { class: "card" }, head(model), figures(model)),
    h("div", { class: "card" }, parts(model)),
    h("div", { class: "card" }, h("h3", {}, "Training"), training(model)),
    h("div", { class: "card" }, h("h3", {}, "Examples"), examples(model)),
    h("div", { class: "card" }, settings(model)),
  );
}

function head(model) {
  const options = state.models.map((m, i) => [i, m.label]);
  const pick =
    options.length > 1
      ? choice("model-choice", "Model", options, state.chosen, (i) => {
          state.chosen = Number(i);
          render();
          byId("model-choice").focus();
        })
      : null;
  return h("div", { class: "model-head" }, h("h3", {}, model.name ?? model.label), pick);
}

function figures(model) {
  const config = model.config ?? {};
  const list = [
    ["parameters", compact(model.parameters)],
    ...KNOWN.filter(([key]) => Number.isFinite(config[key])).map(([key, name]) => [name, grouped(config[key])]),
    ...speed(model.speed),
  ];
  return h("dl", { class: "figures" }, list.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function speed(measured) {
  const list = [];
  if (Number.isFinite(measured?.tokens_per_s) && measured.tokens_per_s > 0) {
    list.push(["tokens per second", grouped(Math.round(measured.tokens_per_s))]);
  }
  if (Number.isFinite(measured?.requests)) list.push(["requests served", compact(measured.requests)]);
  return list;
}

function parts(model) {
  const entries = Object.entries(model.parts ?? {}).filter(([, value]) => value > 0);
  if (entries.length === 0) return notice("empty", "The parameter counts of this model are not known.");
  return stackedBar({
    title: "Parameters by part",
    parts: entries.map(([name, value]) => ({ name: name.replaceAll("_", " "), value })),
  });
}

function training(model) {
  const log = model.training ?? [];
  const points = (key) => log.map((r) => [r.step, r[key]]).filter(([, v]) => Number.isFinite(v));
  const charts = [
    ["loss", "Loss per target token", "loss (nats)", digits3, false],
    ["bleu", "BLEU on held-out text", "BLEU", digits3, true],
    ["rate", "Learning rate", "rate", digits3, false],
  ]
    .map(([key, title, label, format, dots]) => ({ title, label, format, dots, points: points(key) }))
    .filter((chart) => chart.points.length > 0);
  if (charts.length === 0) return notice("empty", "This model has no training log.");
  return h(
    "div",
    { class: "charts" },
    charts.map(({ title, label, format, dots, points: list }) =>
      lineChart({
        title,
        description: `${title}: from ${format(list[0][1])} at step ${list[0][0]} to ${format(list.at(-1)[1])} at step ${list.at(-1)[0]}.`,
        x: { label: "step", format: grouped },
        y: { label, format },
        series: [{ name: label, points: list }],
        height: 220,
        dots: dots && list.length <= 40,
      }),
    ),
  );
}

function examples(model) {
  const list = model.examples ?? [];
  if (list.length === 0) return notice("empty", "This model has no examples.");
  const body = list.map(({ source, target, reference }) =>
    h(
      "div",
      { class: "example" },
      h("p", { lang: model.source }, source),
      h("p", { lang: model.target }, target),
      // What a translator wrote is shown where the model said something else.
      reference && reference !== target
        ? h("p", { class: "muted reference" }, "reference: ", h("span", { lang: model.target }, reference))
        : null,
    ),
  );
  return h("div", { class: "examples" }, body);
}

function settings(model) {
  const rows = Object.entries(model.config ?? {}).map(([key, value]) => [
    key,
    value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value),
  ]);
  if (rows.length === 0) return notice("empty", "The settings of this model are not known.");
  return h("details", { class: "numbers" }, h("summary", {}, "All settings"), table("Settings", ["name", "value"], rows));
}
