/** A lane: services and queues that share slots, with one claim at a time. */
import type { ClaimRequest } from "../openapi.ts";
import { Backoff } from "./backoff.ts";
import type { LaneConfig } from "./messages.ts";
import { BATCH_MAX } from "./result-queue.ts";

/** How long one claim waits for work: short enough that a server that went away is noticed. */
const WAIT_MS = 20_000;

export class Lane {
  /** A claim is on its way. */
  isClaiming = false;
  /** The last claim failed, and its pause is not over. */
  isPaused = false;
  readonly backoff: Backoff = new Backoff();
  #nTaken = 0;

  constructor(readonly config: LaneConfig) {}

  get nFree(): number {
    return Math.max(0, this.config.slots - this.#nTaken);
  }

  get nTaken(): number {
    return this.#nTaken;
  }

  take(): void {
    this.#nTaken += 1;
  }

  free(): void {
    this.#nTaken -= 1;
  }

  /** The next claim. One that carries ends of jobs does not wait, so that these are answered at once. */
  claim(workerId: string, leaseMs: number, withEnds: boolean): ClaimRequest {
    const { services, queues } = this.config;
    return {
      worker_id: workerId, services, queues, max: Math.min(this.nFree, BATCH_MAX), lease_ms: leaseMs,
      wait_ms: withEnds ? 0 : WAIT_MS,
    };
  }
}
