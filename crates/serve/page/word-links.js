// Words of a text and its translation that light up together.
import { byId, h, roving } from "./dom.js";
import { t } from "./i18n.js";
import { drawRibbons } from "./ribbons.js";
import { links, segments, wordAt, words } from "./text.js";

// The words of both texts and their partners; null while there is no translation of the text at
// hand.
let linked = null;
let lit = { source: [], target: [] };

const source = () => byId("source");
const mirror = () => byId("mirror");
const output = () => byId("output");

export function startWords() {
  bindSource();
  bindTarget();
  showSource();
}

/** Takes a text with its translation; `alignment` in code points. Both are shown with their words. */
export function setLinks(text, translation, alignment, sourceLanguage, targetLanguage) {
  const list = { source: words(text, sourceLanguage), target: words(translation, targetLanguage) };
  const { toTarget, toSource } = links(alignment, text, translation, list.source, list.target);
  linked = { words: list, partners: { source: toTarget, target: toSource } };
  showSource();
  showTarget(translation);
}

/** A change of the text makes the links of the old one wrong. */
export function forgetLinks() {
  light("source", -1);
  linked = null;
}

/** The same text behind the input, word for word: it gives the input its height and shows the lit words. */
export function showSource() {
  // A last line break would not count as a line without something behind it.
  mirror().replaceChildren(...spans(source().value, linked?.words.source ?? [], {}), "\u200b");
}

export function showTarget(text) {
  output().replaceChildren(...spans(text, linked?.words.target ?? [], { tabindex: "-1" }));
  output().querySelector(".word")?.setAttribute("tabindex", "0");
}

function spans(text, list, attributes) {
  return segments(text, list).map(({ text: piece, word }) =>
    word < 0 ? piece : h("span", { class: "word", "data-word": word, ...attributes }, piece),
  );
}

function bindSource() {
  const stack = byId("source-stack");
  stack.addEventListener("pointermove", (event) => light("source", wordUnder(event)));
  stack.addEventListener("pointerleave", () => light("source", -1));
  // For the keyboard: the word at the caret.
  const caret = () => {
    if (linked && document.activeElement === source()) {
      light("source", wordAt(linked.words.source, source().selectionStart));
    }
  };
  document.addEventListener("selectionchange", caret);
  source().addEventListener("keyup", caret);
  source().addEventListener("blur", () => light("source", -1));
}

// The input lies over its mirror and takes the pointer: the word is found by the mirror's boxes.
function wordUnder({ clientX, clientY }) {
  const inside = (box) => clientX >= box.left && clientX <= box.right && clientY >= box.top && clientY <= box.bottom;
  const found = [...mirror().querySelectorAll(".word")].find((span) => [...span.getClientRects()].some(inside));
  return found ? Number(found.dataset.word) : -1;
}

function bindTarget() {
  const element = output();
  roving(element, ".word");
  const over = (event) => {
    const span = event.target.closest?.(".word");
    light("target", span ? Number(span.dataset.word) : -1);
  };
  element.addEventListener("pointerover", over);
  element.addEventListener("focusin", over);
  element.addEventListener("pointerleave", () => light("target", -1));
  element.addEventListener("focusout", () => light("target", -1));
}

/** Lights a word and the words on the other side that it belongs to; −1 puts all out. */
function light(side, index) {
  const other = side === "source" ? "target" : "source";
  const on = linked !== null && index >= 0;
  const partners = on ? linked.partners[side][index] : [];
  paint(side, on ? [index] : [], "own");
  paint(other, partners, "linked");
  drawRibbons(on ? pairs(side, index, partners) : []);
  byId("links").textContent = on ? sentence(side, other, index, partners) : "";
}

// The elements that a ribbon connects, the source's first.
function pairs(side, index, partners) {
  const find = (which, i) => (which === "source" ? mirror() : output()).querySelectorAll(".word")[i];
  const other = side === "source" ? "target" : "source";
  const both = partners.map((i) => [find(side, index), find(other, i)]);
  return side === "source" ? both : both.map(([a, b]) => [b, a]);
}

/** Shows the links of all words once, one after the other; stops when the reader does anything. */
export function playLinks() {
  if (!linked || matchMedia("(prefers-reduced-motion: reduce)").matches) return;
  const count = linked.words.target.length;
  const began = linked;
  let at = 0;
  const stop = () => {
    clearInterval(timer);
    for (const name of ["pointermove", "keydown", "pointerdown"]) removeEventListener(name, stop);
    if (linked === began) light("target", -1);
  };
  const timer = setInterval(() => {
    if (linked !== began || at >= count) stop();
    else light("target", at);
    at += 1;
  }, 420);
  for (const name of ["pointermove", "keydown", "pointerdown"]) addEventListener(name, stop);
}

function paint(side, indices, className) {
  const all = (side === "source" ? mirror() : output()).querySelectorAll(".word");
  for (const i of lit[side]) all[i]?.classList.remove("own", "linked");
  for (const i of indices) all[i]?.classList.add(className);
  lit[side] = indices;
}

// It is the translation's word that attends, whichever of the two is pointed at.
function sentence(side, other, index, partners) {
  const own = linked.words[side][index].text;
  if (partners.length === 0) return t("link.none", { word: own });
  const others = partners.map((i) => t("quote", { word: linked.words[other][i].text })).join(", ");
  return t(side === "source" ? "link.from" : "link.to", { word: own, others });
}
