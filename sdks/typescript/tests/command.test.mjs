/** The command `windlass-worker`. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { after, test } from "node:test";
import { Server } from "windlass/testing";
import { until } from "./support.mjs";

const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
const server = await Server.start();
after(() => server.close());

/** A project with the app and the package. */
const project = await mkdtemp(join(tmpdir(), "windlass-project-"));
await cp(join(PACKAGE, "tests/fixtures/jobs.mjs"), join(project, "jobs.mjs"));
await writeFile(join(project, "package.json"), '{"type": "module"}');
await mkdir(join(project, "node_modules"));
await symlink(PACKAGE, join(project, "node_modules/windlass"));
after(() => rm(project, { recursive: true, force: true }));

function command(args) {
  const child = spawn(process.execPath, [join(PACKAGE, "dist/command.mjs"), ...args], {
    cwd: project, env: { ...process.env, WINDLASS_SERVER: server.url },
  });
  const run = { child, output: "", ended: new Promise((resolve) => child.on("exit", (code) => resolve(code))) };
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => { run.output += chunk; });
  after(() => child.kill("SIGKILL"));
  return run;
}

const send = (name, payload) => server.client.jobs.create({ name, queue: "command", payload, retry: { max: 1, delay_ms: 10 } });

test("runs the app of a module, and SIGTERM lets a slow call and a quick one end", async () => {
  const run = command(["./jobs.mjs", "--slots", "4", "--drain", "20", "--name", "tester"]);
  assert.equal(await (await send("version", null)).wait({ timeoutMs: 20_000 }), 1);
  assert.equal(await (await send("count", null)).wait({ timeoutMs: 20_000 }), "in a thread");
  const jobs = [await send("slow", { ms: 1_500 }), await send("slow", { ms: 1 })];
  await until(() => run.output.includes("began 1500"), "the slow call began");
  run.child.kill("SIGTERM");
  assert.equal(await run.ended, 0);
  for (const job of jobs) assert.equal(await job.wait({ timeoutMs: 5_000 }), "whole");
});

test("a worker that is killed loses its call to another worker, as the next attempt", async () => {
  const run = command(["./jobs.mjs", "--lease", "1"]);
  const job = await send("slow", { ms: 2_500 });
  await until(() => run.output.includes("began 2500"), "the call began");
  run.child.kill("SIGKILL");
  await run.ended;
  const other = command(["./jobs.mjs"]);
  assert.equal(await job.wait({ timeoutMs: 20_000 }), "whole");
  assert.equal((await job.get()).latest_attempt.attempt, 2);
  other.child.kill("SIGTERM");
  assert.equal(await other.ended, 0);
});

test("a second signal ends the process at once", async () => {
  const run = command(["./jobs.mjs"]);
  await send("slow", { ms: 60_000 });
  await until(() => run.output.includes("began 60000"), "the slow call began");
  run.child.kill("SIGTERM");
  await until(() => run.output.includes("the worker stops"), "the drain began");
  run.child.kill("SIGINT");
  assert.equal(await run.ended, 130);
});

test("--reload starts the worker again when a file changes", async () => {
  const run = command(["./jobs.mjs", "--reload"]);
  assert.equal(await (await send("version", null)).wait({ timeoutMs: 20_000 }), 1);
  const file = join(project, "jobs.mjs");
  await writeFile(file, (await readFile(file, "utf8")).replace("() => 1", "() => 2"));
  await until(async () => (await (await send("version", null)).wait({ timeoutMs: 20_000 })) === 2, "the new version answers");
  run.child.kill("SIGTERM");
  assert.equal(await run.ended, 0);
});

test("mistakes are named", async () => {
  for (const [args, code, text] of [
    [[], 2, /name the module of the app/],
    [["./jobs.mjs", "--slots", "many"], 2, /--slots takes a number, not `many`/],
    [["./jobs.mjs", "--wrong"], 2, /--wrong/],
    [["./nothing.mjs"], 1, /nothing\.mjs/],
    [["./jobs.mjs", "--lease", "0.1"], 1, /leaseMs is 100; write a whole number from 1000/],
  ]) {
    const run = command(args);
    assert.equal(await run.ended, code, run.output);
    assert.match(run.output, text);
  }
  const help = command(["--help"]);
  assert.equal(await help.ended, 0);
  assert.match(help.output, /--reload/);
});
