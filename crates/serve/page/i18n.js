// The page's words in the reader's language. One table of strings per language; English is the one
// that has them all.
import { en } from "./strings-en.js";
import { zh } from "./strings-zh.js";
import { keep, recall } from "./store.js";

/** To add a language: its table, and a line here. */
export const TABLES = { en, zh };

/** What the switch shows for each. */
export const NAMES = { en: "English", zh: "中文" };

/** The language of the first tag that there is a table for. */
export function pick(tags) {
  for (const tag of tags) {
    const code = String(tag).toLowerCase().split("-")[0];
    if (code in TABLES) return code;
  }
  return "en";
}

const chosen = recall("regard.language");
export const language = pick([chosen, ...(globalThis.navigator?.languages ?? [])].filter(Boolean));

/** The string of a key; `{name}` in it is replaced by `values.name`. */
export function t(key, values) {
  return format(TABLES[language][key] ?? en[key] ?? key, values);
}

const names = language === "en" || !globalThis.Intl?.DisplayNames ? null : new Intl.DisplayNames([language], { type: "language", fallback: "none" });

/** A language of the world in the reader's words; the server says it in English. */
export function languageName(code, english) {
  try {
    return names?.of(code) ?? english ?? code;
  } catch {
    // A code of one's own.
    return english ?? code;
  }
}

/** The same for a language that the server names in English alone; two letters stand for each of those that it can tell apart. */
export function languageNamed(english) {
  if (language === "en" || !names) return english;
  const spoken = new Intl.DisplayNames(["en"], { type: "language", fallback: "none" });
  const letters = [..."abcdefghijklmnopqrstuvwxyz"];
  const code = letters.flatMap((a) => letters.map((b) => a + b)).find((both) => spoken.of(both) === english);
  return languageName(code ?? "", english);
}

/** Whether there is a string of this key in the language. */
export const has = (key) => key in TABLES[language];

export function format(text, values = {}) {
  return text.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** The page is made again in another language; its text is in the address. */
export function chooseLanguage(code) {
  keep("regard.language", code);
  location.reload();
}

/** Fills elements that name their string: `data-t` is their text, `data-t-title` and the like an attribute. */
export function translateDocument(root = document) {
  document.documentElement.lang = language === "zh" ? "zh-Hans" : language;
  if (language === "en") return;
  for (const element of root.querySelectorAll("[data-t]")) element.textContent = t(element.dataset.t);
  for (const name of ["aria-label", "placeholder", "title"]) {
    for (const element of root.querySelectorAll(`[data-t-${name}]`)) {
      element.setAttribute(name, t(element.getAttribute(`data-t-${name}`)));
    }
  }
}
