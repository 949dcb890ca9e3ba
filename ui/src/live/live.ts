// Live events for pages: a page names its topics and gets their events. All tabs share one stream.
import { useEffect, useRef, useSyncExternalStore } from "react";
import { identity } from "../api/client";
import { Feed } from "./feed";
import { type LiveEvent, type LiveState, type ToTab, type ToWorker, topicsOf } from "./protocol";

/** How long a hidden tab without a shared worker keeps its stream. */
const HIDDEN_MS = 5_000;
const PING_MS = 20_000;

export type LiveStatus = LiveState | "paused";
type Listener = (event: LiveEvent) => void;

const listeners = new Map<string, Set<Listener>>();
const watchers = new Set<() => void>();
let status: LiveState = "connecting";
let isPaused = false;
let beatAt = 0;
let post: ((message: ToWorker) => void) | undefined;

function changed() {
  for (const watcher of watchers) watcher();
}

function deliver(event: LiveEvent) {
  beatAt = Date.now();
  if (isPaused) return;
  const topics = topicsOf(event) ?? [...listeners.keys()];
  for (const topic of topics) for (const listener of listeners.get(topic) ?? []) listener(event);
}

function receive(message: ToTab) {
  if (message.kind === "event") deliver(message.event);
  else if (message.kind === "beat") beatAt = Date.now();
  else if (status !== message.state) {
    status = message.state;
    if (status === "live") beatAt = Date.now();
    changed();
  }
}

function throughWorker(): (message: ToWorker) => void {
  const worker = new SharedWorker(new URL("./live-worker.ts", import.meta.url), { type: "module", name: "windlass-live-1" });
  worker.port.onmessage = ({ data }: MessageEvent<ToTab>) => receive(data);
  worker.onerror = () => { post = throughTab(); wish(); };
  worker.port.start();
  return (message) => worker.port.postMessage(message);
}

function throughTab(): (message: ToWorker) => void {
  const feed = new Feed({
    event: (event) => receive({ kind: "event", event }),
    state: (state) => receive({ kind: "state", state }),
    beat: () => receive({ kind: "beat" }),
  });
  let topics: string[] = [];
  let headers = {};
  let hiding: ReturnType<typeof setTimeout> | undefined;
  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) hiding = setTimeout(() => feed.stop(), HIDDEN_MS);
    else feed.want(topics, headers);
  });
  return (message) => {
    if (message.kind === "bye") feed.stop();
    else if (message.kind === "ping") feed.hurry();
    else {
      ({ topics, headers } = message);
      feed.want(topics, headers);
    }
  };
}

function wish() {
  post?.({ kind: "topics", topics: [...listeners.keys()], headers: identity() });
}

function start() {
  if (post) return;
  post = typeof SharedWorker === "undefined" ? throughTab() : throughWorker();
  const ping = () => document.hidden || post?.({ kind: "ping" });
  setInterval(() => post?.({ kind: "ping" }), PING_MS);
  document.addEventListener("visibilitychange", ping);
  window.addEventListener("online", ping);
  window.addEventListener("pagehide", () => post?.({ kind: "bye" }));
  window.addEventListener("pageshow", (event) => event.persisted && wish());
}

/** Calls `listener` with each event of `topic` until the returned function is called. */
export function listen(topic: string, listener: Listener): () => void {
  const isNew = !listeners.has(topic);
  const of = listeners.get(topic) ?? new Set();
  of.add(listener);
  listeners.set(topic, of);
  start();
  if (isNew) wish();
  return () => {
    of.delete(listener);
    if (of.size > 0) return;
    listeners.delete(topic);
    wish();
  };
}

/** Sends the identity again, after the viewer signed in. */
export const reconnect = () => wish();

/** Stops or resumes the delivery of events to this tab; on resuming every page reads again. */
export function pause(paused: boolean): void {
  if (isPaused === paused) return;
  isPaused = paused;
  changed();
  if (!paused) deliver({ type: "resync", data: {} });
}

export function liveStatus(): LiveStatus {
  return isPaused ? "paused" : status;
}

export function lastBeat(): number {
  return beatAt;
}

function watch(watcher: () => void) {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
}

export function useLiveStatus(): LiveStatus {
  return useSyncExternalStore(watch, liveStatus);
}

/** Listens to a topic while the component is mounted; `undefined` = to none. */
export function useTopic(topic: string | undefined, listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => (topic ? listen(topic, (event) => latest.current(event)) : undefined), [topic]);
}
