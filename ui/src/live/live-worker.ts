// The shared worker: one event stream for all tabs of a browser. A browser opens at most six connections to one host
// over HTTP/1.1, so one stream for each tab would leave the seventh tab without any.
import { Feed } from "./feed";
import { type LiveState, type ToTab, type ToWorker, topicsOf } from "./protocol";

/** Hidden tabs may run a timer once in a minute: a tab that was silent for five is gone. */
const TAB_SILENCE_MS = 5 * 60_000;

interface Tab {
  topics: Set<string>;
  seenAt: number;
}

const tabs = new Map<MessagePort, Tab>();
let state: LiveState = "connecting";

function send(port: MessagePort, message: ToTab) {
  port.postMessage(message);
}

const feed = new Feed({
  event(event) {
    const topics = topicsOf(event);
    for (const [port, tab] of tabs) {
      if (topics === undefined || topics.some((topic) => tab.topics.has(topic))) send(port, { kind: "event", event });
    }
  },
  state(next) {
    state = next;
    for (const port of tabs.keys()) send(port, { kind: "state", state });
  },
  beat() {
    for (const port of tabs.keys()) send(port, { kind: "beat" });
  },
});

function connect(headers?: Record<string, string>) {
  feed.want([...tabs.values()].flatMap((tab) => [...tab.topics]), headers);
}

function receive(port: MessagePort, message: ToWorker) {
  if (message.kind === "bye") {
    tabs.delete(port);
    connect();
    return;
  }
  const tab = tabs.get(port) ?? { topics: new Set<string>(), seenAt: 0 };
  tab.seenAt = Date.now();
  tabs.set(port, tab);
  if (message.kind === "topics") {
    const added = message.topics.filter((topic) => !tab.topics.has(topic) && feed.follows(topic));
    tab.topics = new Set(message.topics);
    // Another tab follows these topics already: for this one they begin now.
    if (added.length > 0) send(port, { kind: "event", event: { type: "hello", data: { topics: added } } });
    send(port, { kind: "state", state });
    connect(message.headers);
  }
  // A tab that its user looks at again asks for a quick reconnection.
  if (message.kind === "ping") feed.hurry();
}

setInterval(() => {
  const before = tabs.size;
  for (const [port, tab] of tabs) if (Date.now() - tab.seenAt > TAB_SILENCE_MS) tabs.delete(port);
  if (tabs.size !== before) connect();
}, 60_000);

(self as unknown as SharedWorkerGlobalScope).onconnect = (event) => {
  const port = event.ports[0];
  if (!port) return;
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => receive(port, data);
};
