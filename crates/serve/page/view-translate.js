// Translate: text in, text out while typing, and which words belong together.
import * as api from "./api.js";
import { byId, h, notice, wordsOf } from "./dom.js";
import { startFiles } from "./files.js";
import { glossary, showGlossary, startGlossary } from "./glossary.js";
import { language, languageName, t } from "./i18n.js";
import { debounce, Latest } from "./latest.js";
import { inWords } from "./messages.js";
import { remarksOnText } from "./remarks.js";
import { grouped } from "./scale.js";
import { lookAt } from "./sentence.js";
import { keep, recall } from "./store.js";
import { codePoints, curl } from "./text.js";
import { forgetLinks, playLinks, setLinks, showSource, showTarget, startWords } from "./word-links.js";

const DELAY = 250;
const DETECT_DELAY = 900;
// Texts longer than this appear piece by piece.
const STREAM_FROM = 240;
const ALTERNATIVES = 3;
// Below this confidence a guess of the language is not worth a question.
const SURE = 70;

const latest = new Latest();
const latestGuess = new Latest();
let languages = [];
let models = [];
let limit = -1;
// The translation that is shown: `{source, target, detected}`; null while there is none or it is
// being made.
let result = null;

const source = () => byId("source");
const output = () => byId("output");

export async function start() {
  bind();
  try {
    const [list, settings, served] = await Promise.all([api.languages(), api.settings().catch(() => ({})), api.models().catch(() => [])]);
    languages = list;
    models = served;
    limit = settings.charLimit ?? -1;
    if (languages.length === 0) throw new Error(t("error.model"));
    const asked = new URLSearchParams(location.search);
    chooseLanguages(settings.language, asked);
    byId("source").disabled = false;
    startFiles(settings, () => ({ source: byId("from").value, target: byId("to").value, glossary: glossary() }));
    startGlossary(settings.glossaries ?? [], () => {
      if (source().value.trim()) later();
    });
    if (asked.get("q")) source().value = asked.get("q");
    showSource();
    countCharacters();
    await suggest();
    if (source().value.trim()) translateNow();
    else welcome(settings);
  } catch (error) {
    fail(error, () => location.reload());
  }
}

function bind() {
  source().addEventListener("input", () => {
    latest.cancel();
    forget();
    showSource();
    countCharacters();
    busy(source().value.trim() !== "");
    later();
    guessLater();
  });
  source().addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      later.cancel();
      translateNow();
    }
  });
  byId("from").addEventListener("change", () => languagesChanged("from"));
  byId("to").addEventListener("change", () => languagesChanged("to"));
  byId("swap").addEventListener("click", swap);
  byId("clear").addEventListener("click", () => setSource(""));
  byId("copy").addEventListener("click", () => copy(result?.target ?? "", byId("copy")));
  byId("look").addEventListener("click", () => look("#steps"));
  byId("wording").addEventListener("click", () => look("#decoding"));
  byId("want-alternatives").addEventListener("change", (event) => {
    keep("regard.alternatives", event.target.checked ? "yes" : "no");
    translateNow();
  });
  byId("want-alternatives").checked = recall("regard.alternatives") !== "no";
  startWords();
  const [before, after] = t("request.text", { docs: "\n" }).split("\n");
  byId("request-text").replaceChildren(before, h("a", { href: "docs" }, "/docs"), after);
}

// ---- languages

function chooseLanguages(defaults, asked) {
  const [kept, keptTo] = (recall("regard.pair") ?? "").split(" ");
  const [from, to] = [asked.get("source") ?? kept, asked.get("target") ?? keptTo];
  const read = languages.filter((l) => targetsOf(l.code).length > 0);
  const known = (code) => read.some((l) => l.code === code);
  const fallback = [defaults?.source?.code, models[0]?.source, read[0]?.code].find(known) ?? "auto";
  fillSelect(byId("from"), [["auto", t("detect")], ...read.map((l) => [l.code, nameOf(l.code)])]);
  byId("from").value = from === "auto" || known(from) ? from : fallback;
  offerTargets(to ?? defaults?.target?.code);
}

function targetsOf(code) {
  if (code !== "auto") return languages.find((l) => l.code === code)?.targets.filter((t) => t !== code) ?? [];
  return [...new Set(languages.flatMap((l) => l.targets.filter((t) => t !== l.code)))];
}

function offerTargets(wanted) {
  const codes = targetsOf(byId("from").value);
  fillSelect(byId("to"), codes.map((code) => [code, nameOf(code)]));
  if (codes.includes(wanted)) byId("to").value = wanted;
  describeLanguages();
}

function describeLanguages() {
  const [from, to] = [sourceLanguage(), byId("to").value];
  showGlossary(byId("from").value, to);
  for (const element of [source(), byId("mirror")]) element.lang = from ?? "";
  output().lang = to;
  byId("alternatives").lang = to;
  const possible = !from || targetsOf(to).includes(from);
  byId("swap").disabled = !possible;
  byId("swap").title = possible ? t("swap") : t("swap.impossible", { from: nameOf(to), to: nameOf(from) });
}

function sourceLanguage() {
  const chosen = byId("from").value;
  return chosen === "auto" ? result?.detected : chosen;
}

function languagesChanged(which) {
  if (which === "from") offerTargets(byId("to").value);
  describeLanguages();
  keep("regard.pair", `${byId("from").value} ${byId("to").value}`);
  byId("guess").replaceChildren();
  suggest();
  translateNow();
}

function swap() {
  const [from, to] = [sourceLanguage(), byId("to").value];
  const text = result?.target;
  byId("from").value = to;
  offerTargets(from);
  keep("regard.pair", `${byId("from").value} ${byId("to").value}`);
  byId("guess").replaceChildren();
  suggest();
  setSource(text ?? source().value);
}

// A text in another language than the chosen one is the commonest mistake: offer to change.
const guessLater = debounce(guess, DETECT_DELAY);

/** `warning` is what the server says about the language; it is shown where there is no model to offer instead. */
async function guess(warning = "") {
  const text = source().value.trim();
  const chosen = byId("from").value;
  guessLater.cancel();
  byId("guess").replaceChildren(inWords(warning));
  if (chosen === "auto" || text.length < 12) return;
  const found = await latestGuess.run((signal) => api.detect(text, signal)).catch(() => undefined);
  const best = found?.[0];
  if (!best || best.language === chosen || best.confidence < SURE || targetsOf(best.language).length === 0) return;
  const accept = () => {
    byId("from").value = best.language;
    languagesChanged("from");
    source().focus();
  };
  const [before, after] = t("guess", { name: "\n" }).split("\n");
  byId("guess").replaceChildren(before, h("button", { type: "button", class: "link", onclick: accept }, nameOf(best.language)), after);
}

// ---- translating

const later = debounce(translateNow, DELAY);

async function translateNow() {
  const text = source().value;
  forget();
  latest.cancel();
  if (text.trim() === "" || languages.length === 0) {
    busy(false);
    if (languages.length > 0) history.replaceState(null, "", location.pathname + location.hash);
    clearTranslation();
    return;
  }
  busy(true);
  const began = performance.now();
  try {
    const answer = await latest.run((signal) => ask(text, signal));
    if (answer === undefined) return;
    busy(false);
    accept(text, answer);
    byId("took").textContent = `${((performance.now() - began) / 1000).toFixed(2)} s`;
  } catch (error) {
    busy(false);
    fail(error, translateNow);
  }
}

async function ask(text, signal) {
  const terms = glossary();
  const body = { q: text, source: byId("from").value, target: byId("to").value, ...(terms ? { glossary: terms } : {}) };
  if (codePoints(text) > STREAM_FROM && body.source !== "auto") {
    // What has arrived is shown; the full answer, with its links, follows. A server that does not
    // stream is no error.
    await api.stream(body, showTarget, signal).catch((error) => {
      if (signal.aborted || (error.status !== 404 && error.status !== 405)) throw error;
    });
  }
  const alternatives = byId("want-alternatives").checked ? { alternatives: ALTERNATIVES } : {};
  const whole = { ...body, alignment: true, ...alternatives };
  const answer = await api.translate(whole, signal);
  showRequest(whole, answer);
  return answer;
}

function accept(text, answer) {
  const target = answer.translatedText;
  const detected = answer.detectedLanguage?.language;
  // A single text may come back as a list of one.
  const alignment = Array.isArray(answer.alignment?.[0]?.[0]) ? answer.alignment[0] : answer.alignment;
  result = { source: text, target, detected };
  remember(text);
  setLinks(text, target, alignment, sourceLanguage(), byId("to").value);
  showAlternatives(answer.alternatives ?? []);
  showRemarks(answer);
  if (answer.warning) guess(answer.warning);
  byId("detected").textContent = detected
    ? t("detected", { name: nameOf(detected), confidence: Math.round(answer.detectedLanguage.confidence) })
    : "";
  describeLanguages();
  byId("copy").disabled = false;
  allowLook();
  if (directModel(sourceLanguage(), byId("to").value)) lookAt({ q: text, source: sourceLanguage(), target: byId("to").value });
}

/** How the translation came about: how good it is likely to be, and what is special about it. */
function showRemarks(answer) {
  const { confidence } = answer;
  const sure = typeof confidence === "number" ? Math.round(100 * confidence) : null;
  byId("confidence").textContent = sure === null ? "" : `· ${t("confidence", { sure })}`;
  byId("confidence").title = sure === null ? "" : t("confidence.text");
  byId("remarks").replaceChildren(...remarksOnText(answer).map((text) => h("li", {}, text)));
}

/** Text and languages go into the address, so that it can be kept and sent; long texts stay out of it. */
function remember(text) {
  const address = new URL(location.href);
  address.search = "";
  if (text.length <= 1500) {
    for (const [name, value] of [["q", text], ["source", byId("from").value], ["target", byId("to").value]]) address.searchParams.set(name, value);
  }
  history.replaceState(null, "", address);
}

/** On the first visit an example is translated, and its words show once what they belong to. */
async function welcome({ keyRequired }) {
  if (recall("regard.visited") || keyRequired) return;
  keep("regard.visited", "yes");
  const example = directModel(byId("from").value, byId("to").value)?.examples?.find((e) => e.source.length <= 90)?.source;
  if (!example) return;
  source().value = example;
  showSource();
  countCharacters();
  await translateNow();
  if (result?.source === example) playLinks();
}

// A change of the text makes the links of the old one wrong.
function forget() {
  result = null;
  forgetLinks();
  byId("detected").textContent = "";
  byId("translate-error").replaceChildren();
  for (const id of ["copy", "look", "wording"]) byId(id).disabled = true;
}

function busy(on) {
  byId("target-pane").classList.toggle("busy", on);
  output().setAttribute("aria-busy", String(on));
}

// An older translation beside an error would be taken for the translation of the new text.
function fail(error, again) {
  clearTranslation();
  const box = byId("translate-error");
  box.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: again }));
  box.scrollIntoView({ block: "nearest" });
}

function clearTranslation() {
  showTarget("");
  byId("alternatives").replaceChildren();
  byId("took").textContent = "";
  showRemarks({});
}

function setSource(text) {
  source().value = text;
  forget();
  showSource();
  countCharacters();
  translateNow();
  source().focus();
}

function countCharacters() {
  const count = codePoints(source().value);
  byId("count").textContent = limit > 0 ? `${count} / ${grouped(limit)}` : count === 1 ? t("character.one") : t("characters", { count });
  byId("count").classList.toggle("over", limit > 0 && count > limit);
  byId("clear").hidden = count === 0;
  byId("examples").hidden = count > 0;
}

// ---- the rest

function showAlternatives(list) {
  const shown = list.filter((text) => text !== result.target);
  const items = shown.map((text) => {
    const button = h("button", { type: "button", class: "plain", onclick: () => copy(text, button) }, t("copy"));
    button.setAttribute("aria-label", t("copy.text", { text }));
    return h("li", {}, h("span", {}, text), button);
  });
  byId("alternatives").replaceChildren(
    ...(items.length ? [h("h3", { lang: language }, t("alternatives")), h("ol", {}, items)] : []),
  );
}

async function copy(text, button) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = t("copied");
  } catch {
    // Without https or permission the browser refuses; the old way still works.
    button.textContent = t(copyBySelection(text) ? "copied" : "copy.refused");
  }
  setTimeout(() => {
    button.textContent = before;
  }, 1400);
}

function copyBySelection(text) {
  const field = h("textarea", { class: "away", "aria-hidden": "true" });
  field.value = text;
  document.body.append(field);
  field.select();
  const done = document.execCommand("copy");
  field.remove();
  return done;
}

function look(view) {
  if (!result) return;
  lookAt({ q: result.source, source: sourceLanguage(), target: byId("to").value });
  location.hash = view;
}

/** What was asked and answered, for those who write programs; as LibreTranslate's page shows it. */
function showRequest(body, answer) {
  byId("request-asked").textContent = curl(new URL("translate", document.baseURI).href, body, api.currentKey() !== "");
  // Lists of numbers stay on one line.
  const inline = (list) => list.replace(/\s+/g, " ");
  byId("request-answer").textContent = JSON.stringify(answer, null, 2).replace(/\[\s+[-\d.e]+(,\s+[-\d.e]+)*\s+\]/g, inline);
  byId("request-none").hidden = true;
  byId("request-both").hidden = false;
}

// Sentences that the chosen model was shown with, to begin with.
async function suggest() {
  const box = byId("examples");
  models = await api.models().catch(() => []);
  allowLook();
  const model = directModel(byId("from").value, byId("to").value);
  const texts = (model?.examples ?? []).map((e) => e.source).filter((t) => t.length <= 90).slice(0, 3);
  box.replaceChildren(
    ...(texts.length ? [h("span", { class: "muted" }, t("try"))] : []),
    ...texts.map((text) =>
      h("button", { type: "button", class: "chip", lang: model.source, onclick: () => setSource(text) }, text),
    ),
  );
}

// A translation through a third language has no attention of its own.
function allowLook() {
  const refused = !result || !directModel(sourceLanguage(), byId("to").value);
  for (const id of ["look", "wording"]) byId(id).disabled = refused;
}

function directModel(from, to) {
  return api.modelOf(models, from, to);
}

function nameOf(code) {
  return code ? languageName(code, languages.find((l) => l.code === code)?.name) : "";
}

function fillSelect(select, options) {
  select.replaceChildren(...options.map(([value, text]) => h("option", { value }, text)));
}
