/** The pull worker: it gives claimed jobs to their handlers, and the link hands their ends in. */
import type { App } from "../app.ts";
import type { Call, CallFields } from "../call.ts";
import type { StopReason } from "../errors.ts";
import { failureOf, jsonOf, type Outcome } from "../outcome.ts";
import type { ServiceDefinition } from "../service.ts";
import { pause } from "../waiting.ts";
import { HandlerThreads } from "./handler-threads.ts";
import { Link } from "./link.ts";
import { logToStderr, type WorkerLog } from "./logging.ts";
import type { FromLink, LaneConfig, LinkConfig, LinkedJob } from "./messages.ts";
import { uniqueId } from "./name.ts";

const SLOTS = 64;
const LEASE_MS = 30_000;
const BEAT_MS = 5_000;
const DRAIN_MS = 25_000;
/** How long a call that was told to stop at the end may take for it. */
const LAST_WORDS_MS = 1_000;

export interface WorkerOptions {
  /** The id of this worker; each has its own. Default: the machine, the process, and chance. */
  id?: string;
  /** A name for people; default: the id. */
  name?: string;
  /** Calls at once; default 64. Services with `slots` of their own have theirs beside these. */
  slots?: number;
  /** How long a claim lasts unless it is extended, 1,000 to 3,600,000; default 30,000. */
  leaseMs?: number;
  /** How long open calls may go on after the worker was told to stop; default 25,000. */
  drainMs?: number;
  /** The interval of heartbeats; default 5,000. */
  beatMs?: number;
  /** Takes the messages of the worker; default: stderr. */
  log?: WorkerLog;
}

export class Worker {
  readonly id: string;
  readonly #app: App;
  readonly #options: Required<Pick<WorkerOptions, "slots" | "leaseMs" | "drainMs" | "beatMs" | "log">>;
  readonly #config: LinkConfig;
  /** Open calls by their leases. */
  readonly #calls = new Map<string, Call>();
  readonly #threads: HandlerThreads;
  #link: Link | undefined;
  #isStopping = false;
  #finish: ((error?: Error) => void) | undefined;

  constructor(app: App, options: WorkerOptions = {}) {
    this.#app = app;
    this.id = options.id ?? uniqueId();
    this.#options = {
      slots: whole("slots", options.slots ?? SLOTS, 1, 100_000),
      leaseMs: whole("leaseMs", options.leaseMs ?? LEASE_MS, 1_000, 3_600_000),
      drainMs: whole("drainMs", options.drainMs ?? DRAIN_MS, 0, 2 ** 31 - 1),
      beatMs: whole("beatMs", options.beatMs ?? BEAT_MS, 10, 60_000),
      log: options.log ?? logToStderr,
    };
    this.#config = this.#configOf(options.name);
    this.#threads = new HandlerThreads(app);
  }

  #configOf(name: string | undefined): LinkConfig {
    const { slots, leaseMs, beatMs } = this.#options;
    const { definitions } = this.#app;
    if (definitions.length === 0) {
      throw new Error("the app has no services: define some with app.service(name, handler) before it runs");
    }
    const names = (kind: string, of: ServiceDefinition[]) => of.filter((one) => one.kind === kind).map((one) => one.name);
    const laneOf = (of: ServiceDefinition[], n: number): LaneConfig =>
      ({ services: names("service", of), queues: names("queue", of), slots: n });
    const own = definitions.filter((one) => one.options.slots !== undefined);
    const shared = definitions.filter((one) => one.options.slots === undefined);
    const lanes = own.map((one) => laneOf([one], one.options.slots ?? slots));
    if (shared.length > 0) lanes.push(laneOf(shared, slots));
    return {
      ...this.#app.client.connection, id: this.id, lanes, leaseMs, beatMs, ...(name && { name }),
      services: names("service", definitions), queues: names("queue", definitions),
      capacity: lanes.reduce((sum, lane) => sum + lane.slots, 0),
    };
  }

  /** The number of calls in progress. */
  get load(): number {
    return this.#calls.size;
  }

  /**
   * Works until `stop` or until the server drains this worker, and then until its open calls have ended. An unreachable
   * server is asked again for ever. Rejects if another worker has taken the id.
   */
  async run(): Promise<void> {
    if (this.#finish) throw new Error("this worker runs already: make another one with app.worker()");
    this.#threads.requireModule();
    const finished = new Promise<void>((resolve, reject) => {
      this.#finish = (error) => (error ? reject(error) : resolve());
    });
    const link = new Link(this.#config, (message) => this.#receive(message), (error) => this.#finish?.(error));
    this.#link = link;
    if (this.#isStopping) link.drain();
    try {
      await finished;
    } finally {
      await Promise.all([link.close(), this.#threads.close()]);
    }
  }

  /** Claims no more jobs; the open calls have `drainMs` to end, then they are told to stop. */
  stop(): void {
    if (this.#isStopping) return;
    this.#isStopping = true;
    this.#options.log("info", `the worker stops: ${this.load} calls are open`);
    this.#link?.drain();
    this.#limitDrain();
  }

  /** Ends the drain after its time, with open calls too. */
  #limitDrain(): void {
    const timer = setTimeout(async () => {
      if (this.load > 0) this.#options.log("warn", `${this.load} calls are told to stop: the time of the drain is over`);
      for (const call of this.#calls.values()) call.stop("stopping");
      await pause(LAST_WORDS_MS);
      const left = `${this.load} calls do not stop: their jobs come back when their leases end`;
      if (this.load > 0) this.#options.log("error", left);
      this.#finish?.();
    }, this.#options.drainMs);
    timer.unref();
  }

  #receive(message: FromLink): void {
    switch (message.kind) {
      case "jobs": return message.jobs.forEach((linked) => this.#start(linked));
      case "stop": return this.#calls.get(message.lease)?.stop(message.reason);
      case "log": return this.#options.log(message.level, message.message);
      case "draining": return;
      case "drained": return this.#finish?.();
      case "replaced": return this.#replaced(message.message);
    }
  }

  #replaced(message: string): void {
    const reason: StopReason = "lost";
    for (const call of this.#calls.values()) call.stop(reason);
    this.#finish?.(new Error(message));
  }

  #start({ job, deadlineMs }: LinkedJob): void {
    const fields: CallFields = {
      service: job.service, key: job.key, attempt: job.attempt, job: job.id, queue: job.queue,
      priority: job.priority ?? 0, params: (job.params ?? {}) as Record<string, unknown>, memo: job.memo ?? undefined,
      ...(job.call && { call: job.call }), ...(job.run && { run: job.run }), ...(job.node && { node: job.node }),
      ...(deadlineMs !== undefined && { deadlineMs }),
    };
    const call = this.#app.call(fields);
    this.#calls.set(job.lease, call);
    void this.#answer(fields, job.input, call).then((outcome) => {
      this.#calls.delete(job.lease);
      this.#link?.end({ job: job.id, lease: job.lease, body: jsonOf(outcome, { id: job.id, lease: job.lease }) });
    });
  }

  #answer(fields: CallFields, input: unknown, call: Call): Promise<Outcome> {
    const definition = this.#app.find(fields.service, fields.queue);
    if (definition === undefined) {
      return Promise.resolve(failureOf(new Error(`worker \`${this.id}\` does not serve \`${fields.service}\``)));
    }
    return definition.options.thread ? this.#threads.answer(definition, fields, input, call) : definition.answer(call, input);
  }
}

function whole(name: string, value: number, min: number, max: number): number {
  if (Number.isInteger(value) && value >= min && value <= max) return value;
  throw new RangeError(`${name} is ${value}; write a whole number from ${min} to ${max}`);
}
