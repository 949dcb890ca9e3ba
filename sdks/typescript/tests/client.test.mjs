/** The client: its requests, its errors, and all its nouns against a real server. */
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import * as windlass from "windlass";
import { Server } from "windlass/testing";
import { closedAddress, fakeServer } from "./support.mjs";

const { Client, Flow } = windlass;
const server = await Server.start();
const { client } = server;
after(() => server.close());

const problem = (code, status, more = {}) => ({
  status, body: { type: `/docs/errors#${code}`, title: "t", status, code, detail: `detail of ${code}`, ...more },
});

describe("requests", () => {
  test("carry the key, the actor and an encoded path", async () => {
    const fake = await fakeServer(() => ({ body: { id: "x" } }));
    const own = new Client({ server: `${fake.url}/`, key: "wl_u_1", actor: "ann" });
    await own.flows.get("a/b c");
    fake.close();
    const [{ url, headers }] = fake.requests;
    assert.equal(url, "/api/v1/flows/a%2Fb%20c");
    assert.equal(headers.authorization, "Bearer wl_u_1");
    assert.equal(headers["x-windlass-actor"], "ann");
  });

  test("are repeated where that is harmless, and only there", async () => {
    let n = 0;
    const fake = await fakeServer((request) => {
      n += 1;
      if (n === 1) request.socket.destroy();
      return { body: { id: "run_1", created: true } };
    });
    const own = new Client(fake.url);
    await assert.rejects(own.runs.start("f", {}), { code: "interrupted" });
    n = 0;
    assert.equal((await own.runs.start("f", { request_id: "one" })).id, "run_1");
    fake.close();
    assert.equal(fake.requests.length, 3);
  });

  test("have a time limit", async () => {
    const fake = await fakeServer(() => new Promise((resolve) => setTimeout(resolve, 2_000, {})));
    const own = new Client({ server: fake.url, timeoutMs: 50 });
    await assert.rejects(own.jobs.get("job_1"), { code: "timed_out", isTemporary: true });
    fake.close();
  });

  test("that no server can get are refused with the remedy", async () => {
    assert.throws(() => new Client("127.0.0.1:8070"), /write http:\/\/host:port/);
    assert.throws(() => new Client({ key: "two\nlines" }), /WINDLASS_KEY/);
    const nowhere = new Client({ server: await closedAddress() });
    await assert.rejects(nowhere.jobs.create({ name: "a", queue: "b" }), (error) => {
      assert.ok(error instanceof windlass.UnreachableError);
      assert.match(error.message, /http:\/\/127\.0\.0\.1:\d+ does not answer/);
      return error.code === "unreachable";
    });
    await assert.rejects(nowhere.jobs.create({ name: "a", queue: "b", payload: 1n }), /cannot be written as JSON/);
  });
});

describe("errors", () => {
  test("have the code, the place and the remedy of the server", async () => {
    const errors = [{ path: "$.a", reason: "unknown field", hint: "did you mean `b`?" }];
    const fake = await fakeServer(() => ({ ...problem("invalid_definition", 422, { detail: "one problem", errors }), headers: { "retry-after": "7" } }));
    await assert.rejects(new Client(fake.url).flows.create({ name: "f", definition: {} }), (error) => {
      assert.ok(error instanceof windlass.InvalidRequestError && error instanceof windlass.WindlassError);
      assert.equal(error.message, "one problem; $.a: unknown field (did you mean `b`?) [invalid_definition]");
      assert.equal(error.retryAfterMs, 7_000);
      assert.equal(error.isTemporary, false);
      return error.status === 422;
    });
    fake.close();
  });

  test("of other programs are shown as they are", async () => {
    const fake = await fakeServer(() => ({ status: 502, body: "<h1>bad gateway</h1>" }));
    await assert.rejects(new Client(fake.url).jobs.get("job_1"), {
      name: "ServerError", message: "the server answered 502: <h1>bad gateway</h1> [server_error]", isTemporary: true,
    });
    fake.close();
  });

  test("have a class for every status", async () => {
    const statuses = {
      InvalidRequestError: [400, 405, 413, 415, 421, 422], AccessError: [401, 403], NotFoundError: [404], ConflictError: [409],
      BusyError: [408, 429, 503], ServerError: [500, 502],
    };
    for (const [name, list] of Object.entries(statuses)) {
      for (const status of list) {
        const fake = await fakeServer(() => problem("some_code", status));
        await assert.rejects(new Client(fake.url).jobs.cancel("job_1"), (error) => {
          assert.ok(error instanceof windlass[name], `${status} is no ${name}`);
          return error.code === "some_code" && error.status === status;
        });
        fake.close();
      }
    }
  });
});

describe("against a server", () => {

  test("flows are published, compared and validated; runs are started, followed and read", async () => {
    const definition = {
      start: "a", edges: [],
      nodes: { a: { kind: "local", func: "upper", prep: { input_key: "$params.name" }, post: { output_key: "name" } } },
    };
    const made = await client.flows.create({ name: "greet", definition });
    assert.equal(made.version, 1);
    await assert.rejects(client.flows.create({ name: "greet", definition }), { name: "ConflictError", code: "name_taken" });
    assert.deepEqual(await client.flows.apply("greet", definition), { name: "greet", version: 1, isNew: false });
    definition.nodes.a.func = "lower";
    assert.deepEqual(await client.flows.apply("greet", definition), { name: "greet", version: 2, isNew: true });
    const { changes } = await client.flows.diff("greet");
    assert.deepEqual(changes.map(({ path }) => path), ["/nodes/a/func"]);
    const { ok, problems } = await client.flows.validate({ yaml: "start: a\nnodes: {a: {kind: chioce}}" });
    assert.equal(ok, false);
    assert.match(problems[0].hint, /choice/);

    const run = await client.runs.start("greet", { params: { name: "Ada" }, request_id: "one" });
    const again = await client.runs.start("greet", { params: { name: "Ada" }, request_id: "one" });
    assert.deepEqual([run.isCreated, again.isCreated, again.id === run.id], [true, false, true]);
    const kinds = [];
    for await (const entry of run.follow()) kinds.push(...entry.events.map((event) => event.e));
    assert.deepEqual([kinds.at(0), kinds.at(-1)], ["started", "ended"]);
    assert.equal((await run.wait()).shared.name, "ada");
    const listed = [];
    for await (const one of client.runs.all({ query: "flow:greet" })) listed.push(one.id);
    assert.deepEqual(listed, [run.id]);
    await assert.rejects(client.runs.get("run_00000000000000000000000000000000"), { name: "NotFoundError", code: "unknown_run" });
  });

  test("a waiting run explains itself, takes a signal, and can be canceled, paused and run again", async () => {
    const flow = new Flow("order");
    const paid = flow.signal("paid", "payment");
    flow.end({ receipt: paid.output.receipt });
    await flow.publish(client);
    const run = await client.runs.start("order");
    const [reason] = (await run.why()).reasons;
    assert.equal(reason.node, "paid");
    await assert.rejects(run.wait({ timeoutMs: 50 }), { name: "WaitTimeoutError" });
    await run.signal("payment", { receipt: "R-7" }, { id: "signal-1" });
    assert.deepEqual(await run.result({ timeoutMs: 10_000 }), { receipt: "R-7" });
    const rerun = await client.runs.dryRunRerun(run.id, { from: "paid" });
    assert.equal(rerun.round, 2);
    assert.ok((await client.runs.rerun(run.id, { from: "paid" })).id);
    const other = await client.runs.start("order");
    await client.runs.pause(other.id);
    assert.equal((await other.get()).status, "paused");
    await client.runs.resume(other.id);
    await other.cancel({ reason: "test" });
    await assert.rejects(other.result({ timeoutMs: 10_000 }), { name: "RunFailedError" });
    await client.runs.retry(other.id);
    await other.cancel();
    assert.equal((await other.wait({ timeoutMs: 10_000 })).status, "canceled");
  });

  test("approvals are listed and decided", async () => {
    const flow = new Flow("review");
    const review = flow.approval("review", { assignees: [] });
    flow.end({ decision: review.output });
    await flow.publish(client);
    const run = await client.runs.start("review");
    const open = [];
    for await (const approval of client.approvals.all()) open.push(approval.run);
    assert.deepEqual(open, [run.id]);
    await client.approvals.decide(run.id, { decision: "approved", by: "ann" });
    assert.deepEqual(await run.result({ timeoutMs: 10_000 }), { decision: "approved" });
  });

  test("jobs, queues and dead letters", async () => {
    const job = await client.jobs.create({ name: "thumb", queue: "pictures", dedup_key: "cat", payload: { file: "cat.png" } });
    const same = await client.jobs.create({ name: "thumb", queue: "pictures", dedup_key: "cat" });
    assert.deepEqual([job.isDuplicate, same.isDuplicate, same.id], [false, true, job.id]);
    const batch = await client.jobs.createBatch([{ name: "a", queue: "others" }, { name: "b", queue: "others" }]);
    assert.equal(batch.length, 2);
    await client.queues.pause("pictures");
    assert.equal((await client.queues.get("pictures")).paused, true);
    await client.queues.resume("pictures");
    const limited = await client.queues.change("pictures", { limits: { concurrency: 5 } });
    assert.equal(limited.limits.concurrency, 5);
    await job.cancel();
    await assert.rejects(job.wait(), { name: "JobFailedError", message: /canceled/ });
    await client.jobs.retry(job.id);
    const claimed = await client.request("POST", "/api/v1/jobs/claim", { body: { worker_id: "w", queues: ["pictures"] } });
    const [{ id, lease }] = claimed.jobs;
    await client.request("POST", "/api/v1/jobs/finish", { body: { results: [{ id, lease, outcome: "failed", error: "no", retryable: false }] } });
    const { items } = await client.deadLetters.list("pictures");
    assert.equal(items.length, 1);
    assert.equal((await client.deadLetters.groups("pictures")).groups.length, 1);
    assert.equal((await client.deadLetters.replay("pictures", { count: 1 })).moved, 1);
    await assert.rejects(client.jobs.create({ name: "", queue: "" }), { name: "InvalidRequestError" });
  });

  test("schedules and accounts", async () => {
    const schedule = await client.schedules.create({ cron_expr: "0 9 * * 1-5", task: { name: "report", queue_name: "default" } });
    assert.equal((await client.schedules.toggle(schedule.id, false)).enabled, false);
    assert.equal((await client.schedules.next(schedule.id, 2)).next_runs.length, 2);
    assert.ok((await client.schedules.trigger(schedule.id)).task_id);
    await client.schedules.delete(schedule.id);
    const left = [];
    for await (const one of client.schedules.all()) left.push(one.id);
    assert.deepEqual(left, []);
    await client.accounts.create({ id: "acme" });
    await client.accounts.deposit("acme", { amount: 500, key: "first" });
    assert.equal((await client.accounts.get("acme")).balance, 500);
    assert.equal((await client.accounts.ledger("acme")).items.length, 1);
  });

  test("a stream of events goes on after the server was away", async () => {
    const flow = new Flow("away");
    flow.end({ x: flow.signal("s", "go").output });
    await flow.publish(client);
    const run = await client.runs.start("away");
    const seen = [];
    const following = (async () => { for await (const entry of run.follow()) seen.push(entry.seq); })();
    while (seen.length === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    await server.restart();
    await run.signal("go", 1);
    await following;
    assert.deepEqual(seen, [...seen].sort((a, b) => a - b));
    assert.equal(new Set(seen).size, seen.length);
  });
});
