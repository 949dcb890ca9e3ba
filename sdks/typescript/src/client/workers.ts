/** Workers: the list, draining, and their own registration and heartbeats. */
import type { WorkerInfo } from "../openapi.ts";
import { follow } from "../pages.ts";
import type { Transport } from "../transport.ts";

/** The registration of a worker. */
export interface WorkerRegistration {
  id: string;
  name?: string;
  /** `http`: the server calls `url`; `async`: it only claims. */
  type: "http" | "async";
  url?: string;
  services: string[];
  queues?: string[];
  /** Calls that it answers at once. */
  capacity?: number;
  /** The secret under which the server signs its calls. */
  secret?: string;
}

export class Workers {
  readonly #transport: Transport;

  /** @internal */
  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All known workers by id, page after page. */
  all(): AsyncGenerator<WorkerInfo, void, undefined> {
    return follow(async (cursor) => {
      const page = await this.#transport.call("GET /api/v1/workers", { query: { cursor } });
      return { items: page.workers, next: page.next };
    });
  }

  /** Stops new work for a worker, which ends when its calls have ended. */
  drain(id: string): Promise<WorkerInfo> {
    return this.#transport.call("POST /api/v1/workers/{id}/drain", { path: { id }, body: {}, isRepeatable: true });
  }

  undrain(id: string): Promise<WorkerInfo> {
    return this.#transport.call("POST /api/v1/workers/{id}/undrain", { path: { id }, body: {}, isRepeatable: true });
  }

  /** Registers a worker; again is harmless, and counts as a heartbeat. */
  async register(registration: WorkerRegistration): Promise<void> {
    await this.#transport.request("POST", "/api/workers/register", { body: registration, isRepeatable: true });
  }

  /** A heartbeat; `NotFoundError` = register again. The answer tells whether the server drains the worker. */
  async heartbeat(id: string, url: string, load: number): Promise<{ isDraining: boolean }> {
    const answer = await this.#transport.request("POST", "/api/workers/heartbeat", { body: { id, url, load } });
    return { isDraining: (answer as { draining?: boolean } | undefined)?.draining === true };
  }
}
