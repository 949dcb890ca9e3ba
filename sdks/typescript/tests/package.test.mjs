/** The package as users get it: its types, its size, its formats, and its types of the API. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { after, test } from "node:test";
import { Server } from "windlass/testing";

const run = promisify(execFile);
const PACKAGE = fileURLToPath(new URL("..", import.meta.url));
/** Bytes of the packed package. */
const PACKED_MAX = 100_000;
const directory = await mkdtemp(join(tmpdir(), "windlass-package-"));
after(() => rm(directory, { recursive: true, force: true }));
const { stdout } = await run("npm", ["pack", "--json", "--pack-destination", directory], { cwd: PACKAGE });
const [packed] = JSON.parse(stdout);
const tarball = join(directory, packed.filename);

test("it is small and has no dependencies", async () => {
  const { dependencies, peerDependencies } = JSON.parse(await readFile(join(PACKAGE, "package.json"), "utf8"));
  assert.deepEqual([dependencies, peerDependencies], [undefined, undefined]);
  assert.ok(packed.size <= PACKED_MAX, `${packed.size} bytes`);
  const files = packed.files.map(({ path }) => path);
  assert.ok(files.includes("README.md") && files.includes("dist/command.mjs"), files.join());
  assert.ok(files.every((file) => file.startsWith("dist/") || ["README.md", "package.json"].includes(file)), files.join());
});

test("publint and attw find nothing", async () => {
  const bin = (name) => join(PACKAGE, "node_modules/.bin", name);
  await run(bin("publint"), ["run", tarball, "--strict"]);
  await run(bin("attw"), [tarball]);
});

test("it loads as ESM and as CommonJS, and both are the same", async () => {
  const required = createRequire(import.meta.url)("windlass");
  const imported = await import("windlass");
  assert.deepEqual(Object.keys(required).sort(), Object.keys(imported).filter((name) => name !== "module.exports").sort());
  const { call } = createRequire(import.meta.url)("windlass/testing");
  // A program may have both: errors are known by their names.
  assert.deepEqual(await call(() => { throw new imported.Fatal("no"); }), { outcome: "failed", error: "no", retryable: false });
  assert.deepEqual(await call((_, made) => new imported.Suspended(made.attempt)), { outcome: "suspended", memo: 1 });
});

test("a CommonJS program runs a worker", async () => {
  const server = await Server.start();
  after(() => server.close());
  const { App } = createRequire(import.meta.url)("windlass");
  const app = new App({ server: server.url });
  const greet = app.service("greet", (input) => `hello, ${input}`);
  const worker = app.worker({ log: () => {} });
  const running = worker.run();
  assert.equal(await (await greet.send("Ada")).wait({ timeoutMs: 20_000 }), "hello, Ada");
  worker.stop();
  await running;
});

test("the types of the API belong to the server", async () => {
  const server = await Server.start();
  after(() => server.close());
  const file = join(directory, "openapi.json");
  await writeFile(file, await (await fetch(`${server.url}/openapi.json`)).text());
  const script = fileURLToPath(new URL("../../../ui/scripts/types.mjs", import.meta.url));
  await run(process.execPath, [script, file, "--to", join(PACKAGE, "src/openapi.ts"), "--check"]);
});

test("the lock file names no registry", async () => {
  assert.doesNotMatch(await readFile(join(PACKAGE, "package-lock.json"), "utf8"), /"resolved"/);
});
