// Which dead letters an action is for, and the request that says so.
import { diffLines, mergePatch } from "../../parts/json-input";

export interface LetterTarget {
  queue: string;
  /** The letters; absent = all of the group, or of the queue. */
  ids?: string[];
  fingerprint?: string;
  message?: string;
  count: number;
}

/** Letters that one request moves at most; the same as in the server. */
export const MOVED_MAX = 10_000;

/** The part of the body that selects letters. */
export function selection({ ids, fingerprint }: LetterTarget): { ids: string[] } | { fingerprint: string; count: number } | { count: number } {
  if (ids) return { ids };
  return fingerprint === undefined ? { count: MOVED_MAX } : { fingerprint, count: MOVED_MAX };
}

/** The same as words of `windlass dlq`. */
export function selectionFlags({ ids, fingerprint }: LetterTarget): string[] {
  if (ids) return ids;
  return fingerprint === undefined ? ["--all"] : ["--group", fingerprint];
}

/** The lines of a payload that a patch changes. */
export function patchPreview(payload: unknown, patch: unknown): { kind: "added" | "removed"; text: string }[] {
  const text = (value: unknown) => JSON.stringify(value, null, 2) ?? "null";
  // Commas at line ends differ without a change of the line's value.
  const bare = (value: unknown) => text(value).split("\n").map((line) => line.replace(/,$/, "")).join("\n");
  return diffLines(bare(payload), bare(mergePatch(payload, patch))).flatMap(({ kind, text: line }) => (kind === "same" ? [] : [{ kind, text: line.trim() }]));
}

/** The merge patch that makes `after` of `before`. */
export function patchBetween(before: unknown, after: unknown): unknown {
  const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null && !Array.isArray(value);
  if (!isObject(before) || !isObject(after)) return after;
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) patch[key] = null;
  for (const [key, value] of Object.entries(after)) {
    if (JSON.stringify(before[key]) !== JSON.stringify(value)) patch[key] = Object.hasOwn(before, key) ? patchBetween(before[key], value) : value;
  }
  return patch;
}
