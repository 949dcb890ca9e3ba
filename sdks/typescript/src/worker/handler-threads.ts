/** Threads for handlers that compute: each answers one call at a time, and ends if its call does not stop. */
import { Worker as Thread } from "node:worker_threads";
import type { App } from "../app.ts";
import type { Call, CallFields } from "../call.ts";
import type { StopReason } from "../errors.ts";
import { failureOf, type Outcome } from "../outcome.ts";
import type { ServiceDefinition } from "../service.ts";
import { threadFile } from "./thread-file.ts";

/** How long a handler may take to end after its signal, before its thread is ended. */
const STOP_MS = 1_000;

/** A call for a thread. */
export interface ThreadCall {
  kind: "call";
  service: string;
  isQueue: boolean;
  fields: CallFields;
  input: unknown;
}

export type ToHandlerThread = ThreadCall | { kind: "stop"; reason: StopReason };
/** The outcome as JSON text, so that a result that cannot be cloned is a failure of its call. */
export type FromHandlerThread = { outcome: string };

export class HandlerThreads {
  readonly #app: App;
  readonly #idle: Thread[] = [];
  readonly #all = new Set<Thread>();

  constructor(app: App) {
    this.#app = app;
  }

  /** Threads load the services from their module: refuses to start without one. */
  requireModule(): void {
    const threaded = this.#app.definitions.find((one) => one.options.thread);
    if (threaded === undefined || this.#app.module !== undefined) return;
    throw new Error(
      `the service \`${threaded.name}\` has \`thread: true\`, and the app does not know its module: `
        + "write new App({ module: import.meta.url }), or start it with windlass-worker",
    );
  }

  /** Answers a call in a thread; it never throws. */
  async answer(definition: ServiceDefinition, fields: CallFields, input: unknown, call: Call): Promise<Outcome> {
    let thread: Thread;
    try {
      thread = this.#idle.pop() ?? this.#start();
    } catch (error) {
      return failureOf(error);
    }
    const work: ThreadCall = {
      kind: "call", service: definition.name, isQueue: definition.kind === "queue", fields, input,
    };
    return new Promise((resolve) => {
      let timer: NodeJS.Timeout | undefined;
      const onStop = () => {
        const { stopped } = call;
        if (stopped) this.#post(thread, { kind: "stop", reason: stopped.reason });
        timer = setTimeout(() => void thread.terminate(), STOP_MS);
      };
      const onMessage = ({ outcome }: FromHandlerThread) => {
        this.#idle.push(thread);
        end(JSON.parse(outcome) as Outcome);
      };
      const onError = (error: unknown) => end(failureOf(error));
      const onExit = (code: number) => {
        const { stopped } = call;
        const why = stopped ? `${stopped.message}, and the handler did not stop` : `it ended with code ${code}`;
        end(failureOf(new Error(`the thread of \`${definition.name}\` is gone: ${why}`)));
      };
      const end = (outcome: Outcome) => {
        clearTimeout(timer);
        call.signal.removeEventListener("abort", onStop);
        call.close();
        thread.off("message", onMessage).off("error", onError).off("exit", onExit);
        resolve(outcome);
      };
      thread.on("message", onMessage).on("error", onError).on("exit", onExit);
      if (call.signal.aborted) onStop();
      else call.signal.addEventListener("abort", onStop, { once: true });
      this.#post(thread, work);
    });
  }

  async close(): Promise<void> {
    await Promise.all([...this.#all].map((thread) => thread.terminate()));
  }

  #start(): Thread {
    this.requireModule();
    const thread = new Thread(threadFile("handler-thread.mjs"), { workerData: { module: this.#app.module } });
    this.#all.add(thread);
    // The link or the HTTP server keeps the process alive, and no idle thread.
    thread.unref();
    // A thread may end between two calls, and an error of its timers must not end the worker.
    const onEnd = () => {
      this.#all.delete(thread);
      const at = this.#idle.indexOf(thread);
      if (at >= 0) this.#idle.splice(at, 1);
    };
    thread.on("error", onEnd).on("exit", onEnd);
    return thread;
  }

  #post(thread: Thread, message: ToHandlerThread): void {
    thread.postMessage(message);
  }
}
