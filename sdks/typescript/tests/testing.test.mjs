/** The test kit: handlers without a server. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { App, Fatal, Temporary } from "windlass";
import { call, Server } from "windlass/testing";
import { z } from "zod";

test("a handler is called with a memo, an attempt and params", async () => {
  const render = (input, made) => (made.memo ? { url: made.memo.url, attempt: made.attempt, by: made.params.by } : made.suspend({ url: input }, { recheckMs: 5 }));
  assert.deepEqual(await call(render, "u"), { outcome: "suspended", memo: { url: "u" }, recheck_ms: 5 });
  const again = await call(render, "u", { memo: { url: "v" }, attempt: 2, params: { by: "ann" } });
  assert.deepEqual(again, { outcome: "done", result: { url: "v", attempt: 2, by: "ann" } });
});

test("errors are outcomes", async () => {
  assert.deepEqual(await call(() => { throw new Fatal("no"); }), { outcome: "failed", error: "no", retryable: false });
  assert.deepEqual(
    await call(() => { throw new Temporary("soon", { retryAfterMs: 9 }); }),
    { outcome: "failed", error: "soon", temporary: true, retry_after_ms: 9 },
  );
  assert.deepEqual(await call(() => { throw new TypeError("x"); }), { outcome: "failed", error: "TypeError: x" });
  assert.equal((await call(() => { throw undefined; })).outcome, "failed");
  assert.equal((await call(() => { throw new Error(""); })).error, "the handler failed without a message");
});

test("services check their input, and log lines come with the outcome", async () => {
  const app = new App({ server: "http://127.0.0.1:8070" });
  const resize = app.service("resize", { input: z.object({ width: z.number() }) }, (input, made) => {
    made.log.info("resized", { width: input.width });
    return made.service;
  });
  assert.deepEqual(await call(resize, { width: 3 }), {
    outcome: "done", result: "resize", logs: [{ level: "info", message: "resized", data: { width: 3 } }],
  });
  const wrong = await call(resize, { width: "3" });
  assert.match(wrong.error, /\$\.width: expected number/);
  assert.equal(wrong.retryable, false);
});

test("a canceled call has an aborted signal, and a deadline in the past is over", async () => {
  const check = (_, made) => { made.check(); return made.signal.aborted; };
  assert.deepEqual(await call(check, null, { canceled: true }), { outcome: "failed", error: "the call was canceled" });
  assert.equal((await call(check, null, { deadlineMs: Date.now() - 1 })).error, "the time of the call is over");
  assert.deepEqual(await call(check, null, { deadlineMs: Date.now() + 60_000 }), { outcome: "done", result: false });
});

test("a server that cannot start says why", async () => {
  await assert.rejects(Server.start({ binary: "no-such-binary" }), /WINDLASS names the binary/);
  await assert.rejects(Server.start({ args: ["--no-such-flag"] }), /the server did not start: it ended with code/);
});
