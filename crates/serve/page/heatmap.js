// Heat maps: cells on a canvas, axes in SVG beside it.
import { axisX, axisY } from "./chart.js";
import { css, palette } from "./colour.js";
import { drawnToWidth, h, isDark, numbers, s } from "./dom.js";
import { t } from "./i18n.js";
import { axisFormat, extent, linear, tickStep, ticks, tidy } from "./scale.js";

const FONT = 12.5;
const LEAST_CELL = 13;
const LARGEST_CELL = 38;
// Column labels lean by this angle: they stay readable and need little height.
const LEAN = (52 * Math.PI) / 180;

/**
 * A heat map of `matrix`. `rows` and `columns` are `{name, labels}` for words or `{name}` for numbers counted from 0.
 * `scale` is "sequential" (0 to the largest) or "diverging" (symmetric about 0). `say(i, j, value)` words a cell.
 */
export function heatMap({ title, description, matrix, rows, columns, scale = "sequential", range, say, height, onrow }) {
  const count = { rows: matrix.length, columns: matrix[0]?.length ?? 0 };
  const [low, high] = range ?? limits(matrix, scale);
  const frame = h("div", { class: "plot heat", tabindex: "0", role: "group", "aria-label": t("heat.keys", { title }) });
  const readout = h("p", { class: "readout", "aria-live": "polite" });
  const legend = h("div", { class: "ramp" });
  let geometry = null;
  let cursor = null;
  let box = null;

  const draw = (width) => {
    geometry = rows.labels ? wordGeometry(width, rows.labels, columns.labels) : numberGeometry(width, height ?? 300);
    const canvas = h("canvas", { "aria-hidden": "true" });
    paint(canvas, matrix, geometry, low, high, scale);
    box = s("rect", { class: "cursor", hidden: true });
    const axes = s("svg", { width: geometry.width, height: geometry.height, role: "img", "aria-label": description ?? title });
    axes.append(...(rows.labels ? wordAxes(geometry, rows, columns) : numberAxes(geometry, rows, columns, count)), box);
    const stage = h("div", { class: "stage" }, canvas, axes);
    stage.style.width = `${geometry.width}px`;
    stage.style.height = `${geometry.height}px`;
    frame.replaceChildren(stage);
    legend.replaceChildren(...ramp(low, high, scale));
    legend.style.paddingLeft = `${geometry.left}px`;
    place();
  };
  const place = () => {
    if (!box || !geometry) return;
    box.toggleAttribute("hidden", !cursor);
    if (!cursor) return;
    const cellWidth = geometry.plotWidth / count.columns;
    const cellHeight = geometry.plotHeight / count.rows;
    box.setAttribute("x", geometry.left + cursor.j * cellWidth);
    box.setAttribute("y", geometry.top + cursor.i * cellHeight);
    box.setAttribute("width", Math.max(2, cellWidth));
    box.setAttribute("height", Math.max(2, cellHeight));
  };
  const move = (i, j) => {
    cursor = { i: clamp(i, count.rows), j: clamp(j, count.columns) };
    readout.textContent = say(cursor.i, cursor.j, matrix[cursor.i][cursor.j]);
    onrow?.(cursor.i);
    place();
  };
  const leave = () => {
    cursor = null;
    readout.textContent = "";
    place();
  };

  drawnToWidth(frame, draw);
  frame.addEventListener("pointermove", (event) => {
    if (!geometry) return;
    const bounds = frame.firstElementChild.getBoundingClientRect();
    const j = Math.floor(((event.clientX - bounds.left - geometry.left) / geometry.plotWidth) * count.columns);
    const i = Math.floor(((event.clientY - bounds.top - geometry.top) / geometry.plotHeight) * count.rows);
    if (i >= 0 && j >= 0 && i < count.rows && j < count.columns) move(i, j);
    else leave();
  });
  frame.addEventListener("pointerleave", leave);
  frame.addEventListener("blur", leave);
  frame.addEventListener("keydown", (event) => {
    const { i, j } = cursor ?? { i: 0, j: -1 };
    const moves = {
      ArrowLeft: [i, j - 1],
      ArrowRight: [i, j + 1],
      ArrowUp: [i - 1, Math.max(0, j)],
      ArrowDown: [i + 1, Math.max(0, j)],
      Home: [i, 0],
      End: [i, count.columns - 1],
    };
    if (!(event.key in moves)) return;
    event.preventDefault();
    move(...moves[event.key]);
  });

  // More columns than this would be no table to read.
  const listed = Math.min(count.columns, 64);
  const label = (axis, i) => (axis.labels ? axis.labels[i] : String(i));
  const caption = listed < count.columns ? t("heat.first", { title, count: listed }) : title;
  return h(
    "figure",
    { class: "chart" },
    h("figcaption", {}, title),
    h("div", { class: "heat-scroll" }, frame),
    legend,
    readout,
    numbers(
      caption,
      [`${rows.name} \\ ${columns.name}`, ...Array.from({ length: listed }, (_, j) => label(columns, j))],
      () => matrix.map((row, i) => [label(rows, i), ...row.slice(0, listed).map((v) => tidy(v))]),
    ),
  );
}

/** A small heat map without axes, for a list of heads to pick from. */
export function thumbnail(matrix, size) {
  const canvas = h("canvas", { "aria-hidden": "true", class: "thumb" });
  const geometry = { plotWidth: size, plotHeight: size, left: 0, top: 0 };
  paint(canvas, matrix, geometry, 0, Math.max(0.2, limits(matrix, "sequential")[1]), "sequential");
  return canvas;
}

function limits(matrix, scale) {
  const [low, high] = extent(matrix.flat()) ?? [0, 1];
  if (scale === "diverging") {
    const size = Math.max(Math.abs(low), Math.abs(high)) || 1;
    return [-size, size];
  }
  return [Math.min(0, low), high > 0 ? high : 1];
}

function wordGeometry(width, rows, columns) {
  const left = Math.min(width * 0.35, widest(rows) + 14) + 20;
  const top = Math.sin(LEAN) * widest(columns) + 38;
  // How far the leaning labels reach over the last column, at the narrowest cells.
  const reach = columns.map((label, j) => Math.cos(LEAN) * widest([label]) - (columns.length - j - 0.5) * LEAST_CELL);
  const over = Math.max(2, ...reach.map((r) => r + 8));
  const fits = (width - left - over) / columns.length;
  const cell = Math.max(LEAST_CELL, Math.min(LARGEST_CELL, fits));
  const plotWidth = cell * columns.length;
  const plotHeight = cell * rows.length;
  return { left, top, cell, plotWidth, plotHeight, width: left + plotWidth + over, height: top + plotHeight + 6 };
}

function numberGeometry(width, height) {
  const [left, top, right, bottom] = [54, 8, 12, 44];
  return { left, top, plotWidth: width - left - right, plotHeight: height - top - bottom, width, height };
}

function wordAxes({ left, top, cell, plotWidth, plotHeight }, rows, columns) {
  const centre = (i) => (i + 0.5) * cell;
  const degrees = (-LEAN * 180) / Math.PI;
  return [
    s("text", { class: "name", x: left + plotWidth / 2, y: 13, "text-anchor": "middle" }, columns.name),
    s("text", { class: "name", transform: `translate(12 ${top + plotHeight / 2}) rotate(-90)`, "text-anchor": "middle" }, rows.name),
    s("g", { class: "axis tokens" }, [
      ...rows.labels.map((label, i) =>
        s("text", { x: left - 8, y: top + centre(i), "text-anchor": "end", "dominant-baseline": "central" }, clip(label)),
      ),
      ...columns.labels.map((label, j) =>
        s("text", { transform: `translate(${left + centre(j) + 3} ${top - 7}) rotate(${degrees})` }, clip(label)),
      ),
    ]),
  ];
}

function numberAxes({ left, top, plotWidth, plotHeight, width }, rows, columns, count) {
  const right = left + plotWidth;
  const bottom = top + plotHeight;
  return [
    // A number stands at the middle of its cell.
    axisY([0, count.rows - 1], linear([-0.5, count.rows - 0.5], [top, bottom]), left, left, rows.name),
    axisX([0, count.columns - 1], linear([-0.5, count.columns - 0.5], [left, right]), bottom, width, columns.name),
  ];
}

function paint(canvas, matrix, { plotWidth, plotHeight, left, top }, low, high, scale) {
  const ratio = Math.max(1, window.devicePixelRatio || 1);
  canvas.width = Math.max(1, Math.round(plotWidth * ratio));
  canvas.height = Math.max(1, Math.round(plotHeight * ratio));
  canvas.style.width = `${plotWidth}px`;
  canvas.style.height = `${plotHeight}px`;
  canvas.style.left = `${left}px`;
  canvas.style.top = `${top}px`;
  const rows = matrix.length;
  const columns = matrix[0]?.length ?? 0;
  if (rows === 0 || columns === 0) return;
  const context = canvas.getContext("2d");
  const small = new OffscreenCanvas(columns, rows);
  small.getContext("2d").putImageData(coloured(matrix, low, high, scale), 0, 0);
  // Cells keep their edges, unless several share a pixel.
  context.imageSmoothingEnabled = columns > canvas.width || rows > canvas.height;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
}

function coloured(matrix, low, high, scale) {
  const colours = palette(scale, isDark());
  const columns = matrix[0].length;
  const image = new ImageData(columns, matrix.length);
  const span = high - low || 1;
  matrix.forEach((row, i) =>
    row.forEach((value, j) => {
      const level = Math.round((255 * (value - low)) / span);
      const [r, g, b] = colours[Math.max(0, Math.min(255, level || 0))];
      image.data.set([r, g, b, 255], 4 * (i * columns + j));
    }),
  );
  return image;
}

// The legend: a strip of the palette with numbers below.
function ramp(low, high, scale) {
  const canvas = h("canvas", { width: "256", height: "1", "aria-hidden": "true" });
  const context = canvas.getContext("2d");
  palette(scale, isDark()).forEach((colour, i) => {
    context.fillStyle = css(colour);
    context.fillRect(i, 0, 1, 1);
  });
  const { format } = axisFormat(low, high, tickStep(low, high, 4));
  const all = ticks(low, high, 4);
  // Long numbers that would touch: every other one, and zero among them.
  const crowded = all.length * Math.max(...all.map((value) => format(value).length)) > 30;
  const kept = Math.max(0, all.indexOf(0)) % 2;
  const marks = (crowded ? all.filter((_, k) => k % 2 === kept) : all).map((value) => {
    const mark = h("span", {}, format(value));
    mark.style.left = `${(100 * (value - low)) / (high - low || 1)}%`;
    return mark;
  });
  return [canvas, h("div", { class: "marks" }, marks)];
}

let measure = null;

function widest(labels) {
  measure ??= new OffscreenCanvas(1, 1).getContext("2d");
  measure.font = `${FONT}px sans-serif`;
  return Math.max(...labels.map((label) => measure.measureText(clip(label)).width));
}

function clip(label) {
  const characters = [...label];
  return characters.length > 14 ? `${characters.slice(0, 13).join("")}…` : label;
}

function clamp(i, count) {
  return Math.max(0, Math.min(count - 1, i));
}
