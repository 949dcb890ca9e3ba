/** JSON values: comparison, and the list of their differences. */

/** A difference between two JSON values; `path` is a JSON pointer. */
export interface JsonChange {
  path: string;
  kind: "added" | "removed" | "changed";
  before?: unknown;
  after?: unknown;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

/** Whether two JSON values are equal; the order of keys does not count. */
export function isSame(one: unknown, other: unknown): boolean {
  return changes(one, other).next().done === true;
}

/** The differences between two JSON values. Arrays are compared place by place. */
export function* changes(before: unknown, after: unknown, path = ""): Generator<JsonChange, void, undefined> {
  if (before === after) return;
  const isPair = (isObject(before) && isObject(after)) || (Array.isArray(before) && Array.isArray(after));
  if (!isPair) {
    yield { path, kind: "changed", before, after };
    return;
  }
  const [old, now] = [before as Record<string, unknown>, after as Record<string, unknown>];
  for (const key of new Set([...Object.keys(old), ...Object.keys(now)])) {
    const at = `${path}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (!(key in now)) yield { path: at, kind: "removed", before: old[key] };
    else if (!(key in old)) yield { path: at, kind: "added", after: now[key] };
    else yield* changes(old[key], now[key], at);
  }
}
