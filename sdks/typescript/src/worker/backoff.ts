/** Pauses between tries that fail: each is twice as long as the last one, up to a limit, for ever. */
import { WindlassError } from "../errors.ts";

const PAUSE_MS = 100;
const PAUSE_MAX_MS = 5_000;

export class Backoff {
  #pauseMs = PAUSE_MS;

  /** The pause after this failure: the one that the server asks for, or the next one of its own. */
  next(error: unknown): number {
    const asked = error instanceof WindlassError ? error.retryAfterMs : undefined;
    const pause = Math.min(asked ?? this.#pauseMs, PAUSE_MAX_MS);
    this.#pauseMs = Math.min(this.#pauseMs * 2, PAUSE_MAX_MS);
    // Chance keeps a hundred workers from coming back in the same moment; none comes earlier than it was asked to.
    return pause * (1 + Math.random() / 4);
  }

  reset(): void {
    this.#pauseMs = PAUSE_MS;
  }
}
