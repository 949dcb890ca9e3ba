/** Pushed calls: `POST <url>/exec/<service>`, checked, answered by a handler, and told in the words of the protocol. */
import type { App } from "../app.ts";
import type { CallFields } from "../call.ts";
import { jsonOf, type Outcome } from "../outcome.ts";
import type { ServiceDefinition } from "../service.ts";
import { HandlerThreads } from "../worker/handler-threads.ts";
import { SignatureVerifier } from "./signature.ts";
import { Slots } from "./slots.ts";

/** Bytes of one call. */
export const BODY_BYTES_MAX: number = 8 << 20;
const SLOTS = 64;

export interface PushOptions {
  /**
   * The secret under which the server signs its calls: `whsec_` and 24 to 64 bytes as base64. Default:
   * `WINDLASS_PUSH_SECRET`; without any secret every call is answered. `serve` and `register` give it to the server.
   */
  secret?: string;
  /** Further secrets under which calls are accepted: that of the service, or one that is being replaced. */
  acceptSecrets?: readonly string[];
  /** Calls at once; default 64. Services with `slots` of their own have theirs beside these. */
  slots?: number;
}

/** The secret of the options, or that of the environment. */
export function secretOf(options: { secret?: string }): string | undefined {
  return options.secret ?? (process.env.WINDLASS_PUSH_SECRET || undefined);
}

/** A request, whatever server received it. */
export interface PushedRequest {
  method: string;
  path: string;
  header(name: string): string | null;
  body(): Promise<Uint8Array>;
  /** Aborted when the server hangs up: it needs no answer. */
  signal: AbortSignal;
}

export interface PushedAnswer {
  status: number;
  body: string;
  headers?: Record<string, string>;
}

export class PushedCalls {
  readonly #app: App;
  readonly #threads: HandlerThreads;
  readonly #shared: Slots;
  /** Slots of services that have their own. */
  readonly #own = new Map<ServiceDefinition, Slots>();
  readonly #verifier: SignatureVerifier | undefined;

  constructor(app: App, options: PushOptions) {
    this.#app = app;
    this.#threads = new HandlerThreads(app);
    this.#threads.requireModule();
    this.#shared = new Slots(options.slots ?? SLOTS);
    const secret = secretOf(options);
    const secrets = [...(secret === undefined ? [] : [secret]), ...(options.acceptSecrets ?? [])];
    this.#verifier = secrets.length === 0 ? undefined : new SignatureVerifier(secrets);
  }

  /** Calls that are here, those that wait included. */
  get load(): number {
    return [this.#shared, ...this.#own.values()].reduce((sum, slots) => sum + slots.load, 0);
  }

  /** Calls at once, in the slots of all services. */
  get capacity(): number {
    return this.#app.definitions.reduce((sum, one) => sum + (one.options.slots ?? 0), this.#shared.size);
  }

  async answer(request: PushedRequest): Promise<PushedAnswer> {
    const service = serviceOf(request.path);
    if (service === undefined) return error(404, "calls are sent to /exec/SERVICE");
    if (request.method !== "POST") return error(405, "a call is a POST");
    const body = await request.body();
    if (body.length > BODY_BYTES_MAX) return error(413, `a call has at most ${BODY_BYTES_MAX} bytes`);
    const [id, timestamp, signature] = ["id", "timestamp", "signature"].map((name) => request.header(`webhook-${name}`));
    const headers = { id: id ?? null, timestamp: timestamp ?? null, signature: signature ?? null };
    const refusal = this.#verifier?.refusal(headers, body);
    // A retry can help: a secret is replaced at the server and at its workers one after the other.
    if (refusal !== undefined) return { status: 401, body: JSON.stringify({ error: refusal, retryable: true }) };
    const definition = this.#app.find(service);
    if (definition === undefined) {
      const names = this.#app.definitions.filter((one) => one.kind === "service").map((one) => one.name);
      return error(404, `there is no service \`${service}\` here; there are ${names.join(", ")}`);
    }
    const pushed = parsed(body);
    if (pushed === undefined) return error(400, "the body is no call: it is an object with input and params");
    const slots = this.#slotsOf(definition);
    if (slots.isFull) return error(429, `${slots.load} calls wait here already`);
    await slots.take();
    try {
      return await this.#exec(definition, fieldsOf(service, request, pushed), pushed.input ?? null, request.signal);
    } finally {
      slots.release();
    }
  }

  async #exec(
    definition: ServiceDefinition, fields: CallFields, input: unknown, signal: AbortSignal,
  ): Promise<PushedAnswer> {
    const call = this.#app.call(fields);
    const hangUp = () => call.stop("canceled");
    signal.addEventListener("abort", hangUp, { once: true });
    if (signal.aborted) hangUp();
    const isThreaded = definition.options.thread;
    const outcome = await (isThreaded ? this.#threads.answer(definition, fields, input, call) : definition.answer(call, input));
    signal.removeEventListener("abort", hangUp);
    return answerOf(outcome);
  }

  #slotsOf(definition: ServiceDefinition): Slots {
    const size = definition.options.slots;
    if (size === undefined) return this.#shared;
    const own = this.#own.get(definition) ?? new Slots(size);
    this.#own.set(definition, own);
    return own;
  }
}

interface PushedBody {
  input?: unknown;
  params?: Record<string, unknown>;
  memo?: unknown;
}

function parsed(body: Uint8Array): PushedBody | undefined {
  try {
    const value: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
    return value !== null && typeof value === "object" && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The last part of the path: a handler may stand below a path of its own. */
function serviceOf(path: string): string | undefined {
  const encoded = /\/exec\/([^/?#]+)$/.exec(path.split("?")[0] ?? "")?.[1];
  return encoded === undefined ? undefined : decoded(encoded);
}

/** Values of headers percent-encode all but visible ASCII. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function fieldsOf(service: string, request: PushedRequest, { params, memo }: PushedBody): CallFields {
  const word = (name: string) => {
    const value = request.header(name);
    return value === null ? undefined : decoded(value);
  };
  const [run, node, call] = [word("windlass-run"), word("windlass-node"), word("windlass-call")];
  const deadlineMs = Number(word("windlass-deadline") ?? Number.NaN);
  return {
    service, key: word("idempotency-key") ?? "", attempt: Number(word("windlass-attempt") ?? 1), params: params ?? {}, memo,
    ...(run && { run }), ...(node && { node }), ...(call && { call }),
    ...(Number.isFinite(deadlineMs) && { deadlineMs }),
  };
}

/** The end of a call in the words of the push protocol. */
function answerOf({ outcome, memo, recheck_ms, retry_after_ms, logs, ...end }: Outcome): PushedAnswer {
  const lines = logs && { logs };
  if (outcome !== "suspended") {
    if (retry_after_ms === undefined) return { status: 200, body: jsonOf({ ...end, ...lines }) };
    const headers = { "retry-after": String(Math.ceil(retry_after_ms / 1_000)) };
    return { status: 503, headers, body: jsonOf({ ...end, ...lines }) };
  }
  if (recheck_ms === undefined) return { status: 202, body: jsonOf({ memo, ...lines }) };
  return { status: 200, body: jsonOf({ suspend: { memo, recheck_ms }, ...lines }) };
}

function error(status: number, text: string): PushedAnswer {
  return { status, body: JSON.stringify({ error: text }) };
}
