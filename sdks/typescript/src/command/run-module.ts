/** Loads the module of an app and runs its worker. */
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { App } from "../app.ts";
import { registeredApps } from "../worker/app-registry.ts";
import type { CommandArguments } from "./arguments.ts";

export async function runModule({ module, server, reload: _, ...options }: CommandArguments): Promise<void> {
  if (server !== undefined) process.env.WINDLASS_SERVER = server;
  const url = pathToFileURL(resolve(module)).href;
  const exported = (await import(url)) as Record<string, unknown>;
  const app = appOf(exported, module);
  app.module ??= url;
  await app.run(options);
}

/** The app of a module: its default export, its export `app`, or the only one that it made. */
function appOf(exported: Record<string, unknown>, module: string): App {
  for (const one of [exported.default, exported.app]) if (isApp(one)) return one;
  const [app, ...others] = registeredApps();
  if (app === undefined) throw new Error(`${module} makes no app: it needs \`export const app = new App()\``);
  if (others.length > 0) throw new Error(`${module} makes several apps: export the one to run as \`app\``);
  return app;
}

function isApp(value: unknown): value is App {
  return typeof value === "object" && value !== null && (value as { isWindlassApp?: unknown }).isWindlassApp === true;
}
