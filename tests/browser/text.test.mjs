import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import {
  codePoints,
  continuing,
  curl,
  links,
  offsets,
  pieceLabel,
  readByDecoder,
  segments,
  spoken,
  wordAt,
  words,
} from "../../crates/serve/page/text.js";

test("offsets count code points, not code units", () => {
  assert.deepEqual(offsets("aé"), [0, 1, 2]);
  assert.deepEqual(offsets("a😀b"), [0, 1, 3, 4]);
  assert.deepEqual(offsets(""), [0]);
  assert.equal(codePoints("👍🏽"), 2);
});

test("words carry their places and leave out spaces and marks", () => {
  assert.deepEqual(words("Hi, you!", "en"), [
    { start: 0, end: 2, text: "Hi" },
    { start: 4, end: 7, text: "you" },
  ]);
  assert.deepEqual(words("a😀b c", "en").map((w) => w.text), ["a", "b", "c"]);
  assert.deepEqual(words("", "en"), []);
});

test("a code that the browser does not know is no error", () => {
  assert.equal(words("one two", "not a code").length, 2);
});

test("a caret behind a word still finds it", () => {
  const list = words("one two", "en");
  assert.equal(wordAt(list, 0), 0);
  assert.equal(wordAt(list, 3), 0);
  assert.equal(wordAt(list, 5), 1);
  assert.equal(wordAt(words("a  b", "en"), 2), -1);
});

test("links follow the alignment across an emoji", () => {
  const [source, target] = ["😀 the cat", "😀 die Katze"];
  const found = links([[2, 5, 2, 5], [6, 9, 6, 11]], source, target, words(source, "en"), words(target, "de"));
  assert.deepEqual(found.toTarget, [[0], [1]]);
  assert.deepEqual(found.toSource, [[0], [1]]);
});

test("a word may have several partners, or none", () => {
  const [source, target] = ["do not go", "geh nicht"];
  const found = links([[0, 6, 4, 9], [7, 9, 0, 3]], source, target, words(source, "en"), words(target, "de"));
  assert.deepEqual(found.toTarget, [[1], [1], [0]]);
  assert.deepEqual(found.toSource, [[2], [0, 1]]);
  assert.deepEqual(links([], source, target, words(source, "en"), words(target, "de")).toTarget, [[], [], []]);
});

test("a link that ends where a word begins does not touch it", () => {
  const found = links([[0, 2, 0, 1]], "a b", "x y", words("a b", "en"), words("x y", "en"));
  assert.deepEqual(found.toTarget, [[0], []]);
});

test("offsets outside of the text and a missing alignment link nothing", () => {
  const list = words("a b", "en");
  assert.deepEqual(links([[50, 60, 0, 1]], "a b", "a b", list, list).toTarget, [[], []]);
  assert.deepEqual(links(undefined, "a b", "a b", list, list).toTarget, [[], []]);
});

test("segments put together give the text again", () => {
  const text = " Hi,\n you! ";
  const parts = segments(text, words(text, "en"));
  assert.equal(parts.map((p) => p.text).join(""), text);
  assert.deepEqual(parts.filter((p) => p.word >= 0).map((p) => [p.word, p.text]), [[0, "Hi"], [1, "you"]]);
});

test("pieces are shown without the marks of their tokenizer", () => {
  assert.equal(pieceLabel("▁cat"), "cat");
  assert.equal(pieceLabel("s"), "s");
  assert.equal(pieceLabel("▁"), "␣");
  assert.equal(pieceLabel("</s>"), "</s>");
});

test("the decoder reads the start, then what was said", () => {
  assert.deepEqual(readByDecoder(["▁Ein", "▁Hund", "</s>"]), ["<start>", "▁Ein", "▁Hund"]);
  assert.deepEqual(readByDecoder(["<pad>", "▁Ein"]), ["<pad>", "▁Ein"]);
});

test("a request is a command that a shell reads as it was meant", () => {
  const body = { q: "It's \"new\"", source: "en" };
  const said = curl("http://127.0.0.1:5000/translate", body, true);
  assert.ok(said.startsWith("curl http://127.0.0.1:5000/translate \\\n"));
  assert.ok(said.includes("Authorization: Bearer KEY"));
  const read = execFileSync("sh", ["-c", said.replace(/^curl/, "printf '%s\\n'")], { encoding: "utf8" });
  assert.deepEqual(JSON.parse(read.trimEnd().split("\n").at(-1)), body);
});

test("tokens are read as the words that they are pieces of", () => {
  assert.equal(spoken(["▁Nous", "▁voul", "ons", "."]), "Nous voulons.");
  assert.deepEqual(continuing(["<s>", "▁Nous", "▁voul", "ons", ".", "</s>"]), [false, false, false, true, true, false]);
  assert.equal(spoken(["Ġco", "ld", "Ġmilk"]), "cold milk");
  assert.equal(spoken(["co@@", "ld", "milk"]), "cold milk");
  assert.equal(spoken(["cold", "milk"]), "cold milk", "a vocabulary of words");
  assert.equal(spoken(["▁cold", "</s>"]), "cold </s>");
  assert.equal(spoken([]), "");
});
