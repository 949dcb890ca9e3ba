/** The heartbeat of a worker: it registers, reports its load, and registers again when the server forgot it. */
import { Workers } from "../client/workers.ts";
import { ConflictError, NotFoundError } from "../errors.ts";
import type { Transport } from "../transport.ts";
import { pause } from "../waiting.ts";
import type { FromLink, LinkConfig } from "./messages.ts";

/** How soon a worker that could not be registered tries again. */
const RETRY_DELAY_MS = 1_000;

type BeatState = "registered" | "unregistered" | "replaced";

export class Heartbeat {
  readonly #workers: Workers;

  constructor(
    transport: Transport, private readonly config: LinkConfig, private readonly tell: (message: FromLink) => void,
    private readonly load: () => number, private readonly onDraining: () => void,
  ) {
    this.#workers = new Workers(transport);
  }

  /** Sends heartbeats until the signal. Ends when another worker has the id: both would take it from each other. */
  async run(signal: AbortSignal): Promise<void> {
    let state: BeatState = "unregistered";
    while (!signal.aborted) {
      state = state === "registered" ? await this.#beat() : await this.#register();
      if (state === "replaced") return;
      await pause(state === "registered" ? this.config.beatMs : RETRY_DELAY_MS, signal);
    }
  }

  async #beat(): Promise<BeatState> {
    const { id, url = "" } = this.config;
    try {
      const { isDraining } = await this.#workers.heartbeat(id, url, this.load());
      if (isDraining) this.onDraining();
      return "registered";
    } catch (error) {
      if (error instanceof ConflictError) {
        const message = `another worker registered the id \`${id}\` from another address: give each worker an id of its own`;
        this.tell({ kind: "replaced", message });
        return "replaced";
      }
      if (error instanceof NotFoundError) return this.#register();
      this.#log("warn", `a heartbeat failed: ${(error as Error).message}`);
      return "registered";
    }
  }

  async #register(): Promise<BeatState> {
    const { id, name, url, secret, services, queues, capacity } = this.config;
    const type = url === undefined ? "async" : "http";
    try {
      await this.#workers.register({
        id, type, services, queues, capacity, ...(url && { url }), ...(name && { name }), ...(secret && { secret }),
      });
      this.#log("info", `registered as ${id}: ${[...services, ...queues.map((queue) => `queue ${queue}`)].join(", ")}`);
      return "registered";
    } catch (error) {
      this.#log("warn", `could not register, will try again: ${(error as Error).message}`);
      return "unregistered";
    }
  }

  #log(level: "info" | "warn", message: string): void {
    this.tell({ kind: "log", level, message });
  }
}
