/** A real server in a temporary directory, on a free port. */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { App } from "../app.ts";
import { Client } from "../client.ts";
import type { Worker, WorkerOptions } from "../worker/worker.ts";

/** How long a server may take to answer. */
const READY_MS = 20_000;
/** How long a server may take to end. */
const STOP_MS = 10_000;

export interface ServerOptions {
  /** The binary; default: `WINDLASS`, or `windlass` in the path. */
  binary?: string;
  /** Further arguments of `windlass serve`. */
  args?: string[];
  /** Further environment variables. */
  env?: Record<string, string>;
}

/**
 * A server for tests.
 *
 * ```ts
 * await using server = await Server.start();
 * const worker = server.work(app);
 * ```
 */
export class Server implements AsyncDisposable {
  readonly client: Client;
  readonly #options: ServerOptions;
  readonly #directory: string;
  readonly #workers: { worker: Worker; done: Promise<void> }[] = [];
  readonly #onExit = () => this.#child?.kill("SIGKILL");
  #child: ChildProcess | undefined;

  private constructor(options: ServerOptions, directory: string, readonly url: string) {
    this.#options = options;
    this.#directory = directory;
    this.client = new Client({ server: url });
    process.on("exit", this.#onExit);
  }

  /** Starts a server and waits until it accepts work. */
  static async start(options: ServerOptions = {}): Promise<Server> {
    const directory = await mkdtemp(join(tmpdir(), "windlass-test-"));
    const { child, url } = await spawnServer(options, directory, "127.0.0.1:0");
    const server = new Server(options, directory, url);
    server.#child = child;
    return server;
  }

  /** Runs an app at this server until `close`. Its services are those that are defined now. */
  work(app: App, options: WorkerOptions = {}): Worker {
    if (app.client.server !== this.url) {
      throw new Error(`the app is a client of ${app.client.server}: write new App({ client: server.client })`);
    }
    const worker = app.worker({ log: () => {}, ...options });
    this.#workers.push({ worker, done: worker.run() });
    return worker;
  }

  /** Kills the server as a crash would. */
  async kill(): Promise<void> {
    await this.#end("SIGKILL");
  }

  /** Starts a killed server again, on the same port and store. */
  async restart(): Promise<void> {
    await this.kill();
    const { child } = await spawnServer(this.#options, this.#directory, new URL(this.url).host);
    this.#child = child;
  }

  /** Stops the workers and the server, and removes its files. */
  async close(): Promise<void> {
    for (const { worker } of this.#workers) worker.stop();
    try {
      await Promise.all(this.#workers.map(({ done }) => done));
    } finally {
      process.off("exit", this.#onExit);
      await this.#end("SIGTERM");
      await rm(this.#directory, { recursive: true, force: true });
    }
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    this.#child = undefined;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((resolve) => child.once("exit", resolve));
    child.kill(signal);
    const timer = setTimeout(() => child.kill("SIGKILL"), STOP_MS);
    await ended;
    clearTimeout(timer);
  }
}

async function spawnServer(
  options: ServerOptions, directory: string, listen: string,
): Promise<{ child: ChildProcess; url: string }> {
  const binary = options.binary ?? process.env.WINDLASS ?? "windlass";
  const store = `sqlite:${join(directory, "store.db")}`;
  const args = ["serve", "--listen", listen, "--store", store, "--durability", "fast", ...(options.args ?? [])];
  const child = spawn(binary, args, {
    cwd: directory, env: { ...process.env, ...options.env }, stdio: ["ignore", "pipe", "pipe"],
  });
  const url = await new Promise<string>((resolve, reject) => {
    let output = "";
    const fail = (why: string) => reject(new Error(`the server did not start: ${why}\n${output}`));
    const timer = setTimeout(() => {
      child.kill("SIGKILL");
      fail(`no address within ${READY_MS} ms`);
    }, READY_MS);
    const onOutput = (chunk: Buffer) => {
      output += chunk;
      const address = /listens on (http:\/\/\S+)/.exec(output)?.[1];
      if (address === undefined) return;
      clearTimeout(timer);
      resolve(address);
    };
    child.stdout.on("data", onOutput);
    child.stderr.on("data", onOutput);
    child.once("error", (error) => fail(`${error.message}; WINDLASS names the binary`));
    child.once("exit", (code) => fail(`it ended with code ${code}`));
  });
  await ready(url);
  return { child, url };
}

async function ready(url: string): Promise<void> {
  const until = Date.now() + READY_MS;
  for (;;) {
    const response = await fetch(`${url}/readyz`).catch(() => undefined);
    if (response?.ok) return;
    if (Date.now() > until) throw new Error(`the server at ${url} is not ready`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
