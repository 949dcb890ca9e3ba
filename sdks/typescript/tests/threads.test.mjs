/** Handlers in threads of their own. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { Server } from "windlass/testing";
import { until } from "./support.mjs";

const server = await Server.start();
after(() => server.close());
process.env.WINDLASS_SERVER = server.url;
// The module runs its worker at its top level, so it is not awaited.
const loading = import("./fixtures/threads.mjs");
loading.catch((error) => { throw error; });
after(() => setTimeout(() => process.exit(), 100).unref());

const send = (name, payload, more = {}) => server.client.jobs.create({ name, queue: "threads", payload, retry: { max: 0 }, ...more });

test("a call computes in a thread, and the event loop of the worker stays free", async () => {
  const begun = Date.now();
  const jobs = await Promise.all([send("spin", { ms: 700 }), send("spin", { ms: 700 })]);
  // A loop that computes itself would turn once or twice.
  let nTurns = 0;
  for (; Date.now() - begun < 700; nTurns += 1) await new Promise((resolve) => setTimeout(resolve, 10));
  const results = await Promise.all(jobs.map((job) => job.wait({ timeoutMs: 20_000 })));
  assert.ok(results.every(({ thread, attempt }) => thread > 0 && attempt === 1));
  assert.notEqual(results[0].thread, results[1].thread);
  assert.ok(nTurns >= 5, `the loop turned ${nTurns} times`);
});

test("errors of a thread are outcomes, and a thread that ends harms only its call", async () => {
  const failure = async (name) => (await server.client.jobs.wait((await send(name, null)).id, { timeoutMs: 20_000 })).error.message;
  assert.equal(await failure("bad"), "bad in a thread");
  assert.match(await failure("exit"), /the thread of `exit` is gone: it ended with code 3/);
  assert.equal((await (await send("spin", { ms: 1 })).wait({ timeoutMs: 20_000 })).attempt, 1);
});

test("a handler that never returns is ended by a time limit", async () => {
  const job = await send("spin", { ms: 3_600_000 }, { timeout_ms: 500 });
  const ended = await server.client.jobs.wait(job.id, { timeoutMs: 20_000 });
  assert.equal(ended.status, "failed");
  // Its slot is free again.
  const more = await Promise.all([send("spin", { ms: 1 }), send("spin", { ms: 1 })]);
  await Promise.all(more.map((one) => one.wait({ timeoutMs: 20_000 })));
});

test("a canceled handler hears of it", async () => {
  const job = await send("spin", { ms: 60_000, isPolite: true }, { timeout_ms: 400 });
  await until(async () => (await job.get()).status === "failed", "the call is over");
});
