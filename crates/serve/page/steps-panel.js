// What each step shows: tables of vectors and numbers that grow column by column.
import { h } from "./dom.js";
import { heatMap } from "./heatmap.js";
import { t } from "./i18n.js";
import { withMath } from "./math.js";
import { digits3, fixed, tidy } from "./scale.js";
import { revealed } from "./steps.js";
import { largest, strip } from "./strip.js";
import { pieceLabel } from "./text.js";

/** The drawing of a step; `view` has the answer, the tokens, and what to call when something is chosen. */
export function panel(step, view) {
  if (step.id === "tokens") return tokensTable(view);
  if (step.id === "embedding" || step.id === "positions") return embeddingTable(step, view);
  if (step.id === "heads") return heads(step, view);
  if (step.id === "next") return next(view);
  if (step.part === "ffn" || step.part === "ssru" || step.id.endsWith("norm")) return vectorsTable(step, view);
  return attentionTable(step, view);
}

// ---- tables

function grid(caption, columns, rows, { word, choose, footer, late } = {}) {
  const row = (cells, i) =>
    h(
      "tr",
      { class: choose && i === word ? "chosen" : null, onclick: choose ? () => choose(i) : null },
      cells.map((cell, j) => (j === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell))),
    );
  return h(
    "div",
    { class: `vectors ${columns.length > 3 ? "four" : ""} ${late ?? ""}`, tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", { class: "away" }, caption),
      h("thead", {}, h("tr", {}, columns.map((name, j) => h("th", { scope: "col", class: j === columns.length - 1 ? "newest" : null }, withMath(name))))),
      h("tbody", {}, rows.map(row)),
      footer ? h("tfoot", {}, footer) : null,
    ),
  );
}

const number = (value, digits = 3) => h("span", { class: "num" }, fixed(value, digits));

// Three digits, zeros among them, so that a column of lengths can be compared.
const three = (value) => (value >= 100 ? value.toFixed(0) : value.toPrecision(3));

function vector({ norm, values }, most) {
  return h("span", { class: "vector" }, strip(values, { most, norm }), h("span", { class: "num muted" }, three(norm)));
}

const strongest = (list) => largest(list.map((v) => v.values));

function tokensTable(view) {
  const { data, stack, tokens } = view;
  const ids = stack === "encoder" ? data.source.map((x) => x.id) : ["–", ...data.target.map((x) => x.id)];
  const rows = tokens.map((label, i) => [label, h("span", { class: "num" }, String(i)), h("span", { class: "num" }, String(ids[i]))]);
  return grid(t("step.tokens"), [t("col.token"), t("col.position"), t("col.id")], rows, view);
}

function embeddingTable(step, view) {
  const { data, tokens } = view;
  const { words, positions, output } = data.embedding;
  const most = strongest([...words, ...output]);
  const withPositions = step.id === "positions";
  const columns = [t("col.token"), t(data.embedding.scale === 1 ? "step.embedding" : "col.embedding")];
  if (withPositions) columns.push(t("col.plus"), t("col.sum"));
  const rows = tokens.map((label, i) => {
    const cells = [label, vector(words[i], most)];
    if (withPositions) cells.push(positions ? vector(positions[i], most) : t("none"), vector(output[i], most));
    return cells;
  });
  return grid(t(`step.${step.id}`), columns, rows, view);
}

/** Keys, scores, weights and values: as many columns as the reader has come to. */
function attentionTable(step, view) {
  const attention = view.data[step.part];
  const before = view.off.size > 0 ? view.base[step.part] : null;
  const labels = step.part === "cross" ? view.sourceTokens : view.tokens;
  const i = view.word;
  const known = revealed(step.id);
  const masked = step.part === "attention" && view.stack === "decoder";
  const [from, to] = attention.seen[i];
  const weights = attention.weights[attention.head][i];
  const old = comparable(before, attention, i);
  const mostKey = largest([...attention.keys, attention.queries[i]]);
  const mostValue = largest(attention.values);
  // What is added and what comes of it have the same colours.
  const mostSum = largest([attention.sums[i]]);
  const columns = [t("col.token"), t("col.key")];
  // What will be added up is shown with what decides how much of it.
  if (known === 0) columns.push(t("col.values"));
  const names = ["", t("col.score"), attention.scale === 1 ? "× 1" : t("col.scaled"), masked ? t("col.mask") : null, t("col.weight"), t("col.value")];
  names.forEach((name, k) => {
    if (name && k <= known) columns.push(name);
  });
  const rows = labels.map((label, j) => {
    const hidden = j < from || j >= to;
    const cells = [label, strip(attention.keys[j], { most: mostKey })];
    if (known === 0) cells.push(strip(attention.values[j], { most: mostValue }));
    if (known >= 1) cells.push(number(attention.scores[i][j], 2));
    if (known >= 2) cells.push(number(attention.scaled[i][j], 2));
    if (known >= 3 && masked) cells.push(hidden ? h("span", { class: "hidden-mark" }, "−∞") : h("span", { class: "muted" }, t("visible")));
    if (known >= 4) cells.push(bar(weights[j], old?.[j]));
    if (known >= 5) cells.push(strip(attention.values[j].map((value) => value * weights[j]), { most: mostSum }));
    return cells;
  });
  const total = columns.length;
  const footer =
    known >= 5
      ? h("tr", {}, h("th", { scope: "row" }, t("col.weighted")), Array.from({ length: total - 2 }, () => h("td")), h("td", {}, strip(attention.sums[i], { most: mostSum })))
      : null;
  return h(
    "div",
    {},
    h("p", { class: "query-line" }, h("span", {}, t("query.of", { word: view.tokens[i] })), strip(attention.queries[i], { most: mostKey })),
    grid(t("step.attention.table", { word: view.tokens[i] }), columns, rows, { footer, late: `${known >= 4 ? "late" : ""} ${known >= 5 ? "last" : ""} ${masked && known >= 3 ? "masked" : ""}` }),
    old && known >= 4 ? h("p", { class: "muted" }, t("bar.legend")) : null,
  );
}

// The weights before something was switched off, where the row means the same.
function comparable(before, after, i) {
  const row = before?.weights[after.head]?.[i];
  return row && row.length === after.weights[after.head][i].length ? row : null;
}

function bar(value, before) {
  const fill = h("span", { class: "fill" });
  fill.style.width = `${100 * Math.min(1, value)}%`;
  const track = h("span", { class: "track", "aria-hidden": "true" }, fill);
  if (before !== undefined && before !== null) {
    const mark = h("span", { class: "mark" });
    mark.style.left = `${100 * Math.min(1, before)}%`;
    track.append(mark);
  }
  // Nothing is zero that is only small.
  const small = value > 0 && value < 0.0005;
  return h("span", { class: "weight-bar" }, track, small ? h("span", { class: "num" }, "< 0.001") : number(value));
}

function heads(step, view) {
  const attention = view.data[step.part];
  const labels = step.part === "cross" ? view.sourceTokens : view.tokens;
  const i = view.word;
  const matrix = attention.weights.map((rows) => rows[i]);
  const off = (head) => attention.norms[head].every((x) => x === 0);
  const names = matrix.map((_, head) => `${head + 1}${off(head) ? ` ${t("head.off")}` : ""}`);
  const most = strongest(attention.output);
  return h(
    "div",
    {},
    heatMap({
      title: t("heads.title", { word: view.tokens[i] }),
      matrix,
      rows: { name: t("head"), labels: names },
      columns: { name: t("col.token"), labels },
      range: [0, 1],
      say: (head, j, w) => t("heads.say", { head: head + 1, word: labels[j], w: tidy(w), norm: digits3(attention.norms[head][i]) }),
    }),
    h("p", { class: "query-line" }, h("span", {}, withMath(t("heads.output"))), vector(attention.output[i], most)),
  );
}

function vectorsTable(step, view) {
  const { data, tokens } = view;
  const part = step.part === "ffn" ? data.feed_forward : data[step.part];
  const lists = {
    norm: [["output", t("col.sublayer")], ["result", t("col.normed")]],
    prenorm: [["output", t("col.sublayer")], ["result", t("col.added")]],
    ffn: [["hidden", t("col.hidden")], ["output", t("col.output")]],
    candidate: [["candidate", t("col.candidate")]],
    forget: [["candidate", t("col.candidate")], ["forget", t("col.forget")]],
    state: [["forget", t("col.forget")], ["state", t("col.state")], ["output", t("col.relu")]],
  }[step.id];
  const rows = tokens.map((label, i) => [
    label,
    ...lists.map(([name]) => vector(part[name][i], strongest(part[name]))),
    ...(step.id === "ffn" ? [h("span", { class: "num" }, part.active[i], h("span", { class: "of" }, ` / ${part.width}`))] : []),
  ]);
  const columns = [t("col.token"), ...lists.map(([, label]) => label), ...(step.id === "ffn" ? [t("col.active")] : [])];
  return grid(t(`step.${step.id}`), columns, rows, view);
}

function next(view) {
  const place = view.data.places[view.word];
  const said = view.data.target[view.word];
  const rows = place.best.map(({ id, text, logit, p }) => {
    const chosen = id === said?.id;
    return h("li", { class: chosen ? "chosen" : null }, h("span", { class: "candidate" }, pieceLabel(text)), h("span", { class: "num logit" }, fixed(logit, 2)), bar(p), chosen ? h("span", { class: "muted" }, t("next.chosen")) : null);
  });
  const last = view.word >= view.tokens.length - 1;
  return h(
    "div",
    {},
    h(
      "div",
      { class: "candidate-table" },
      h("p", { class: "candidates-head muted" }, h("span", { class: "candidate" }, t("col.token")), h("span", { class: "logit" }, t("next.logit")), h("span", {}, t("next.p"))),
      h("ol", { class: "candidates" }, rows),
    ),
    h("p", { class: "muted" }, t("next.difference")),
    h("button", { type: "button", class: "plain", id: "feed-back", disabled: last, "data-keep": "feed-back", onclick: view.feedBack }, last ? t("next.end") : t("next.feed", { word: said ? pieceLabel(said.text) : "" })),
  );
}
