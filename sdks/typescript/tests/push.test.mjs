/** Push workers: the protocol, signatures, registration and the end. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { once } from "node:events";
import { after, describe, test } from "node:test";
import { App, Fatal, Flow, sign, SignatureVerifier, Temporary } from "windlass";
import { Server } from "windlass/testing";
import { z } from "zod";
import { deferred, fakeServer, until } from "./support.mjs";

const SECRET = `whsec_${Buffer.from("a secret of thirty-two bytes....").toString("base64")}`;
const server = await Server.start();
after(() => server.close());

const app = new App({ client: server.client });
app.service("shout", { input: z.string() }, (input, call) => {
  call.log.info("shouting");
  return { text: input.toUpperCase(), key: call.key, attempt: call.attempt, node: call.node, params: call.params };
});
app.service("later", (_, call) => (call.memo ? `memo ${call.memo.n}` : call.suspend({ n: 1 }, { recheckMs: 100 })));
app.service("reported", (_, call) => call.suspend({ call: call.id }));
app.service("fatal", () => { throw new Fatal("never"); });
app.service("busy", () => { throw new Temporary("not now", { retryAfterMs: 1_500 }); });

function request(path, body, headers = {}, method = "POST") {
  return new Request(`http://worker${path}`, { method, headers, ...(method === "POST" && { body }) });
}

async function answer(handler, ...args) {
  const response = await handler(request(...args));
  return { status: response.status, body: await response.json(), headers: response.headers };
}

function signed(body, { id = "msg_1", timestamp = Math.floor(Date.now() / 1_000), secret = SECRET } = {}) {
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": sign(secret, id, timestamp, body) };
}

describe("signatures", () => {
  test("are those of Standard Webhooks", () => {
    // The example of the standard.
    const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    const body = '{"test": 2432232314}';
    const signature = sign(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, body);
    assert.equal(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    const verifier = new SignatureVerifier(secret);
    const headers = { id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: "1614265330", signature: `v1,AAAA ${signature} v2,x` };
    assert.equal(verifier.refusal(headers, Buffer.from(body), 1614265330_000), undefined);
    assert.match(verifier.refusal(headers, Buffer.from(body)), /too old or too new/);
    assert.match(verifier.refusal(headers, Buffer.from("{}"), 1614265330_000), /different secrets/);
    assert.throws(() => new SignatureVerifier("secret"), /not `whsec_` and 24 to 64 bytes as base64/);
  });

  test("a stranger is refused, and an old secret is accepted while it is replaced", async () => {
    const other = `whsec_${Buffer.from("another secret of 32 bytes......").toString("base64")}`;
    const handler = app.fetchHandler({ secret: other, acceptSecrets: [SECRET] });
    const body = JSON.stringify({ input: "a", params: {} });
    const { status, body: refusal } = await answer(handler, "/exec/shout", body);
    assert.deepEqual([status, refusal.retryable], [401, true]);
    assert.match(refusal.error, /the call has no signature/);
    assert.equal((await answer(handler, "/exec/shout", body, signed(body))).status, 200);
    assert.equal((await answer(handler, "/exec/shout", body, signed(body, { secret: other }))).status, 200);
    assert.equal((await answer(handler, "/exec/shout", `${body} `, signed(body))).status, 401);
    assert.equal((await answer(handler, "/exec/shout", body, signed(body, { timestamp: 1_000 }))).status, 401);
  });
});

describe("the protocol", () => {
  const handler = app.fetchHandler();
  const exec = (service, input, more = {}, headers = {}) =>
    answer(handler, `/exec/${encodeURIComponent(service)}`, JSON.stringify({ input, params: {}, ...more }), headers);

  test("headers are the fields of the call", async () => {
    const headers = { "idempotency-key": "run_1/a%25/1", "windlass-attempt": "3", "windlass-node": "a", "windlass-run": "run_1" };
    const { status, body } = await exec("shout", "hi", { params: { x: 1 } }, headers);
    assert.equal(status, 200);
    assert.deepEqual(body.result, { text: "HI", key: "run_1/a%/1", attempt: 3, node: "a", params: { x: 1 } });
    assert.deepEqual(body.logs, [{ level: "info", message: "shouting" }]);
  });

  test("ends are in the words of the protocol", async () => {
    assert.deepEqual((await exec("later", null)).body, { suspend: { memo: { n: 1 }, recheck_ms: 100 } });
    assert.deepEqual((await exec("later", null, { memo: { n: 2 } })).body, { result: "memo 2" });
    const reported = await exec("reported", null, {}, { "windlass-call": "run_1.2.x" });
    assert.deepEqual([reported.status, reported.body], [202, { memo: { call: "run_1.2.x" } }]);
    assert.deepEqual((await exec("fatal", null)).body, { error: "never", retryable: false });
    const busy = await exec("busy", null);
    assert.deepEqual([busy.status, busy.headers.get("retry-after"), busy.body], [503, "2", { error: "not now", temporary: true }]);
    const wrong = await exec("shout", 7);
    assert.equal(wrong.body.retryable, false);
    assert.match(wrong.body.error, /the input of `shout` does not fit its schema: \$: expected string/);
  });

  test("mistakes are named", async () => {
    assert.match((await exec("nothing", null)).body.error, /there is no service `nothing` here; there are shout, later/);
    assert.equal((await answer(handler, "/other", "{}")).status, 404);
    assert.equal((await answer(handler, "/exec/shout", undefined, {}, "GET")).status, 405);
    assert.equal((await answer(handler, "/exec/shout", "no json")).status, 400);
    assert.equal((await answer(handler, "/exec/shout", `{"input":"${"x".repeat(9 << 20)}"}`)).status, 413);
  });

  test("more calls than a worker can hold are turned away", async () => {
    const own = new App({ client: server.client });
    const release = deferred();
    own.service("slow", () => release.promise);
    const full = own.fetchHandler({ slots: 1 });
    const calls = Array.from({ length: 18 }, () => answer(full, "/exec/slow", "{}"));
    await until(() => true, "all calls are here");
    release.resolve("done");
    const statuses = (await Promise.all(calls)).map(({ status }) => status);
    assert.deepEqual([statuses.filter((one) => one === 200).length, statuses.filter((one) => one === 429).length], [17, 1]);
  });
});

async function runOf(name, service, config = {}) {
  const flow = new Flow(name);
  flow.end({ value: flow.call("a", service, config, { exec_type: "http" }).output });
  await flow.publish(server.client);
  return server.client.runs.start(name);
}

test("slots and threads of a service count for pushed calls too", async () => {
  const own = new App({ server: server.url });
  let now = 0;
  let most = 0;
  own.service("narrow", { slots: 2 }, async () => {
    most = Math.max(most, now += 1);
    await new Promise((resolve) => setTimeout(resolve, 20));
    now -= 1;
  });
  const handler = own.fetchHandler();
  await Promise.all(Array.from({ length: 8 }, () => answer(handler, "/exec/narrow", "{}")));
  assert.equal(most, 2);
  own.service("threaded", { thread: true }, () => 1);
  assert.throws(() => own.fetchHandler(), /write new App\(\{ module: import\.meta\.url \}\)/);
  own.module = new URL("./fixtures/threads.mjs", import.meta.url).href;
  own.service("spin", { thread: true }, () => assert.fail("it runs in the thread"));
  const threaded = await answer(own.fetchHandler(), "/exec/spin", JSON.stringify({ input: { ms: 1 } }));
  assert.ok(threaded.body.result.thread > 0, JSON.stringify(threaded.body));
});

test("the secret goes to the server with the registration", async () => {
  const fake = await fakeServer(() => ({ body: { ok: "1" } }));
  const own = new App({ server: fake.url });
  own.service("s", () => 1);
  const registration = own.register({ url: "http://127.0.0.1:9000", id: "one", secret: SECRET, slots: 3, log: () => {} });
  const { body } = await until(() => fake.requests[0], "the worker registers");
  assert.deepEqual(JSON.parse(body), {
    id: "one", type: "http", url: "http://127.0.0.1:9000", services: ["s"], queues: [], capacity: 3, secret: SECRET,
  });
  await registration.close();
  fake.close();
});

describe("against a server", () => {
  test("a push worker registers, answers, and ends when it is drained", async () => {
    const id = "pusher";
    const ended = app.serve({ url: "http://127.0.0.1:0", id, beatMs: 50, log: () => {}, signals: false });
    await until(async () => {
      for await (const worker of server.client.workers.all()) if (worker.id === id) return true;
      return false;
    }, "the worker is registered");
    const run = await runOf("shouts", "shout", { input: "hello" });
    assert.equal((await run.result({ timeoutMs: 20_000 })).value.text, "HELLO");
    const suspended = await runOf("laters", "later");
    assert.deepEqual(await suspended.result({ timeoutMs: 20_000 }), { value: "memo 1" });
    await server.client.workers.drain(id);
    await ended;
  });

  test("a handler in a server of your own, with a hang-up that aborts its signal", async () => {
    const own = new App({ client: server.client });
    const reason = deferred();
    const began = deferred();
    own.service("endless", async (_, call) => {
      began.resolve();
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      reason.resolve(call.signal.reason.reason);
    });
    const http = createServer(own.nodeHandler());
    http.listen(0, "127.0.0.1");
    await once(http, "listening");
    const registration = own.register({ url: `http://127.0.0.1:${http.address().port}`, beatMs: 50, log: () => {} });
    await until(async () => {
      for await (const worker of server.client.workers.all()) if (worker.id === registration.id) return true;
      return false;
    }, "the worker is registered");
    const run = await runOf("endless", "endless");
    await began.promise;
    await run.cancel();
    assert.equal(await reason.promise, "canceled");
    await registration.close();
    http.closeAllConnections();
    http.close();
  });

  test("an address that is none is refused", async () => {
    assert.throws(() => app.register({ url: "localhost" }), /write http:\/\/host:port/);
    await assert.rejects(app.serve({ url: "https://example.org" }), /mount app\.nodeHandler\(\) and call app\.register\(\)/);
    await assert.rejects(app.serve({ url: "http://127.0.0.1:0", host: "203.0.113.7", signals: false }), /`host` names an address of this machine/);
  });
});
