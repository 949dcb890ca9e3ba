// The one connection to the event stream. It runs in the shared worker, or in the tab where shared workers are missing.
// It reconnects with the id of the last event; when streaming fails repeatedly, it asks the pages to read again every
// five seconds and goes on trying.
import type { LiveEvent, LiveState } from "./protocol";
import { SseParser } from "./sse";

const RETRY_MS = [250, 500, 1_000, 2_000, 5_000];
const POLL_MS = 5_000;
/** The server comments every 15 s; a stream that is silent for longer than two of them is dead. */
const SILENCE_MS = 40_000;
/** Pages add and remove topics while they mount: a change waits for the next one. */
const SETTLE_MS = 30;
/** Failures in a row after which pages poll. */
const FAILURES_MAX = 6;

export interface FeedHandler {
  event(event: LiveEvent): void;
  state(state: LiveState): void;
  beat(): void;
}

export class Feed {
  private topics: string[] = [];
  private headers: Record<string, string> = {};
  private lastId: string | undefined;
  private abort: AbortController | undefined;
  private retry: ReturnType<typeof setTimeout> | undefined;
  private poll: ReturnType<typeof setInterval> | undefined;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private failures = 0;
  private followed: ReadonlySet<string> = new Set();

  constructor(private readonly handler: FeedHandler, private readonly get: typeof fetch = (...args) => fetch(...args)) {}

  /** Connects for these topics; none = disconnects. */
  want(topics: string[], headers: Record<string, string> = this.headers) {
    const sorted = [...new Set(topics)].sort();
    const isSame = sorted.join() === this.topics.join() && JSON.stringify(headers) === JSON.stringify(this.headers);
    this.headers = headers;
    this.topics = sorted;
    if (isSame && (this.abort || sorted.length === 0)) return;
    this.stop();
    if (sorted.length > 0) this.later(SETTLE_MS);
  }

  /** Connects now if the connection waits for its next try. */
  hurry() {
    if (!this.abort && this.topics.length > 0) this.later(0);
  }

  stop() {
    this.abort?.abort();
    this.abort = undefined;
    clearTimeout(this.retry);
    clearTimeout(this.silence);
    this.stopPolling();
  }

  private later(ms: number) {
    clearTimeout(this.retry);
    this.retry = setTimeout(() => void this.connect(), ms);
  }

  private async connect() {
    const abort = new AbortController();
    this.abort = abort;
    if (this.failures < FAILURES_MAX) this.handler.state("connecting");
    try {
      const query = new URLSearchParams({ topics: this.topics.join(",") });
      const headers = { accept: "text/event-stream", ...this.headers, ...(this.lastId && { "last-event-id": this.lastId }) };
      const response = await this.get(`/api/v1/events?${query}`, { headers, signal: abort.signal, cache: "no-store" });
      // An id that the server does not know: the next try begins without one.
      if (response.status === 400) {
        this.lastId = undefined;
        this.followed = new Set();
      }
      if (!response.ok || !response.body) throw new Error(`status ${response.status}`);
      await this.read(response.body, abort);
    } catch {
      // Every failure has the same answer: the next try.
    }
    if (this.abort !== abort) return;
    this.abort = undefined;
    clearTimeout(this.silence);
    this.failed();
  }

  private async read(body: ReadableStream<Uint8Array>, abort: AbortController) {
    const parser = new SseParser();
    const reader = body.pipeThrough(new TextDecoderStream() as unknown as TransformStream<Uint8Array, string>).getReader();
    this.watch(abort);
    for (;;) {
      const { value, done } = await reader.read();
      if (done || abort.signal.aborted) return;
      this.watch(abort);
      const { messages, isBeat } = parser.push(value);
      for (const message of messages) this.tell(message.type, message.data, message.id);
      if (isBeat || messages.length > 0) this.handler.beat();
    }
  }

  private watch(abort: AbortController) {
    clearTimeout(this.silence);
    this.silence = setTimeout(() => abort.abort(), SILENCE_MS);
  }

  private tell(type: string, text: string, id: string | undefined) {
    if (id !== undefined) this.lastId = id;
    if (type === "hello") {
      this.failures = 0;
      this.stopPolling();
      this.handler.state("live");
    }
    try {
      const data: unknown = JSON.parse(text);
      this.handler.event({ type, data: type === "hello" ? { topics: this.begun(data) } : data });
    } catch {
      this.handler.event({ type: "resync", data: {} });
    }
  }

  /** Whether events of the topic arrive since before now. */
  follows(topic: string): boolean {
    return this.followed.has(topic);
  }

  /** The topics of a `hello` whose events begin with it. The others go on after the last event: the server names what
   * they missed. */
  private begun(data: unknown): string[] {
    const topics = (data as { topics?: string[] }).topics ?? this.topics;
    const begun = topics.filter((topic) => !this.followed.has(topic));
    this.followed = new Set(topics);
    return begun;
  }

  private failed() {
    this.failures += 1;
    if (this.failures >= FAILURES_MAX && this.poll === undefined) {
      this.handler.state("polling");
      this.poll = setInterval(() => this.handler.event({ type: "resync", data: {} }), POLL_MS);
    } else if (this.failures < FAILURES_MAX) {
      this.handler.state("connecting");
    }
    this.later(RETRY_MS[Math.min(this.failures, RETRY_MS.length) - 1] ?? 250);
  }

  private stopPolling() {
    clearInterval(this.poll);
    this.poll = undefined;
  }
}
