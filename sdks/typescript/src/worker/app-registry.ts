/** The apps of this process or thread, for the command and the threads that load a module for its services. */
import type { App } from "../app.ts";

// Symbols of the registry are the same in every copy of this package: a program may load it as ESM and as CommonJS.
const APPS = Symbol.for("windlass.apps");
const THREAD = Symbol.for("windlass.handler-thread");

type WindlassGlobal = { [APPS]?: App[]; [THREAD]?: boolean };

const place = globalThis as unknown as WindlassGlobal;

export function registerApp(app: App): void {
  (place[APPS] ??= []).push(app);
}

export function registeredApps(): readonly App[] {
  return place[APPS] ?? [];
}

/** Marks this thread as one that only lends its handlers. */
export function markHandlerThread(): void {
  place[THREAD] = true;
}

export function isHandlerThread(): boolean {
  return place[THREAD] === true;
}
