/** The entry point of the link thread. */
import { parentPort, workerData } from "node:worker_threads";
import type { LinkConfig, ToLink } from "./messages.ts";
import { ServerLink } from "./server-link.ts";

const link = new ServerLink(workerData as LinkConfig, (message) => parentPort?.postMessage(message));

parentPort?.on("message", (message: ToLink) => {
  switch (message.kind) {
    case "ends": return link.end(message.ends);
    case "load": return link.setLoad(message.load);
    case "drain": return link.drain();
  }
});
link.start();
