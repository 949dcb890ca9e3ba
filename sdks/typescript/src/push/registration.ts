/** The registration of a push worker: the server learns its address and its services; heartbeats keep it alive. */
import type { App } from "../app.ts";
import { Link } from "../worker/link.ts";
import { logToStderr, type WorkerLog } from "../worker/logging.ts";
import type { FromLink } from "../worker/messages.ts";
import { uniqueId } from "../worker/name.ts";
import { secretOf } from "./pushed-calls.ts";

const BEAT_MS = 5_000;
const SLOTS = 64;
const LEASE_MS = 30_000;

export interface RegistrationOptions {
  /** The address at which the server reaches this worker: `http://127.0.0.1:9000`. `serve` takes a free port for 0. */
  url: string;
  /** The secret under which the server signs its calls; default: `WINDLASS_PUSH_SECRET`. Give it over https only. */
  secret?: string;
  /** The id of this worker; each has its own. Default: the machine, the process, and chance. */
  id?: string;
  name?: string;
  /** Calls at once; default 64. */
  slots?: number;
  /** The interval of heartbeats; default 5,000. */
  beatMs?: number;
  log?: WorkerLog;
}

/** The address of a push worker as the server accepts it. */
export function addressOf(url: string): URL {
  if (URL.canParse(url) && ["http:", "https:"].includes(new URL(url).protocol)) return new URL(url);
  throw new TypeError(`\`${url}\` is no address of a push worker: write http://host:port`);
}

/** A registered push worker. Its heartbeats come from a thread, so a blocked event loop does not stop them. */
export class Registration {
  readonly id: string;
  readonly #link: Link;

  constructor(app: App, options: RegistrationOptions, onMessage: (message: FromLink) => void = () => {}) {
    const { url, id = uniqueId(), name, slots = SLOTS, beatMs = BEAT_MS, log = logToStderr } = options;
    this.id = id;
    const services = app.definitions.filter((one) => one.kind === "service").map((one) => one.name);
    const secret = secretOf(options);
    const config = {
      ...app.client.connection, id, url: addressOf(url).toString().replace(/\/$/, ""), lanes: [], services, queues: [],
      capacity: slots, leaseMs: LEASE_MS, beatMs, ...(name && { name }), ...(secret && { secret }),
    };
    const receive = (message: FromLink) => {
      if (message.kind === "log") log(message.level, message.message);
      if (message.kind === "replaced") log("error", message.message);
      onMessage(message);
    };
    this.#link = new Link(config, receive, (error) => log("error", error.message));
  }

  /** Reports how many calls are in progress. */
  setLoad(load: number): void {
    this.#link.setLoad(load);
  }

  /** Ends the heartbeats: the server forgets the worker soon. */
  close(): Promise<void> {
    return this.#link.close();
  }
}
