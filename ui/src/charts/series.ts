// The answer of `GET /api/v1/series`: columns for charts.

export interface SeriesAnswer {
  from: string;
  to: string;
  /** Seconds between two points. */
  step: number;
  /** Seconds since 1970. */
  at: number[];
  series: Record<string, (number | null)[]>;
}

export const RANGES = ["1h", "6h", "24h", "7d"] as const;
export type Range = (typeof RANGES)[number];

export function asRange(text: string): Range {
  return (RANGES as readonly string[]).includes(text) ? (text as Range) : "1h";
}

/** Columns of bars that stand on each other: each is the sum of itself and the columns before it. A step without any
 * figure has none. */
export function stacked(columns: (number | null)[][]): (number | null)[][] {
  return columns.map((column, n) => column.map((_, at) => {
    const parts = columns.slice(0, n + 1).flatMap((one) => one[at] ?? []);
    return parts.length === 0 ? null : parts.reduce((sum, part) => sum + part, 0);
  }));
}

/** The columns as rates per second: counts of a step divided by its length. */
export function perSecond(column: (number | null)[] | undefined, step: number): (number | null)[] {
  return (column ?? []).map((value) => (value === null ? null : value / step));
}
