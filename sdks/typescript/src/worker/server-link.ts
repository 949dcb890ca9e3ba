/**
 * The link of a worker to its server: it claims jobs, extends their leases, hands their ends in, and sends heartbeats.
 * It runs in a thread of its own, so that a handler that blocks the event loop keeps its leases. It never gives up: a
 * server that is away is asked again, with growing pauses.
 */
import { WindlassError, UNSENDABLE } from "../errors.ts";
import type { ClaimResponse, FinishVerdict } from "../openapi.ts";
import { Transport } from "../transport.ts";
import { pause } from "../waiting.ts";
import { Backoff } from "./backoff.ts";
import { exchange, type ExchangeAnswer } from "./exchange.ts";
import { Heartbeat } from "./heartbeat.ts";
import { HeldLeases } from "./held-leases.ts";
import { Lane } from "./lane.ts";
import type { EndedJob, FromLink, LinkConfig, LinkedJob, LogLevel } from "./messages.ts";
import { ResultQueue } from "./result-queue.ts";

/** Requests with ends of jobs at once. */
const SENDING_MAX = 2;
/** How long the answer to a claim may be on its way when the worker is told to stop. */
const ON_ITS_WAY_MS = 200;
/** The time that an extension has at least. */
const EXTEND_MS_MIN = 1_000;

export class ServerLink {
  readonly #transport: Transport;
  readonly #lanes: Lane[];
  readonly #held = new HeldLeases();
  readonly #results = new ResultQueue();
  /** Jobs at the handlers, with their lanes. */
  readonly #open = new Map<string, Lane>();
  readonly #sendBackoff = new Backoff();
  readonly #claims = new AbortController();
  readonly #closed = new AbortController();
  #isSendingPaused = false;
  #nSending = 0;
  #pushLoad = 0;
  #isDraining = false;
  #isDrained = false;
  #isPumping = false;

  constructor(private readonly config: LinkConfig, private readonly tell: (message: FromLink) => void) {
    this.#transport = new Transport({ server: config.server, key: config.key });
    this.#lanes = config.lanes.map((lane) => new Lane(lane));
  }

  /** Starts to claim, to extend and to send heartbeats. */
  start(): void {
    const load = () => this.#open.size + this.#pushLoad;
    const heartbeat = new Heartbeat(this.#transport, this.config, this.tell, load, () => this.#serverDrains());
    void heartbeat.run(this.#closed.signal);
    void this.#keepLeases();
    this.#pump();
  }

  /** Takes the ends of jobs; their slots are free. */
  end(ends: readonly EndedJob[]): void {
    for (const end of ends) {
      this.#open.get(end.lease)?.free();
      this.#open.delete(end.lease);
      if (this.#held.has(end.lease)) this.#results.push(end);
    }
    this.#pump();
  }

  /** Notes how many pushed calls are in progress. */
  setLoad(load: number): void {
    this.#pushLoad = load;
  }

  /** Claims no more; `drained` follows when every end was accepted. */
  drain(): void {
    if (this.#isDraining) return;
    this.#isDraining = true;
    setTimeout(() => {
      this.#claims.abort();
      this.#pump();
    }, ON_ITS_WAY_MS);
  }

  /** Ends everything at once. */
  close(): void {
    this.#claims.abort();
    this.#closed.abort();
  }

  #serverDrains(): void {
    if (this.#isDraining) return;
    this.#log("info", "the server drains this worker: it claims no more");
    this.tell({ kind: "draining" });
    this.drain();
  }

  /** Looks for something to do, after the events of this turn of the loop. */
  #pump(): void {
    if (this.#isPumping || this.#closed.signal.aborted) return;
    this.#isPumping = true;
    setImmediate(() => {
      this.#isPumping = false;
      this.#sendAndClaim();
    });
  }

  #sendAndClaim(): void {
    for (const lane of this.#lanes) {
      const isReady = !this.#isDraining && !lane.isClaiming && !lane.isPaused && lane.nFree > 0;
      if (isReady) void this.#turn(lane, this.#takeEnds());
    }
    for (let ends = this.#takeEnds(); ends.length > 0; ends = this.#takeEnds()) void this.#turn(undefined, ends);
    this.#tellDrained();
  }

  #takeEnds(): EndedJob[] {
    if (this.#nSending >= SENDING_MAX || this.#isSendingPaused) return [];
    // Lost leases belong to other workers now.
    return this.#results.take((end) => this.#held.has(end.lease));
  }

  /** One exchange: ends of jobs, a claim, or both. */
  async #turn(lane: Lane | undefined, ends: EndedJob[]): Promise<void> {
    const { id, leaseMs } = this.config;
    if (ends.length > 0) this.#nSending += 1;
    if (lane) lane.isClaiming = true;
    const claim = lane?.claim(id, leaseMs, ends.length > 0);
    const answer = await exchange(this.#transport, ends.map((end) => end.body), claim, this.#claims.signal);
    if (ends.length > 0) {
      this.#nSending -= 1;
      this.#noteFinished(ends, answer.finished);
    }
    if (lane) {
      lane.isClaiming = false;
      this.#noteClaimed(lane, answer.claimed);
    }
    this.#pump();
  }

  #noteFinished(ends: EndedJob[], finished: ExchangeAnswer["finished"]): void {
    if (finished?.status === "fulfilled") return this.#noteVerdicts(ends, finished.value);
    const error: unknown = finished?.reason;
    if (isAboutTheBatch(error)) {
      const why = (error as Error).message;
      for (const end of this.#results.refused(ends, why)) {
        this.#log("error", `the end of ${end.job} is not accepted, it comes back: ${why}`);
        this.#held.release(end.lease);
      }
      return;
    }
    this.#log("warn", `ends of jobs were not accepted, will try again: ${textOf(error)}`);
    this.#sendAgain(ends, error);
  }

  #noteVerdicts(ends: EndedJob[], verdicts: FinishVerdict[]): void {
    const again: EndedJob[] = [];
    let nLost = 0;
    for (const [n, end] of ends.entries()) {
      const verdict = verdicts[n]?.verdict;
      if (verdict === "error") {
        again.push(end);
        continue;
      }
      if (verdict === "lost") nLost += 1;
      this.#held.release(end.lease);
    }
    if (nLost > 0) this.#log("warn", `${nLost} ends came too late: other workers have their jobs`);
    if (again.length > 0) return this.#sendAgain(again, undefined);
    this.#results.accepted();
    this.#sendBackoff.reset();
  }

  #sendAgain(ends: EndedJob[], error: unknown): void {
    this.#results.putBack(ends);
    this.#isSendingPaused = true;
    setTimeout(() => {
      this.#isSendingPaused = false;
      this.#pump();
    }, this.#sendBackoff.next(error));
  }

  #noteClaimed(lane: Lane, claimed: ExchangeAnswer["claimed"]): void {
    if (claimed?.status === "fulfilled") {
      lane.backoff.reset();
      this.#take(lane, claimed.value);
      if (claimed.value.draining) this.#serverDrains();
      return;
    }
    if (this.#isDraining) return;
    this.#log("warn", `no jobs could be claimed, will try again: ${textOf(claimed?.reason)}`);
    lane.isPaused = true;
    setTimeout(() => {
      lane.isPaused = false;
      this.#pump();
    }, lane.backoff.next(claimed?.reason));
  }

  #take(lane: Lane, { jobs }: ClaimResponse): void {
    if (jobs.length === 0) return;
    const linked = jobs.map((job): LinkedJob => {
      const deadlineMs = this.#localDeadline(job.deadline, job.lease_until);
      this.#held.take(job.lease, deadlineMs);
      this.#open.set(job.lease, lane);
      lane.take();
      return { job, ...(deadlineMs === undefined ? {} : { deadlineMs }) };
    });
    this.tell({ kind: "jobs", jobs: linked });
  }

  /** The end of a fresh lease tells the server's time, so a clock of this machine that is wrong does no harm. */
  #localDeadline(deadline: string | null | undefined, leaseUntil: string): number | undefined {
    if (!deadline) return undefined;
    const serverNow = Date.parse(leaseUntil) - this.config.leaseMs;
    return Date.now() + Date.parse(deadline) - serverNow;
  }

  /** Extends all leases at a third of their length; after a failure it tries again soon. */
  async #keepLeases(): Promise<void> {
    const backoff = new Backoff();
    const every = this.config.leaseMs / 3;
    while (!this.#closed.signal.aborted) {
      let delay = every;
      try {
        for (const leases of this.#held.groups(Date.now())) await this.#extend(leases);
        backoff.reset();
      } catch (error) {
        delay = Math.min(every, backoff.next(error));
        this.#log("warn", `leases could not be extended, will try again: ${textOf(error)}`);
      }
      await pause(delay, this.#closed.signal);
    }
  }

  async #extend(leases: string[]): Promise<void> {
    const body = { leases, lease_ms: this.config.leaseMs };
    // A server that hangs is asked again before the leases end.
    const limitMs = Math.max(this.config.leaseMs / 2, EXTEND_MS_MIN);
    const request = { body, limitMs, signal: this.#closed.signal };
    const { results } = await this.#transport.call("POST /api/v1/jobs/extend", request);
    for (const { lease, reason } of this.#held.note(results)) this.tell({ kind: "stop", lease, reason });
  }

  #tellDrained(): void {
    const isDone = this.#isDraining && this.#open.size === 0 && this.#results.size === 0 && this.#nSending === 0
      && !this.#lanes.some((lane) => lane.isClaiming);
    if (!isDone || this.#isDrained) return;
    this.#isDrained = true;
    this.tell({ kind: "drained" });
  }

  #log(level: LogLevel, message: string): void {
    this.tell({ kind: "log", level, message });
  }
}

/** Whether sending less may help. Anything else tells of the server, or of the way to it. */
function isAboutTheBatch(error: unknown): boolean {
  if (!(error instanceof WindlassError)) return false;
  return [400, 413, 422].includes(error.status ?? 0) || error.code === UNSENDABLE;
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
