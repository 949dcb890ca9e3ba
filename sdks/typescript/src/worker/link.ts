/** The side of the link that the handlers' thread holds. */
import { Worker as Thread } from "node:worker_threads";
import type { EndedJob, FromLink, LinkConfig, ToLink } from "./messages.ts";
import { threadFile } from "./thread-file.ts";

export class Link {
  readonly #thread: Thread;
  #ends: EndedJob[] = [];

  /** Starts the thread. `onEnd` hears of an end that nothing asked for. */
  constructor(config: LinkConfig, onMessage: (message: FromLink) => void, onEnd: (error: Error) => void) {
    // Loaders of the program (`--import tsx`) are of no use to the thread, and cost time.
    this.#thread = new Thread(threadFile("link-thread.mjs"), { workerData: config, execArgv: [] });
    this.#thread.on("message", onMessage);
    this.#thread.on("error", onEnd);
    this.#thread.on("exit", (code) => onEnd(new Error(`the link thread ended with code ${code}`)));
  }

  /** Hands an end in; ends of one turn of the event loop go together. */
  end(end: EndedJob): void {
    if (this.#ends.push(end) > 1) return;
    setImmediate(() => {
      this.#post({ kind: "ends", ends: this.#ends });
      this.#ends = [];
    });
  }

  setLoad(load: number): void {
    this.#post({ kind: "load", load });
  }

  drain(): void {
    this.#post({ kind: "drain" });
  }

  async close(): Promise<void> {
    this.#thread.removeAllListeners();
    await this.#thread.terminate();
  }

  #post(message: ToLink): void {
    this.#thread.postMessage(message);
  }
}
