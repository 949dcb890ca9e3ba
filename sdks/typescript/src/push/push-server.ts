/** The push worker: an HTTP server for the calls of the server, with its registration. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { App } from "../app.ts";
import type { FromLink } from "../worker/messages.ts";
import type { Stoppable } from "../worker/signals.ts";
import { nodeHandlerOf } from "./node-handler.ts";
import { PushedCalls, type PushOptions } from "./pushed-calls.ts";
import { addressOf, Registration, type RegistrationOptions } from "./registration.ts";

const DRAIN_MS = 25_000;
/** How often the link thread hears of the load. */
const LOAD_MS = 1_000;

export interface PushServerOptions extends PushOptions, RegistrationOptions {
  /** The address to listen on; default: the host of `url`. In containers it is often `0.0.0.0`. */
  host?: string;
  /** How long open calls may go on after the worker was told to stop; default 25,000. */
  drainMs?: number;
}

export class PushServer implements Stoppable {
  readonly #app: App;
  readonly #options: PushServerOptions;
  readonly #calls: PushedCalls;
  readonly #server: Server;
  #finish: ((error?: Error) => void) | undefined;
  #isStopping = false;

  constructor(app: App, options: PushServerOptions) {
    if (addressOf(options.url).protocol !== "http:") {
      const remedy = "behind a proxy with https, mount app.nodeHandler() and call app.register()";
      throw new TypeError(`\`${options.url}\`: a worker serves http; ${remedy}`);
    }
    this.#app = app;
    this.#options = options;
    this.#calls = new PushedCalls(app, options);
    this.#server = createServer(nodeHandlerOf(this.#calls));
  }

  /** Answers calls until `stop`, until the server drains this worker, or until another worker takes its id. */
  async run(): Promise<void> {
    const finished = new Promise<void>((resolve, reject) => {
      this.#finish = (error) => (error ? reject(error) : resolve());
    });
    const url = await this.#listen();
    this.#server.on("error", (error) => this.#finish?.(error));
    const options = { ...this.#options, url, slots: this.#calls.capacity };
    const registration = new Registration(this.#app, options, (message) => this.#receive(message));
    const timer = setInterval(() => registration.setLoad(this.#calls.load), LOAD_MS);
    if (this.#isStopping) this.stop();
    try {
      await finished;
    } finally {
      clearInterval(timer);
      await registration.close();
      this.#server.closeAllConnections();
    }
  }

  /** Takes no more connections; the open calls have `drainMs` to end. */
  stop(): void {
    this.#isStopping = true;
    this.#server.close(() => this.#finish?.());
    this.#server.closeIdleConnections();
    setTimeout(() => this.#finish?.(), this.#options.drainMs ?? DRAIN_MS).unref();
  }

  #receive(message: FromLink): void {
    if (message.kind === "draining") this.stop();
    if (message.kind === "replaced") this.#finish?.(new Error(message.message));
  }

  /** Listens, and returns the address with the real port. */
  async #listen(): Promise<string> {
    const url = addressOf(this.#options.url);
    const host = this.#options.host ?? url.hostname.replace(/^\[|\]$/g, "");
    await new Promise<void>((resolve, reject) => {
      const onError = (cause: Error) => {
        const why = `cannot listen on ${host}: ${cause.message}; \`host\` names an address of this machine, such as 0.0.0.0`;
        reject(new Error(why, { cause }));
      };
      this.#server.once("error", onError);
      this.#server.listen(Number(url.port || 80), host, () => {
        this.#server.off("error", onError);
        resolve();
      });
    });
    url.port = String((this.#server.address() as AddressInfo).port);
    return url.toString().replace(/\/$/, "");
  }
}
