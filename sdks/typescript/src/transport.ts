/** One HTTP request to the server, with its errors and its retries. */
import {
  errorOfAnswer, INTERRUPTED, TIMED_OUT, UNREACHABLE, UNREADABLE, UNSENDABLE, UnreachableError, WindlassError,
} from "./errors.ts";
import type { Routes } from "./openapi.ts";

/** The response time limit, beyond the time that a request asks the server to wait. */
const RESPONSE_TIMEOUT_MS = 30_000;
/** Tries of a request that may be repeated. */
const TRIES_MAX = 4;
/** The first pause between two tries; each next one is twice as long. */
const RETRY_DELAY_MS = 100;
/** The longest delay that a timer of Node takes. */
const TIMER_MS_MAX = 2 ** 31 - 1;

const UNREACHABLE_CAUSES = new Set([
  "ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "EHOSTUNREACH", "ENETUNREACH", "EADDRNOTAVAIL", "UND_ERR_CONNECT_TIMEOUT",
]);

/** How a client reaches its server. */
export interface TransportOptions {
  /** The address; default: `WINDLASS_SERVER`, or `http://127.0.0.1:8070`. */
  server?: string;
  /** The API key; default: `WINDLASS_KEY`. */
  key?: string;
  /** The name in the audit of the server; default: `WINDLASS_ACTOR`. */
  actor?: string;
  /** The response time limit, beyond the time that a request asks the server to wait. */
  timeoutMs?: number;
  /** Another implementation of `fetch`. */
  fetch?: typeof globalThis.fetch;
}

type Query = Record<string, string | number | boolean | null | undefined>;

/** A request without types. */
export interface RequestOptions {
  query?: Query;
  body?: unknown;
  /** A body that is JSON text already. */
  bodyText?: string;
  /** How long the server was asked to hold its answer back. */
  waitMs?: number;
  /** The response time limit of this request. */
  limitMs?: number;
  /** The request may be sent again: two of them do no more than one. */
  isRepeatable?: boolean;
  signal?: AbortSignal;
}

/** The parts of a route's request that it needs. */
type RouteRequest<R extends keyof Routes> = Omit<RequestOptions, "query" | "body"> & {
  query?: Routes[R]["query"];
} & (Routes[R]["path"] extends undefined ? { path?: undefined } : { path: Routes[R]["path"] }) &
  (Routes[R]["body"] extends undefined ? { body?: undefined } : { body: Routes[R]["body"] });

export class Transport {
  readonly server: string;
  readonly key: string;
  readonly #headers: Record<string, string>;
  readonly #timeoutMs: number;
  readonly #fetch: typeof globalThis.fetch;

  constructor(options: TransportOptions = {}) {
    const server = (options.server ?? process.env.WINDLASS_SERVER ?? "") || "http://127.0.0.1:8070";
    const isAddress = URL.canParse(server) && ["http:", "https:"].includes(new URL(server).protocol);
    if (!isAddress) throw unsendable(`\`${server}\` is no address of a server: write http://host:port`);
    this.server = server.replace(/\/+$/, "");
    this.#headers = {};
    const key = (options.key ?? process.env.WINDLASS_KEY ?? "").trim();
    this.key = key;
    if (key && !/^[\x21-\x7e]+$/.test(key)) {
      throw unsendable("the key has characters that no key has: check WINDLASS_KEY for line breaks and quotes");
    }
    if (key) this.#headers.authorization = `Bearer ${key}`;
    const actor = options.actor ?? process.env.WINDLASS_ACTOR;
    if (actor) this.#headers["x-windlass-actor"] = actor;
    this.#timeoutMs = options.timeoutMs ?? RESPONSE_TIMEOUT_MS;
    this.#fetch = options.fetch ?? globalThis.fetch;
  }

  /** Sends a request of the contract. */
  async call<R extends keyof Routes>(route: R, request: RouteRequest<R>): Promise<Routes[R]["answer"]> {
    const [method, pattern] = route.split(" ") as [string, string];
    const path = pattern.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = (request.path as Record<string, unknown> | undefined)?.[name];
      if (value === undefined || value === "") throw unsendable(`${route} needs the ${name} in its path`);
      return encodeURIComponent(String(value));
    });
    const { query, ...rest } = request;
    const isRepeatable = rest.isRepeatable ?? method === "GET";
    const answer = await this.request(method, path, { ...rest, query: query as Query, isRepeatable });
    return answer as Routes[R]["answer"];
  }

  /** Sends any request and reads its answer as JSON. */
  async request(method: string, path: string, options: RequestOptions = {}): Promise<unknown> {
    const text = await this.#untilAnswered(method, path, options);
    if (text === "") return undefined;
    try {
      return JSON.parse(text);
    } catch (cause) {
      throw new WindlassError({ code: UNREADABLE, detail: `the answer of ${path} is no JSON`, cause });
    }
  }

  /** Opens an answer that is read piece by piece, such as a stream of events. */
  async open(path: string, options: { headers?: Record<string, string>; signal?: AbortSignal }): Promise<Response> {
    const response = await this.#send("GET", path, {}, options.signal, options.headers);
    if (!response.ok) throw await this.#errorOf(response);
    return response;
  }

  async #untilAnswered(method: string, path: string, options: RequestOptions): Promise<string> {
    const limitMs = Math.min((options.limitMs ?? this.#timeoutMs) + (options.waitMs ?? 0), TIMER_MS_MAX);
    for (let n = 1, pause = RETRY_DELAY_MS; ; n += 1, pause *= 2) {
      const limit = new RequestLimit(limitMs, options.signal);
      try {
        const response = await this.#send(method, path, options, limit.signal);
        if (!response.ok) throw await this.#errorOf(response);
        return await response.text().catch((cause: unknown) => { throw this.#lost(cause); });
      } catch (error) {
        if (options.signal?.aborted) throw options.signal.reason;
        const isRepeatable = options.isRepeatable && n < TRIES_MAX;
        if (!isRepeatable || !(error instanceof UnreachableError) || error.code === TIMED_OUT) throw error;
      } finally {
        limit.close();
      }
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
  }

  async #send(
    method: string, path: string, options: RequestOptions, signal: AbortSignal | undefined, headers = {},
  ): Promise<Response> {
    const url = new URL(this.server + path);
    for (const [name, value] of Object.entries(options.query ?? {})) {
      if (value !== undefined && value !== null) url.searchParams.append(name, String(value));
    }
    const body = options.bodyText ?? (options.body === undefined ? undefined : textOf(options.body));
    try {
      return await this.#fetch(url, {
        method,
        headers: { ...this.#headers, ...headers, ...(body === undefined ? {} : { "content-type": "application/json" }) },
        // A redirection is an error of its status: the server is named outright.
        redirect: "manual",
        ...(body === undefined ? {} : { body }),
        ...(signal && { signal }),
      });
    } catch (cause) {
      throw this.#lost(cause);
    }
  }

  async #errorOf(response: Response): Promise<WindlassError> {
    const text = await response.text().catch(() => "");
    return errorOfAnswer(response.status, text, retryAfterMs(response.headers.get("retry-after")));
  }

  /** The error of a request that no server answered. */
  #lost(cause: unknown): WindlassError {
    if (cause instanceof Error && cause.name === "TimeoutError") {
      return new UnreachableError({ code: TIMED_OUT, detail: `${this.server} did not answer in time`, cause });
    }
    const inner = innermost(cause);
    const code = (inner as { code?: unknown }).code;
    if (typeof code === "string" && UNREACHABLE_CAUSES.has(code)) {
      const detail = `${this.server} does not answer: ${inner.message || code}`;
      return new UnreachableError({ code: UNREACHABLE, detail, cause });
    }
    const detail = `the connection to ${this.server} broke: ${inner.message}`;
    return new UnreachableError({ code: INTERRUPTED, detail, cause });
  }
}

/**
 * The end of one request by its time or by the caller's signal. `AbortSignal.any` would keep something of every request
 * at a signal that lives as long as a worker.
 */
class RequestLimit {
  readonly #controller = new AbortController();
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = () => this.#controller.abort(this.caller?.reason);

  constructor(ms: number, private readonly caller: AbortSignal | undefined) {
    const onTime = () => this.#controller.abort(new DOMException("no answer in time", "TimeoutError"));
    this.#timer = setTimeout(onTime, ms);
    caller?.addEventListener("abort", this.#onAbort);
    if (caller?.aborted) this.#onAbort();
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  close(): void {
    clearTimeout(this.#timer);
    this.caller?.removeEventListener("abort", this.#onAbort);
  }
}

function unsendable(detail: string, cause?: unknown): WindlassError {
  return new WindlassError({ code: UNSENDABLE, detail, cause });
}

function textOf(body: unknown): string {
  try {
    return JSON.stringify(body);
  } catch (cause) {
    throw unsendable(`the body cannot be written as JSON: ${(cause as Error).message}`, cause);
  }
}

/** `fetch` wraps the cause of a failure; a failure at several addresses has a list of causes. */
function innermost(error: unknown): Error {
  let inner = error instanceof Error ? error : new Error(String(error));
  for (;;) {
    const next: unknown = inner instanceof AggregateError ? inner.errors[0] : inner.cause;
    if (!(next instanceof Error)) return inner;
    inner = next;
  }
}

/** The header `Retry-After`, in seconds or as a date. */
export function retryAfterMs(header: string | null): number | undefined {
  if (header === null) return undefined;
  const ms = /^\d+$/.test(header.trim()) ? Number(header) * 1_000 : Date.parse(header) - Date.now();
  return Number.isNaN(ms) ? undefined : Math.max(0, ms);
}
