/** The flow builder: plain definitions that the server accepts. */
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { App, Flow } from "windlass";
import { Server } from "windlass/testing";

const server = await Server.start();
after(() => server.close());

function poster() {
  const flow = new Flow("poster", { variables: { text: { type: "string", required: true } } });
  const speak = flow.call("speak", "audio_tts", { text: flow.var.text }, { retry: { max: 2, delay_ms: 500 } });
  const long = flow.condition("long", `${speak.output.seconds} > 60`);
  const cut = flow.call("cut", "audio_cut", { audio: speak.output.urls[0] }, { after: long.when(true) });
  flow.end({ audio: cut.output.urls[0], all: [speak.output, { deep: cut.output }] }, { after: [cut, long.when(false)] });
  return flow;
}

test("a definition is plain data, with references as texts and edges from them", () => {
  assert.deepEqual(poster().definition(), {
    variables: { text: { type: "string", required: true } },
    nodes: [
      { id: "speak", type: "audio_tts", config: { text: "$var.text" }, retry: { max: 2, delay_ms: 500 } },
      { id: "long", type: "condition", config: { expression: "$node.speak.output.seconds > 60" } },
      { id: "cut", type: "audio_cut", config: { audio: "$node.speak.output.urls[0]" } },
      {
        id: "end", type: "end",
        config: {
          outputs: [
            { name: "audio", source: "$node.cut.output.urls[0]" },
            { name: "all", source: ["$node.speak.output", { deep: "$node.cut.output" }] },
          ],
        },
      },
    ],
    edges: [
      { source: "speak", target: "long" },
      { source: "long", target: "cut", condition: "true" },
      { source: "cut", target: "end" },
      { source: "long", target: "end", condition: "false" },
    ],
  });
});

test("it is validated, published once, and compared with the published version", async () => {
  const flow = new Flow("once", { variables: { text: { type: "string", required: true } } });
  const shout = flow.node("shout", "local", { func: "upper", prep: { input_key: flow.var.text } });
  flow.end({ text: shout.output });
  const { ok, problems } = await flow.validate(server.client);
  assert.ok(ok, JSON.stringify(problems));
  assert.deepEqual((await flow.diff(server.client)).map(({ kind }) => kind), ["added"]);
  assert.deepEqual(await flow.publish(server.client), { name: "once", version: 1, isNew: true });
  assert.deepEqual(await flow.diff(server.client), []);
  assert.deepEqual(await flow.publish(server.client), { name: "once", version: 1, isNew: false });
  const changed = new Flow("once", { variables: { text: { type: "string", required: true } } });
  changed.end({ text: changed.node("shout", "local", { func: "lower", prep: { input_key: changed.var.text } }).output });
  assert.deepEqual(await changed.diff(server.client), [{ path: "/nodes/0/config/func", kind: "changed", before: "upper", after: "lower" }]);
  assert.equal((await changed.publish(server.client)).version, 2);
  const run = await server.client.runs.start("once", { params: { text: "LOUD" } });
  assert.deepEqual(await run.result({ timeoutMs: 20_000 }), { text: "loud" });
});

test("every kind of node is one that the server knows", async () => {
  const child = new Flow("child");
  child.end({ x: child.delay("wait", 10).output });
  await child.publish(server.client);
  const app = new App({ client: server.client });
  const service = app.service("any", () => 1);
  const flow = new Flow("kinds", { on_failure: "continue" });
  const call = flow.call("call", service, {}, { timeout_ms: 5_000 });
  const wait = flow.delay("wait", 10, { after: call });
  const signal = flow.signal("signal", "paid", { after: wait, waitMs: 60_000 });
  const approval = flow.approval("approval", { assignees: ["ann"] }, { after: signal });
  const run = flow.run("run", child, {}, { after: approval });
  flow.end({ child: run.output });
  const { ok, problems } = await flow.validate(server.client);
  assert.ok(ok, JSON.stringify(problems));
});

test("mistakes are named where they are made", async () => {
  const flow = new Flow("wrong");
  const first = flow.call("first", "a");
  assert.throws(() => flow.call("first", "b"), /two nodes `first`/);
  assert.throws(() => flow.call("second", "b", { x: "$node.third.output" }), /`third`, which is no node of flow `wrong`/);
  assert.throws(() => first.output["two words"], /cannot stand in a reference/);
  const { ok, problems } = await new Flow("empty").validate(server.client);
  assert.equal(ok, false);
  assert.ok(problems.length > 0);
});
