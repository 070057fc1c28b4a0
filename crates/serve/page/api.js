// Every request of the page. Addresses are relative, so that the page also works under a path of a larger site.
import { t } from "./i18n.js";
import { EventLines } from "./latest.js";
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

async function send(path, { body, form, signal } = {}) {
  const options = { signal, headers: key ? { Authorization: `Bearer ${key}` } : {} };
  if (body) {
    options.method = "POST";
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  if (form) Object.assign(options, { method: "POST", body: form });
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
    return (typeof error === "string" && error ? error : fallback) + advice;
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

/** Sends a file; the address of its translation. */
export async function translateFile(file, source, target, signal) {
  const form = new FormData();
  form.append("file", file);
  form.append("source", source);
  form.append("target", target);
  const answer = await json("translate_file", { form, signal });
  return answer.translatedFileUrl;
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
      if (event.error) throw new ApiError(event.error, response.status);
      show(event.text ?? "");
      if (event.done) return;
    }
  }
}

// Answers that do not change while the page is open are requested once; a failed request is repeated.
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
export const positions = (model) => once(`v1/positions?model=${encodeURIComponent(model)}`);

/**
 * The models, each with a `label` that names its languages. Requested again when `fresh`: logs and counters grow.
 * A server without a model is an error.
 */
export async function models(fresh = false) {
  if (fresh) kept.delete("v1/model");
  const [list, known] = await Promise.all([once("v1/model"), languages()]);
  if (list.length === 0) throw new ApiError(t("error.model"), 200);
  const name = (code) => known.find((l) => l.code === code)?.name ?? code;
  return list.map((model) => ({ ...model, label: `${name(model.source)} → ${name(model.target)}` }));
}
