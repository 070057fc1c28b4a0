// The line view of attention: queries to the left, keys to the right, a line as strong as its
// weight.
import { drawnToWidth, h, numbers, roving, s } from "./dom.js";
import { t } from "./i18n.js";
import { tidy } from "./scale.js";

const ROW = 30;
const TOP = 34;
// Lines that would not be seen are not drawn: a long sentence has thousands of them.
const LEAST = 0.02;

/** `rows` and `columns` are `{name, labels}`; `colour` is the index of the series whose colour the lines have. */
export function lineView({ title, description, matrix, rows, columns, colour = 0 }) {
  const frame = h("div", { class: "plot lines" });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const height = TOP + ROW * Math.max(rows.labels.length, columns.labels.length) + 6;
  let tokens = [];
  let strokes = [];

  const light = (side, index) => {
    for (const { line, i, j } of strokes) {
      const chosen = side === null || (side === "left" ? i : j) === index;
      line.classList.toggle("faded", !chosen);
      line.classList.toggle("chosen", side !== null && chosen);
    }
    for (const token of tokens) {
      const weight = side === null || token.side === side ? 0 : pairWeight(side, index, token.index);
      token.back.setAttribute("fill-opacity", String(Math.min(1, weight)));
      token.node.classList.toggle("chosen", token.side === side && token.index === index);
    }
    readout.textContent = side === null ? "" : sentence(side, index);
  };
  const pairWeight = (side, index, other) => (side === "left" ? matrix[index][other] : matrix[other][index]);
  const sentence = (side, index) => {
    const others = (side === "left" ? columns : rows).labels;
    const best = others
      .map((label, other) => [label, pairWeight(side, index, other)])
      .filter(([, weight]) => weight >= LEAST)
      .sort((a, b) => b[1] - a[1])
      .slice(0, 4)
      .map(([label, weight]) => `“${label}” ${tidy(weight)}`);
    const own = (side === "left" ? rows : columns).labels[index];
    return t(`lines.${side}`, { word: own, others: best.join(", ") || "–" });
  };

  const token = (side, label, index, x, anchor, width) => {
    const y = TOP + ROW * (index + 0.5);
    const back = s("rect", {
      class: `back fill-${colour % 8}`,
      x: anchor === "end" ? x - width : x,
      y: y - ROW / 2 + 3,
      width,
      height: ROW - 6,
      rx: 5,
      "fill-opacity": 0,
    });
    const inner = anchor === "end" ? x - 9 : x + 9;
    const text = s("text", { x: inner, y, "text-anchor": anchor, "dominant-baseline": "central" }, shorten(label, width));
    const node = s(
      "g",
      {
        class: "token",
        tabindex: index === 0 && side === "left" ? "0" : "-1",
        role: "button",
        "aria-label": sentence(side, index),
        onpointerenter: () => light(side, index),
        onpointerleave: () => light(null),
        onfocus: () => light(side, index),
        onblur: () => light(null),
      },
      back,
      text,
    );
    tokens.push({ node, back, side, index });
    return node;
  };

  drawnToWidth(frame, (available) => {
    tokens = [];
    strokes = [];
    const full = Math.min(available, 720);
    const width = Math.min(190, full * 0.34);
    const [leftEdge, rightEdge] = [width, full - width];
    const lines = [];
    matrix.forEach((row, i) =>
      row.forEach((weight, j) => {
        if (weight < LEAST) return;
        const [y1, y2] = [TOP + ROW * (i + 0.5), TOP + ROW * (j + 0.5)];
        const bend = (rightEdge - leftEdge) * 0.4;
        const line = s("path", {
          class: `strand series-${colour % 8}`,
          d: `M${leftEdge + 3} ${y1}C${leftEdge + bend} ${y1} ${rightEdge - bend} ${y2} ${rightEdge - 3} ${y2}`,
          "stroke-opacity": Math.min(1, weight ** 0.8),
          "stroke-width": 0.8 + 3.2 * weight,
        });
        strokes.push({ line, i, j });
        lines.push(line);
      }),
    );
    const picture = s(
      "svg",
      { width: full, height, role: "group", "aria-label": description ?? title },
      s("text", { class: "name", x: leftEdge - 9, y: 16, "text-anchor": "end" }, rows.name),
      s("text", { class: "name", x: rightEdge + 9, y: 16 }, columns.name),
      s("g", { "aria-hidden": "true" }, lines),
      rows.labels.map((label, i) => token("left", label, i, leftEdge, "end", width)),
      columns.labels.map((label, j) => token("right", label, j, rightEdge, "start", width)),
    );
    frame.replaceChildren(picture);
  });
  roving(frame, ".token");

  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, title),
    frame,
    readout,
    numbers(title, [`${rows.name} \\ ${columns.name}`, ...columns.labels], () =>
      matrix.map((row, i) => [rows.labels[i], ...row.map(tidy)]),
    ),
  );
}

function shorten(label, width) {
  const characters = [...label];
  const fits = Math.max(4, Math.floor((width - 14) / 8));
  return characters.length > fits ? `${characters.slice(0, fits - 1).join("")}…` : label;
}
