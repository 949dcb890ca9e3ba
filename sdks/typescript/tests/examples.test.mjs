/** Every example runs against a real server. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { Flow } from "windlass";
import { Server } from "windlass/testing";
import ts from "typescript";
import { until } from "./support.mjs";

const SOURCES = new URL("../examples/", import.meta.url);
// Beside the package, so that they find it under its name.
const BUILT = new URL("../.examples/", import.meta.url);
const server = await Server.start();
const { client } = server;
after(() => server.close());
await mkdir(BUILT, { recursive: true });
after(() => rm(BUILT, { recursive: true, force: true }));

async function start(name, env = {}) {
  const source = await readFile(new URL(`${name}.ts`, SOURCES), "utf8");
  const { outputText } = ts.transpileModule(source, { compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2023 } });
  const file = fileURLToPath(new URL(`${name}.mjs`, BUILT));
  await writeFile(file, outputText);
  const child = spawn(process.execPath, [file], { env: { ...process.env, WINDLASS_SERVER: server.url, ...env } });
  const run = { child, output: "" };
  run.ended = new Promise((resolve) => child.on("exit", resolve));
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => { run.output += chunk; });
  after(() => child.kill("SIGKILL"));
  return run;
}

/** Runs an example to its end. */
async function output(name) {
  const run = await start(name);
  assert.equal(await run.ended, 0, run.output);
  return run.output;
}

async function stop({ child, ended }) {
  child.kill("SIGTERM");
  assert.equal(await ended, 0);
}

const examples = {
  async worker() {
    const run = await start("worker");
    const job = await client.jobs.create({ name: "greet", queue: "default", payload: { name: "Ada" } });
    assert.equal(await job.wait({ timeoutMs: 20_000 }), "hello, Ada");
    await stop(run);
  },
  async charge() {
    const text = await output("charge");
    assert.match(text, /charged: \{ receipt: 'R-/);
    assert.match(text, /not sent: the input of `charge` does not fit its schema: \$\.cents/);
    assert.match(text, /failed: job_\w+ is failed: the card was declined/);
  },
  async render() {
    const text = await output("render");
    assert.match(text, /published: \{ name: 'poster', version: 1, isNew: true \}/);
    assert.match(text, /result: \{ film: 'asset:\/\/film\.mp4', paper: 'poster-1' \}/);
  },
  async push() {
    const run = await start("push", { WORKER_URL: "http://127.0.0.1:0" });
    const flow = new Flow("shouts");
    flow.end({ text: flow.call("a", "shout", { input: "hello" }, { exec_type: "http", retry: { max: 20, delay_ms: 200 } }).output });
    await flow.publish(client);
    await until(() => run.output.includes("registered"), "the worker is registered");
    const started = await client.runs.start("shouts");
    assert.deepEqual(await started.result({ timeoutMs: 30_000 }), { text: "HELLO" });
    await stop(run);
  },
  async hash() {
    const run = await start("hash");
    const job = await client.jobs.create({ name: "hash", queue: "default", payload: { text: "a", rounds: 1_000 } });
    assert.match(await job.wait({ timeoutMs: 20_000 }), /^[0-9a-f]{64}$/);
    await stop(run);
  },
  async thumbnails() {
    assert.match(await output("thumbnails"), /made: \{ thumbnail: 'cat\.small\.png' \}/);
  },
};

for (const [name, run] of Object.entries(examples)) test(name, run);

test("every example is here", async () => {
  const files = (await readdir(SOURCES)).filter((file) => file.endsWith(".ts")).map((file) => file.replace(".ts", ""));
  assert.deepEqual(files.sort(), Object.keys(examples).sort());
});
