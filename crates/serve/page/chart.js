// Curves and bars, drawn as SVG to the width at hand.
import { drawnToWidth, h, numbers, s } from "./dom.js";
import { t } from "./i18n.js";
import { axisFormat, compact, digits3, extent, linear, niceDomain, ticks, tickStep } from "./scale.js";

const MARGIN = { left: 64, right: 14, top: 12, bottom: 44 };
const MOST_ROWS = 400;
const DASHES = [null, "7 4", "2 3", "9 3 2 3"];

/**
 * Curves over a common x. `series` is a list of `{name, points: [[x, y]…]}`; axes are `{label, format}`, x also
 * `domain` if it is more than the points take up.
 * The pointer and the arrow keys read values off; a table holds all of them.
 */
export function lineChart({ title, description, x, y, series, height = 260, dots = false, domain }) {
  const shown = series.map((one, i) => {
    const points = one.points.filter((p) => p.every(Number.isFinite));
    return { name: one.name, index: i, points, at: new Map(points) };
  });
  const points = shown.flatMap((one) => one.points);
  const xs = [...new Set(points.map((p) => p[0]))].sort((a, b) => a - b);
  const xDomain = x.domain ?? extent(xs) ?? [0, 1];
  const yDomain = domain ?? niceDomain(extent(points.map((p) => p[1])) ?? [0, 1], 5);
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const frame = h("div", { class: "plot", tabindex: "0", role: "group", "aria-label": t("chart.keys", { title }) });
  const formatX = x.format ?? digits3;
  const formatY = y.format ?? digits3;
  let guide = null;
  let scaleX = null;
  let at = -1;

  const read = (index) => {
    if (xs.length === 0) return;
    at = Math.max(0, Math.min(xs.length - 1, index));
    const here = xs[at];
    const values = shown
      .filter((one) => one.at.has(here))
      .map((one) => (shown.length > 1 ? `${one.name}: ${formatY(one.at.get(here))}` : formatY(one.at.get(here))));
    readout.textContent = `${x.label} ${formatX(here)}: ${values.join(", ")}`;
    place();
  };
  const place = () => {
    if (!guide) return;
    guide.toggleAttribute("hidden", at < 0);
    if (at < 0) return;
    const px = scaleX(xs[at]);
    guide.setAttribute("x1", px);
    guide.setAttribute("x2", px);
  };
  const leave = () => {
    at = -1;
    readout.textContent = "";
    place();
  };

  drawnToWidth(frame, (width) => {
    const right = width - MARGIN.right;
    const bottom = height - MARGIN.bottom;
    scaleX = linear(xDomain, [MARGIN.left, right]);
    const scaleY = linear(yDomain, [bottom, MARGIN.top]);
    guide = s("line", { class: "guide", y1: MARGIN.top, y2: bottom, hidden: true });
    const path = (one) => one.points.map((p, i) => `${i ? "L" : "M"}${round(scaleX(p[0]))} ${round(scaleY(p[1]))}`).join("");
    const curves = shown.flatMap((one) => [
      s("path", { class: `curve series-${one.index % 8}`, d: path(one), "stroke-dasharray": DASHES[one.index % 4] }),
      ...(dots || one.points.length === 1
        ? one.points.map((p) => s("circle", { class: `dot series-${one.index % 8}`, cx: scaleX(p[0]), cy: scaleY(p[1]), r: 2.6 }))
        : []),
    ]);
    const picture = s(
      "svg",
      { width, height, role: "img", "aria-label": description ?? title },
      axisY(yDomain, scaleY, MARGIN.left, right, y.label),
      axisX(xDomain, scaleX, bottom, width, x.label),
      ...curves,
      guide,
    );
    frame.replaceChildren(picture);
    place();
  });

  frame.addEventListener("pointermove", (event) => {
    if (!scaleX) return;
    const px = event.clientX - frame.getBoundingClientRect().left;
    const distance = (value) => Math.abs(scaleX(value) - px);
    read(xs.reduce((best, value, i) => (distance(value) < distance(xs[best]) ? i : best), 0));
  });
  frame.addEventListener("pointerleave", leave);
  frame.addEventListener("blur", leave);
  frame.addEventListener("keydown", (event) => {
    const stride = Math.max(1, Math.round(xs.length / 60));
    const moves = { ArrowLeft: at - stride, ArrowRight: at + stride, Home: 0, End: xs.length - 1 };
    if (!(event.key in moves)) return;
    event.preventDefault();
    read(moves[event.key]);
  });

  // A long run is thinned out; its last point stays.
  const every = Math.ceil(xs.length / MOST_ROWS);
  const rows = () =>
    xs
      .filter((_, i) => i % every === 0 || i === xs.length - 1)
      .map((value) => [formatX(value), ...shown.map((one) => (one.at.has(value) ? formatY(one.at.get(value)) : ""))]);
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, title),
    shown.length > 1 ? legend(shown) : null,
    frame,
    readout,
    numbers(title, [x.label, ...shown.map((one) => one.name)], rows),
  );
}

function legend(series) {
  return h(
    "ul",
    { class: "legend" },
    series.map((one) =>
      h(
        "li",
        {},
        s(
          "svg",
          { width: 26, height: 10, "aria-hidden": "true" },
          s("line", {
            class: `curve series-${one.index % 8}`,
            x1: 1,
            x2: 25,
            y1: 5,
            y2: 5,
            "stroke-dasharray": DASHES[one.index % 4],
          }),
        ),
        one.name,
      ),
    ),
  );
}

/** Lines and numbers of the vertical axis, its name along the side. */
export function axisY(domain, scale, left, right, label) {
  const { format, note } = axisFormat(...domain, tickStep(...domain, 5));
  const middle = (scale(domain[0]) + scale(domain[1])) / 2;
  return s(
    "g",
    { class: "axis" },
    ticks(...domain, 5).map((value) => [
      s("line", { class: "rule", x1: left, x2: right, y1: scale(value), y2: scale(value) }),
      s("text", { x: left - 8, y: scale(value), "text-anchor": "end", "dominant-baseline": "middle" }, format(value)),
    ]),
    s("text", { class: "name", transform: `translate(12 ${middle}) rotate(-90)`, "text-anchor": "middle" }, `${label} ${note}`),
  );
}

/** Numbers of the horizontal axis, its name below. */
export function axisX(domain, scale, bottom, width, label) {
  const count = Math.max(2, Math.min(8, Math.floor(width / 90)));
  const { format, note } = axisFormat(...domain, tickStep(...domain, count));
  const middle = (scale(domain[0]) + scale(domain[1])) / 2;
  return s(
    "g",
    { class: "axis" },
    s("line", { class: "base", x1: scale(domain[0]), x2: scale(domain[1]), y1: bottom, y2: bottom }),
    ticks(...domain, count).map((value) => [
      s("line", { class: "base", x1: scale(value), x2: scale(value), y1: bottom, y2: bottom + 4 }),
      s("text", { x: scale(value), y: bottom + 17, "text-anchor": "middle" }, format(value)),
    ]),
    s("text", { class: "name", x: middle, y: bottom + 37, "text-anchor": "middle" }, `${label} ${note}`),
  );
}

/** A whole cut into parts: one bar, and a list with the numbers. */
export function stackedBar({ title, parts }) {
  const total = parts.reduce((sum, part) => sum + part.value, 0);
  const percent = (value) => (total > 0 ? (100 * value) / total : 0);
  const bar = h("div", {
    class: "bar",
    role: "img",
    "aria-label": `${title}: ${parts.map((p) => `${p.name} ${compact(p.value)}`).join(", ")}`,
  });
  parts.forEach((part, i) => {
    const piece = h("span", { class: `fill-${i % 8}`, title: `${part.name}: ${compact(part.value)}` });
    piece.style.flexGrow = String(part.value);
    bar.append(piece);
  });
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, title),
    bar,
    h(
      "ul",
      { class: "parts" },
      parts.map((part, i) =>
        h(
          "li",
          {},
          h("span", { class: `swatch fill-${i % 8}`, "aria-hidden": "true" }),
          h("span", { class: "part" }, part.name),
          h("span", { class: "number" }, compact(part.value)),
          h("span", { class: "number muted" }, `${percent(part.value).toFixed(1)} %`),
        ),
      ),
    ),
  );
}

function round(value) {
  return Math.round(value * 10) / 10;
}
