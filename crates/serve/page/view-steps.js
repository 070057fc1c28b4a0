// Step by step: a sentence on its way through the model.
import * as api from "./api.js";
import { byId, choice, h, notice, roving, wordsOf } from "./dom.js";
import { t } from "./i18n.js";
import { Latest } from "./latest.js";
import { formula, withMath } from "./math.js";
import { currentSentence, onsentence, ready } from "./sentence.js";
import { diagram } from "./steps-diagram.js";
import { panel } from "./steps-panel.js";
import { changed, sharpestHead, stepsOf, variantOf, withoutOf } from "./steps.js";
import { continuing, isEnd, pieceLabel } from "./text.js";

const PACE = 2600;

const latest = new Latest();
let answers = new Map();
let timer = null;
const state = { stack: "encoder", layer: 0, head: null, word: 0, step: 0, off: new Set(), data: null, base: null };

export async function start() {
  onsentence(() => {
    answers = new Map();
    // Another model may not have the heads that were switched off.
    const off = new Set([...state.off].filter((name) => !name.includes(".")));
    Object.assign(state, { word: 0, layer: 0, head: null, off });
    if (!byId("view-steps").hidden) load();
    else state.data = null;
  });
  byId("view-steps").addEventListener("keydown", keys);
  await begin();
}

async function begin() {
  try {
    await ready();
    await load();
  } catch (error) {
    byId("steps-result").replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: begin }));
  }
}

export function shown() {
  if (currentSentence() && !state.data) load();
}

export function hidden() {
  pause();
}

export function redraw() {
  if (state.data) render();
}

// ---- requests

async function ask(body, signal) {
  const key = JSON.stringify(body);
  if (!answers.has(key)) answers.set(key, await api.steps(body, signal));
  return answers.get(key);
}

async function load() {
  const sentence = currentSentence();
  const result = byId("steps-result");
  if (!sentence?.q) {
    pause();
    state.data = null;
    result.replaceChildren(notice("empty", t("sentence.empty")));
    return;
  }
  const { q, source, target } = sentence;
  const body = { q, source, target, stack: state.stack, layer: state.layer, head: state.head ?? 0 };
  const without = withoutOf(state.off);
  if (!state.data) result.replaceChildren(notice("loading", t("looking")));
  try {
    const found = await latest.run(async (signal) => {
      const base = await ask(body, signal);
      return { base, data: without ? await ask({ ...body, without }, signal) : base };
    });
    if (!found) return;
    model = api.modelOf(await api.models(), source, target) ?? null;
    Object.assign(state, found);
    state.word = Math.min(state.word, tokens().length - 1);
    state.step = Math.min(state.step, steps().length - 1);
    // The first look is at the head that is easiest to read.
    const weights = (found.data.attention ?? found.data.cross)?.weights;
    if (state.head === null) {
      state.head = weights ? sharpestHead(weights) : 0;
      if (state.head !== 0) return load();
    }
    if (wanted) {
      const [stack, block] = wanted;
      wanted = null;
      return open(stack, block);
    }
    render();
  } catch (error) {
    pause();
    state.data = null;
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: load }));
  }
}

// ---- where we are

function mixer(data = state.data) {
  return data.attention ? "attention" : data.ssru ? "ssru" : "other";
}

const prenorm = () => config().norm === "pre";
const steps = () => stepsOf(state.stack, mixer(), prenorm());

/** The tokens that the stack reads, as the model has them. */
function pieces() {
  const { source, target, places } = state.data;
  const read = state.stack === "encoder" ? source : [{ text: "<s>" }, ...target].slice(0, places.length);
  return read.map((token) => token.text);
}

/** The same as people read them. */
function tokens() {
  return pieces().map((piece, i) => (i === 0 && state.stack === "decoder" ? t("token.start") : pieceLabel(piece)));
}

function go(update) {
  Object.assign(state, update);
  if ("stack" in update || "layer" in update || "head" in update || "off" in update) load();
  else render();
}

function toStep(index) {
  go({ step: Math.max(0, Math.min(steps().length - 1, index)) });
}

/** Another view sends the reader to a block. */
export function openAt(stack, block) {
  if (state.data) open(stack, block);
  else wanted = [stack, block];
}

let wanted = null;
// A block was opened: on a narrow screen its step lies below the diagram, out of sight.
let reveal = false;

/** Opens a block of the diagram. */
function open(stack, block) {
  pause();
  const same = stack === state.stack;
  const list = same ? steps() : stepsOf(stack, stack === "decoder" && config().decoder === "ssru" ? "ssru" : "attention", prenorm());
  const found = list.findIndex((step) => step.block === block);
  const layers = config()[stack === "encoder" ? "encoder_layers" : "decoder_layers"] ?? 1;
  const update = { step: Math.max(0, found) };
  reveal = true;
  if (!same) Object.assign(update, { stack, layer: Math.min(state.layer, layers - 1), head: null, word: 0 });
  go(update);
}

let model = null;
const config = () => model?.config ?? {};

// ---- playing

const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

function play() {
  if (timer) return pause();
  if (state.step >= steps().length - 1) state.step = -1;
  const advance = () => {
    if (state.step >= steps().length - 1) pause();
    else toStep(state.step + 1);
  };
  timer = setInterval(advance, calm() ? 2 * PACE : PACE);
  advance();
}

function pause() {
  clearInterval(timer);
  timer = null;
  const button = byId("steps-play");
  if (button) button.replaceChildren(...playLabel());
}

function playLabel() {
  return [h("span", { class: timer ? "icon pause" : "icon play", "aria-hidden": "true" }), timer ? t("pause") : t("play")];
}

// ---- the keyboard

function keys(event) {
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea, .plot, summary");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !state.data) return;
  const { word, layer, head, data } = state;
  const moves = {
    ArrowLeft: () => ({ word: word - 1 }),
    ArrowRight: () => ({ word: word + 1 }),
    "[": () => ({ layer: layer - 1 }),
    "]": () => ({ layer: layer + 1 }),
    "-": () => ({ head: head - 1 }),
    "+": () => ({ head: head + 1 }),
    "=": () => ({ head: head + 1 }),
    p: () => ({ step: state.step - 1 }),
    n: () => ({ step: state.step + 1 }),
  };
  if (!(event.key in moves)) return;
  event.preventDefault();
  const update = moves[event.key]();
  const counts = { word: tokens().length, layer: data.layers, head: data.heads, step: steps().length };
  const [name, value] = Object.entries(update)[0];
  if (value < 0 || value >= counts[name]) return;
  pause();
  go(update);
}

// ---- drawing

function render() {
  const { data } = state;
  const result = byId("steps-result");
  const focused = document.activeElement?.dataset?.keep;
  const list = steps();
  const step = list[state.step];
  const head = h("div", { class: "steps-head" }, transport(list), wordRow(), places());
  result.replaceChildren(
    h(
      "div",
      { class: "steps-layout" },
      h("div", { class: "card tower-card" }, diagram({ stack: state.stack, block: step.block, config: config(), open })),
      h("div", { class: "steps-main" }, h("div", { class: "card" }, head, explanation(step, list), panel(step, view())), switches()),
    ),
    h("p", { class: "muted precision" }, t(`precision.${data.precision === "int8" ? "int8" : "f32"}`)),
  );
  if (focused) result.querySelector(`[data-keep="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
  const main = result.querySelector(".steps-main");
  if (reveal && main.getBoundingClientRect().top > 0.6 * innerHeight) main.scrollIntoView({ behavior: calm() ? "auto" : "smooth" });
  reveal = false;
  // Where the table is wider than the screen, what the step has added is in sight.
  const table = result.querySelector(".vectors");
  if (table) table.scrollLeft = table.scrollWidth;
  // For those who do not see it: the step, once it is there to stay.
  const said = `${t(`step.${step.id}`)}. ${plainly(step)}`;
  if (!timer && byId("steps-status").textContent !== said) byId("steps-status").textContent = said;
}

/** What the panel of a step draws. */
function view() {
  return {
    ...state,
    tokens: tokens(),
    sourceTokens: state.data.source.map((token) => pieceLabel(token.text)),
    choose: (word) => {
      pause();
      go({ word });
    },
    chooseHead: (head) => {
      pause();
      go({ head });
    },
    feedBack: () => go({ word: state.word + 1, step: 0 }),
  };
}

function transport(list) {
  const last = list.length - 1;
  const button = (id, label, run, disabled) =>
    h("button", { id, type: "button", class: "round", "aria-label": label, title: label, disabled, "data-keep": id, onclick: run }, h("span", { class: `icon ${id.slice(6)}` }));
  const jump = (by) => () => {
    pause();
    toStep(state.step + by);
  };
  return h(
    "div",
    { class: "transport" },
    button("steps-previous", t("steps.previous"), jump(-1), state.step === 0),
    h("button", { id: "steps-play", type: "button", class: "primary", "data-keep": "play", onclick: play }, playLabel()),
    button("steps-next", t("steps.next"), jump(1), state.step === last),
    h("progress", { max: last, value: state.step, "aria-label": t("steps.progress") }),
    h("span", { class: "muted" }, `${state.step + 1} / ${list.length}`),
  );
}

function wordRow() {
  const [list, joined] = [tokens(), continuing(pieces())];
  const row = h("div", { class: "word-row", role: "group", "aria-label": t("steps.words") });
  row.append(
    ...list.map((label, i) =>
      h(
        "button",
        {
          type: "button",
          class: joined[i] ? "token-chip joined" : "token-chip",
          "aria-pressed": String(i === state.word),
          tabindex: i === state.word ? "0" : "-1",
          "data-keep": `word-${i}`,
          onclick: () => {
            pause();
            go({ word: i });
          },
        },
        label,
      ),
    ),
  );
  roving(row, "button");
  row.addEventListener("keydown", (event) => {
    if (/^(Arrow|Home|End)/.test(event.key)) {
      event.stopPropagation();
      document.activeElement.click();
    }
  });
  return row;
}

function places() {
  const { data } = state;
  const count = (n) => Array.from({ length: n }, (_, i) => [i, t("of", { i: i + 1, n })]);
  return h(
    "div",
    { class: "controls" },
    choice("steps-stack", t("steps.stack"), [["encoder", t("stack.encoder")], ["decoder", t("stack.decoder")]], state.stack, (stack) => {
      pause();
      go({ stack, layer: 0, word: 0, step: 0, head: null });
    }),
    choice("steps-layer", t("layer"), count(data.layers), state.layer, (layer) => go({ layer: Number(layer) })),
    data.attention || data.cross
      ? choice("steps-head", t("head"), count(data.heads), state.head, (head) => go({ head: Number(head) }))
      : null,
    h("details", { class: "keys" }, h("summary", {}, t("steps.keys")), h("p", { class: "muted" }, t("steps.keys.text"))),
  );
}

function explanation(step, list) {
  const part = step.part ? t(`part.${state.stack}.${step.part}`) : t(`stack.${state.stack}`);
  return h(
    "div",
    { class: "explanation" },
    h("p", { class: "muted" }, `${part} · ${t("steps.count", { i: state.step + 1, n: list.length })}`),
    h("h3", {}, t(`step.${step.id}`)),
    h("p", { class: "plainly" }, withMath(plainly(step))),
    formula(step.formula, config(), step.part),
    h("p", { class: "muted section" }, source(step)),
  );
}

const variant = (step) => variantOf(step, config(), state.base.embedding.positions !== null);

/** Where a step is described: in the paper, or in the one that a model follows instead. */
function source(step) {
  if (!step.section) return t("paper.ssru");
  return [".relative", ".bucketed", ".distance"].includes(variant(step)) ? t(`paper.${config().positions}`) : t("paper", { section: step.section });
}

/** A step in one plain sentence, of what this model does there. */
function plainly(step) {
  return t(`step.${step.id}.text${variant(step)}`, values(step));
}

function values(step) {
  const { data, word } = state;
  const attention = data[step.part === "cross" ? "cross" : "attention"];
  return {
    word: tokens()[word],
    count: tokens().length,
    d: data.d_model,
    heads: data.heads,
    dk: attention?.d_k ?? "",
    root: attention ? Math.sqrt(attention.d_k).toFixed(2) : "",
    scale: data.embedding.scale,
    active: data.feed_forward.active[word],
    width: data.feed_forward.width,
    kept: data.ssru ? Math.round(100 * data.ssru.kept[word]) : "",
  };
}

// ---- switching parts off

function switches() {
  const kind = mixer() === "attention" ? state.stack : "cross";
  const part = steps()[state.step].part === "cross" ? "cross" : kind;
  const head = `${part}.${state.layer}.${state.head}`;
  const heads = [...state.off].filter((name) => name.includes("."));
  // Without self-attention in the decoder, nothing is masked.
  const masked = config().decoder !== "ssru";
  const parts = { positions: config().positions !== "none", scale: config().scale_scores !== false, mask: masked };
  const listed = [...Object.keys(parts).filter((name) => parts[name]), ...new Set([head, ...heads])];
  const item = (name) =>
    h(
      "label",
      { class: "switch" },
      h("input", {
        type: "checkbox",
        role: "switch",
        checked: state.off.has(name),
        "data-keep": `off-${name}`,
        name: "off",
        value: name,
        "aria-label": labelOf(name),
        onchange: (event) => {
          pause();
          const off = new Set(state.off);
          if (event.target.checked) off.add(name);
          else off.delete(name);
          go({ off });
        },
      }),
      h("span", {}, withMath(labelOf(name))),
    );
  return h(
    "div",
    { class: "card", id: "switches" },
    h("h3", {}, t("off.title")),
    h("p", { class: "muted" }, t("off.text")),
    h("div", { class: "switches" }, listed.map(item)),
    masked ? null : h("p", { class: "muted", id: "no-mask" }, t("off.no-mask")),
    comparison(),
  );
}

function labelOf(name) {
  const [kind, layer, head] = name.split(".");
  return layer === undefined ? t(`off.${name}`) : t("off.head", { kind: t(`part.short.${kind}`), layer: Number(layer) + 1, head: Number(head) + 1 });
}

function comparison() {
  if (state.off.size === 0) return null;
  const { base, data } = state;
  const said = (answer) => answer.target.filter((token) => !isEnd(token.text));
  const texts = (answer) => said(answer).map((token) => token.text);
  const marks = changed(texts(base), texts(data));
  const gone = changed(texts(data), texts(base));
  const line = (answer, mark, kind) => {
    const joined = continuing(texts(answer));
    return h(
      "p",
      { class: "compared", lang: currentSentence().target },
      texts(answer).map((text, i) => {
        const space = i === 0 || joined[i] ? "" : " ";
        return [space, h(mark[i] && kind === "gone" ? "del" : "span", { class: mark[i] ? kind : null }, pieceLabel(text))];
      }),
    );
  };
  const count = (list) => list.filter(Boolean).length;
  const same = count(marks) + count(gone) === 0;
  const off = [...state.off];
  const notes = [
    same ? t("off.same") : t("off.different", { n: count(marks), all: marks.length, gone: count(gone), before: gone.length }),
    state.off.has("mask") ? t("off.mask.note") : "",
    off.some((name) => name.includes(".")) ? t("off.head.note") : "",
  ];
  return h(
    "div",
    { class: "before-after", role: "status" },
    h("div", {}, h("h4", {}, t("off.before")), line(base, gone, "gone")),
    h("div", {}, h("h4", {}, t("off.after")), line(data, marks, "new")),
    h("p", { class: "muted" }, notes.filter(Boolean).join(" ")),
  );
}
