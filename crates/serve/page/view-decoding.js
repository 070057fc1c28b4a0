// Decoding: the translation grows word by word, and can be steered.
import * as api from "./api.js";
import { beamTree } from "./beam-tree.js";
import { byId, choice, h, notice, roving, table, wordsOf } from "./dom.js";
import { t } from "./i18n.js";
import { Latest } from "./latest.js";
import { formula, withMath } from "./math.js";
import { fixed } from "./scale.js";
import { currentSentence, onsentence, ready } from "./sentence.js";
import { confidence } from "./decoding.js";
import { continuing, isEnd, pieceLabel, spoken } from "./text.js";

const PACE = 420;
const BEAMS = [1, 2, 3, 4, 5, 6, 8];

const latest = new Latest();
const latestBeam = new Latest();
// `prefix` are the tokens that the reader has settled; `place` is the one whose candidates are
// shown.
const state = { data: null, prefix: [], place: 0, visible: 0, beam: null, tree: null };
let timer = null;

export async function start() {
  onsentence(() => {
    Object.assign(state, { prefix: [], place: 0, data: null, tree: null });
    if (!byId("view-decoding").hidden) load();
  });
  await begin();
}

async function begin() {
  try {
    await ready();
    await load();
  } catch (error) {
    byId("decoding-result").replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: begin }));
  }
}

export function shown() {
  if (currentSentence() && !state.data) load();
}

export function hidden() {
  stop();
}

export function redraw() {
  if (state.data) render();
}

async function load() {
  const sentence = currentSentence();
  const result = byId("decoding-result");
  if (!sentence?.q) {
    result.replaceChildren(notice("empty", t("sentence.empty")));
    return;
  }
  stop();
  const { q, source, target } = sentence;
  const prefix = state.prefix.join(" ");
  const body = { q, source, target, ...(prefix ? { prefix } : {}) };
  if (!state.data) result.replaceChildren(notice("loading", t("looking")));
  try {
    const data = await latest.run((signal) => api.steps(body, signal));
    if (!data) return;
    state.data = data;
    state.place = Math.min(state.prefix.length, data.places.length - 1);
    grow();
    loadTree();
  } catch (error) {
    state.data = null;
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: load }));
  }
}

// ---- growing

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Shows the tokens one after the other, those that were settled at once. */
function grow() {
  stop();
  const count = state.data.target.length;
  state.visible = calm() ? count : Math.min(count, state.prefix.length);
  render();
  if (state.visible >= count) return;
  timer = setInterval(() => {
    // Only what is new is drawn: the others would fade in again, and lose the pointer.
    byId("decoding-words")?.append(tokenButton(state.visible));
    state.visible += 1;
    if (state.visible >= count) stop();
  }, PACE);
}

function stop() {
  clearInterval(timer);
  timer = null;
}

// ---- steering

function choose(id) {
  const { data, place } = state;
  state.prefix = [...data.target.slice(0, place).map((token) => token.id), id];
  load();
}

function reset() {
  state.prefix = [];
  load();
}

// ---- drawing

function render() {
  const result = byId("decoding-result");
  const focused = document.activeElement?.dataset?.keep;
  // The tree below is left where it is: it would grow again each time it is put there.
  if (!byId("beam-card")) {
    result.replaceChildren(h("div", { id: "decoding-top", class: "split decoding" }), h("div", { class: "card", id: "beam-card" }));
  }
  byId("decoding-top").replaceChildren(h("div", { class: "card" }, sentenceRow(), actions()), h("div", { class: "card" }, candidates()));
  if (focused) result.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
}

function sentenceRow() {
  const { data, visible } = state;
  const row = h("div", { id: "decoding-words", class: "grown", role: "group", "aria-label": t("decoding.words"), lang: currentSentence().target });
  row.append(...data.target.slice(0, visible).map((_, i) => tokenButton(i)));
  if (!row.querySelector("[tabindex='0']")) row.firstElementChild?.setAttribute("tabindex", "0");
  roving(row, "button");
  return h("div", {}, h("h3", {}, t("decoding.translation")), row, h("p", { class: "muted" }, t("decoding.tip")));
}

function tokenButton(i) {
  const { data, place, prefix } = state;
  const [token, { p }] = [data.target[i], data.places[i]];
  const joined = continuing(data.target.map(({ text }) => text))[i];
  return h(
    "button",
    {
      type: "button",
      class: `grown-token tint-${confidence(p)}${i < prefix.length ? " settled" : ""}${isEnd(token.text) ? " end" : ""}${joined ? " joined" : ""}`,
      "aria-pressed": String(i === place),
      "aria-label": t("decoding.token", { word: pieceLabel(token.text), p: percent(p) }),
      tabindex: i === place ? "0" : "-1",
      "data-keep": `place-${i}`,
      onclick: () => {
        stop();
        state.visible = data.target.length;
        state.place = i;
        render();
      },
    },
    h("span", { class: "said" }, pieceLabel(token.text)),
    h("span", { class: "sure", "aria-hidden": "true" }, percent(p)),
  );
}

function actions() {
  const { data, prefix } = state;
  return h(
    "div",
    { class: "controls" },
    h("p", { class: "whole", lang: currentSentence().target }, data.translation),
    h("button", { type: "button", class: "plain", id: "decoding-replay", "data-keep": "replay", onclick: grow }, t("decoding.replay")),
    prefix.length
      ? h("button", { type: "button", class: "plain", id: "decoding-reset", "data-keep": "reset", onclick: reset }, t("decoding.reset"))
      : null,
  );
}

function candidates() {
  const { data, place } = state;
  const here = data.places[place];
  const said = data.target[place];
  const before = spoken(data.target.slice(0, place).map((token) => token.text));
  const item = ({ id, text, p }) => {
    const chosen = id === said?.id;
    const fill = h("span", { class: "fill" });
    fill.style.width = `${100 * p}%`;
    return h(
      "li",
      {},
      h(
        "button",
        {
          type: "button",
          class: "candidate-button",
          "aria-pressed": String(chosen),
          "aria-label": t("decoding.candidate", { word: pieceLabel(text), p: percent(p) }),
          "data-keep": `candidate-${id}`,
          onclick: () => choose(id),
        },
        h("span", { class: "said", lang: currentSentence().target }, pieceLabel(text)),
        h("span", { class: "track", "aria-hidden": "true" }, fill),
        h("span", { class: "num" }, percent(p)),
      ),
    );
  };
  return h(
    "div",
    {},
    h("h3", {}, t("decoding.candidates", { place: place + 1 })),
    h("p", { class: "muted" }, before ? t("decoding.after", { before }) : t("decoding.first")),
    h("ol", { class: "candidate-list" }, here.best.map(item)),
    h("p", { class: "muted" }, t("decoding.choose")),
  );
}

const percent = (p) => (p === null || p === undefined ? "–" : p >= 0.995 ? "100 %" : p < 0.001 ? "< 0.1 %" : `${(100 * p).toFixed(p < 0.1 ? 1 : 0)} %`);

// ---- the beam

async function loadTree() {
  const { q, source, target } = currentSentence();
  const prefix = state.prefix.join(" ");
  const body = { q, source, target, ...(prefix ? { prefix } : {}), ...(state.beam ? { beam: state.beam } : {}) };
  try {
    const tree = await latestBeam.run((signal) => api.beam(body, signal));
    if (!tree) return;
    state.tree = tree;
    renderTree();
  } catch (error) {
    byId("beam-card")?.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: loadTree }));
  }
}

function renderTree() {
  const { tree } = state;
  const card = byId("beam-card");
  if (!card) return;
  const focused = document.activeElement?.dataset?.keep;
  const width = choice("beam-width", t("beam.width"), BEAMS.map((n) => [n, String(n)]), tree.beam, (n) => {
    state.beam = Number(n);
    loadTree();
  });
  const rows = tree.translations.map(({ text, log_probability, score }) => [
    h("span", { lang: currentSentence().target }, text),
    fixed(log_probability, 2),
    fixed(score, 2),
  ]);
  card.replaceChildren(
    h(
      "div",
      { class: "beam-head" },
      h("div", {}, h("h3", {}, t("beam.title")), h("p", { class: "muted" }, t("beam.text", { beam: tree.beam }))),
      h("div", { class: "controls" }, h("button", { type: "button", class: "plain", id: "beam-replay", "data-keep": "beam-replay", onclick: renderTree }, t("beam.replay")), width),
    ),
    beamTree(tree),
    h("p", { class: "muted" }, withMath(t("beam.penalty", { alpha: tree.length_penalty }))),
    formula(tree.penalty === "paper" ? "penalty-paper" : "penalty"),
    table(t("beam.found"), [t("beam.translation"), withMath(t("beam.logp")), t("beam.score")], rows),
  );
  if (focused) card.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus();
}
