/** Pushed calls for servers that take `fetch` handlers. */
import type { App } from "../app.ts";
import { PushedCalls, type PushOptions } from "./pushed-calls.ts";

export type { PushOptions };
export type FetchHandler = (request: Request) => Promise<Response>;

export function fetchHandler(app: App, options: PushOptions): FetchHandler {
  const calls = new PushedCalls(app, options);
  return async (request) => {
    const { status, body, headers } = await calls.answer({
      method: request.method, path: new URL(request.url).pathname, signal: request.signal,
      header: (name) => request.headers.get(name),
      body: async () => new Uint8Array(await request.arrayBuffer()),
    });
    return new Response(body, { status, headers: { "content-type": "application/json", ...headers } });
  };
}
