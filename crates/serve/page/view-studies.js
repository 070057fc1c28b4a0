// Studies: what `regard study` measured, question and answer first.
import * as api from "./api.js";
import { byId, h, notice, table, wordsOf } from "./dom.js";
import { language, t } from "./i18n.js";

let studies = null;

/** The name of a study in the address, as in `#studies/scale`. */
const wanted = () => decodeURIComponent(location.hash.split("/")[1] ?? "");

export async function start() {
  const result = byId("studies-result");
  result.replaceChildren(notice("loading", t("studies.loading")));
  try {
    studies = await api.studies();
    await show();
  } catch (error) {
    result.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: start }));
  }
}

export const shown = () => (studies?.length ? show() : start());

async function show() {
  const name = wanted();
  const study = studies.find((one) => one.name === name);
  byId("view-studies").classList.toggle("reading", Boolean(study));
  byId("studies-result").replaceChildren(...(study ? [await report(study)] : list()));
  if (study) byId("studies-back").focus({ preventScroll: true });
  scrollTo(0, 0);
}

/** A text with its formulas: a list of words and of `{math}`. */
function rich(pieces) {
  return (pieces ?? []).map((piece) => (typeof piece === "string" ? piece : formula(piece.math)));
}

function formula(text) {
  const { documentElement } = new DOMParser().parseFromString(text, "text/xml");
  return documentElement.localName === "math" ? document.importNode(documentElement, true) : text;
}

/** Title, question and answer in the reader's language where the report has them, in English where not. */
const opening = (study) => (study[language] ? { ...study[language], lang: null } : { ...study, lang: language === "en" ? null : "en" });

function list() {
  if (studies.length === 0) {
    return [
      h(
        "div",
        { class: "card prose" },
        h("p", {}, t("studies.none")),
        h("pre", {}, "regard study all --out studies\nregard serve --model model --studies studies"),
      ),
    ];
  }
  return [
    h(
      "ul",
      { class: "studies" },
      studies.map((study) => {
        const { title, question, answer, lang } = opening(study);
        return h(
          "li",
          { class: "card", lang },
          h("h3", {}, h("a", { href: `#studies/${study.name}` }, rich(title))),
          h("p", { class: "question" }, rich(question)),
          h("p", {}, rich(answer)),
        );
      }),
    ),
  ];
}

async function report({ name }) {
  const found = await api.study(name);
  const { title, question, answer, lang } = opening(found);
  return h(
    "article",
    { class: "card prose" },
    h("a", { id: "studies-back", class: "plain", href: "#studies" }, t("studies.back")),
    h(
      "div",
      { lang },
      h("h3", {}, rich(title)),
      h("p", { class: "question" }, rich(question)),
      h("p", { class: "answer" }, rich(answer)),
    ),
    language === "en" ? null : h("p", { class: "muted" }, t("studies.english")),
    h(
      "div",
      { lang: "en" },
      h("p", {}, rich(found.summary)),
      found.parts.map((part) => partOf(name, part)),
      h("p", { class: "muted" }, found.made),
    ),
  );
}

const isNumber = (pieces) => pieces.every((piece) => typeof piece === "string" && /^[−-]?[\d.,]+( × 10\S+)?$|^−?[∞–]$/.test(piece.trim()));

function partOf(name, { heading, text, table: rows, picture }) {
  if (heading) return h("h4", {}, rich(heading));
  if (text) return h("p", {}, rich(text));
  if (rows) {
    const caption = rows.caption.map((piece) => (typeof piece === "string" ? piece : "")).join("");
    const cells = rows.rows.map((row) => row.map(rich));
    const made = table(caption, rows.columns.map(rich), cells);
    made.querySelector("caption").replaceChildren(...rich(rows.caption));
    // Columns of words begin at the left, those of numbers end at the right.
    rows.columns.forEach((_, c) => {
      if (c === 0 || rows.rows.every((row) => isNumber(row[c]))) return;
      for (const cell of made.querySelectorAll(`tr > :nth-child(${c + 1})`)) cell.classList.add("words");
    });
    made.append(h("a", { class: "file", href: `studies/${name}/${rows.file}`, download: rows.file }, rows.file));
    return made;
  }
  if (picture) {
    const description = picture.caption.filter((piece) => typeof piece === "string").join("");
    return h(
      "figure",
      { class: "chart" },
      h("div", { class: "picture", tabindex: "0", role: "region", "aria-label": description }, h("img", { src: `studies/${name}/${picture.file}`, alt: description, loading: "lazy" })),
      h("figcaption", {}, rich(picture.caption)),
    );
  }
  return null;
}
