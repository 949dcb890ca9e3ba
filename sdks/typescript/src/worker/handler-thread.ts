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
  const remedy = "define it at the top level of the module of the app";
  return failureOf(new Error(`the thread knows no service \`${service}\`: ${remedy}`));
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
