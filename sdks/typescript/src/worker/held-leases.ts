/** The leases of a worker, from the claim until the server has accepted the end, and their extension. */
import type { StopReason } from "../errors.ts";
import type { ExtendVerdict } from "../openapi.ts";
import { BATCH_MAX } from "./result-queue.ts";

interface HeldLease {
  /** Not extended from then on: the server has given the attempt up. */
  deadlineMs: number;
  isCanceled: boolean;
}

export class HeldLeases {
  readonly #leases = new Map<string, HeldLease>();

  get size(): number {
    return this.#leases.size;
  }

  take(lease: string, deadlineMs: number | undefined): void {
    this.#leases.set(lease, { deadlineMs: deadlineMs ?? Infinity, isCanceled: false });
  }

  has(lease: string): boolean {
    return this.#leases.has(lease);
  }

  release(lease: string): void {
    this.#leases.delete(lease);
  }

  /**
   * The leases to extend, in groups of one request. A canceled lease and one past its deadline are not extended: a
   * handler that never returns loses its lease, and the job is free.
   */
  groups(now: number): string[][] {
    const due = [...this.#leases].filter(([, held]) => !held.isCanceled && held.deadlineMs > now).map(([lease]) => lease);
    const groups: string[][] = [];
    for (let at = 0; at < due.length; at += BATCH_MAX) groups.push(due.slice(at, at + BATCH_MAX));
    return groups;
  }

  /** Notes the verdicts of an extension; returns the leases whose handlers should stop. */
  note(verdicts: readonly ExtendVerdict[]): { lease: string; reason: StopReason }[] {
    const stopped: { lease: string; reason: StopReason }[] = [];
    for (const { lease, verdict } of verdicts) {
      const held = this.#leases.get(lease);
      // A lease that ended while the request was on its way; or no verdict, which the next extension asks for again.
      if (held === undefined || verdict === "ok" || verdict === "error") continue;
      if (verdict === "canceled") held.isCanceled = true;
      else this.#leases.delete(lease);
      stopped.push({ lease, reason: verdict });
    }
    return stopped;
  }
}
