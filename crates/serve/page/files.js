// Files that are dropped on the page or chosen: sent, translated, offered for download.
import * as api from "./api.js";
import { byId, h, notice, wordsOf } from "./dom.js";
import { t } from "./i18n.js";
import { Latest } from "./latest.js";
import { remarksOnFile } from "./remarks.js";

const latest = new Latest();

/** `languages()` says from what to what; nothing happens where the server translates no files. */
export function startFiles({ filesTranslation, supportedFilesFormat }, languages) {
  if (!filesTranslation) return;
  byId("file-label").hidden = false;
  byId("file").accept = (supportedFilesFormat ?? []).join(",");
  byId("file-label").title = (supportedFilesFormat ?? []).join(" ");
  byId("file").addEventListener("change", (event) => {
    const [file] = event.target.files;
    if (file) send(file, languages());
    event.target.value = "";
  });
  bindDrop(languages);
}

function bindDrop(languages) {
  const view = byId("view-translate");
  const sign = byId("drop");
  const hasFile = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const over = (event) => {
    if (!hasFile(event) || view.hidden) return;
    event.preventDefault();
    sign.hidden = false;
  };
  addEventListener("dragenter", over);
  addEventListener("dragover", over);
  addEventListener("dragleave", (event) => {
    if (event.relatedTarget === null) sign.hidden = true;
  });
  addEventListener("drop", (event) => {
    if (!hasFile(event) || view.hidden) return;
    event.preventDefault();
    sign.hidden = true;
    const [file] = event.dataTransfer.files;
    if (file) send(file, languages());
  });
}

async function send(file, languages) {
  const { target } = languages;
  const status = byId("file-status");
  const bar = h("progress", { max: "1", "aria-label": t("file.busy", { name: file.name }) });
  const said = h("p", { class: "muted num" });
  status.replaceChildren(
    h("div", { class: "card file-card" }, notice("loading", t("file.busy", { name: file.name })), bar, said, h("button", { type: "button", class: "plain", id: "file-cancel", onclick: cancel }, t("cancel"))),
  );
  const progress = (sent, done, total) => {
    if (total > 0) bar.value = done / total;
    else if (sent < 1) bar.value = sent;
    else bar.removeAttribute("value");
    said.textContent = total > 0 ? t("file.sentences", { done, total }) : sent < 1 ? t("file.sent", { percent: Math.round(100 * sent) }) : t("file.read");
  };
  try {
    const answer = await latest.run((signal) => api.translateFile(file, languages, progress, signal));
    if (!answer) return;
    const address = answer.translatedFileUrl;
    const remarks = remarksOnFile(answer);
    // The server may be known by another name outside: only the path counts.
    const path = new URL(address, document.baseURI).pathname.split("/").slice(-2).join("/");
    status.replaceChildren(
      h(
        "div",
        { class: "card file-card" },
        h("p", {}, t("file.done", { name: file.name })),
        h("a", { class: "primary", id: "download", href: path, download: renamed(file.name, target) }, t("file.download")),
        remarks.length ? h("ul", { class: "remarks" }, remarks.map((text) => h("li", {}, text))) : null,
      ),
    );
  } catch (error) {
    status.replaceChildren(notice("error", wordsOf(error), { name: t("again"), run: () => send(file, languages) }));
  }
}

function cancel() {
  latest.cancel();
  byId("file-status").replaceChildren();
}

/** report.txt to German: report.de.txt. */
function renamed(name, target) {
  const dot = name.lastIndexOf(".");
  return dot > 0 ? `${name.slice(0, dot)}.${target}${name.slice(dot)}` : `${name}.${target}`;
}
