// Requests to the server. Every failure becomes an `ApiError` with the server's code, text and request id.
import type { FieldError, ProblemDetails, Routes } from "./openapi";

export type Query = Record<string, string | number | boolean | undefined | null>;

export interface RequestOptions {
  query?: Query;
  body?: unknown;
  signal?: AbortSignal;
  headers?: Record<string, string>;
}

export class ApiError extends Error {
  constructor(
    /** The HTTP status; 0 when no response came. */
    readonly status: number,
    /** The server's code, or `network` when no response came. */
    readonly code: string,
    detail: string,
    readonly requestId: string | undefined,
    readonly errors: FieldError[] = [],
    readonly retryAfter: number | undefined = undefined,
  ) {
    super(detail);
    this.name = "ApiError";
  }
}

const TOKEN = "windlass.token";
const ACTOR = "windlass.actor";

export function stored(key: string): string | undefined {
  try {
    return localStorage.getItem(key) ?? undefined;
  } catch {
    return undefined;
  }
}

export function store(key: string, value: string | undefined): void {
  try {
    if (value === undefined) localStorage.removeItem(key);
    else localStorage.setItem(key, value);
  } catch {
    // Storage may be forbidden: the setting lasts as long as the page.
  }
}

export const token = () => stored(TOKEN);
export const setToken = (value: string | undefined) => store(TOKEN, value);
/** The name that the audit log records for the actions of this browser. */
export const actor = () => stored(ACTOR);
export const setActor = (value: string | undefined) => store(ACTOR, value || undefined);

/** The headers of every request, the event stream included. */
export function identity(): Record<string, string> {
  const headers: Record<string, string> = {};
  const bearer = token();
  if (bearer) headers.authorization = `Bearer ${bearer}`;
  const name = actor();
  if (name && /^[\x20-\x7e]+$/.test(name)) headers["x-windlass-actor"] = name;
  return headers;
}

const refusals = new Set<() => void>();
/** Calls `listener` when the server asks for a token. */
export function onUnauthorized(listener: () => void): () => void {
  refusals.add(listener);
  return () => refusals.delete(listener);
}

export function url(path: string, query?: Query): string {
  const fields = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null);
  if (fields.length === 0) return path;
  return `${path}?${new URLSearchParams(fields.map(([key, value]) => [key, String(value)]))}`;
}

/** Sends a request to a path that is given whole. */
export async function request<T>(method: string, path: string, options: RequestOptions = {}): Promise<T> {
  const { response, text } = await send(method, path, options);
  return (text === "" ? undefined : read(text, response)) as T;
}

/** Reads a value as its text: it may be large, and of any shape. */
export async function requestText(path: string): Promise<string> {
  return (await send("GET", path, {})).text;
}

async function send(method: string, path: string, options: RequestOptions): Promise<{ response: Response; text: string }> {
  const hasBody = options.body !== undefined;
  let response: Response;
  let text: string;
  try {
    response = await fetch(url(path, options.query), {
      method,
      headers: { accept: "application/json", ...(hasBody && { "content-type": "application/json" }), ...identity(), ...options.headers },
      body: hasBody ? JSON.stringify(options.body) : undefined,
      signal: options.signal,
    });
    text = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "network", "The server did not answer.", undefined);
  }
  if (response.ok) return { response, text };
  if (response.status === 401) for (const listener of refusals) listener();
  throw refusal(response, text);
}

/** Every route answers an object or a list. Another answer comes from a program between the browser and the server. */
function read(text: string, response: Response): unknown {
  const bad = (reason: string) => new ApiError(response.status, "bad_answer", `${reason}: ${text.slice(0, 120)}`, response.headers.get("x-request-id") ?? undefined);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw bad("The answer is not JSON");
  }
  if (value === null || typeof value !== "object") throw bad("The answer is no object");
  return value;
}

function refusal(response: Response, text: string): ApiError {
  const after = Number(response.headers.get("retry-after")) || undefined;
  const id = response.headers.get("x-request-id") ?? undefined;
  try {
    const problem = JSON.parse(text) as Partial<ProblemDetails> & { request_id?: string; error?: string };
    const detail = problem.detail || problem.error || problem.title || response.statusText;
    return new ApiError(response.status, problem.code ?? `http_${response.status}`, detail, problem.request_id ?? id, problem.errors, after);
  } catch {
    return new ApiError(response.status, `http_${response.status}`, text.slice(0, 400) || response.statusText, id, [], after);
  }
}

type Parts<R extends keyof Routes> = (Routes[R]["path"] extends undefined ? { path?: undefined } : { path: Routes[R]["path"] }) & {
  query?: Routes[R]["query"];
  body?: Routes[R]["body"];
  signal?: AbortSignal;
};

/** Sends a request to a route of the OpenAPI document. */
export function call<R extends keyof Routes>(route: R, parts: Parts<R>): Promise<Routes[R]["answer"]> {
  const [method = "GET", template = ""] = route.split(" ", 2);
  const values = (parts.path ?? {}) as Record<string, string | number>;
  const path = template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])));
  return request(method, path, { query: parts.query as Query | undefined, body: parts.body, signal: parts.signal });
}

/** The error of a failed query or mutation as an `ApiError`; a bug of the page becomes one with the code `page`. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  return new ApiError(0, "page", error instanceof Error ? error.message : String(error), undefined);
}
