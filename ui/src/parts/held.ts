// Rows that hold still: new rows above the known ones wait until the viewer asks for them.

/** Merges `next` into the rows that are shown. Known rows get their new values and keep their places; rows that are gone
 * disappear; rows that follow a known one (older ones, of a later page) are appended; rows above all known ones wait. */
export function holdRows<T>(shown: readonly string[] | undefined, next: readonly T[], keyOf: (row: T) => string): { rows: T[]; waiting: number } {
  if (shown === undefined || shown.length === 0) return { rows: [...next], waiting: 0 };
  const byKey = new Map(next.map((row) => [keyOf(row), row]));
  const known = new Set(shown);
  const kept = shown.flatMap((key) => byKey.get(key) ?? []);
  if (kept.length === 0) return { rows: [...next], waiting: 0 };
  const firstKnown = next.findIndex((row) => known.has(keyOf(row)));
  const older = next.slice(firstKnown).filter((row) => !known.has(keyOf(row)));
  return { rows: [...kept, ...older], waiting: next.slice(0, firstKnown).length };
}
