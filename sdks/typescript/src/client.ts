/** The client: one object for each noun of the server, with the verbs of the command line. */
import { Accounts } from "./client/accounts.ts";
import { Approvals } from "./client/approvals.ts";
import { Calls } from "./client/calls.ts";
import { DeadLetters } from "./client/dead-letters.ts";
import { Flows } from "./client/flows.ts";
import { Jobs } from "./client/jobs.ts";
import { Queues } from "./client/queues.ts";
import { Runs } from "./client/runs.ts";
import { Schedules } from "./client/schedules.ts";
import { Workers } from "./client/workers.ts";
import { Transport, type RequestOptions, type TransportOptions } from "./transport.ts";

export type ClientOptions = TransportOptions;

/**
 * A client of one server.
 *
 * ```ts
 * const client = new Client();                        // WINDLASS_SERVER, WINDLASS_KEY
 * const run = await client.runs.start("greet", { params: { name: "Ada" } });
 * console.log(await run.result({ timeoutMs: 30_000 }));
 * ```
 *
 * Bodies and answers are those of the server, with its field names. A request that fails throws a `WindlassError`.
 */
export class Client {
  readonly flows: Flows;
  readonly runs: Runs;
  readonly jobs: Jobs;
  readonly queues: Queues;
  readonly deadLetters: DeadLetters;
  readonly schedules: Schedules;
  readonly approvals: Approvals;
  readonly accounts: Accounts;
  readonly calls: Calls;
  readonly workers: Workers;
  readonly #transport: Transport;

  constructor(options: ClientOptions | string = {}) {
    const transport = new Transport(typeof options === "string" ? { server: options } : options);
    this.#transport = transport;
    this.flows = new Flows(transport);
    this.runs = new Runs(transport);
    this.jobs = new Jobs(transport);
    this.queues = new Queues(transport);
    this.deadLetters = new DeadLetters(transport);
    this.schedules = new Schedules(transport);
    this.approvals = new Approvals(transport);
    this.accounts = new Accounts(transport);
    this.calls = new Calls(transport);
    this.workers = new Workers(transport);
  }

  /** The address of the server. */
  get server(): string {
    return this.#transport.server;
  }

  /** The address and the key, for the threads of a worker. */
  get connection(): { server: string; key: string } {
    const { server, key } = this.#transport;
    return { server, key };
  }

  /** Sends any request, for routes without a method here; `path` begins with a slash. */
  request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
    return this.#transport.request(method, path, options);
  }
}
