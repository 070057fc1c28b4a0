// What the server says, in the reader's words. Its answers are LibreTranslate's: sentences without
// a number, so that they are known by their form. No DOM: tested with node.
import { languageNamed, t } from "./i18n.js";

const KNOWN = [
  ["long", /^Invalid request: request \((\d+)\) exceeds text limit \((\d+)\)$/],
  ["key", /^Invalid API key$/],
  ["no-key", /^Please contact the server operator to get an API key$/],
  ["slow", /^Slowdown: (\d+) per 1 minute$/],
  ["wrong-keys", /^Slowdown: (\d+) wrong keys per 1 minute$/],
  ["tokens", /^This text has (\d+) tokens; attention can be shown for at most (\d+)$/],
  ["no-model", /^there is no single model from (\S+) to (\S+) to look into$/],
  ["queue", /^too many requests are waiting, try again$/],
  ["closing", /^the server is shutting down$/],
  ["time", /^The translation took longer than (\S+) s$/],
  ["format", /^Invalid request: file format not supported, use (.+)$/],
  ["empty-file", /^Invalid request: empty file$/],
  ["language", /^this looks like ([^;]+); this model translates from (.+)$/, languageNamed],
];

/** A message in the reader's words, or in the server's where it is not known. */
export function inWords(message) {
  for (const [name, form, say = (part) => part] of KNOWN) {
    const found = form.exec(message);
    if (found) return t(`said.${name}`, { a: say(found[1]), b: say(found[2]) });
  }
  return message;
}
