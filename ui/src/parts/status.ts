// Statuses of runs, nodes, jobs, workers and versions: their colour family and their icon.
import type { IconName } from "./Icon";

export type Family = "ok" | "run" | "wait" | "retry" | "fail" | "idle" | "dead";

export interface StatusLook {
  family: Family;
  icon: IconName;
  /** A dashed outline: it did not happen. */
  dashed?: boolean;
}

const LOOKS: Record<string, StatusLook> = {
  pending: { family: "idle", icon: "pending" },
  queued: { family: "idle", icon: "queued" },
  running: { family: "run", icon: "running" },
  waiting: { family: "wait", icon: "waiting" },
  suspended: { family: "wait", icon: "suspended" },
  parked: { family: "wait", icon: "accounts" },
  paused: { family: "wait", icon: "paused" },
  retrying: { family: "retry", icon: "retry" },
  canceling: { family: "idle", icon: "canceling" },
  completed: { family: "ok", icon: "check" },
  succeeded: { family: "ok", icon: "check" },
  done: { family: "ok", icon: "check" },
  ok: { family: "ok", icon: "check" },
  failed: { family: "fail", icon: "x" },
  error: { family: "fail", icon: "x" },
  timeout: { family: "fail", icon: "clock" },
  lost: { family: "fail", icon: "x" },
  canceled: { family: "idle", icon: "canceled" },
  skipped: { family: "idle", icon: "skipped", dashed: true },
  dead: { family: "dead", icon: "dead" },
  online: { family: "ok", icon: "check" },
  stale: { family: "retry", icon: "warn" },
  draining: { family: "retry", icon: "download" },
  offline: { family: "fail", icon: "x" },
  draft: { family: "idle", icon: "edit", dashed: true },
  published: { family: "ok", icon: "check" },
  archived: { family: "idle", icon: "letters" },
  deprecated: { family: "idle", icon: "letters" },
  enabled: { family: "ok", icon: "check" },
  disabled: { family: "wait", icon: "paused" },
};

const UNKNOWN: StatusLook = { family: "idle", icon: "unknown" };

/** The look of a status; an unknown one is a grey question mark. */
export function lookOf(status: string): StatusLook {
  return Object.hasOwn(LOOKS, status) ? (LOOKS[status] ?? UNKNOWN) : UNKNOWN;
}

const ENDED = new Set(["completed", "failed", "canceled"]);

/** Whether a run of this status has ended. */
export function isEnded(status: string): boolean {
  return ENDED.has(status);
}
