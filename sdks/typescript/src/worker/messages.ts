/** The messages between the thread of the handlers and the thread that talks to the server. */
import type { StopReason } from "../errors.ts";
import type { ClaimedJob } from "../openapi.ts";

/** Services and queues that share slots. */
export interface LaneConfig {
  services: string[];
  queues: string[];
  slots: number;
}

/** Everything that the link thread needs to know. */
export interface LinkConfig {
  server: string;
  key: string;
  id: string;
  name?: string;
  /** The address of a push worker. */
  url?: string;
  /** The secret of calls to a push worker. */
  secret?: string;
  lanes: LaneConfig[];
  /** The services and queues in its registration, and the calls that it answers at once. */
  services: string[];
  queues: string[];
  capacity: number;
  leaseMs: number;
  beatMs: number;
}

/** A job of this worker. */
export interface LinkedJob {
  job: ClaimedJob;
  /** The deadline by the clock of this machine, whatever the clock of the server says. */
  deadlineMs?: number;
}

/** The end of a job: `body` is the JSON text of its `JobResult`. */
export interface EndedJob {
  job: string;
  lease: string;
  body: string;
}

export type LogLevel = "info" | "warn" | "error";

export type FromLink =
  | { kind: "jobs"; jobs: LinkedJob[] }
  | { kind: "stop"; lease: string; reason: StopReason }
  | { kind: "log"; level: LogLevel; message: string }
  /** The server drains this worker. */
  | { kind: "draining" }
  /** Every claimed job has ended and every end was accepted. */
  | { kind: "drained" }
  /** Another worker took the id. */
  | { kind: "replaced"; message: string };

export type ToLink =
  | { kind: "ends"; ends: EndedJob[] }
  /** The number of pushed calls in progress. */
  | { kind: "load"; load: number }
  /** Claim no more. */
  | { kind: "drain" };
