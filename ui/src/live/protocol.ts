// The events of `GET /api/v1/events?topics=…` and the messages between a tab and the shared worker.

export type LiveState = "connecting" | "live" | "polling";

export interface LiveEvent {
  /** `hello`, `patch`, `runs`, `changed`, `overview`, `bulk` or `resync`. */
  type: string;
  data: unknown;
}

/** From a tab to the worker. `ping` shows that the tab is there: a closed tab says nothing. */
export type ToWorker =
  | { kind: "topics"; topics: string[]; headers: Record<string, string> }
  | { kind: "ping" }
  | { kind: "bye" };

/** From the worker to a tab. */
export type ToTab =
  | { kind: "event"; event: LiveEvent }
  | { kind: "state"; state: LiveState }
  /** A sign of life of the stream: a comment or an event. */
  | { kind: "beat" };

/** The topics that an event concerns; `undefined` = all. */
export function topicsOf(event: LiveEvent): string[] | undefined {
  const data = (event.data ?? {}) as { topic?: string; topics?: string[]; id?: string };
  switch (event.type) {
    case "hello": return data.topics ?? [];
    case "patch": case "changed": return data.topic ? [data.topic] : [];
    case "resync": return data.topic ? [data.topic] : undefined;
    case "runs": return ["runs"];
    case "overview": return ["overview"];
    case "bulk": return data.id ? [`bulk:${data.id}`] : [];
    default: return [];
  }
}
