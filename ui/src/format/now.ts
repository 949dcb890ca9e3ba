// One clock for all texts that depend on the time. A text renders again only when it changes.
import { useSyncExternalStore } from "react";

const listeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;
let now = Date.now();

function tick() {
  now = Date.now();
  for (const listener of listeners) listener();
}

function subscribe(listener: () => void) {
  if (listeners.size === 0) {
    now = Date.now();
    timer = setInterval(() => document.hidden || tick(), 1000);
  }
  listeners.add(listener);
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0) clearInterval(timer);
  };
}

if (typeof document !== "undefined") document.addEventListener("visibilitychange", () => document.hidden || tick());

/** The text that `of` makes of the time; `of` runs each second. */
export function useTicking<T extends string | number | undefined>(of: (now: number) => T): T {
  return useSyncExternalStore(subscribe, () => of(now));
}

/** The time in steps of `step` milliseconds. */
export function useNow(step = 1000): number {
  return useTicking((at) => Math.floor(at / step) * step);
}
