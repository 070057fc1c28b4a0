// The glossary: terms that are translated in a certain way. One's own list for each pair of
// languages, or one that the server has.
import { byId, h } from "./dom.js";
import { asObject, formatTerms, LineError, merge, parseTerms, recallTerms } from "./glossary-table.js";
import { t } from "./i18n.js";
import { keep, recall } from "./store.js";

let terms = [];
let pair = "";
let stored = [];
let changed = () => {};

/** `names` are the glossaries that the server has; `onchange` is called whenever a term, or the glossary, has changed. */
export function startGlossary(names, onchange) {
  changed = onchange;
  stored = names;
  const select = byId("glossary-which");
  select.append(...names.map((name) => h("option", { value: name }, name)));
  select.parentElement.hidden = names.length === 0;
  select.addEventListener("change", () => {
    keep(whichKey(), select.value || null);
    describe();
    changed();
  });
  choose();
  byId("glossary-add").addEventListener("click", () => {
    terms.push(["", ""]);
    render();
    byId("glossary-terms").querySelector("tr:last-child input")?.focus();
  });
  byId("glossary-import").addEventListener("change", async (event) => {
    const [file] = event.target.files;
    event.target.value = "";
    if (file) await read(file);
  });
  byId("glossary-export").addEventListener("click", save);
}

/** Shows the terms of a pair of languages. */
export function showGlossary(source, target) {
  const name = `${source}-${target}`;
  if (name === pair) return;
  pair = name;
  terms = recallTerms(recall(key()));
  render();
  choose();
}

/** The name of the server's glossary, or one's own terms as the server takes them; undefined if there is neither. */
export const glossary = () => byId("glossary-which").value || asObject(terms);

const key = () => `regard.glossary.${pair}`;
const whichKey = () => `regard.glossary-which.${pair}`;

/** What was chosen for this pair of languages, if the server still has it. */
function choose() {
  const kept = recall(whichKey());
  byId("glossary-which").value = stored.includes(kept) ? kept : "";
  describe();
}

function store() {
  const kept = terms.filter((term) => term.some((cell) => cell.trim()));
  keep(key(), kept.length ? JSON.stringify(kept) : null);
  describe();
  changed();
}

function describe(message) {
  const name = byId("glossary-which").value;
  byId("glossary-own").hidden = name !== "";
  const count = Object.keys(asObject(terms) ?? {}).length;
  byId("glossary-count").textContent = name || (count ? (count === 1 ? t("glossary.one") : t("glossary.count", { count })) : "");
  byId("glossary-export").disabled = count === 0;
  byId("glossary-status").textContent = message ?? "";
}

function render(message) {
  const rows = terms.map((term, i) => {
    const cell = (side, label) => {
      const input = h("input", { type: "text", autocomplete: "off", "aria-label": t(label, { n: i + 1 }), onchange: () => store() });
      input.value = term[side];
      input.addEventListener("input", () => {
        term[side] = input.value;
      });
      return h("td", {}, input);
    };
    const remove = () => {
      terms.splice(i, 1);
      render();
      store();
      byId("glossary-add").focus();
    };
    return h(
      "tr",
      {},
      cell(0, "glossary.source"),
      cell(1, "glossary.target"),
      h("td", {}, h("button", { type: "button", class: "plain", "aria-label": t("glossary.remove", { n: i + 1 }), onclick: remove }, "×")),
    );
  });
  byId("glossary-terms").replaceChildren(...rows);
  byId("glossary-table").hidden = terms.length === 0;
  describe(message);
}

async function read(file) {
  try {
    const added = parseTerms(await file.text());
    terms = merge(terms.filter(([source]) => source.trim()), added);
    store();
    render(t("glossary.imported", { count: added.length, name: file.name }));
  } catch (error) {
    describe(error instanceof LineError ? t("glossary.line", { name: file.name, line: error.line }) : t("error.unknown"));
  }
}

function save() {
  const address = URL.createObjectURL(new Blob([formatTerms(Object.entries(asObject(terms) ?? {}))], { type: "text/tab-separated-values" }));
  h("a", { href: address, download: `glossary.${pair}.tsv` }).click();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}
