// Words of a text and its translation that light up together.
import { byId, h, roving } from "./dom.js";
import { links, segments, wordAt, words } from "./text.js";

// The words of both texts and their partners; null while there is no translation of the text at hand.
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
  byId("links").textContent = on ? sentence(side, other, index, partners) : "";
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
  if (partners.length === 0) return `“${own}” has no partner.`;
  const named = partners.map((i) => `“${linked.words[other][i].text}”`).join(", ");
  return side === "source" ? `${named} attended to “${own}”.` : `“${own}” attended to ${named}.`;
}
