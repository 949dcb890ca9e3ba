/** The call that a handler answers: its key, its run, its time, its log, and the signal that ends it. */
import { CallStopped, type StopReason } from "./errors.ts";

/** Log lines kept per call: as many as a server accepts, and one more, so that the server notes the cut. */
const LINES_MAX = 1_000;
/** The longest delay that a timer of Node takes. */
const TIMER_MS_MAX = 2 ** 31 - 1;

export interface LogEntry {
  level: "info" | "warn" | "error";
  message: string;
  data?: unknown;
}

/** The log of one call. Its lines are sent with the end of the call; `windlass run logs` shows them. */
export class CallLog {
  /** The lines so far. */
  readonly lines: LogEntry[] = [];

  info(message: string, data?: unknown): void {
    this.#add("info", message, data);
  }

  warn(message: string, data?: unknown): void {
    this.#add("warn", message, data);
  }

  error(message: string, data?: unknown): void {
    this.#add("error", message, data);
  }

  #add(level: LogEntry["level"], message: string, data: unknown): void {
    if (this.lines.length > LINES_MAX) return;
    this.lines.push({ level, message: String(message), ...(data === undefined ? {} : { data }) });
  }
}

/** The end of a handler that is not finished: the server calls again with the memo, or a report ends the call. */
export class Suspended {
  constructor(readonly memo: unknown, readonly recheckMs: number | undefined) {}
}

/** The fields of a call as a worker receives them. */
export interface CallFields {
  service: string;
  key: string;
  attempt: number;
  input?: unknown;
  params?: Record<string, unknown>;
  memo?: unknown;
  job?: string;
  queue?: string;
  priority?: number;
  /** The id for a report. */
  call?: string;
  run?: string;
  node?: string;
  /** The end of the attempt in milliseconds, by the clock of this machine. */
  deadlineMs?: number;
  /** The labels of the run, where they are known. */
  labels?: Record<string, string>;
}

/** Reads the labels of a run from the server. */
export type LabelReader = (run: string) => Promise<Record<string, string>>;

/** One call of a service. */
export class Call<Memo = any> {
  /** The idempotency key, the same for every attempt: give it to providers, so that they act once. */
  readonly key: string;
  /** From 1. */
  readonly attempt: number;
  readonly service: string;
  /** The job that carries the call; absent for a pushed call. */
  readonly job: string | undefined;
  readonly queue: string | undefined;
  readonly priority: number;
  /** The id for `client.calls.report`; a plain job has none. */
  readonly id: string | undefined;
  readonly run: string | undefined;
  readonly node: string | undefined;
  /** The params of the node and the run together. */
  readonly params: Readonly<Record<string, unknown>>;
  /** The value that the handler left when it suspended the call. */
  readonly memo: Memo | undefined;
  readonly log: CallLog = new CallLog();
  readonly #deadlineMs: number | undefined;
  readonly #readLabels: LabelReader | undefined;
  #labels: Promise<Record<string, string>> | undefined;
  #controller: AbortController | undefined;
  #timer: NodeJS.Timeout | undefined;
  #stopped: CallStopped | undefined;

  constructor(fields: CallFields, readLabels?: LabelReader) {
    this.key = fields.key;
    this.attempt = fields.attempt;
    this.service = fields.service;
    this.job = fields.job;
    this.queue = fields.queue;
    this.priority = fields.priority ?? 0;
    this.id = fields.call;
    this.run = fields.run;
    this.node = fields.node;
    this.params = fields.params ?? {};
    this.#labels = fields.labels && Promise.resolve(fields.labels);
    this.#readLabels = readLabels;
    this.memo = (fields.memo ?? undefined) as Memo | undefined;
    this.#deadlineMs = fields.deadlineMs;
  }

  /** The labels of the run, read from the server at the first use; none for a job without a run. */
  labels(): Promise<Readonly<Record<string, string>>> {
    if (this.#labels === undefined) {
      const { run } = this;
      const isKnown = run === undefined || this.#readLabels === undefined;
      this.#labels = isKnown ? Promise.resolve({}) : this.#readLabels(run);
    }
    return this.#labels;
  }

  /** An answer after this moment is too late. */
  get deadline(): Date | undefined {
    return this.#deadlineMs === undefined ? undefined : new Date(this.#deadlineMs);
  }

  /** Milliseconds until the deadline, at least 0; undefined without a deadline. */
  get remaining(): number | undefined {
    return this.#deadlineMs === undefined ? undefined : Math.max(0, this.#deadlineMs - Date.now());
  }

  /** Aborted when the answer is no longer needed: the call was canceled, its time is over, another worker has it. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      const remaining = this.remaining;
      if (this.#stopped) this.#controller.abort(this.#stopped);
      else if (remaining !== undefined && remaining <= TIMER_MS_MAX) {
        this.#timer = setTimeout(() => this.stop("deadline"), remaining);
        this.#timer.unref();
      }
    }
    return this.#controller.signal;
  }

  /** Whether the handler should stop. */
  get canceled(): boolean {
    return this.stopped !== undefined;
  }

  /** Throws if the handler should stop: call it between the steps of long work. */
  check(): void {
    if (this.stopped) throw this.stopped;
  }

  /** The reason to stop, if there is one. */
  get stopped(): CallStopped | undefined {
    if (this.#stopped === undefined && this.remaining === 0) this.stop("deadline");
    return this.#stopped;
  }

  /**
   * `return call.suspend(memo)` ends the attempt without an end of the call. The server calls again after `recheckMs`
   * with the memo; without it, the setting of the node or service decides, or a report to `call.id` ends the call.
   */
  suspend(memo?: unknown, options: { recheckMs?: number } = {}): Suspended {
    return new Suspended(memo ?? null, options.recheckMs);
  }

  /** Tells the handler to stop; only the first reason counts. The worker calls it. */
  stop(reason: StopReason): void {
    if (this.#stopped) return;
    this.#stopped = new CallStopped(reason);
    clearTimeout(this.#timer);
    this.#controller?.abort(this.#stopped);
  }

  /** Ends the timer of the deadline. The worker calls it when the handler has ended. */
  close(): void {
    clearTimeout(this.#timer);
  }
}
