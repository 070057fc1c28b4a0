// What is special about a translation, in one sentence each: where it came from, what had to be
// done twice, which terms it has.
import { has, t } from "./i18n.js";

/** The remarks on a text's translation. */
export function remarksOnText({ memory, guarded, terms }) {
  const faults = (guarded ?? []).map(({ fault, left }) =>
    left ? t("guarded.left", { fault: faultName(left) }) : t("guarded.repaired", { fault: faultName(fault) }),
  );
  const known = memory ? [t(memory === "segment" ? "memory.segment" : "memory.sentences")] : [];
  return [...known, ...new Set(faults), ...remarksOnTerms(terms)];
}

/** The remarks on a file's translation; its warnings are in the server's words. */
export function remarksOnFile({ fromMemory, terms, warnings }) {
  const known = fromMemory ? [t("memory.file", { count: fromMemory })] : [];
  return [...known, ...remarksOnTerms(terms), ...(warnings ?? [])];
}

function remarksOnTerms(terms) {
  if (!terms?.wanted) return [];
  const { wanted, missing } = terms;
  if (missing.length === 0) return [t("terms.all", { count: wanted })];
  // A term that is missing in many sentences is named once.
  const names = [...new Set(missing.map(([source, target]) => t("terms.pair", { source, target })))];
  return [t("terms.some", { count: wanted - missing.length, wanted, names: names.join(", ") })];
}

function faultName(name) {
  const key = `fault.${name.replaceAll(" ", "-")}`;
  return has(key) ? t(key) : name;
}
