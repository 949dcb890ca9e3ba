/** The app: the services of one program, and the ways to run them. */
import { Call, type CallFields } from "./call.ts";
import { Client, type ClientOptions } from "./client.ts";
import { type Handler, type Service, ServiceDefinition, type ServiceKind, type ServiceOptions } from "./service.ts";
import type { StandardSchema } from "./schema.ts";
import { fetchHandler, type FetchHandler, type PushOptions } from "./push/fetch-handler.ts";
import { nodeHandler, type NodeHandler } from "./push/node-handler.ts";
import { PushServer, type PushServerOptions } from "./push/push-server.ts";
import { Registration, type RegistrationOptions } from "./push/registration.ts";
import { isHandlerThread, registerApp } from "./worker/app-registry.ts";
import { runUntilSignal } from "./worker/signals.ts";
import { Worker, type WorkerOptions } from "./worker/worker.ts";

export interface AppOptions extends ClientOptions {
  /** A client of your own, instead of the options of one. */
  client?: Client;
  /** `import.meta.url` of the module that defines the services: services with `thread: true` are loaded from there. */
  module?: string;
}

/** How a program runs an app until it is told to end. */
export interface RunOptions extends WorkerOptions {
  /** Whether SIGTERM and SIGINT end the worker; default true. */
  signals?: boolean;
}

/** How a program answers pushed calls until it is told to end. */
export interface ServeOptions extends PushServerOptions {
  signals?: boolean;
}

/**
 * The services of one program.
 *
 * ```ts
 * const app = new App();                              // WINDLASS_SERVER, WINDLASS_KEY
 * app.service("greet", async (input: { name: string }) => `hello, ${input.name}`);
 * await app.run();
 * ```
 */
export class App {
  /** Names the class across copies of this package. */
  readonly isWindlassApp = true;
  /** The module that defines the services. */
  module: string | undefined;
  readonly #options: AppOptions;
  readonly #services = new Map<string, ServiceDefinition>();
  readonly #queues = new Map<string, ServiceDefinition>();
  #client: Client | undefined;

  constructor(options: AppOptions = {}) {
    this.#options = options;
    this.module = options.module;
    this.#client = options.client;
    registerApp(this);
  }

  /** The client of `send` and of the worker's registration. */
  get client(): Client {
    return (this.#client ??= new Client(this.#options));
  }

  /** Offers a service. The value is callable as a plain function, and has `send`. */
  service<Input, Checked, Result>(
    name: string, options: ServiceOptions<Input, Checked> & { input: StandardSchema<Input, Checked> },
    handler: Handler<Checked, Result>,
  ): Service<Input, Result>;
  service<Input = any, Result = unknown>(
    name: string, options: ServiceOptions, handler: Handler<Input, Result>,
  ): Service<Input, Result>;
  service<Input = any, Result = unknown>(name: string, handler: Handler<Input, Result>): Service<Input, Result>;
  service(name: string, ...rest: [ServiceOptions, Handler<any, any>] | [Handler<any, any>]): Service<any, any> {
    return this.#define("service", name, rest);
  }

  /** Takes all jobs of a queue whose names are no services of this app. `call.service` is the name of the job. */
  queue<Input, Checked, Result>(
    name: string, options: ServiceOptions<Input, Checked> & { input: StandardSchema<Input, Checked> },
    handler: Handler<Checked, Result>,
  ): void;
  queue<Input = any, Result = unknown>(name: string, options: ServiceOptions, handler: Handler<Input, Result>): void;
  queue<Input = any, Result = unknown>(name: string, handler: Handler<Input, Result>): void;
  queue(name: string, ...rest: [ServiceOptions, Handler<any, any>] | [Handler<any, any>]): void {
    this.#define("queue", name, rest);
  }

  #define(
    kind: ServiceKind, name: string, rest: [ServiceOptions, Handler<any, any>] | [Handler<any, any>],
  ): Service<any, any> {
    const [options, handler] = rest.length === 1 ? [{}, rest[0]] : rest;
    if (typeof handler !== "function") throw new TypeError(`${kind} \`${name}\` needs a function as its handler`);
    const known = kind === "service" ? this.#services : this.#queues;
    if (known.has(name)) throw new Error(`there are two handlers of the ${kind} \`${name}\`: remove one`);
    const definition = new ServiceDefinition(kind, name, options, handler);
    known.set(name, definition);
    return definition.callable((job) => this.client.jobs.create(job));
  }

  /** All services and queues. */
  get definitions(): ServiceDefinition[] {
    return [...this.#services.values(), ...this.#queues.values()];
  }

  /** The handler of a job: the one of its service, or else the one of its queue. */
  find(service: string, queue?: string): ServiceDefinition | undefined {
    return this.#services.get(service) ?? (queue === undefined ? undefined : this.#queues.get(queue));
  }

  /** The call that a handler receives. */
  call(fields: CallFields): Call {
    return new Call(fields, async (run) => (await this.client.runs.get(run)).labels ?? {});
  }

  /** A worker that claims jobs; `run` and `stop` are yours to call. */
  worker(options: WorkerOptions = {}): Worker {
    return new Worker(this, options);
  }

  /** Claims and answers jobs until SIGTERM, SIGINT or a drain by the server; then lets the open calls end. */
  async run(options: RunOptions = {}): Promise<void> {
    // A thread that loads this module for its handlers runs no second worker.
    if (isHandlerThread()) return;
    await runUntilSignal(this.worker(options), options.signals ?? true);
  }

  /** Answers pushed calls at `url`: registers, sends heartbeats, and ends as `run` does. */
  async serve(options: ServeOptions): Promise<void> {
    if (isHandlerThread()) return;
    await runUntilSignal(new PushServer(this, options), options.signals ?? true);
  }

  /** Registers a push worker whose server is yours: mount `fetchHandler` or `nodeHandler` there. */
  register(options: RegistrationOptions): Registration {
    return new Registration(this, options);
  }

  /** Answers pushed calls in a server that takes `fetch` handlers, such as Hono, Bun, Deno or a serverless function. */
  fetchHandler(options: PushOptions = {}): FetchHandler {
    return fetchHandler(this, options);
  }

  /** Answers pushed calls in a server of `node:http`, or as middleware of Express. */
  nodeHandler(options: PushOptions = {}): NodeHandler {
    return nodeHandler(this, options);
  }
}
