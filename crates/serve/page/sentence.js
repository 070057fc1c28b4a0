// The one sentence that the views Attention, Step by step and Decoding look at, and its model.
import * as api from "./api.js";
import { byId, h } from "./dom.js";
import { t } from "./i18n.js";
import { sentences } from "./text.js";

/** `{q, source, target, label}` of what is looked at; null before the models are known. */
let current = null;
let models = [];
let asked = null;
const listeners = new Set();

/** Calls `listener(sentence)` whenever another sentence or model is chosen. */
export const onsentence = (listener) => listeners.add(listener);

export const currentSentence = () => current;

/** Fills the bar with what another view asked for, or with an example. Rejects if the server has no model. */
export async function ready() {
  if (models.length > 0) return current;
  models = await api.models();
  byId("sentence-pair").replaceChildren(...models.map((m, i) => h("option", { value: i }, m.label)));
  byId("sentence-pair").parentElement.hidden = models.length < 2;
  if (asked) take(asked);
  else byId("sentence-q").value ||= example(models[0]);
  read();
  return current;
}

/** A text that is to be looked at, of which the first sentence is taken; the others are offered. */
export function lookAt(text) {
  asked = text;
  if (models.length === 0) return;
  take(text);
  change();
}

export function startSentence() {
  byId("sentence").addEventListener("submit", (event) => {
    event.preventDefault();
    change();
  });
  byId("sentence-pair").addEventListener("change", () => {
    // An example of the other model is in the wrong language; what the reader has written stays.
    const model = models[Number(byId("sentence-pair").value)];
    const isExample = models.some((m) => m.examples?.some((e) => e.source === byId("sentence-q").value));
    if (isExample && model.examples?.length) byId("sentence-q").value = example(model);
    change();
  });
  byId("sentence-pick").addEventListener("change", (event) => {
    byId("sentence-q").value = event.target.value;
    change();
  });
}

function take({ q, source, target }) {
  offer(api.modelOf(models, source, target));
  const list = sentences(q, source);
  const pick = byId("sentence-pick");
  pick.replaceChildren(
    ...list.map((text, i) => h("option", { value: text }, `${i + 1}. ${text.length > 70 ? `${text.slice(0, 69)}…` : text}`)),
  );
  pick.parentElement.hidden = list.length < 2;
  byId("sentence-q").value = list[0] ?? "";
}

/** Chooses a model, which may be a multilingual one that is told a pair for the first time. */
function offer(model) {
  if (!model) return;
  let index = models.findIndex((m) => m.source === model.source && m.target === model.target);
  if (index < 0) {
    index = models.push(model) - 1;
    byId("sentence-pair").append(h("option", { value: index }, model.label));
    byId("sentence-pair").parentElement.hidden = false;
  }
  byId("sentence-pair").value = String(index);
}

function change() {
  read();
  for (const listener of listeners) listener(current);
}

function read() {
  const model = models[Number(byId("sentence-pair").value)] ?? models[0];
  if (!model) return;
  current = { q: byId("sentence-q").value.trim(), source: model.source, target: model.target, label: model.label };
}

function example(model) {
  return model.examples?.find((e) => e.source.length <= 60)?.source ?? model.examples?.[0]?.source ?? t("sentence.example");
}
