/** Things that several tests need. */
import { createServer } from "node:http";
import { once } from "node:events";

/** An HTTP server whose answers the test gives: `answer(request, body)` returns `{ status, body, headers }`. */
export async function fakeServer(answer) {
  const requests = [];
  const server = createServer(async (request, response) => {
    let text = "";
    for await (const chunk of request) text += chunk;
    requests.push({ method: request.method, url: request.url, headers: request.headers, body: text });
    const { status = 200, body = {}, headers = {} } = (await answer(request, text)) ?? {};
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(typeof body === "string" ? body : JSON.stringify(body));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  server.unref();
  const url = `http://127.0.0.1:${server.address().port}`;
  return { url, requests, close: () => { server.closeAllConnections(); server.close(); } };
}

/** The address of a port on which nothing listens. */
export async function closedAddress() {
  const { url, close } = await fakeServer(() => ({}));
  close();
  return url;
}

/** Waits until a condition holds. */
export async function until(holds, what, timeoutMs = 40_000) {
  const end = Date.now() + timeoutMs;
  for (;;) {
    const value = await holds();
    if (value) return value;
    if (Date.now() > end) throw new Error(`not within ${timeoutMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** A promise with its resolver. */
export function deferred() {
  let resolve;
  const promise = new Promise((done) => { resolve = done; });
  return { promise, resolve };
}

/** Blocks the event loop. */
export function block(ms) {
  const end = Date.now() + ms;
  while (Date.now() < end);
}
