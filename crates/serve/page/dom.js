// Small helpers to build and drive elements.
import { t } from "./i18n.js";

const SVG = "http://www.w3.org/2000/svg";

/** An HTML element. `properties` are attributes; a function under `on…` is a listener; false, null and undefined are left out. */
export function h(tag, properties = {}, ...children) {
  return fill(document.createElement(tag), properties, children);
}

/** The same for SVG. */
export function s(tag, properties = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), properties, children);
}

function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const byId = (id) => document.getElementById(id);

/** A message in place of content: `kind` is "error", "empty" or "loading". */
export function notice(kind, text, action) {
  const roles = { error: "alert", loading: "status" };
  return h(
    "div",
    { class: `notice ${kind}`, role: roles[kind] ?? null },
    h("p", {}, text),
    action ? h("button", { type: "button", class: "plain", onclick: action.run }, action.name) : null,
  );
}

/** The plain words of an error. */
export function wordsOf(error) {
  return error?.message || t("error.unknown");
}

/**
 * One tab stop for many elements: the arrow keys move between those that match `selector`, Home and End go to the ends.
 * `across` gives the number of elements in a row, for up and down; without it they move as left and right do.
 */
export function roving(container, selector, across = () => 1) {
  const items = () => [...container.querySelectorAll(selector)];
  const moves = {
    ArrowLeft: (at) => at - 1,
    ArrowRight: (at) => at + 1,
    ArrowUp: (at) => at - across(),
    ArrowDown: (at) => at + across(),
    Home: () => 0,
    End: (at, count) => count - 1,
  };
  container.addEventListener("keydown", (event) => {
    const move = moves[event.key];
    const list = items();
    const at = list.indexOf(document.activeElement);
    if (!move || at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    list[Math.min(list.length - 1, Math.max(0, move(at, list.length)))].focus();
  });
  container.addEventListener("focusin", (event) => {
    const list = items();
    if (!list.includes(event.target)) return;
    for (const item of list) item.setAttribute("tabindex", item === event.target ? "0" : "-1");
  });
}

/** Calls `draw(width)` now and whenever the element's width changes. Returns the element. */
export function drawnToWidth(element, draw) {
  let last = 0;
  new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    // A hidden view has no width; it is drawn when it is shown.
    if (width === 0 || width === last) return;
    last = width;
    draw(width);
  }).observe(element);
  return element;
}

/** The numbers behind a drawing, for everyone who would rather read them. The table is made when it is opened. */
export function numbers(caption, head, makeRows) {
  const details = h("details", { class: "numbers" }, h("summary", {}, t("numbers")));
  details.addEventListener("toggle", () => {
    details.querySelector(".scroll")?.remove();
    if (details.open) details.append(table(caption, head, makeRows()));
  });
  return details;
}

/** A table in a frame that scrolls. The first cell of each row is its head. */
export function table(caption, head, rows) {
  const body = rows.map((row) =>
    h("tr", {}, row.map((cell, i) => (i === 0 ? h("th", { scope: "row" }, cell) : h("td", {}, cell)))),
  );
  return h(
    "div",
    { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    h(
      "table",
      {},
      h("caption", {}, caption),
      h("thead", {}, h("tr", {}, head.map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, body),
    ),
  );
}

/** Whether the page is shown on dark ground. */
export function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** A group of radio buttons that looks like one switch. `options` are `[value, label]`. */
export function segmented(name, legend, options, value, onchange) {
  return h(
    "fieldset",
    { class: "segmented" },
    h("legend", {}, legend),
    h(
      "div",
      {},
      options.map(([option, label, disabled]) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name,
            value: option,
            checked: option === value,
            disabled: Boolean(disabled),
            onchange: () => onchange(option),
          }),
          h("span", {}, label),
        ),
      ),
    ),
  );
}

/** A labelled select. `options` are `[value, label]`. */
export function choice(id, label, options, value, onchange) {
  const select = h(
    "select",
    { id, "data-keep": id, onchange: () => onchange(select.value) },
    options.map(([option, text]) => h("option", { value: option, selected: String(option) === String(value) }, text)),
  );
  return h("div", { class: "field" }, h("label", { for: id }, label), select);
}
