"use strict";
// The data of the page: sentences, each with its tokens and with the weights of its heads in
// thousandths.
const data = JSON.parse(document.getElementById("data").textContent);
const SVG = "http://www.w3.org/2000/svg";
const NAMES = {
  cross: ["translation", "sentence"],
  encoder: ["from", "to"],
  decoder: ["about to say", "has read"],
};
const ROW = 30, TOP = 34, WIDTH = 640, SIDE = 200, LEAST = 0.02;
const state = { sentence: 0, kind: data.kind, layer: null, head: null, draw: data.draw };
const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const element = SVG_TAGS.has(tag) ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}
const SVG_TAGS = new Set(["svg", "g", "path", "rect", "text"]);
const label = (piece) => piece.replace(/^[▁Ġ]+/u, "").replace(/@@$/, "") || "␣";

const sentence = () => data.sentences[state.sentence];
const mapsOf = (kind) => sentence().maps.filter((map) => map.kind === kind);
const map = () => mapsOf(state.kind).find((one) => one.layer === state.layer);
const headOf = (one, head) => Array.from({ length: one.rows }, (_, i) => one.heads[head].slice(i * one.columns, (i + 1) * one.columns).map((w) => w / 1000));

function settle() {
  if (mapsOf(state.kind).length === 0) state.kind = sentence().maps[0].kind;
  const maps = mapsOf(state.kind);
  const sharpest = maps.find((one) => one.sharpest) ?? maps[0];
  if (!maps.some((one) => one.layer === state.layer)) state.layer = sharpest.layer;
  if (!(state.head in map().heads)) state.head = map().head;
}

function axes() {
  const { source, said, read } = sentence();
  return { cross: [said, source], encoder: [source, source], decoder: [said, read] }[state.kind].map((list) => list.map(label));
}

function choice(id, options, value, change) {
  const select = byId(id);
  select.replaceChildren(...options.map(([key, text]) => make("option", { value: key, ...(String(key) === String(value) ? { selected: "" } : {}) }, text)));
  select.onchange = () => { change(select.value); render(); };
  select.parentElement.hidden = options.length < 2;
}

function render() {
  settle();
  const { source, translation } = sentence().texts;
  byId("source").textContent = source;
  byId("translation").textContent = translation;
  const kinds = Object.keys(NAMES).filter((kind) => mapsOf(kind).length > 0);
  const title = { cross: "Cross-attention", encoder: "Encoder self-attention", decoder: "Decoder self-attention" };
  choice("sentence", data.sentences.map((one, i) => [i, `${i + 1}. ${one.texts.source}`]), state.sentence, (v) => Object.assign(state, { sentence: Number(v), layer: null, head: null }));
  choice("kind", kinds.map((kind) => [kind, title[kind]]), state.kind, (v) => Object.assign(state, { kind: v, layer: null, head: null }));
  choice("layer", mapsOf(state.kind).map((one) => [one.layer, one.layer]), state.layer, (v) => Object.assign(state, { layer: Number(v), head: null }));
  choice("head", Object.keys(map().heads).map((head) => [head, head]), state.head, (v) => Object.assign(state, { head: v }));
  choice("draw", [["lines", "Lines"], ["matrix", "Matrix"]], state.draw, (v) => Object.assign(state, { draw: v }));
  byId("title").textContent = `${title[state.kind]}, layer ${state.layer}, head ${state.head}`;
  const weights = headOf(map(), state.head);
  const [rows, columns] = axes();
  byId("drawing").replaceChildren(state.draw === "lines" ? lines(weights, rows, columns) : matrix(weights, rows, columns));
  say("");
  heads();
}

const say = (text) => { byId("readout").textContent = text || "Point at a token, or move with Tab, to read its weights."; };

function told(weights, rows, columns, side, index) {
  const other = side === "left" ? columns : rows;
  const weight = (k) => (side === "left" ? weights[index][k] : weights[k][index]);
  const best = other.map((name, k) => [name, weight(k)]).filter(([, w]) => w >= LEAST).sort((a, b) => b[1] - a[1]).slice(0, 4);
  const list = best.map(([name, w]) => `“${name}” ${w.toFixed(2)}`).join(", ") || "nothing";
  return side === "left" ? `“${rows[index]}” looks at ${list}` : `“${columns[index]}” is looked at by ${list}`;
}

function lines(weights, rows, columns) {
  const strands = [], tokens = [];
  const light = (side, index) => {
    for (const { path, i, j } of strands) path.classList.toggle("faded", side !== null && (side === "left" ? i : j) !== index);
    for (const token of tokens) {
      const w = side === null || token.side === side ? 0 : side === "left" ? weights[index][token.index] : weights[token.index][index];
      token.back.style.fillOpacity = w;
      token.node.classList.toggle("chosen", token.side === side && token.index === index);
    }
    say(side === null ? "" : told(weights, rows, columns, side, index));
  };
  const right = WIDTH - SIDE;
  weights.forEach((row, i) => row.forEach((w, j) => {
    if (w < LEAST) return;
    const [a, b] = [TOP + ROW * (i + 0.5), TOP + ROW * (j + 0.5)];
    const path = make("path", { d: `M${SIDE + 3} ${a}C${SIDE + 100} ${a} ${right - 100} ${b} ${right - 3} ${b}`, "stroke-opacity": w ** 0.8, "stroke-width": 0.8 + 3.2 * w });
    strands.push({ path, i, j });
  }));
  const token = (side, name, index) => {
    const y = TOP + ROW * index;
    const back = make("rect", { x: side === "left" ? 0 : right, y: y + 3, width: SIDE, height: ROW - 6, rx: 5 });
    const text = make("text", { x: side === "left" ? SIDE - 9 : right + 9, y: y + ROW / 2, "text-anchor": side === "left" ? "end" : "start", "dominant-baseline": "central" }, name.length > 22 ? `${name.slice(0, 21)}…` : name);
    const on = () => light(side, index), off = () => light(null);
    const node = make("g", { class: "token", tabindex: 0, role: "button", "aria-label": told(weights, rows, columns, side, index), onpointerenter: on, onpointerleave: off, onfocus: on, onblur: off }, back, text);
    tokens.push({ node, back, side, index });
    return node;
  };
  const height = TOP + ROW * Math.max(rows.length, columns.length) + 6;
  return make(
    "svg", { class: "live", viewBox: `0 0 ${WIDTH} ${height}`, width: WIDTH, role: "group", "aria-label": byId("title").textContent },
    make("text", { class: "name", x: SIDE - 9, y: 16, "text-anchor": "end" }, NAMES[state.kind][0]),
    make("text", { class: "name", x: right + 9, y: 16 }, NAMES[state.kind][1]),
    ...strands.map(({ path }) => path),
    ...rows.map((name, i) => token("left", name, i)),
    ...columns.map((name, j) => token("right", name, j)),
  );
}

function matrix(weights, rows, columns) {
  const cell = Math.max(14, Math.min(34, 460 / Math.max(1, columns.length)));
  const [left, top] = [130, 110];
  const cells = weights.flatMap((row, i) => row.map((w, j) => make("rect", {
    x: left + j * cell, y: top + i * cell, width: cell - 1, height: cell - 1, style: `fill:var(--accent);fill-opacity:${w}`,
    onpointerenter: () => say(`“${rows[i]}” looks at “${columns[j]}”: ${w.toFixed(3)}`),
  })));
  const width = left + columns.length * cell + 10, height = top + rows.length * cell + 10;
  return make(
    "svg", { class: "live", viewBox: `0 0 ${width} ${height}`, width, role: "img", "aria-label": byId("title").textContent },
    ...rows.map((name, i) => make("text", { x: left - 8, y: top + (i + 0.5) * cell, "text-anchor": "end", "dominant-baseline": "central" }, name)),
    ...columns.map((name, j) => make("text", { transform: `translate(${left + (j + 0.5) * cell} ${top - 8}) rotate(-60)` }, name)),
    ...cells,
  );
}

function heads() {
  const colour = getComputedStyle(byId("heads")).color;
  byId("heads").replaceChildren(...mapsOf(state.kind).flatMap((one) => Object.keys(one.heads).map((head) => {
    const canvas = make("canvas", { width: one.columns, height: one.rows });
    canvas.style.width = canvas.style.height = "56px";
    const context = canvas.getContext("2d");
    context.fillStyle = colour;
    headOf(one, head).forEach((row, i) => row.forEach((w, j) => { context.globalAlpha = w; context.fillRect(j, i, 1, 1); }));
    const chosen = one.layer === state.layer && head === String(state.head);
    return make("button", { type: "button", "aria-pressed": String(chosen), "aria-label": `Layer ${one.layer}, head ${head}`, onclick: () => { Object.assign(state, { layer: one.layer, head }); render(); } }, canvas, `${one.layer}.${head}`);
  })));
}

document.body.classList.add("scripted");
byId("controls").hidden = byId("all").hidden = false;
render();
