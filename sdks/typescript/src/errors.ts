/** Errors of requests, and errors that handlers throw. */
import type { FieldError, JobDetail, RunDetail } from "./openapi.ts";

/** No server answered at this address. */
export const UNREACHABLE = "unreachable";
/** No answer came in time; whether the server did the work is unknown. */
export const TIMED_OUT = "timed_out";
/** The connection broke before the whole answer came; whether the server did the work is unknown. */
export const INTERRUPTED = "interrupted";
/** The answer cannot be read. */
export const UNREADABLE = "unreadable_answer";
/** The request cannot be sent. */
export const UNSENDABLE = "unsendable_request";

/** Characters of an answer that is no problem document that are shown. */
const SHOWN_CHARS = 200;

/** The parts of an error of a request. */
export interface ErrorFields {
  code: string;
  detail: string;
  status?: number;
  errors?: FieldError[];
  retryAfterMs?: number;
  cause?: unknown;
}

/**
 * A request that failed. `code` is one word that never changes: the server's own (`/docs/errors` explains each), or
 * `unreachable`, `timed_out`, `interrupted`, `unreadable_answer` or `unsendable_request` when no server answered.
 */
export class WindlassError extends Error {
  readonly code: string;
  /** The HTTP status; absent if no answer came. */
  readonly status: number | undefined;
  /** The explanation, for people. */
  readonly detail: string;
  /** Each wrong field, with its path, the reason and, where the server knows it, the remedy. */
  readonly errors: readonly FieldError[];
  /** How long the server asked to wait before the next try. */
  readonly retryAfterMs: number | undefined;

  constructor(fields: ErrorFields) {
    super(messageOf(fields), fields.cause === undefined ? undefined : { cause: fields.cause });
    this.name = new.target.name;
    this.code = fields.code;
    this.status = fields.status;
    this.detail = fields.detail;
    this.errors = fields.errors ?? [];
    this.retryAfterMs = fields.retryAfterMs;
  }

  /** Whether the same request may succeed later. */
  get isTemporary(): boolean {
    if (this.status === undefined) return [UNREACHABLE, TIMED_OUT, INTERRUPTED].includes(this.code);
    return this.status === 408 || this.status === 425 || this.status === 429 || this.status >= 500;
  }
}

/** The request is wrong: its body, its path or its query (400, 405, 413, 415, 421, 422). */
export class InvalidRequestError extends WindlassError {}
/** The key is missing or does not permit the request (401, 403). */
export class AccessError extends WindlassError {}
/** There is no such flow, run, job, call or route (404). */
export class NotFoundError extends WindlassError {}
/** The state at the server forbids the request (409). */
export class ConflictError extends WindlassError {}
/** The server asks to come back later (408, 425, 429, 503). */
export class BusyError extends WindlassError {}
/** The server failed (other 5xx). */
export class ServerError extends WindlassError {}
/** No answer came: nothing listens, the connection broke, or the time is over. */
export class UnreachableError extends WindlassError {}

function messageOf({ code, detail, errors }: ErrorFields): string {
  let text = detail;
  for (const { path, reason, hint } of errors ?? []) {
    // The detail of a single error is that error.
    if (!detail.includes(reason)) text += `; ${path}: ${reason}`;
    if (hint) text += ` (${hint})`;
  }
  return `${text} [${code}]`;
}

/** The class of an error by its status. */
function classOf(status: number): typeof WindlassError {
  if (status === 401 || status === 403) return AccessError;
  if (status === 404) return NotFoundError;
  if (status === 409) return ConflictError;
  if ([408, 425, 429, 503].includes(status)) return BusyError;
  return status >= 500 ? ServerError : InvalidRequestError;
}

/** The code of an answer without one. */
function codeOf(status: number): string {
  const codes: Record<number, string> = {
    400: "bad_request", 401: "unauthorized", 403: "forbidden", 404: "not_found", 405: "method_not_allowed",
    409: "conflict", 413: "too_large", 422: "invalid", 429: "busy", 503: "unavailable",
  };
  return codes[status] ?? (status >= 500 ? "server_error" : "refused");
}

/** The error of an answer: problem+json, `{"error": …}`, or the text of a proxy in between. */
export function errorOfAnswer(status: number, text: string, retryAfterMs?: number): WindlassError {
  let problem: { code?: string; detail?: string; title?: string; error?: unknown; errors?: FieldError[] } = {};
  let shown = text.trim().slice(0, SHOWN_CHARS);
  try {
    const parsed: unknown = JSON.parse(text);
    if (parsed !== null && typeof parsed === "object" && !Array.isArray(parsed)) {
      problem = parsed;
      shown = "";
    }
  } catch {
    // Another program answered; its text is shown as it is.
  }
  const plain = typeof problem.error === "string" ? problem.error : undefined;
  const detail = problem.detail ?? plain ?? problem.title ?? `the server answered ${status}${shown && `: ${shown}`}`;
  const kind = classOf(status);
  return new kind({
    code: problem.code ?? codeOf(status), detail, status,
    errors: Array.isArray(problem.errors) ? problem.errors : [],
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
  });
}

/** The time of a wait is over, and the job or run is still open. */
export class WaitTimeoutError extends Error {
  constructor(readonly subject: string, timeoutMs: number) {
    super(`${subject} has not ended within ${timeoutMs} ms: wait longer, or ask for its reasons with runs.why or jobs.get`);
    this.name = "WaitTimeoutError";
  }
}

/** A job that ended without a result. */
export class JobFailedError extends Error {
  constructor(readonly job: JobDetail) {
    super(`${job.id} is ${job.status}${job.error ? `: ${job.error.message}` : ""}`);
    this.name = "JobFailedError";
  }
}

/** A run that ended without a result. */
export class RunFailedError extends Error {
  constructor(readonly run: RunDetail) {
    super(`${run.id} is ${run.status}${run.error ? `: ${run.error.message}` : ""}`);
    this.name = "RunFailedError";
  }
}

/** Thrown by a handler: no retry can help. The job becomes a dead letter, or its node fails. */
export class Fatal extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "Fatal";
  }
}

/** Thrown by a handler: a network error, a time-out or a busy service, which may be over a moment later. */
export class Temporary extends Error {
  /** The next attempt starts no earlier. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, options: ErrorOptions & { retryAfterMs?: number } = {}) {
    super(message, options);
    this.name = "Temporary";
    this.retryAfterMs = options.retryAfterMs;
  }
}

/** The input or the result of a handler does not fit its schema; `issues` name the places. */
export class SchemaError extends Fatal {
  constructor(problem: string, readonly issues: readonly { path: string; message: string }[]) {
    super(`${problem}: ${issues.map(({ path, message }) => `${path}: ${message}`).join("; ")}`);
    this.name = "SchemaError";
  }
}

/** Why a call should stop: `canceled` by a client, past its `deadline`, `lost` to another worker, or `stopping`. */
export type StopReason = "canceled" | "deadline" | "lost" | "stopping";

const STOP_TEXTS: Record<StopReason, string> = {
  canceled: "the call was canceled",
  deadline: "the time of the call is over",
  lost: "another worker has the job",
  stopping: "the worker stops",
};

/** The reason of `call.signal` when a handler should stop; `call.check()` throws it. */
export class CallStopped extends Error {
  constructor(readonly reason: StopReason) {
    super(STOP_TEXTS[reason]);
    this.name = "CallStopped";
  }
}
