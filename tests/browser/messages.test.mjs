import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import test from "node:test";
import { inWords } from "../../crates/serve/page/messages.js";

const server = ["serve", "documents"]
  .map((crate) => new URL(`../../crates/${crate}/src/`, import.meta.url))
  .flatMap((folder) => readdirSync(folder, { recursive: true }).map((name) => new URL(name, folder)))
  .filter(({ pathname }) => pathname.endsWith(".rs"))
  .map((file) => readFileSync(file, "utf8"))
  .join("\n");

test("what the server says is known by its form", () => {
  assert.equal(inWords("Invalid request: request (41) exceeds text limit (40)"), "The text has 41 characters; this server takes 40 at once.");
  assert.equal(inWords("Something else"), "Something else");
});

test("the server still says it in these words", () => {
  for (const sentence of [
    "Invalid request: request ({size}) exceeds text limit ({limit})",
    "Invalid API key",
    "Please contact the server operator to get an API key",
    "Slowdown: {limit} per 1 minute",
    "Slowdown: {} wrong keys per 1 minute",
    "This text has {} tokens; attention can be shown for at most {limit}",
    "there is no single model from {source} to {target} to look into",
    "too many requests are waiting, try again",
    "the server is shutting down",
    "The translation took longer than {limit} s",
    "Invalid request: file format not supported, use {}",
    "Invalid request: empty file",
    "this looks like {}; this model translates from {}",
  ]) {
    assert.ok(server.includes(`"${sentence}"`), `the server no longer says: ${sentence}`);
    const said = sentence.replace(/\{\w*\}/g, "7");
    assert.notEqual(inWords(said), said, `not known: ${said}`);
  }
});
