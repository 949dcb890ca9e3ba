/** Dead letters: jobs that failed for good, until a client replays or discards them. */
import type {
  DeadLetter, DeadLetterGroups, DeadLettersMoved, DiscardDeadLetters, ListDeadLettersQuery, ReplayDeadLetters,
} from "../openapi.ts";
import type { Transport } from "../transport.ts";

type DeadLettersQuery = Omit<ListDeadLettersQuery, "format">;

/** How long a server may take to move many dead letters. */
const MOVING_MS = 60_000;

export class DeadLetters {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** Dead letters of a queue, oldest first; `next` is the `after` of the following page. */
  async list(queue: string, query: DeadLettersQuery = {}): Promise<{ items: DeadLetter[]; next?: string | null }> {
    const request = { path: { name: queue }, query: { ...query, format: "objects" } };
    const page = await this.#transport.call("GET /api/v1/queues/{name}/dlq", request);
    return { items: page.items as DeadLetter[], next: page.next };
  }

  /** Dead letters of a queue, grouped by error. */
  groups(queue: string): Promise<DeadLetterGroups> {
    return this.#transport.call("GET /api/v1/queues/{name}/dlq/groups", { path: { name: queue } });
  }

  /** Opens dead letters again. With a `replay_id` the request may be repeated. */
  replay(queue: string, replay: ReplayDeadLetters): Promise<DeadLettersMoved> {
    return this.#transport.call("POST /api/v1/queues/{name}/dlq/replay", {
      path: { name: queue }, body: replay, waitMs: MOVING_MS, isRepeatable: Boolean(replay.replay_id),
    });
  }

  discard(queue: string, discard: DiscardDeadLetters): Promise<DeadLettersMoved> {
    const request = { path: { name: queue }, body: discard, waitMs: MOVING_MS };
    return this.#transport.call("POST /api/v1/queues/{name}/dlq/discard", request);
  }
}
