// JSON as coloured tokens. A value of many megabytes must not reach the document: the text is cut.

export interface JsonToken {
  /** `k` key, `v` text, `n` number or boolean, `z` null; absent for punctuation. */
  kind?: "k" | "v" | "n" | "z";
  text: string;
}

/** Characters that are coloured; more are shown plain. */
export const COLOURED_MAX = 60_000;
/** Characters that are shown at all. */
export const SHOWN_MAX = 400_000;

const TOKEN = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false)\b|\bnull\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;

export function tokens(text: string): JsonToken[] {
  if (text.length > COLOURED_MAX) return [{ text }];
  const found: JsonToken[] = [];
  let at = 0;
  for (const match of text.matchAll(TOKEN)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index) });
    const [whole, quoted, colon] = match;
    if (quoted !== undefined) {
      found.push({ kind: colon === undefined ? "v" : "k", text: quoted });
      if (colon !== undefined) found.push({ text: colon });
    } else {
      found.push({ kind: whole === "null" ? "z" : "n", text: whole });
    }
    at = match.index + whole.length;
  }
  if (at < text.length) found.push({ text: text.slice(at) });
  return found;
}

/** The indented text of a value, and whether it was cut. */
export function pretty(value: unknown): { text: string; isCut: boolean } {
  const text = JSON.stringify(value, null, 2) ?? "null";
  return text.length > SHOWN_MAX ? { text: text.slice(0, SHOWN_MAX), isCut: true } : { text, isCut: false };
}
