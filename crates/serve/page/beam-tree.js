// A beam search as a tree that grows to the right; what was pruned is faded.
import { layout } from "./decoding.js";
import { h, numbers, roving, s } from "./dom.js";
import { t } from "./i18n.js";
import { fixed } from "./scale.js";
import { pieceLabel, spoken } from "./text.js";

const ROW = 26;
const TOP = 20;
const GAP = 34;

/** `tree` is the answer of the server. */
export function beamTree(tree) {
  const { nodes } = tree;
  const { x, y, rows } = layout(nodes);
  const labels = nodes.map((node) => clip(pieceLabel(node.text)));
  const steps = 1 + Math.max(0, ...x);
  // In front of the first tokens is what they all follow.
  const root = t("token.start");
  const starts = columns(labels, x, steps, 8 + width(root) + GAP);
  const height = TOP + rows * ROW + 8;
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const centre = (i) => TOP + y[i] * ROW + ROW / 2;
  const edges = nodes.map((node, i) => {
    const [ax, ay] = node.parent === null ? [8 + width(root), TOP + ROW / 2] : [starts[x[node.parent]] + width(labels[node.parent]), centre(node.parent)];
    const [bx, by] = [starts[x[i]] - 4, centre(i)];
    const middle = (ax + 4 + bx) / 2;
    return timed(s("path", { class: classOf("edge", node), d: `M${ax + 4} ${ay}C${middle} ${ay} ${middle} ${by} ${bx} ${by}` }), x[i]);
  });
  const say = (i) => {
    const pieces = [];
    for (let at = i; at !== null; at = nodes[at].parent) pieces.unshift(nodes[at].text);
    const { log_probability, score, state } = nodes[i];
    readout.textContent = t("beam.say", { words: spoken(pieces), logp: fixed(log_probability, 2), score: fixed(score, 2), state: t(`beam.${state}`) });
  };
  const tokens = nodes.map((node, i) => {
    const group = s(
      "g",
      { class: classOf("node", node), tabindex: i === 0 ? "0" : "-1", role: "img", "aria-label": `${pieceLabel(node.text)}: ${t(`beam.${node.state}`)}, ${fixed(node.score, 2)}` },
      s("rect", { x: starts[x[i]] - 4, y: centre(i) - 11, width: width(labels[i]) + 8, height: 22, rx: 6 }),
      s("text", { x: starts[x[i]], y: centre(i), "dominant-baseline": "central" }, labels[i]),
    );
    group.addEventListener("pointerenter", () => say(i));
    group.addEventListener("focus", () => say(i));
    return timed(group, x[i]);
  });
  const picture = s(
    "svg",
    { width: starts[steps] + 8, height, role: "group", "aria-label": t("beam.title") },
    s("g", { "aria-hidden": "true" }, edges, s("text", { class: "root", x: 8, y: TOP + ROW / 2, "dominant-baseline": "central" }, root)),
    tokens,
  );
  roving(picture, ".node");
  const scroll = h("div", { class: "heat-scroll tree" }, picture);
  return h(
    "figure",
    { class: "chart" },
    scroll,
    readout,
    h("ul", { class: "legend" }, ["best", "extended", "pruned", "ended"].map((name) => h("li", {}, h("span", { class: `key ${name}` }), t(`beam.${name}`)))),
    numbers(t("beam.title"), [t("col.token"), t("beam.length"), t("beam.logp"), t("beam.score"), t("beam.state")], () =>
      nodes.map((node) => [pieceLabel(node.text), String(node.length), fixed(node.log_probability, 2), fixed(node.score, 2), t(`beam.${node.state}`)]),
    ),
  );
}

// Each appears in its step, and what is pruned fades in the next; the style sheet does both, where
// motion is welcome.
function timed(element, step) {
  element.style.setProperty("--step", String(step));
  return element;
}

const classOf = (kind, node) => `${kind} ${node.state}${node.best ? " best" : ""}`;

function clip(label) {
  const characters = [...label];
  return characters.length > 14 ? `${characters.slice(0, 13).join("")}…` : label;
}

let measure = null;

function width(label) {
  measure ??= new OffscreenCanvas(1, 1).getContext("2d");
  measure.font = `600 14px ${getComputedStyle(document.body).fontFamily}`;
  return measure.measureText(label).width + 2;
}

// Where each column begins: behind the widest word of the one before.
function columns(labels, x, steps, first) {
  const widest = new Array(steps).fill(10);
  labels.forEach((label, i) => {
    widest[x[i]] = Math.max(widest[x[i]], width(label));
  });
  const starts = [first];
  for (const size of widest) starts.push(starts.at(-1) + size + GAP);
  return starts;
}
