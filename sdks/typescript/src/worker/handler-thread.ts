/** The entry point of a handler thread: it loads the module of the services, and answers one call after another. */
import { parentPort, workerData } from "node:worker_threads";
import type { Call } from "../call.ts";
import type { StopReason } from "../errors.ts";
import { failureOf, jsonOf, type Outcome } from "../outcome.ts";
import { markHandlerThread, registeredApps } from "./app-registry.ts";
import type { ToHandlerThread, ThreadCall } from "./handler-threads.ts";

markHandlerThread();
let current: Call | undefined;
let early: StopReason | undefined;
const loaded = import((workerData as { module: string }).module);

async function answer({ service, isQueue, fields, input }: ThreadCall): Promise<Outcome> {
  try {
    await loaded;
  } catch (error) {
    return failureOf(error);
  }
  for (const app of registeredApps()) {
    const definition = app.definitions.find((one) => one.name === service && (one.kind === "queue") === isQueue);
    if (definition === undefined) continue;
    const call = app.call(fields);
    current = call;
    if (early) call.stop(early);
    return definition.answer(call, input);
  }
  return failureOf(new Error(`the module of the app does not define \`${service}\` when it is loaded: define it at its top level`));
}

parentPort?.on("message", async (message: ToHandlerThread) => {
  if (message.kind === "stop") {
    // The module may still be loading.
    early = message.reason;
    return current?.stop(message.reason);
  }
  early = undefined;
  const outcome = await answer(message);
  current = undefined;
  parentPort?.postMessage({ outcome: jsonOf(outcome) });
});
