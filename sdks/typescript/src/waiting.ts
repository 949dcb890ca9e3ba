/** Waiting for the end of something at the server, and pauses that an AbortSignal ends. */
import { WaitTimeoutError, WindlassError } from "./errors.ts";

/** The first pause between two looks; each next one is half as long again. */
const LOOK_FIRST_MS = 20;
/** The longest pause. */
const LOOK_LAST_MS = 1_000;

export interface WaitOptions {
  /** How long to wait; default: until the end, however long that takes. */
  timeoutMs?: number;
  /** Ends the wait. */
  signal?: AbortSignal;
}

/** Resolves after some time, or at once when the signal is aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const end = () => {
      clearTimeout(timer);
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener("abort", end, { once: true });
  });
}

/**
 * Looks until `isEnded`. A server that goes away meanwhile is waited for; one that never answered is waited for only if
 * the wait has an end of its own.
 */
export async function waitUntil<T>(
  subject: string, look: () => Promise<T>, isEnded: (seen: T) => boolean, options: WaitOptions,
): Promise<T> {
  const until = options.timeoutMs === undefined ? Infinity : Date.now() + options.timeoutMs;
  let hasAnswered = until !== Infinity;
  for (let ms = LOOK_FIRST_MS; ; ms = Math.min(ms * 1.5, LOOK_LAST_MS)) {
    options.signal?.throwIfAborted();
    try {
      const seen = await look();
      if (isEnded(seen)) return seen;
      hasAnswered = true;
    } catch (error) {
      const isWaitable = error instanceof WindlassError && error.isTemporary && hasAnswered && Date.now() < until;
      if (!isWaitable) throw error;
    }
    if (Date.now() >= until) throw new WaitTimeoutError(subject, options.timeoutMs ?? 0);
    await pause(Math.min(ms, Math.max(0, until - Date.now())), options.signal);
  }
}
