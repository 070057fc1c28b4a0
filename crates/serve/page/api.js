// Every request of the page. Addresses are relative, so that the page also works under a path of a
// larger site.
import { languageName, t } from "./i18n.js";
import { EventLines } from "./latest.js";
import { inWords } from "./messages.js";
import { keep, recall } from "./store.js";

/** An answer that is not a result, in the server's own words where it has any. */
export class ApiError extends Error {
  constructor(message, status) {
    super(message);
    this.status = status;
  }
}

let key = recall("regard.key", "sessionStorage") ?? "";

export const currentKey = () => key;

export function setKey(value) {
  key = value;
  keep("regard.key", value, "sessionStorage");
}

async function send(path, { body, signal } = {}) {
  const options = { signal, headers: key ? { Authorization: `Bearer ${key}` } : {} };
  if (body) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI), options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(t("error.reach"), 0);
  }
  if (response.ok) return response;
  throw new ApiError(await explain(response), response.status);
}

async function explain(response) {
  const wait = response.headers.get("Retry-After");
  const advice = wait && /^\d+$/.test(wait) ? ` ${t("error.retry", { wait })}` : "";
  const fallback = t("error.status", { status: response.status });
  try {
    const { error } = await response.json();
    return (typeof error === "string" && error ? inWords(error) : fallback) + advice;
  } catch {
    return fallback + advice;
  }
}

async function json(path, options) {
  const response = await send(path, options);
  try {
    return await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError(t("error.answer"), response.status);
  }
}

export const translate = (body, signal) => json("translate", { body, signal });
export const detect = (q, signal) => json("detect", { body: { q }, signal });
export const steps = (body, signal) => json("v1/steps", { body, signal });
export const beam = (body, signal) => json("v1/beam", { body, signal });
export const attention = (body, signal) => json("v1/attention", { body, signal });

/**
 * Sends a file; its last event, with the address of its translation. `progress(sent, done, total)` is called with the share that has been
 * sent, then with the number of sentences that are translated and of all of them.
 */
export function translateFile(file, { source, target, glossary }, progress, signal) {
  const form = new FormData();
  form.append("file", file);
  form.append("source", source);
  form.append("target", target);
  if (glossary) form.append("glossary", typeof glossary === "string" ? glossary : JSON.stringify(glossary));
  const lines = new EventLines();
  return new Promise((resolve, reject) => {
    // fetch does not tell how much it has sent.
    const request = new XMLHttpRequest();
    let read = 0;
    const take = () => {
      const text = request.responseText.slice(read);
      read = request.responseText.length;
      for (const data of lines.push(text)) {
        const event = JSON.parse(data);
        if (event.error) reject(new ApiError(inWords(event.error), request.status));
        else if (event.translatedFileUrl) resolve(event);
        else progress(1, event.done, event.total);
      }
    };
    request.upload.onprogress = (event) => progress(event.lengthComputable ? event.loaded / event.total : 0, 0, 0);
    request.onprogress = () => request.status === 200 && take();
    request.onload = async () => {
      if (request.status === 200) take();
      const headers = { "Retry-After": request.getResponseHeader("Retry-After") ?? "" };
      const answer = request.status === 200 ? t("error.answer") : await explain(new Response(request.responseText, { status: request.status, headers }));
      // Nothing happens here if there was an answer.
      reject(new ApiError(answer, request.status));
    };
    request.onerror = () => reject(new ApiError(t("error.reach"), 0));
    request.onabort = () => reject(new DOMException("", "AbortError"));
    signal.addEventListener("abort", () => request.abort());
    request.open("POST", new URL("v1/translate_file/stream", document.baseURI));
    if (key) request.setRequestHeader("Authorization", `Bearer ${key}`);
    request.send(form);
  });
}

/** Calls `show(text)` each time more of the translation has arrived. */
export async function stream(body, show, signal) {
  const response = await send("v1/translate/stream", { body, signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  const lines = new EventLines();
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    for (const data of lines.push(value)) {
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(inWords(event.error), response.status);
      show(event.text ?? "");
      if (event.done) return;
    }
  }
}

// Answers that do not change while the page is open are requested once; a failed request is
// repeated.
const kept = new Map();

function once(path) {
  if (!kept.has(path)) {
    const answer = json(path);
    kept.set(path, answer);
    answer.catch(() => kept.delete(path));
  }
  return kept.get(path);
}

export const languages = () => once("languages");
export const settings = () => once("frontend/settings");
export const studies = () => json("studies/index.json");
export const study = (name) => once(`studies/${encodeURIComponent(name)}/report.json`);
export const positions = (model) => once(`v1/positions?model=${encodeURIComponent(model)}`);

/**
 * The models, each with a `label` that names its languages. Requested again when `fresh`: logs and counters grow.
 * A server without a model is an error.
 */
export async function models(fresh = false) {
  if (fresh) kept.delete("v1/model");
  const [list, known] = await Promise.all([once("v1/model"), languages()]);
  if (list.length === 0) throw new ApiError(t("error.model"), 200);
  const label = (source, target) => `${name(source)} → ${name(target)}`;
  const name = (code) => languageName(code, known.find((l) => l.code === code)?.name);
  return list.map((model) => ({
    ...model,
    label: label(model.source, model.target),
    told: (source, target) => ({ ...model, source, target, examples: [], label: label(source, target) }),
  }));
}

/** The model that translates from one language to another by itself: one of this pair, or a multilingual one that is told them. */
export function modelOf(models, source, target) {
  const many = ({ languages }) => languages?.includes(source) && languages.includes(target) && source !== target;
  return models.find((m) => m.source === source && m.target === target) ?? models.find(many)?.told(source, target);
}
