// Model: what it is made of and how it was trained.
import * as api from "./api.js";
import { lineChart, stackedBar } from "./chart.js";
import { byId, choice, h, notice, table, wordsOf } from "./dom.js";
import { has, t } from "./i18n.js";
import { compact, digits3, grouped, niceDomain } from "./scale.js";
import { diagram } from "./steps-diagram.js";
import { openAt } from "./view-steps.js";

// The settings that say most, with the names that people use.
const KNOWN = [
  "d_model",
  "encoder_layers",
  "decoder_layers",
  "heads",
  "d_ff",
  "source_vocabulary",
  "target_vocabulary",
];

// `grown` says when the run of a model was last seen to go on.
const state = { models: [], chosen: 0, grown: new Map() };

// How often, in ms, a run is looked at: one that goes on more often; and for how long it counts as
// one that does.
const PACE = { still: 15000, growing: 4000, ended: 120000 };

const isLive = (i) => Date.now() - (state.grown.get(i) ?? -Infinity) < PACE.ended;

export async function start() {
  const result = byId("model-result");
  result.replaceChildren(notice("loading", t("loading")));
  try {
    state.models = await api.models(true);
    render();
    watch();
  } catch (error) {
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: start }));
  }
}

/** Counters and logs grow while the page is open: now, and as long as the view is shown. */
export async function shown() {
  if (state.models.length === 0) return start();
  watch();
  await refresh();
}

export function hidden() {
  clearTimeout(timer);
}

let timer = null;

function watch() {
  clearTimeout(timer);
  const pace = state.models.some((_, i) => isLive(i)) ? PACE.growing : PACE.still;
  timer = setTimeout(async () => {
    if (!document.hidden) await refresh();
    if (!byId("view-model").hidden) watch();
  }, pace);
}

/** Reads the models again. Only what has grown is drawn again, so that what the reader has opened or pointed at stays. */
async function refresh() {
  try {
    const models = await api.models(true);
    // The score of a step, and examples, may come after its loss.
    const log = (model) => JSON.stringify([model?.training, model?.examples]);
    const at = state.chosen;
    const [before, live] = [log(state.models[at]), isLive(at)];
    models.forEach((model, i) => {
      if (log(model) !== log(state.models[i])) state.grown.set(i, Date.now());
    });
    state.models = models;
    byId("model-figures")?.replaceWith(figures(chosen()));
    if (log(models[at]) !== before || isLive(at) !== live) drawTraining();
  } catch {
    // What was read before stays.
  }
}

/** The curves and examples again; the keyboard stays where it is. */
function drawTraining() {
  const card = byId("model-training");
  const plots = () => [...card.querySelectorAll(".plot")];
  const focused = plots().indexOf(document.activeElement);
  card.replaceChildren(...training(chosen()));
  plots()[focused]?.focus();
  byId("model-examples").replaceChildren(...examples(chosen()));
}

const chosen = () => state.models[Math.min(state.chosen, state.models.length - 1)];

function render() {
  const model = chosen();
  byId("model-result").replaceChildren(
    h("div", { class: "card" }, head(model), figures(model)),
    h("div", { class: "card model-diagram" }, h("div", {}, h("h3", {}, t("model.diagram")), h("p", { class: "muted" }, t("model.diagram.text")), parts(model), terms(model)), made(model)),
    h("div", { class: "card", id: "model-training" }, training(model)),
    h("div", { class: "card", id: "model-examples" }, examples(model)),
    h("div", { class: "card" }, settings(model)),
  );
}

function head(model) {
  const options = state.models.map((m, i) => [i, m.label]);
  const pick =
    options.length > 1
      ? choice("model-choice", t("model"), options, state.chosen, (i) => {
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
    [t("model.parameters"), compact(model.parameters)],
    ...KNOWN.filter((key) => Number.isFinite(config[key])).map((key) => [t(`model.${key}`), grouped(config[key])]),
    ...speed(model.speed),
  ];
  return h("dl", { class: "figures", id: "model-figures" }, list.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

/** What the words of this view mean. */
const TERMS = ["parameters", "d_model", "layers", "heads", "d_ff", "vocabulary", "speed", "step"];

function terms({ speed: measured }) {
  const shown = TERMS.filter((key) => key !== "speed" || measured?.tokens_per_s > 0);
  return h(
    "details",
    { class: "numbers", id: "model-terms", open: true },
    h("summary", {}, t("model.terms")),
    h("dl", { class: "terms" }, shown.map((key) => h("div", {}, h("dt", {}, t(`term.${key}`)), h("dd", {}, t(`term.${key}.text`))))),
  );
}

function speed(measured) {
  const list = [];
  if (Number.isFinite(measured?.tokens_per_s) && measured.tokens_per_s > 0) {
    list.push([t("model.speed"), grouped(Math.round(measured.tokens_per_s))]);
  }
  if (Number.isFinite(measured?.requests)) list.push([t("model.requests"), compact(measured.requests)]);
  return list;
}

/** The diagram of Step by step, with sizes. */
function made(model) {
  const open = (stack, block) => {
    openAt(stack, block);
    location.hash = "#steps";
  };
  return diagram({ config: model.config ?? {}, open, sizes: true });
}

function parts(model) {
  const entries = Object.entries(model.parts ?? {}).filter(([, value]) => value > 0);
  if (entries.length === 0) return notice("empty", t("model.parts.none"));
  return stackedBar({
    title: t("model.parts"),
    parts: entries.map(([name, value]) => ({ name: has(`model.part.${name}`) ? t(`model.part.${name}`) : name.replaceAll("_", " "), value })),
  });
}

function training(model) {
  const live = isLive(state.models.indexOf(model)) ? h("p", { id: "model-live", class: "muted", role: "status" }, t("model.live")) : "";
  return [h("h3", {}, t("model.training")), live, curves(model)];
}

function curves(model) {
  const log = model.training ?? [];
  // One axis for all curves, so that they can be compared.
  const steps = [0, Math.max(1, ...log.map((r) => r.step))];
  const points = (key) => log.map((r) => [r.step, r[key]]).filter(([, v]) => Number.isFinite(v));
  const charts = [
    ["loss", false],
    ["bleu", true],
    ["rate", false],
  ]
    .map(([key, dots]) => ({ key, title: t(`model.${key}`), label: t(`model.${key}.axis`), dots, points: points(key) }))
    .filter((chart) => chart.points.length > 0);
  if (charts.length === 0) return notice("empty", t("model.training.none"));
  return h(
    "div",
    { class: "charts" },
    charts.map(({ key, title, label, dots, points: list }) =>
      h(
        "div",
        {},
        lineChart({
          title,
          description: t("model.curve", { title, first: digits3(list[0][1]), from: list[0][0], last: digits3(list.at(-1)[1]), to: list.at(-1)[0] }),
          x: { label: t("model.step"), format: grouped, domain: steps },
          y: { label, format: digits3 },
          series: [{ name: label, points: list }],
          height: 220,
          dots: dots && list.length <= 40,
          // A score from 0 to 100 is shown from 0, so that a small gain does not look like a large
          // one.
          domain: key === "bleu" ? niceDomain([0, Math.max(5, ...list.map(([, v]) => v))], 5) : undefined,
        }),
        h("p", { class: "muted" }, t(`model.${key}.text`)),
      ),
    ),
  );
}

function examples(model) {
  const list = model.examples ?? [];
  const title = h("h3", {}, t("model.examples"));
  if (list.length === 0) return [title, notice("empty", t("model.examples.none"))];
  const body = list.map(({ source, target, reference }) =>
    h(
      "div",
      { class: "example" },
      h("p", { lang: model.source }, source),
      h("p", { lang: model.target }, target),
      // What a translator wrote is shown where the model said something else.
      reference && reference !== target
        ? h("p", { class: "muted reference" }, t("model.reference"), h("span", { lang: model.target }, reference))
        : null,
    ),
  );
  return [title, h("div", { class: "examples" }, body)];
}

function settings(model) {
  const rows = Object.entries(model.config ?? {}).map(([key, value]) => [
    key,
    value === null ? "–" : typeof value === "object" ? JSON.stringify(value) : String(value),
  ]);
  if (rows.length === 0) return notice("empty", t("model.settings.none"));
  return h("details", { class: "numbers" }, h("summary", {}, t("model.settings")), table(t("model.settings"), [t("model.name"), t("model.value")], rows));
}
