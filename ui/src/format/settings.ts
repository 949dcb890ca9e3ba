// The viewer's settings: language, theme, time zone. They live in the browser's storage and are shared by its tabs.
import { useSyncExternalStore } from "react";
import { store, stored } from "../api/client";
import type { Zone } from "./time";

export type Language = "en" | "zh";
export type Theme = "system" | "light" | "dark";

export interface Settings {
  language: Language;
  theme: Theme;
  zone: Zone;
}

function load(): Settings {
  const theme = stored("windlass.theme");
  const language = stored("windlass.language") ?? (typeof navigator === "undefined" ? "en" : navigator.language);
  return {
    language: language.startsWith("zh") ? "zh" : "en",
    theme: theme === "light" || theme === "dark" ? theme : "system",
    zone: stored("windlass.zone") === "utc" ? "utc" : "local",
  };
}

let settings = load();
const listeners = new Set<() => void>();

function apply() {
  const root = document.documentElement;
  if (settings.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = settings.theme;
  root.lang = settings.language === "zh" ? "zh-CN" : "en";
  for (const listener of listeners) listener();
}

export function currentSettings(): Settings {
  return settings;
}

export function changeSettings(change: Partial<Settings>): void {
  settings = { ...settings, ...change };
  store("windlass.language", settings.language);
  store("windlass.theme", settings.theme === "system" ? undefined : settings.theme);
  store("windlass.zone", settings.zone);
  apply();
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function useSettings(): Settings {
  return useSyncExternalStore(subscribe, currentSettings);
}

if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => {
    if (!event.key?.startsWith("windlass.")) return;
    settings = load();
    apply();
  });
}
