import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Feed } from "./feed";
import type { LiveEvent } from "./protocol";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

interface Connection { url: string; headers: Record<string, string>; send: (text: string) => void; close: () => void; isAborted: () => boolean }

/** A server whose streams the test writes; `isUp = false` refuses connections. */
function server() {
  const connections: Connection[] = [];
  const state = { isUp: true };
  const get = (async (url: string, init: RequestInit) => {
    if (!state.isUp) throw new TypeError("refused");
    const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>();
    const writer = writable.getWriter();
    connections.push({
      url, headers: init.headers as Record<string, string>, send: (text) => void writer.write(new TextEncoder().encode(text)).catch(() => undefined), close: () => void writer.close().catch(() => undefined),
      isAborted: () => init.signal?.aborted ?? false,
    });
    return new Response(readable, { status: 200 });
  }) as unknown as typeof fetch;
  return { connections, state, get };
}

function feedOn(get: typeof fetch) {
  const events: LiveEvent[] = [];
  const states: string[] = [];
  const feed = new Feed({ event: (event) => events.push(event), state: (state) => states.push(state), beat: () => undefined }, get);
  return { feed, events, states };
}

const settle = (ms = 50) => vi.advanceTimersByTimeAsync(ms);

test("topics of all pages go into one connection", async () => {
  const { connections, get } = server();
  const { feed } = feedOn(get);
  feed.want(["runs", "run:2"]);
  feed.want(["runs", "run:2", "overview", "runs"]);
  await settle();
  expect(connections).toHaveLength(1);
  expect(connections[0]?.url).toBe("/api/v1/events?topics=overview%2Crun%3A2%2Cruns");
});

test("a lost stream goes on after the last event", async () => {
  const { connections, get } = server();
  const { feed, events, states } = feedOn(get);
  feed.want(["runs"]);
  await settle();
  connections[0]?.send('event: hello\ndata: {"topics":["runs"]}\n\nid: 41\nevent: runs\ndata: {}\n\n');
  await settle();
  connections[0]?.close();
  await settle(400);
  expect(connections).toHaveLength(2);
  expect(connections[1]?.headers["last-event-id"]).toBe("41");
  expect(events.map((event) => event.type)).toEqual(["hello", "runs"]);
  expect(states).toEqual(["connecting", "live", "connecting", "connecting"]);
});

test("only topics whose events begin are said to begin", async () => {
  const { connections, get } = server();
  const { feed, events } = feedOn(get);
  feed.want(["runs"]);
  await settle();
  connections[0]?.send('id: 1\nevent: hello\ndata: {"topics":["runs"]}\n\n');
  await settle();
  feed.want(["runs", "queues"]);
  await settle();
  connections[1]?.send('id: 2\nevent: hello\ndata: {"topics":["queues","runs"]}\n\n');
  await settle();
  expect(events).toEqual([{ type: "hello", data: { topics: ["runs"] } }, { type: "hello", data: { topics: ["queues"] } }]);
  expect([feed.follows("queues"), feed.follows("flows")]).toEqual([true, false]);
});

test("without a stream pages read again every five seconds, until a stream works", async () => {
  const { connections, state, get } = server();
  const { feed, events, states } = feedOn(get);
  state.isUp = false;
  feed.want(["runs"]);
  await settle(40_000);
  expect(states.at(-1)).toBe("polling");
  const polled = events.filter((event) => event.type === "resync").length;
  expect(polled).toBeGreaterThanOrEqual(4);
  state.isUp = true;
  await settle(6_000);
  connections[0]?.send("event: hello\ndata: {}\n\n");
  await settle();
  expect(states.at(-1)).toBe("live");
  const before = events.length;
  await settle(12_000);
  expect(events.length).toBe(before);
  feed.stop();
});

test("a silent stream is given up", async () => {
  const { connections, get } = server();
  const { feed } = feedOn(get);
  feed.want(["runs"]);
  await settle();
  await settle(41_000);
  expect(connections[0]?.isAborted()).toBe(true);
});

test("without topics there is no connection", async () => {
  const { connections, get } = server();
  const { feed } = feedOn(get);
  feed.want(["runs"]);
  await settle();
  feed.want([]);
  await settle(10_000);
  expect(connections).toHaveLength(1);
  expect(connections[0]?.isAborted()).toBe(true);
});
