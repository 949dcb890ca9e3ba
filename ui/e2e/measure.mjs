// Measures the run page with a thousand nodes: the time from the answer of the view to the drawing, and the time that a
// patch takes. It needs no server: the view and the stream come from this program.
//
//   npm run build && node e2e/measure.mjs [DIRECTORY]     DIRECTORY = the built files (default: dist of `vite build`)
import { createServer } from "node:http";
import { readFileSync } from "node:fs";
import { extname, join } from "node:path";
import { gunzipSync } from "node:zlib";
import { launch, open } from "./browser.mjs";
import { bigView } from "./fixtures.mjs";

const directory = process.argv[2] ?? new URL("../../crates/server/ui-dist", import.meta.url).pathname;
const TYPES = { ".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml" };
const MOUNT_MS = 600;
const PATCH_MS = 8;
const PATCHES = 40;

function file(path) {
  const name = join(directory, extname(path) ? path.replace("/ui/", "/") : "/index.html");
  try {
    return readFileSync(name);
  } catch {
    return gunzipSync(readFileSync(`${name}.gz`));
  }
}

/** Serves the built files, the view of a large run, and a stream whose patches `say` sends. */
function serve(view) {
  const clients = new Set();
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://localhost");
    if (pathname === "/api/v1/events") {
      response.writeHead(200, { "content-type": "text/event-stream" });
      response.write(`event: hello\ndata: ${JSON.stringify({ topics: searchParams.get("topics").split(",") })}\n\n`);
      clients.add(response);
    } else if (pathname.startsWith("/api/")) {
      const isView = pathname.endsWith("/view");
      response.writeHead(isView ? 200 : 404, { "content-type": "application/json" });
      response.end(JSON.stringify(isView ? view : { code: "unknown_route", detail: "not here" }));
    } else {
      response.writeHead(200, { "content-type": TYPES[extname(pathname)] ?? "text/html" });
      response.end(file(pathname));
    }
  });
  const say = (patch) => { for (const client of clients) client.write(`event: patch\ndata: ${JSON.stringify(patch)}\n\n`); };
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve({ port: server.address().port, say, close: () => server.closeAllConnections() ?? server.close() })));
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];

/** The time from the arrival of the view to the frame after the last node, with everything loaded before. */
async function mount(page, port) {
  await page.goto(`http://127.0.0.1:${port}/ui/runs/warm`);
  await page.waitForSelector('[data-node="node_999"]');
  await page.goto(`http://127.0.0.1:${port}/ui/settings`);
  await page.waitForSelector("main");
  await page.evaluate(() => {
    const real = window.fetch;
    window.fetch = async (...args) => {
      const response = await real(...args);
      if (!String(args[0]).includes("/view")) return response;
      const text = await response.text();
      window.arrivedAt = performance.now();
      return new Response(text, { headers: response.headers });
    };
    new MutationObserver((_, observer) => {
      if (!document.querySelector('[data-node="node_999"]')) return;
      observer.disconnect();
      requestAnimationFrame(() => setTimeout(() => { window.drawnAt = performance.now(); }));
    }).observe(document.body, { childList: true, subtree: true });
    history.pushState(null, "", "/ui/runs/big");
    dispatchEvent(new PopStateEvent("popstate"));
  });
  await page.waitForFunction(() => window.drawnAt !== undefined);
  return page.evaluate(() => window.drawnAt - window.arrivedAt);
}

/** Notes the arrival of each patch; runs before the scripts of the page. */
function noteArrivals() {
  const { get, set } = Object.getOwnPropertyDescriptor(MessagePort.prototype, "onmessage");
  Object.defineProperty(MessagePort.prototype, "onmessage", {
    get,
    set(handler) {
      set.call(this, (event) => {
        if (event.data?.event?.type === "patch") window.patchAt = performance.now();
        return handler(event);
      });
    },
  });
}

/** The times of patches that change ten nodes each: from the event in the tab to the changed document. */
async function patches(page, say, view) {
  await page.evaluate(() => {
    window.times = [];
    new MutationObserver(() => {
      if (window.patchAt === undefined) return;
      window.times.push(performance.now() - window.patchAt);
      window.patchAt = undefined;
    }).observe(document.querySelector(".canvas"), { subtree: true, attributes: true, attributeFilter: ["data-status"] });
  });
  const topic = `run:${view.run.id}`;
  for (let n = 0; n < PATCHES; n += 1) {
    const states = Array.from({ length: 10 }, (_, i) => [`node_${(n * 10 + i) % 1000}`, { status: n % 2 === 0 ? "running" : "failed", kind: "executor", attempts: 1, started_at: view.run.created_at }]);
    say({ topic, seq: view.seq + 1 + n, node_states: Object.fromEntries(states), why: [] });
    await page.waitForFunction((count) => window.times.length > count, n);
  }
  return page.evaluate(() => window.times);
}

const view = bigView(Date.now());
const { port, say, close } = await serve(view);
const browser = await launch();
const { page } = await open(browser);
await page.addInitScript(noteArrivals);
try {
  const mounts = [];
  for (let n = 0; n < 5; n += 1) mounts.push(await mount(page, port));
  console.log(`mount of ${view.graph.nodes.length} nodes: ${Math.round(median(mounts))} ms (median of ${mounts.map(Math.round).join(", ")})`);
  const times = await patches(page, say, view);
  const sorted = [...times].sort((a, b) => a - b);
  console.log(`patch of 10 nodes: ${median(times).toFixed(1)} ms (median of ${times.length}; 90 % under ${sorted[Math.floor(sorted.length * 0.9)].toFixed(1)} ms)`);
  if (median(mounts) > MOUNT_MS || median(times) > PATCH_MS) {
    console.error(`the goals are ${MOUNT_MS} ms and ${PATCH_MS} ms`);
    process.exitCode = 1;
  }
} finally {
  await browser.close();
  close();
}
