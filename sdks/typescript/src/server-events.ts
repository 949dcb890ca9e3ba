/** Server-sent events with a cursor: a stream goes on after a lost connection where it ended. */
import { WindlassError } from "./errors.ts";
import type { Transport } from "./transport.ts";
import { pause } from "./waiting.ts";

/** The server sends a comment every 15 seconds: a stream that is silent for longer is dead. */
const SILENCE_MS = 45_000;
const RETRY_DELAY_MS = 200;
const RETRY_DELAY_MAX_MS = 5_000;

export interface ServerEvent {
  name: string;
  id: string | undefined;
  data: string;
}

/** Takes text in pieces and returns the events that are complete. */
export class EventParser {
  #rest = "";

  push(text: string): ServerEvent[] {
    const blocks = (this.#rest + text).split(/\r?\n\r?\n/);
    this.#rest = blocks.pop() ?? "";
    return blocks.map(eventOf).filter((event) => event !== undefined);
  }
}

function eventOf(block: string): ServerEvent | undefined {
  const fields: Record<string, string[]> = {};
  for (const line of block.split(/\r?\n/)) {
    const [, name, value] = /^(\w+): ?(.*)$/.exec(line) ?? [];
    if (name !== undefined) (fields[name] ??= []).push(value ?? "");
  }
  const data = fields.data?.join("\n");
  if (data === undefined) return undefined;
  return { name: fields.event?.[0] ?? "message", id: fields.id?.[0], data };
}

/** Reads a stream without end; the caller leaves it. The first request must be answered, later ones are repeated. */
export async function* readEvents(
  transport: Transport, path: string, last: string | undefined, signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent, void, undefined> {
  let hasBegun = false;
  for (let delay = RETRY_DELAY_MS; !signal?.aborted; ) {
    try {
      for await (const event of connection(transport, path, last, signal)) {
        hasBegun = true;
        delay = RETRY_DELAY_MS;
        last = event.id ?? last;
        yield event;
      }
    } catch (error) {
      const isWaitable = hasBegun && !(error instanceof WindlassError && !error.isTemporary);
      if (!isWaitable && !signal?.aborted) throw error;
    }
    await pause(delay, signal);
    delay = Math.min(delay * 2, RETRY_DELAY_MAX_MS);
  }
}

/** The events of one connection. */
async function* connection(
  transport: Transport, path: string, last: string | undefined, signal: AbortSignal | undefined,
): AsyncGenerator<ServerEvent, void, undefined> {
  const silence = new AbortController();
  const timer = setTimeout(() => silence.abort(), SILENCE_MS);
  const headers = { accept: "text/event-stream", ...(last === undefined ? {} : { "last-event-id": last }) };
  try {
    const signals = [silence.signal, ...(signal ? [signal] : [])];
    const response = await transport.open(path, { headers, signal: AbortSignal.any(signals) });
    const parser = new EventParser();
    const decoder = new TextDecoder();
    for await (const chunk of response.body ?? []) {
      timer.refresh();
      yield* parser.push(decoder.decode(chunk as Uint8Array, { stream: true }));
    }
  } finally {
    clearTimeout(timer);
    silence.abort();
  }
}
