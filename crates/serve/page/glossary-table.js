// Terms and their translations as text. No DOM: tested with node.

/** A file of terms: `source<TAB>target` in each line; empty lines and lines that begin with # are left out. Throws with the number of a line that does not fit. */
export function parseTerms(text) {
  const terms = [];
  text.split(/\r?\n/).forEach((line, i) => {
    if (line.trim() === "" || line.startsWith("#")) return;
    const [source, target, ...more] = line.split("\t").map((cell) => cell.trim());
    if (!source || !target || more.some(Boolean)) throw new LineError(i + 1);
    terms.push([source, target]);
  });
  return terms;
}

export class LineError extends Error {
  constructor(line) {
    super(`line ${line}`);
    this.line = line;
  }
}

export function formatTerms(terms) {
  const cell = (text) => text.replace(/[\t\r\n]+/g, " ");
  return terms.map(([source, target]) => `${cell(source)}\t${cell(target)}\n`).join("");
}

/** The terms that are complete, as the server takes them; undefined if there is none. A later one of the same source counts. */
export function asObject(terms) {
  const complete = terms.map(([source, target]) => [source.trim(), target.trim()]).filter(([source, target]) => source && target);
  return complete.length ? Object.fromEntries(complete) : undefined;
}

/** `known` with other terms added; those of the same source are replaced. */
export function merge(known, added) {
  const all = new Map(known);
  for (const [source, target] of added) all.set(source, target);
  return [...all];
}

/** What was remembered, or no terms if it cannot be read. */
export function recallTerms(text) {
  try {
    const list = JSON.parse(text ?? "[]");
    const pair = (term) => Array.isArray(term) && term.length === 2 && term.every((cell) => typeof cell === "string");
    return Array.isArray(list) ? list.filter(pair) : [];
  } catch {
    return [];
  }
}
