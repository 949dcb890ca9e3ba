/** The end of a handler in the words of the protocol. */
import { type Call, Suspended } from "./call.ts";
import { CallStopped, Fatal, Temporary } from "./errors.ts";

/** Characters of the text of an error that are sent. */
const ERROR_CHARS_MAX = 8_000;

/** The end of one attempt: the fields of a `finish`, without the job. */
export interface Outcome {
  outcome: "done" | "suspended" | "failed";
  result?: unknown;
  memo?: unknown;
  recheck_ms?: number;
  error?: string;
  retryable?: boolean;
  temporary?: boolean;
  retry_after_ms?: number;
  logs?: unknown[];
}

/** Runs a handler and makes an outcome of its value or its error. */
export async function outcomeOf(call: Call, handler: () => unknown): Promise<Outcome> {
  let outcome: Outcome;
  try {
    const value = await handler();
    outcome = value instanceof Suspended || isSuspended(value)
      ? { outcome: "suspended", memo: value.memo, ...(value.recheckMs === undefined ? {} : { recheck_ms: value.recheckMs }) }
      : { outcome: "done", result: value ?? null };
  } catch (error) {
    outcome = failureOf(error);
  }
  call.close();
  return call.log.lines.length === 0 ? outcome : { ...outcome, logs: call.log.lines };
}

/** A program that loads the package as ESM and as CommonJS has two classes of each name. */
function isSuspended(value: unknown): value is Suspended {
  return value !== null && typeof value === "object" && value.constructor?.name === "Suspended" && "recheckMs" in value;
}

function isNamed<E extends Error>(error: unknown, kind: new (...args: never[]) => E): error is E {
  return error instanceof kind || (error instanceof Error && error.name === kind.name);
}

/** The failure of an error, whatever the handler threw. */
export function failureOf(error: unknown): Outcome {
  if (isNamed(error, Temporary)) {
    const after = error.retryAfterMs;
    return { ...failed(error.message), temporary: true, ...(after === undefined ? {} : { retry_after_ms: after }) };
  }
  if (error instanceof Fatal || isNamed(error, Fatal) || (error instanceof Error && error.name === "SchemaError")) {
    return { ...failed(error.message), retryable: false };
  }
  if (isNamed(error, CallStopped)) return failed(error.message);
  return failed(textOf(error));
}

function failed(message: string): Outcome {
  // An empty error would read as success.
  return { outcome: "failed", error: message.slice(0, ERROR_CHARS_MAX) || "the handler failed without a message" };
}

/** The name and the message of an error with its causes; any other value as text. */
function textOf(error: unknown): string {
  try {
    if (!(error instanceof Error)) return `the handler threw ${typeof error === "string" ? error : inspect(error)}`;
    const name = error.name === "Error" ? "" : `${error.name}: `;
    const cause = error.cause === undefined || error.cause === error ? "" : ` (${textOf(error.cause)})`;
    return `${name}${error.message}${cause}`;
  } catch {
    return "the handler threw a value that has no text";
  }
}

function inspect(value: unknown): string {
  const text = typeof value === "object" ? JSON.stringify(value) : String(value);
  return text ?? typeof value;
}

/** An end as JSON text with further fields; a result that is no JSON is a failure that no retry mends. */
export function jsonOf(end: object, fields: Record<string, string> = {}): string {
  try {
    return JSON.stringify({ ...fields, ...end });
  } catch (error) {
    const why = error instanceof Error ? error.message.split("\n")[0] : String(error);
    const message = `the handler's result or log is no JSON: ${why}; return plain objects, arrays, strings and numbers`;
    return JSON.stringify({ ...fields, ...failed(message), retryable: false });
  }
}
