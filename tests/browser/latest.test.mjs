import assert from "node:assert/strict";
import { mock, test } from "node:test";
import { debounce, EventLines, Latest } from "../../crates/serve/page/latest.js";

test("an overtaken job is aborted and gives nothing", async () => {
  const latest = new Latest();
  let first;
  const waiting = latest.run((signal) => {
    first = signal;
    return new Promise((resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
  });
  const second = latest.run(async () => "second");
  assert.equal(first.aborted, true);
  assert.equal(await waiting, undefined);
  assert.equal(await second, "second");
});

test("a job that does not heed its signal gives nothing either", async () => {
  const latest = new Latest();
  const stubborn = latest.run(() => new Promise((resolve) => setImmediate(() => resolve("late"))));
  latest.cancel();
  assert.equal(await stubborn, undefined);
});

test("errors of the latest job are passed on", async () => {
  await assert.rejects(new Latest().run(async () => Promise.reject(new Error("broken"))), /broken/);
});

test("debounce calls once, with the last values", () => {
  mock.timers.enable({ apis: ["setTimeout"] });
  const seen = [];
  const later = debounce((value) => seen.push(value), 250);
  later(1);
  mock.timers.tick(200);
  later(2);
  mock.timers.tick(200);
  assert.deepEqual(seen, []);
  mock.timers.tick(50);
  assert.deepEqual(seen, [2]);
  later(3);
  later.cancel();
  mock.timers.tick(1000);
  assert.deepEqual(seen, [2]);
  mock.timers.reset();
});

test("events are put together from pieces cut anywhere", () => {
  const text = ': hello\n\ndata: {"text":"Ei"}\n\nevent: x\r\ndata: a\r\ndata: b\r\n\r\n';
  for (let size = 1; size <= text.length; size += 1) {
    const lines = new EventLines();
    const found = [];
    for (let at = 0; at < text.length; at += size) found.push(...lines.push(text.slice(at, at + size)));
    assert.deepEqual(found, ['{"text":"Ei"}', "a\nb"], `pieces of ${size}`);
  }
});

test("an unfinished event waits", () => {
  const lines = new EventLines();
  assert.deepEqual(lines.push("data: 1\n"), []);
  assert.deepEqual(lines.push("\n"), ["1"]);
});
