// A real server for the end-to-end tests, in a directory of its own.
//
//   WINDLASS     the binary; default: target/debug/windlass of this work tree
//   E2E_STORE    sqlite (default) or postgres: then a private PostgreSQL is started
import { execFileSync, spawn } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export const BINARY = process.env.WINDLASS ?? new URL("../../target/debug/windlass", import.meta.url).pathname;
const START_MS = 60_000;

/** Waits until `check` answers something true; it is asked again after each answer, at most every 50 ms. */
export async function until(check, what, ms = 30_000) {
  const end = Date.now() + ms;
  let last;
  for (;;) {
    try {
      const answer = await check();
      if (answer) return answer;
      last = undefined;
    } catch (error) {
      last = error;
    }
    if (Date.now() > end) throw new Error(`${what} did not come within ${ms} ms${last ? `: ${last.message}` : ""}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

const ended = (child) => (child.exitCode !== null || child.signalCode !== null ? Promise.resolve() : new Promise((resolve) => child.once("exit", resolve)));

/** A private PostgreSQL that listens on a socket in its directory. */
async function startPostgres(directory) {
  const found = existsSync("/usr/lib/postgresql") ? readdirSync("/usr/lib/postgresql").sort((a, b) => b - a).map((version) => `/usr/lib/postgresql/${version}/bin`) : [];
  const bin = found.find((one) => existsSync(join(one, "initdb"))) ?? "";
  const program = (name) => (bin ? join(bin, name) : name);
  const isRoot = process.getuid?.() === 0;
  // PostgreSQL refuses to run as root.
  const [uid, gid] = isRoot ? ["-u", "-g"].map((flag) => Number(execFileSync("id", [flag, "postgres"], { encoding: "utf8" }))) : [undefined, undefined];
  if (isRoot) chownSync(directory, uid, gid);
  const data = join(directory, "data");
  execFileSync(program("initdb"), ["-D", data, "-U", "postgres", "-A", "trust", "--no-sync"], { uid, gid, stdio: "pipe" });
  const child = spawn(program("postgres"), ["-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off"], { uid, gid, stdio: "ignore" });
  const psql = (database, command) => execFileSync(program("psql"), ["-h", directory, "-U", "postgres", "-d", database, "-c", command], { stdio: "pipe" });
  await until(() => { psql("postgres", "select 1"); return true; }, "PostgreSQL", START_MS);
  psql("postgres", "create database windlass");
  return {
    url: `postgres://postgres@localhost/windlass?host=${encodeURIComponent(directory)}`,
    async stop() { child.kill("SIGQUIT"); await ended(child); },
  };
}

export class Server {
  static async start({ store = process.env.E2E_STORE ?? "sqlite" } = {}) {
    if (!existsSync(BINARY)) throw new Error(`there is no ${BINARY}: build it with \`cargo build\`, or name one in WINDLASS`);
    const server = new Server();
    server.directory = mkdtempSync(join(tmpdir(), "windlass-e2e-"));
    const database = mkdtempSync(join(tmpdir(), "windlass-e2e-pg-"));
    server.postgres = store === "postgres" ? await startPostgres(database) : undefined;
    server.database = database;
    server.store = server.postgres?.url ?? `sqlite:${join(server.directory, "windlass.db")}`;
    server.port = await freePort();
    server.url = `http://127.0.0.1:${server.port}`;
    await server.launch();
    return server;
  }

  async launch() {
    const args = ["serve", "--listen", `127.0.0.1:${this.port}`, "--store", this.store, "--durability", "fast"];
    this.log = "";
    this.child = spawn(BINARY, args, { cwd: this.directory, stdio: ["ignore", "pipe", "pipe"] });
    for (const stream of [this.child.stdout, this.child.stderr]) stream.on("data", (text) => { this.log = (this.log + text).slice(-20_000); });
    await until(async () => {
      if (this.child.exitCode !== null) throw new Error(`the server ended: ${this.log}`);
      return (await fetch(`${this.url}/readyz`)).ok;
    }, "the server", START_MS);
  }

  /** Ends the server as a crash does. */
  async kill() {
    this.child.kill("SIGKILL");
    await ended(this.child);
  }

  async stop() {
    await this.kill();
    await this.postgres?.stop();
    for (const directory of [this.directory, this.database]) rmSync(directory, { recursive: true, force: true });
  }

  /** Runs a command of the program against this server until it is stopped. */
  command(args) {
    const child = spawn(BINARY, args, { cwd: this.directory, stdio: "ignore", env: { ...process.env, WINDLASS_SERVER: this.url } });
    return { stop: () => { child.kill("SIGKILL"); return ended(child); } };
  }

  async api(method, path, body, headers = {}) {
    const response = await fetch(`${this.url}/api/v1${path}`, {
      method, headers: { ...(body !== undefined && { "content-type": "application/json" }), ...headers }, body: body === undefined ? undefined : JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text.slice(0, 500)}`);
    return text ? JSON.parse(text) : undefined;
  }

  get(path) { return this.api("GET", path); }
  post(path, body = {}) { return this.api("POST", path, body); }

  publish(name, definition) { return this.post("/flows", { name, ...(typeof definition === "string" ? { yaml: definition } : { definition }) }); }
  async start(flow, body = {}) { return (await this.post(`/flows/${encodeURIComponent(flow)}/runs`, body)).id; }
  run(id) { return this.get(`/runs/${id}`); }
  ended(id, status) {
    return until(async () => {
      const run = await this.run(id);
      if (["completed", "failed", "canceled"].includes(run.status) && run.status !== status) throw new Error(`the run is ${run.status}`);
      return run.status === status && run;
    }, `the run's ${status}`);
  }

  /** Lets jobs of a queue fail for good, so that they are dead letters. */
  async deaden(queue, jobs) {
    for (const job of jobs) await this.post("/jobs", { queue, name: job.name ?? "work", payload: job.payload ?? {}, retry: { max: 0 } });
    let left = jobs.length;
    await until(async () => {
      const { jobs: claimed } = await this.post("/jobs/claim", { worker_id: "e2e", queues: [queue], max: 100, wait_ms: 200 });
      if (claimed.length > 0) await this.post("/jobs/finish", { results: claimed.map(({ id, lease, payload, input }, n) => ({ id, lease, outcome: "failed", retryable: false, error: jobs[n]?.error ?? "the model is overloaded" })) });
      left -= claimed.length;
      return left <= 0;
    }, "dead letters");
  }
}

/** A function of the server itself: no worker is needed. */
export const local = (func, more = {}) => ({ kind: "local", func, ...more });
