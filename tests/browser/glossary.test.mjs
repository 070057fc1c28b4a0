// Terms as text and as the server takes them.
import assert from "node:assert/strict";
import test from "node:test";
import { asObject, formatTerms, LineError, merge, parseTerms, recallTerms } from "../../crates/serve/page/glossary-table.js";

test("a file of terms is read and written again", () => {
  const text = "# terms\r\ncat\tchat\r\n\r\n cloud \t nuage\t\n";
  assert.deepEqual(parseTerms(text), [["cat", "chat"], ["cloud", "nuage"]]);
  assert.deepEqual(parseTerms(formatTerms([["a\tb", "c\nd"]])), [["a b", "c d"]]);
  for (const [bad, line] of [["cat", 1], ["a\tb\n\tc", 2], ["a\tb\tc", 1], ["a\t", 1]]) {
    assert.throws(() => parseTerms(bad), (error) => error instanceof LineError && error.line === line, bad);
  }
});

test("only terms that are complete are sent", () => {
  assert.equal(asObject([["", "x"], ["y", " "]]), undefined);
  assert.deepEqual(asObject([[" a ", "b"], ["", ""], ["a", "c"]]), { a: "c" });
});

test("terms of the same source are replaced", () => {
  assert.deepEqual(merge([["a", "b"], ["c", "d"]], [["a", "x"], ["e", "f"]]), [["a", "x"], ["c", "d"], ["e", "f"]]);
});

test("what was kept is read with care", () => {
  assert.deepEqual(recallTerms('[["a","b"],["c"],7,["d",1]]'), [["a", "b"]]);
  for (const bad of [null, "{}", "no", "7"]) assert.deepEqual(recallTerms(bad), []);
});
