/** Queues: reading, pausing and limiting them. */
import type { QueueChange, QueueInfo } from "../openapi.ts";
import { follow } from "../pages.ts";
import type { Transport } from "../transport.ts";

export class Queues {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All queues by name, page after page. */
  all(): AsyncGenerator<QueueInfo, void, undefined> {
    return follow(async (cursor) => {
      const page = await this.#transport.call("GET /api/v1/queues", { query: { cursor } });
      return { items: page.queues, next: page.next };
    });
  }

  /** One queue; an unused one is empty. */
  get(name: string): Promise<QueueInfo> {
    return this.#transport.call("GET /api/v1/queues/{name}", { path: { name } });
  }

  /** Stops further claims; claimed jobs go on. */
  pause(name: string): Promise<QueueInfo> {
    return this.#transport.call("POST /api/v1/queues/{name}/pause", { path: { name }, body: {}, isRepeatable: true });
  }

  resume(name: string): Promise<QueueInfo> {
    return this.#transport.call("POST /api/v1/queues/{name}/resume", { path: { name }, body: {}, isRepeatable: true });
  }

  /** Changes the named limits; the others stay, and null removes one. */
  change(name: string, change: QueueChange): Promise<QueueInfo> {
    return this.#transport.call("PATCH /api/v1/queues/{name}", { path: { name }, body: change, isRepeatable: true });
  }
}
