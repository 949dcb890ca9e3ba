/** The pull worker against a real server. */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { App, Fatal, Flow, Temporary } from "windlass";
import { z } from "zod";
import { Server } from "windlass/testing";
import { block, deferred, until } from "./support.mjs";

const server = await Server.start();
after(() => server.close());

let n = 0;
/** An app of its own queue, so that tests do not meet. */
function newApp() {
  const app = new App({ client: server.client });
  n += 1;
  return { app, queue: `q${n}` };
}

describe("outcomes", () => {
  test("a result, with the key, the attempt and the log of the call", async () => {
    const { app, queue } = newApp();
    const greet = app.service(`greet-${queue}`, { queue }, async (input, call) => {
      call.log.warn("slow", { seconds: 4 });
      return { hello: input.name, key: call.key, attempt: call.attempt, job: call.job, queue: call.queue };
    });
    server.work(app);
    const job = await greet.send({ name: "Ada" });
    const result = await job.wait({ timeoutMs: 20_000 });
    assert.deepEqual(result, { hello: "Ada", key: job.id, attempt: 1, job: job.id, queue });
  });

  test("an error is tried again, Fatal is not, and a strange error harms only its call", async () => {
    const { app, queue } = newApp();
    const seen = [];
    const flaky = app.service(`flaky-${queue}`, { queue }, (input, call) => {
      seen.push(call.attempt);
      if (call.attempt === 1) throw new Error("not yet", { cause: new Error("the disk") });
      return "ok";
    });
    const fatal = app.service(`fatal-${queue}`, { queue }, () => { throw new Fatal("the card was declined"); });
    const strange = app.service(`strange-${queue}`, { queue }, () => { throw Object.create(null, { toString: { value: 7 } }); });
    const cyclic = app.service(`cyclic-${queue}`, { queue }, () => { const value = {}; value.self = value; return value; });
    const huge = app.service(`huge-${queue}`, { queue }, () => "x".repeat(9 << 20));
    const large = app.service(`large-${queue}`, { queue }, () => "x".repeat(5_000_000));
    server.work(app);
    const retry = { max: 1, delay_ms: 10 };
    const failure = async (service) => {
      const job = await (await service.send(null, { retry })).wait({ timeoutMs: 20_000 }).then(() => assert.fail("it succeeded"), (error) => error.job);
      return { message: job.error.message, attempts: (await server.client.jobs.attempts(job.id)).items.length };
    };
    assert.equal(await (await flaky.send(null, { retry })).wait({ timeoutMs: 20_000 }), "ok");
    assert.deepEqual(seen, [1, 2]);
    assert.deepEqual(await failure(fatal), { message: "the card was declined", attempts: 1 });
    assert.match((await failure(strange)).message, /threw/);
    const circular = await failure(cyclic);
    assert.match(circular.message, /no JSON/);
    assert.equal(circular.attempts, 1);
    assert.equal((await failure(huge)).attempts, 1);
    assert.equal((await (await large.send(null)).wait({ timeoutMs: 20_000 })).length, 5_000_000);
  });

  test("Temporary is tried again, no earlier than it says", async () => {
    const { app, queue } = newApp();
    const times = [];
    const busy = app.service(`busy-${queue}`, { queue }, () => {
      times.push(Date.now());
      if (times.length === 1) throw new Temporary("busy", { retryAfterMs: 600 });
      return "done";
    });
    server.work(app);
    const job = await busy.send(null, { retry: { max: 2, delay_ms: 10 } });
    assert.equal(await job.wait({ timeoutMs: 20_000 }), "done");
    assert.ok(times[1] - times[0] >= 590, `${times[1] - times[0]} ms`);
  });

  test("a wrong input is refused with its place before the handler runs, and costs no retry", async () => {
    const { app, queue } = newApp();
    let nCalls = 0;
    const schema = z.object({ file: z.string(), width: z.number().int().default(80) });
    const resize = app.service(`resize-${queue}`, { queue, input: schema }, (input) => {
      nCalls += 1;
      return `${input.file}@${input.width}`;
    });
    server.work(app);
    assert.equal(await (await resize.send({ file: "a" })).wait({ timeoutMs: 20_000 }), "a@80");
    assert.equal(await resize({ file: "b", width: 2 }), "b@2");
    await assert.rejects(resize.send({ file: "a", width: "wide" }), { name: "SchemaError", message: /\$\.width: expected number/ });
    const job = await server.client.jobs.create({ name: `resize-${queue}`, queue, payload: { file: 7 }, retry: { max: 5, delay_ms: 10 } });
    const { error, latest_attempt } = await server.client.jobs.wait(job.id, { timeoutMs: 20_000 });
    assert.match(error.message, /the input of `resize-.*` does not fit its schema: \$\.file: expected string/);
    assert.equal(latest_attempt.attempt, 1);
    assert.equal(nCalls, 2);
    const strict = app.service("strict", { output: z.string() }, () => 7);
    await assert.rejects(strict(1), { name: "SchemaError", message: /the result of `strict`/ });
  });

  test("a suspended call is asked again with its memo, or ended by a report", async () => {
    const { app, queue } = newApp();
    const asked = app.service(`asked-${queue}`, { queue }, (_, call) => (
      call.memo ? `from ${call.memo.job}` : call.suspend({ job: 7 }, { recheckMs: 100 })
    ));
    const calls = deferred();
    app.service(`print-${queue}`, (_, call) => {
      calls.resolve(call.id);
      return call.suspend({ printer: 1 });
    });
    server.work(app);
    assert.equal(await (await asked.send(null)).wait({ timeoutMs: 20_000 }), "from 7");
    const flow = new Flow(`print-${queue}`);
    flow.end({ printed: flow.call("print", `print-${queue}`, {}, { until_reported: true }).output });
    await flow.publish(server.client);
    const run = await server.client.runs.start(flow.name);
    const id = await calls.promise;
    await until(async () => (await run.get()).node_states.print.status === "suspended", "the call is suspended");
    assert.equal((await server.client.calls.report(id, { result: "poster" })).verdict, "ok");
    assert.deepEqual(await run.result({ timeoutMs: 20_000 }), { printed: "poster" });
  });

  test("params, run and node of a call of a flow", async () => {
    const { app, queue } = newApp();
    app.service(`show-${queue}`, async (input, call) => (
      { input, params: call.params, run: call.run, node: call.node, labels: await call.labels() }
    ));
    server.work(app);
    const flow = new Flow(`show-${queue}`, { variables: { text: { type: "string", required: true } } });
    flow.end({ shown: flow.call("show", `show-${queue}`, { text: flow.var.text }).output });
    await flow.publish(server.client);
    const run = await server.client.runs.start(flow.name, { params: { text: "hi" }, labels: { team: "video" } });
    const { shown } = await run.result({ timeoutMs: 20_000 });
    assert.deepEqual(shown.input, { text: "hi" });
    assert.deepEqual(shown.labels, { team: "video" });
    assert.deepEqual([shown.params.text, shown.run, shown.node], ["hi", run.id, "show"]);
  });

  test("a queue handler takes jobs of any name", async () => {
    const { app, queue } = newApp();
    app.queue(queue, (input, call) => `${call.service}: ${input}`);
    server.work(app);
    const job = await server.client.jobs.create({ name: "anything", queue, payload: 5 });
    assert.equal(await job.wait({ timeoutMs: 20_000 }), "anything: 5");
  });
});

describe("leases and limits", () => {
  test("a handler that blocks the event loop for five leases keeps its lease, and so does a job that waits behind it", async () => {
    const { app, queue } = newApp();
    const attempts = [];
    app.service(`block-${queue}`, (_, call) => {
      attempts.push(call.attempt);
      if (attempts.length === 1) block(5_000);
      return call.attempt;
    });
    const name = `block-${queue}`;
    const jobs = await server.client.jobs.createBatch([{ name, queue }, { name, queue }]);
    server.work(app, { leaseMs: 1_000 });
    for (const job of jobs) assert.equal(await job.wait({ timeoutMs: 30_000 }), 1);
    assert.deepEqual(attempts, [1, 1]);
  });

  test("a cancel aborts the signal, and the job is canceled when its handler has ended", async () => {
    const { app, queue } = newApp();
    const began = deferred();
    const reason = deferred();
    const slow = app.service(`slow-${queue}`, { queue }, async (_, call) => {
      began.resolve();
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      reason.resolve(call.signal.reason.reason);
      call.check();
    });
    server.work(app, { leaseMs: 1_000 });
    const job = await slow.send(null);
    await began.promise;
    await job.cancel();
    assert.equal(await reason.promise, "canceled");
    await assert.rejects(job.wait({ timeoutMs: 20_000 }), /canceled/);
  });

  test("the deadline aborts the signal", async () => {
    const { app, queue } = newApp();
    const seen = deferred();
    const slow = app.service(`late-${queue}`, { queue }, async (_, call) => {
      const { remaining } = call;
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      seen.resolve({ remaining, reason: call.signal.reason.reason, canceled: call.canceled });
      throw call.signal.reason;
    });
    server.work(app);
    await slow.send(null, { timeout_ms: 400, retry: { max: 0 } });
    const { remaining, reason, canceled } = await seen.promise;
    assert.ok(remaining > 0 && remaining <= 400, `${remaining}`);
    assert.deepEqual([reason, canceled], ["deadline", true]);
  });

  test("a service with slots of its own takes no more calls at once", async () => {
    const { app, queue } = newApp();
    let now = 0;
    let most = 0;
    const narrow = app.service(`narrow-${queue}`, { queue, slots: 2 }, async () => {
      most = Math.max(most, now += 1);
      await new Promise((resolve) => setTimeout(resolve, 30));
      now -= 1;
    });
    server.work(app);
    const jobs = await Promise.all(Array.from({ length: 9 }, () => narrow.send(null)));
    await Promise.all(jobs.map((job) => job.wait({ timeoutMs: 20_000 })));
    assert.equal(most, 2);
    assert.throws(() => app.service("none", { slots: 0 }, () => {}), /write a whole number from 1/);
  });
});

describe("the life of a worker", () => {
  test("a worker goes on after its server was killed and started again", async (t) => {
    const own = await Server.start();
    t.after(() => own.close());
    const app = new App({ client: own.client });
    const release = deferred();
    const began = deferred();
    const held = app.service("held", async () => {
      began.resolve();
      await release.promise;
      return "kept";
    });
    const quick = app.service("quick", () => "again");
    const messages = [];
    own.work(app, { leaseMs: 30_000, log: (_, message) => messages.push(message) });
    const first = await held.send(null);
    await began.promise;
    await own.kill();
    release.resolve();
    await until(() => messages.some((message) => message.includes("could not") || message.includes("were not accepted")), "the worker notices");
    await own.restart();
    assert.equal(await first.wait({ timeoutMs: 30_000 }), "kept");
    assert.equal(await (await quick.send(null)).wait({ timeoutMs: 30_000 }), "again");
    await own.restart();
    assert.equal(await (await quick.send(null)).wait({ timeoutMs: 30_000 }), "again");
  });

  test("all waiting workers go on after their server was killed", async (t) => {
    const own = await Server.start();
    t.after(() => own.close());
    const app = new App({ client: own.client });
    const N_WORKERS = 10;
    const all = deferred();
    let nHere = 0;
    // Every worker has one slot, so the calls meet only if each worker has one of them.
    const meet = app.service("meet", { slots: 1 }, async () => {
      nHere += 1;
      if (nHere === N_WORKERS) all.resolve();
      await all.promise;
    });
    for (let n = 0; n < N_WORKERS; n += 1) own.work(app);
    await until(async () => {
      let nRegistered = 0;
      for await (const _ of own.client.workers.all()) nRegistered += 1;
      return nRegistered === N_WORKERS;
    }, "all workers are registered");
    await own.kill();
    await new Promise((resolve) => setTimeout(resolve, 500));
    await own.restart();
    const jobs = await Promise.all(Array.from({ length: N_WORKERS }, () => meet.send(null)));
    await Promise.all(jobs.map((job) => job.wait({ timeoutMs: 30_000 })));
  });

  test("a stopped worker lets its open calls end and claims no more", async () => {
    const { app, queue } = newApp();
    const began = deferred();
    const release = deferred();
    const slow = app.service(`drain-${queue}`, { queue }, async () => {
      began.resolve();
      await release.promise;
      return "whole";
    });
    const worker = app.worker({ log: () => {} });
    const running = worker.run();
    const job = await slow.send(null);
    await began.promise;
    worker.stop();
    await new Promise((resolve) => setTimeout(resolve, 400));
    const later = await slow.send(null);
    release.resolve();
    await running;
    assert.equal(await job.wait({ timeoutMs: 5_000 }), "whole");
    assert.equal((await later.get()).status, "queued");
    await later.cancel();
  });

  test("at the end of the drain the open calls are told to stop, and their leases end", async () => {
    const { app, queue } = newApp();
    const reason = deferred();
    const slow = app.service(`cut-${queue}`, { queue }, async (_, call) => {
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      reason.resolve(call.signal.reason.reason);
      await new Promise(() => {});
    });
    const worker = app.worker({ log: () => {}, drainMs: 100, leaseMs: 1_000 });
    const running = worker.run();
    const job = await slow.send(null);
    await until(() => worker.load === 1, "the call began");
    worker.stop();
    await running;
    assert.equal(await reason.promise, "stopping");
    const other = new App({ client: server.client });
    other.service(`cut-${queue}`, (_, call) => call.attempt);
    server.work(other);
    assert.equal(await job.wait({ timeoutMs: 20_000 }), 2);
  });

  test("the server drains a worker", async () => {
    const { app, queue } = newApp();
    app.service(`idle-${queue}`, () => 1);
    const worker = app.worker({ log: () => {}, beatMs: 50, id: `drained-${queue}` });
    const running = worker.run();
    await until(async () => {
      for await (const one of server.client.workers.all()) if (one.id === worker.id) return true;
      return false;
    }, "the worker is registered");
    await server.client.workers.drain(worker.id);
    await running;
  });

  test("mistakes are named before the worker runs", async () => {
    const { app } = newApp();
    assert.throws(() => app.worker(), /the app has no services/);
    app.service("a", () => 1);
    assert.throws(() => app.service("a", () => 2), /two handlers of the service `a`/);
    assert.throws(() => app.worker({ leaseMs: 10 }), /leaseMs is 10; write a whole number from 1000/);
    assert.throws(() => app.service("b", "no function"), /needs a function/);
    app.service("t", { thread: true }, () => 1);
    await assert.rejects(app.worker().run(), /write new App\(\{ module: import\.meta\.url \}\)/);
  });

  test("two workers share the jobs of a service", async () => {
    const { app, queue } = newApp();
    const other = new App({ client: server.client });
    const seen = new Set();
    const first = app.service(`shared-${queue}`, { queue, slots: 1 }, async () => { seen.add(1); await new Promise((r) => setTimeout(r, 20)); });
    other.service(`shared-${queue}`, { queue, slots: 1 }, async () => { seen.add(2); await new Promise((r) => setTimeout(r, 20)); });
    server.work(app);
    server.work(other);
    const jobs = await Promise.all(Array.from({ length: 20 }, () => first.send(null)));
    await Promise.all(jobs.map((job) => job.wait({ timeoutMs: 20_000 })));
    assert.equal(seen.size, 2);
  });
});
