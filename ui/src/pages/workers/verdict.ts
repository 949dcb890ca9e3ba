// Demand against supply of a service: the answer to "why is nothing moving?".
import type { ServiceLoad } from "../../api/console";
import type { Family } from "../../parts/status";
import type { IconName } from "../../parts/Icon";

export type Verdict = "no_worker" | "short" | "keeps_up" | "idle" | "none";

/** The verdict of a service. A capacity of 0 with live workers is no limit. */
export function verdictOf({ queued, running, n_workers, capacity }: ServiceLoad): Verdict {
  if (n_workers === 0) return queued > 0 ? "no_worker" : "none";
  if (queued === 0) return running === 0 ? "idle" : "keeps_up";
  return capacity > 0 && running >= capacity ? "short" : "keeps_up";
}

export const VERDICTS: Record<Verdict, { family: Family; icon: IconName }> = {
  no_worker: { family: "fail", icon: "x" },
  short: { family: "retry", icon: "warn" },
  keeps_up: { family: "ok", icon: "check" },
  idle: { family: "idle", icon: "minus" },
  none: { family: "idle", icon: "minus" },
};

/** The length of a bar for a demand, 0 to 1: logarithmic, because queues differ by orders of magnitude. */
export function demandShare(queued: number, most: number): number {
  return queued <= 0 || most <= 0 ? 0 : Math.max(0.03, Math.log1p(queued) / Math.log1p(most));
}

const RANK: Verdict[] = ["no_worker", "short", "keeps_up", "idle", "none"];

/** Trouble first, then by name. Within a rank the order does not follow the counts: rows would jump. */
export function byTrouble(services: ServiceLoad[]): ServiceLoad[] {
  const rank = (service: ServiceLoad) => Math.min(RANK.indexOf(verdictOf(service)), 2);
  return [...services].sort((a, b) => rank(a) - rank(b) || a.name.localeCompare(b.name));
}
