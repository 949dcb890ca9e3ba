/** Runs: starting, following and controlling them. */
import { RunFailedError } from "../errors.ts";
import type {
  Cancel, DryRun, JournalEntry, List, ListAttemptsQuery, ListJournalQuery, ListLogsQuery, ListRunsQuery, LogLine,
  NodeAttemptInfo, RerunRequest, RunDetail, RunRequest, RunSummary, Signal, StartResponse, Why,
} from "../openapi.ts";
import { follow } from "../pages.ts";
import { readEvents } from "../server-events.ts";
import type { Transport } from "../transport.ts";
import { waitUntil, type WaitOptions } from "../waiting.ts";

const ENDED = new Set(["completed", "failed", "canceled"]);

type NodeResult = { node: string; result?: unknown };

/** One run. */
export class RunHandle {
  readonly id: string;
  /** False if an earlier request with the same `request_id` started the run. */
  readonly isCreated: boolean;
  readonly #runs: Runs;

  constructor(runs: Runs, id: string, isCreated = false) {
    this.#runs = runs;
    this.id = id;
    this.isCreated = isCreated;
  }

  get(): Promise<RunDetail> {
    return this.#runs.get(this.id);
  }

  /** Waits until the run has completed, failed or was canceled. */
  wait(options: WaitOptions = {}): Promise<RunDetail> {
    return this.#runs.wait(this.id, options);
  }

  /** Waits for the end and returns the result; `RunFailedError` if the run failed or was canceled. */
  async result(options: WaitOptions = {}): Promise<unknown> {
    const run = await this.wait(options);
    if (run.status !== "completed") throw new RunFailedError(run);
    return run.result;
  }

  /** The entries of the journal as they come, until the run has ended. */
  follow(options: FollowOptions = {}): AsyncGenerator<JournalEntry, void, undefined> {
    return this.#runs.follow(this.id, options);
  }

  signal(key: string, value: unknown, options: Omit<Signal, "key" | "value"> = {}): Promise<RunSummary> {
    return this.#runs.signal(this.id, { key, value, ...options });
  }

  cancel(options: Cancel = {}): Promise<RunSummary> {
    return this.#runs.cancel(this.id, options);
  }

  why(): Promise<Why> {
    return this.#runs.why(this.id);
  }
}

export interface FollowOptions {
  /** Only entries after this one. */
  after?: number;
  signal?: AbortSignal;
}

export class Runs {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Starts a run of a flow. With a `request_id` the request is repeated if it gets no answer, and starts one run. */
  async start(flow: string, run: RunRequest = {}): Promise<RunHandle> {
    const started = await this.startAndWait(flow, run, 0);
    return new RunHandle(this, started.id, started.created);
  }

  /** Starts a run and waits up to a minute for its end; `run` of the answer is the run as it is then. */
  startAndWait(flow: string, run: RunRequest, waitMs: number): Promise<StartResponse> {
    return this.#transport.call("POST /api/v1/flows/{flow}/runs", {
      path: { flow }, body: run, query: waitMs > 0 ? { wait_ms: waitMs } : {}, waitMs,
      isRepeatable: Boolean(run.request_id),
    });
  }

  /** The handle of a run by its id. */
  handle(id: string): RunHandle {
    return new RunHandle(this, id);
  }

  get(id: string): Promise<RunDetail> {
    return this.#transport.call("GET /api/v1/runs/{id}", { path: { id } });
  }

  /** A page of runs, newest first; `query` takes the language of the console, such as `status:failed flow:pay`. */
  list(query: ListRunsQuery = {}): Promise<List<RunSummary>> {
    return this.#transport.call("GET /api/v1/runs", { query });
  }

  /** All runs, page after page. */
  all(query: ListRunsQuery = {}): AsyncGenerator<RunSummary, void, undefined> {
    return follow((cursor) => this.list({ limit: 1_000, ...query, cursor }));
  }

  /** Waits until a run has completed, failed or was canceled. */
  wait(id: string, options: WaitOptions = {}): Promise<RunDetail> {
    return waitUntil(id, () => this.get(id), (run) => ENDED.has(run.status), options);
  }

  /** The entries of a run's journal as they come, until it has ended. A lost connection is made again. */
  async *follow(id: string, options: FollowOptions = {}): AsyncGenerator<JournalEntry, void, undefined> {
    const path = `/api/v1/runs/${encodeURIComponent(id)}/events`;
    const last = options.after === undefined ? undefined : String(options.after);
    for await (const event of readEvents(this.#transport, path, last, options.signal)) {
      if (event.name === "end") return;
      if (event.name === "entry") yield JSON.parse(event.data) as JournalEntry;
    }
  }

  attempts(id: string, query: ListAttemptsQuery = {}): Promise<List<NodeAttemptInfo>> {
    return this.#transport.call("GET /api/v1/runs/{id}/attempts", { path: { id }, query });
  }

  journal(id: string, query: ListJournalQuery = {}): Promise<List<JournalEntry>> {
    return this.#transport.call("GET /api/v1/runs/{id}/journal", { path: { id }, query });
  }

  /** The log of a run with the lines of its workers, oldest first. */
  logs(id: string, query: ListLogsQuery = {}): Promise<List<LogLine>> {
    return this.#transport.call("GET /api/v1/runs/{id}/logs", { path: { id }, query });
  }

  /** The reasons why a run waits, each with the command that ends it. */
  why(id: string): Promise<Why> {
    return this.#transport.call("GET /api/v1/runs/{id}/why", { path: { id } });
  }

  /** Sends a value into a run; with an `id`, a repetition is a no-op. */
  signal(id: string, signal: Signal): Promise<RunSummary> {
    const request = { path: { id }, body: signal, isRepeatable: Boolean(signal.id) };
    return this.#transport.call("POST /api/v1/runs/{id}/signal", request);
  }

  cancel(id: string, cancel: Cancel = {}): Promise<RunSummary> {
    return this.#transport.call("POST /api/v1/runs/{id}/cancel", { path: { id }, body: cancel, isRepeatable: true });
  }

  /** Lets a run enter no further node. */
  pause(id: string): Promise<RunSummary> {
    return this.#transport.call("POST /api/v1/runs/{id}/pause", { path: { id }, body: {} });
  }

  resume(id: string): Promise<RunSummary> {
    return this.#transport.call("POST /api/v1/runs/{id}/resume", { path: { id }, body: {} });
  }

  /** Enters one more node of a paused or manual run. */
  step(id: string): Promise<RunSummary> {
    return this.#transport.call("POST /api/v1/runs/{id}/step", { path: { id }, body: {} });
  }

  /** Repeats the failed and canceled nodes of an ended run. */
  async retry(id: string): Promise<RunSummary> {
    return (await this.#transport.call("POST /api/v1/runs/{id}/retry", { path: { id }, body: {} })) as RunSummary;
  }

  /** The effects of a retry, without changing the run. */
  async dryRunRetry(id: string): Promise<DryRun> {
    const request = { path: { id }, body: {}, query: { dry_run: true }, isRepeatable: true };
    return (await this.#transport.call("POST /api/v1/runs/{id}/retry", request)) as DryRun;
  }

  /** Runs again from a node, with the current or the given shared state. */
  async rerun(id: string, rerun: RerunRequest): Promise<RunSummary> {
    return (await this.#transport.call("POST /api/v1/runs/{id}/rerun", { path: { id }, body: rerun })) as RunSummary;
  }

  /** The effects of a rerun, without changing the run. */
  async dryRunRerun(id: string, rerun: RerunRequest): Promise<DryRun> {
    const request = { path: { id }, body: rerun, query: { dry_run: true }, isRepeatable: true };
    return (await this.#transport.call("POST /api/v1/runs/{id}/rerun", request)) as DryRun;
  }

  /** Ends a suspended or waiting node with a result. */
  continueNode(id: string, { node, result }: NodeResult): Promise<RunSummary> {
    return this.#transport.call("POST /api/v1/runs/{id}/continue", { path: { id }, body: { node, result: result ?? null } });
  }
}
