// Every string is there in every language, and every string that is named exists.
import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import test from "node:test";
import { TABLES, format, pick } from "../../crates/serve/page/i18n.js";

const FOLDER = new URL("../../crates/serve/page/", import.meta.url);
const read = (name) => readFileSync(new URL(name, FOLDER), "utf8");
const modules = readdirSync(FOLDER).filter((name) => name.endsWith(".js") && !name.startsWith("strings-"));
const { en } = TABLES;
const blanks = (text) => [...text.matchAll(/\{(\w+)\}/g)].map((m) => m[1]).sort();

for (const [language, table] of Object.entries(TABLES)) {
  test(`${language} has every string of English, with the same blanks, and no other`, () => {
    assert.deepEqual(Object.keys(en).filter((key) => !(key in table)), [], "missing");
    assert.deepEqual(Object.keys(table).filter((key) => !(key in en)), [], "unknown");
    for (const key of Object.keys(en)) {
      assert.deepEqual(blanks(table[key]), blanks(en[key]), key);
      assert.notEqual(table[key].trim(), "", key);
    }
  });
}

// Keys that are put together in the code, by what they begin with.
const COMPOSED = ["fault.", "said.", "term.", "tab.", "theme.", "step.", "part.", "paper.", "block.", "stack.", "off.", "beam.", "kind.", "pattern.", "precision.", "model.", "positions.", "lines.", "size."];

test("every string that the code names exists", () => {
  for (const name of modules) {
    for (const [, key] of read(name).matchAll(/\bt\(\s*"([^"]+)"/g)) assert.ok(key in en, `${name}: ${key}`);
    for (const [, start] of read(name).matchAll(/\bt\(\s*`([^`$]*)\$\{/g)) {
      assert.ok(Object.keys(en).some((key) => key.startsWith(start)), `${name}: ${start}`);
    }
  }
});

test("every string is used", () => {
  const all = modules.map(read).join("\n") + read("index.html");
  const used = (key) => all.includes(`"${key}"`) || COMPOSED.some((start) => key.startsWith(start));
  assert.deepEqual(Object.keys(en).filter((key) => !used(key)), []);
});

test("the document's own words are the English strings", () => {
  const html = read("index.html");
  for (const [, key, text] of html.matchAll(/data-t="([^"]+)"[^>]*>([^<]*)</g)) assert.equal(text, en[key], key);
  for (const [tag] of html.matchAll(/<[^>]*data-t-[^>]*>/g)) {
    for (const [, name, key] of tag.matchAll(/data-t-([\w-]+)="([^"]+)"/g)) {
      assert.ok(tag.includes(`${name}="${en[key]}"`), `${name} of ${key}`);
    }
  }
});

test("the language is that of the browser, if there is a table", () => {
  assert.equal(pick(["fr-FR", "zh-TW", "en"]), "zh");
  assert.equal(pick(["fr"]), "en");
  assert.equal(format("{a} and {b}", { a: 1 }), "1 and {b}");
});
