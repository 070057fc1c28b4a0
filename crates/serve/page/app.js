// The frame of the page: views, theme, key.
import * as api from "./api.js";
import { byId, h, roving } from "./dom.js";
import { NAMES, chooseLanguage, language, t, translateDocument } from "./i18n.js";
import { startSentence } from "./sentence.js";
import { keep } from "./store.js";
import * as decoding from "./view-decoding.js";
import * as attention from "./view-attention.js";
import * as model from "./view-model.js";
import * as positions from "./view-positions.js";
import * as steps from "./view-steps.js";
import * as studies from "./view-studies.js";
import * as translate from "./view-translate.js";

const VIEWS = { translate, steps, decoding, attention, positions, model, studies };
// Those that look at one sentence, which they share.
const INNER = new Set(["steps", "decoding", "attention"]);
const started = new Set();
let previous = null;

function currentView() {
  // What follows a slash is the view's own.
  const [name] = location.hash.slice(1).split("/");
  return name in VIEWS ? name : "translate";
}

function show() {
  const current = currentView();
  for (const name of Object.keys(VIEWS)) {
    const selected = name === current;
    const tab = byId(`tab-${name}`);
    tab.setAttribute("aria-selected", String(selected));
    tab.setAttribute("tabindex", selected ? "0" : "-1");
    byId(`view-${name}`).hidden = !selected;
    if (selected) tab.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  byId("sentence").hidden = !INNER.has(current);
  document.title = `${t(`tab.${current}`)} · Regard`;
  if (previous && previous !== current) VIEWS[previous].hidden?.();
  previous = current;
  if (!started.has(current)) {
    started.add(current);
    VIEWS[current].start();
  } else VIEWS[current].shown?.();
}

function startTabs() {
  const list = byId("tabs");
  roving(list, "[role=tab]");
  // Arrow keys focus a tab; the view follows, as the tab's own link would do.
  list.addEventListener("focusin", (event) => {
    if (event.target.matches("[role=tab]") && event.target.matches(":focus-visible")) {
      const hash = event.target.getAttribute("href");
      if (hash !== `#${currentView()}`) location.hash = hash;
    }
  });
  list.addEventListener("keydown", (event) => {
    if (event.key === " ") {
      event.preventDefault();
      event.target.click();
    }
  });
  addEventListener("hashchange", show);
}

const THEMES = ["auto", "light", "dark"];

function startTheme() {
  const button = byId("theme");
  const chosen = () => document.documentElement.dataset.theme ?? "auto";
  const label = () => {
    button.dataset.choice = chosen();
    button.querySelector("span").textContent = t(`theme.${chosen()}`);
  };
  button.addEventListener("click", () => {
    const next = THEMES[(THEMES.indexOf(chosen()) + 1) % THEMES.length];
    if (next === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = next;
    keep("regard.theme", next === "auto" ? null : next);
    label();
    redraw();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  label();
}

// Canvases do not follow the style sheet: what is on them is drawn again.
function redraw() {
  for (const name of started) VIEWS[name].redraw?.();
}

async function startKey() {
  const field = byId("key");
  field.value = api.currentKey();
  field.addEventListener("change", () => api.setKey(field.value.trim()));
  try {
    const { apiKeys, keyRequired } = await api.settings();
    byId("key-field").hidden = !(apiKeys || keyRequired);
    if (keyRequired && !field.value) field.focus();
  } catch {
    // The view that needs the server says that it is missing.
  }
}

// The hash names a view, so the skip link cannot be a plain one.
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});

function startLanguage() {
  const select = byId("language");
  select.replaceChildren(...Object.entries(NAMES).map(([code, name]) => h("option", { value: code, lang: code, selected: code === language }, name)));
  select.addEventListener("change", () => chooseLanguage(select.value));
}

translateDocument();
startLanguage();
startSentence();
startTabs();
startTheme();
startKey();
show();
