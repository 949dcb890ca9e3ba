/** The worker against a server that the test plays: refusals, lost leases, wrong clocks, taken ids. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { App } from "windlass";
import { deferred, fakeServer, until } from "./support.mjs";

/**
 * Plays a server. `claims` are answers to claims, one after another; further claims wait. The other functions answer
 * their routes; without one the answer is good.
 */
async function playServer(t, { claims = [], finish, extend, heartbeat, register } = {}) {
  const ends = [];
  const claimTimes = [];
  const fake = await fakeServer(async (request, text) => {
    const body = text ? JSON.parse(text) : {};
    switch (request.url) {
      case "/api/workers/register": return register?.(body) ?? { body: { ok: "1" } };
      case "/api/workers/heartbeat": return heartbeat?.(body) ?? { body: { ok: "1" } };
      case "/api/v1/jobs/claim": {
        claimTimes.push(Date.now());
        const next = claims.shift();
        if (next === undefined) {
          await new Promise((resolve) => setTimeout(resolve, Math.min(body.wait_ms, 500)));
          return { body: { jobs: [] } };
        }
        return typeof next === "function" ? next(body) : { body: { jobs: next } };
      }
      case "/api/v1/jobs/extend":
        return { body: { results: body.leases.map((lease) => ({ lease, verdict: extend?.(lease) ?? "ok" })) } };
      case "/api/v1/jobs/finish": {
        const answer = finish?.(body.results, text);
        if (answer?.status) return answer;
        ends.push(...body.results);
        return { body: { results: body.results.map(({ id }) => ({ id, verdict: answer?.[id] ?? "ok" })) } };
      }
      default: return { status: 404, body: { error: request.url } };
    }
  });
  t.after(() => fake.close());
  const app = new App({ server: fake.url });
  const start = (options = {}) => {
    const messages = [];
    const worker = app.worker({ leaseMs: 1_000, beatMs: 30, log: (_, message) => messages.push(message), ...options });
    const running = worker.run();
    running.catch(() => {});
    t.after(() => worker.stop());
    return { worker, running, messages };
  };
  return { fake, app, ends, claimTimes, start };
}

const LEASE_MS = 1_000;
function job(id, more = {}) {
  return {
    id, lease: `${id}.1.sig`, attempt: 1, key: id, queue: "q", service: "s", priority: 0, input: null, params: {},
    lease_until: new Date(Date.now() + LEASE_MS).toISOString(), ...more,
  };
}

describe("claims", () => {
  for (const status of [429, 503]) {
    test(`${status} with Retry-After is waited for`, async (t) => {
      const busy = () => ({ status, body: { code: "busy", detail: "busy" }, headers: { "retry-after": "1" } });
      const { app, claimTimes, start, ends } = await playServer(t, { claims: [busy, [job("job_1")]] });
      app.service("s", () => "ok");
      start();
      await until(() => ends.length === 1, "the job ended");
      assert.ok(claimTimes[1] - claimTimes[0] >= 990, `${claimTimes[1] - claimTimes[0]} ms`);
    });
  }

  test("have no more jobs than slots, and name what the app serves", async (t) => {
    const bodies = [];
    const { app, start } = await playServer(t, { claims: [(body) => { bodies.push(body); return { body: { jobs: [] } }; }, (body) => { bodies.push(body); return { body: { jobs: [] } }; }] });
    app.service("s", () => 1);
    app.queue("mail", () => 1);
    app.service("narrow", { slots: 2 }, () => 1);
    start({ slots: 7 });
    await until(() => bodies.length === 2, "both lanes claim");
    const asked = bodies.map(({ services, queues, max, lease_ms }) => ({ services, queues, max, lease_ms })).sort((a, b) => a.max - b.max);
    assert.deepEqual(asked, [
      { services: ["narrow"], queues: [], max: 2, lease_ms: 1_000 }, { services: ["s"], queues: ["mail"], max: 7, lease_ms: 1_000 },
    ]);
  });

  test("a clock that is an hour off does not move the deadline", async (t) => {
    const remaining = deferred();
    const hour = 3_600_000;
    const deadline = new Date(Date.now() + hour + 5_000).toISOString();
    const lease_until = new Date(Date.now() + hour + LEASE_MS).toISOString();
    const { app, start } = await playServer(t, { claims: [[job("job_1", { deadline, lease_until })]] });
    app.service("s", (_, call) => remaining.resolve(call.remaining));
    start();
    const ms = await remaining.promise;
    assert.ok(ms > 3_000 && ms <= 5_000, `${ms}`);
  });
});

describe("ends", () => {
  test("a batch that the server refuses is divided, and the end that it cannot take fails", async (t) => {
    const sizes = [];
    const finish = (results, text) => {
      sizes.push(results.length);
      return text.includes("poison pill") ? { status: 413, body: { code: "too_large", detail: "too much" } } : undefined;
    };
    const jobs = Array.from({ length: 8 }, (_, n) => job(`job_${n}`, { input: n }));
    const { app, start, ends } = await playServer(t, { claims: [jobs], finish });
    app.service("s", (input) => (input === 5 ? "poison pill" : input));
    start();
    await until(() => ends.length === 8, "all jobs ended");
    const failed = ends.filter(({ outcome }) => outcome === "failed");
    assert.deepEqual(failed.map(({ id, retryable }) => ({ id, retryable })), [{ id: "job_5", retryable: false }]);
    assert.match(failed[0].error, /could not be handed in: too much/);
    assert.ok(sizes[0] > 1);
  });

  test("are sent again until the server accepts them", async (t) => {
    let n = 0;
    const finish = () => {
      n += 1;
      if (n === 1) return { status: 503, body: { code: "store_unavailable" } };
      return n === 2 ? { job_1: "error" } : undefined;
    };
    const { app, start } = await playServer(t, { claims: [[job("job_1")]], finish });
    app.service("s", () => "ok");
    const started = start();
    await until(() => n === 3, "the end was sent three times");
    started.worker.stop();
    await started.running;
    assert.equal(n, 3);
  });

  test("a lost lease aborts the signal, and its end is not sent", async (t) => {
    const reason = deferred();
    const { app, start, ends } = await playServer(t, { claims: [[job("job_1"), job("job_2", { input: "quick" })]], extend: () => "lost" });
    app.service("s", async (input, call) => {
      if (input === "quick") return "ok";
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      reason.resolve(call.signal.reason.reason);
      return "late";
    });
    const { worker, running } = start();
    assert.equal(await reason.promise, "lost");
    worker.stop();
    await running;
    assert.deepEqual(ends.map(({ id }) => id), ["job_2"]);
  });

  test("a canceled lease is not extended any more, so a handler that never returns loses it", async (t) => {
    const extended = [];
    const { app, start } = await playServer(t, {
      claims: [[job("job_1"), job("job_2")]],
      extend: (lease) => { extended.push(lease); return lease.startsWith("job_1") ? "canceled" : "ok"; },
    });
    app.service("s", () => new Promise(() => {}));
    start({ drainMs: 1 });
    await until(() => extended.length >= 4, "the leases were extended");
    assert.equal(extended.filter((lease) => lease.startsWith("job_1")).length, 1);
  });
});

describe("heartbeats", () => {
  test("a worker whose id another one took stops with an error", async (t) => {
    const reason = deferred();
    let isTaken = false;
    const { app, start } = await playServer(t, {
      claims: [[job("job_1")]], heartbeat: () => isTaken && { status: 409, body: { error: "lost: the id is taken" } },
    });
    app.service("s", async (_, call) => {
      isTaken = true;
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      reason.resolve(call.signal.reason.reason);
    });
    const { running } = start({ id: "twin" });
    await assert.rejects(running, /another worker registered the id `twin` from another address: give each worker an id of its own/);
    assert.equal(await reason.promise, "lost");
  });

  test("a worker that the server forgot registers again", async (t) => {
    let nRegistered = 0;
    let nBeats = 0;
    const { app, start } = await playServer(t, {
      register: () => { nRegistered += 1; }, heartbeat: () => { nBeats += 1; return nBeats === 1 && { status: 404, body: { error: "unknown" } }; },
    });
    app.service("s", () => 1);
    start();
    await until(() => nRegistered === 2 && nBeats > 2, "the worker registered again");
  });
});
