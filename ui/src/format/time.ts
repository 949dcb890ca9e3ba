// Times and durations as texts.

export type Zone = "local" | "utc";

/** The unit words of a language; `ago` and `ahead` make a sentence of a number and a unit. */
export interface TimeWords {
  now: string;
  ago: (n: number, unit: TimeUnit) => string;
  ahead: (n: number, unit: TimeUnit) => string;
}
export type TimeUnit = "s" | "m" | "h" | "d";

const STEPS: [number, TimeUnit][] = [[86_400, "d"], [3_600, "h"], [60, "m"], [1, "s"]];

/** "3 s ago", "in 12 s". */
export function relative(at: number, now: number, words: TimeWords): string {
  const seconds = Math.round((now - at) / 1000);
  const size = Math.abs(seconds);
  if (size < 1) return words.now;
  const [unit, word] = STEPS.find(([length]) => size >= length) ?? [1, "s" as const];
  const n = Math.floor(size / unit);
  return seconds > 0 ? words.ago(n, word) : words.ahead(n, word);
}

const two = (n: number) => String(n).padStart(2, "0");

/** "0.9 s", "48.6 s", "1m 04s", "2h 05m", "3d 04h". */
export function duration(ms: number): string {
  if (!Number.isFinite(ms) || ms < 0) return "–";
  if (ms < 1) return "0 s";
  if (ms < 100) return `${Math.round(ms)} ms`;
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`;
  const seconds = Math.round(ms / 1000);
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  if (minutes < 60) return `${minutes}m ${two(seconds % 60)}s`;
  if (hours < 24) return `${hours}h ${two(minutes % 60)}m`;
  return `${Math.floor(hours / 24)}d ${two(hours % 24)}h`;
}

/** "14:31:20" on the same day, else with the date. */
export function clock(at: number, now: number, zone: Zone): string {
  const day = absolute(at, zone).slice(0, 10);
  const text = absolute(at, zone).slice(11, 19);
  return day === absolute(now, zone).slice(0, 10) ? text : `${day} ${text}`;
}

/** "2026-01-31 14:31:20.123 UTC". */
export function absolute(at: number, zone: Zone): string {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "–";
  if (zone === "utc") return `${date.toISOString().slice(0, 23).replace("T", " ")} UTC`;
  const offset = -date.getTimezoneOffset();
  const shifted = new Date(at + offset * 60_000).toISOString().slice(0, 23).replace("T", " ");
  const size = Math.abs(offset);
  return `${shifted} ${offset < 0 ? "-" : "+"}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

/** Milliseconds since 1970 of a time of the API; `undefined` for an absent or unreadable one. */
export function ms(time: string | null | undefined): number | undefined {
  if (!time) return undefined;
  const at = Date.parse(time);
  return Number.isNaN(at) ? undefined : at;
}

/** The time between two times of the API; `undefined` if one is absent. */
export function between(from: string | null | undefined, to: string | null | undefined): number | undefined {
  const [start, end] = [ms(from), ms(to)];
  return start === undefined || end === undefined ? undefined : Math.max(0, end - start);
}
