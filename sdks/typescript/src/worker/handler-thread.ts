/** The entry point of a handler thread: it loads the module of the services, and answers one call after another. */
import { parentPort, workerData } from "node:worker_threads";
import { Call } from "../call.ts";
import { failureOf, jsonOf, type Outcome } from "../outcome.ts";
import { markHandlerThread, registeredApps } from "./app-registry.ts";
import type { ToHandlerThread, ThreadCall } from "./handler-threads.ts";

markHandlerThread();
let current: Call | undefined;
const loaded = import((workerData as { module: string }).module);

async function answer({ service, isQueue, fields, input }: ThreadCall): Promise<Outcome> {
  const call = new Call(fields);
  current = call;
  try {
    await loaded;
  } catch (error) {
    return failureOf(error);
  }
  const definitions = registeredApps().flatMap((app) => app.definitions);
  const definition = definitions.find((one) => one.name === service && (one.kind === "queue") === isQueue);
  if (definition === undefined) {
    return failureOf(new Error(`the module of the app does not define \`${service}\` when it is loaded: define it at its top level`));
  }
  return definition.answer(call, input);
}

parentPort?.on("message", async (message: ToHandlerThread) => {
  if (message.kind === "stop") return current?.stop(message.reason);
  const outcome = await answer(message);
  current = undefined;
  parentPort?.postMessage({ outcome: jsonOf(outcome) });
});
