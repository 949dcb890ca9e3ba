/** Pushed calls for servers of `node:http`. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { App } from "../app.ts";
import { BODY_BYTES_MAX, PushedCalls, type PushOptions } from "./pushed-calls.ts";

export type NodeHandler = (request: IncomingMessage, response: ServerResponse) => void;

export function nodeHandler(app: App, options: PushOptions): NodeHandler {
  return nodeHandlerOf(new PushedCalls(app, options));
}

export function nodeHandlerOf(calls: PushedCalls): NodeHandler {
  return (request, response) => {
    answer(calls, request, response).catch((error: unknown) => {
      response.statusCode = 500;
      response.end(JSON.stringify({ error: `the worker failed: ${String(error)}` }));
    });
  };
}

async function answer(calls: PushedCalls, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const hungUp = new AbortController();
  response.on("close", () => hungUp.abort());
  const { status, body, headers } = await calls.answer({
    method: request.method ?? "", path: request.url ?? "", signal: hungUp.signal,
    header: (name) => {
      const value = request.headers[name];
      return Array.isArray(value) ? value.join(" ") : (value ?? null);
    },
    body: () => read(request),
  });
  response.writeHead(status, { "content-type": "application/json", ...headers });
  response.end(body);
}

/** The body, one byte above the limit at most. */
async function read(request: IncomingMessage): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  let n = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    n += chunk.length;
    if (n > BODY_BYTES_MAX) break;
  }
  return Buffer.concat(chunks);
}
