// Places of a definition in its text: which lines a path of the definition stands on, and which path the cursor is in.
import type { SyntaxNode, Tree } from "@lezer/common";

export type Segment = string | number;

export interface Place {
  path: Segment[];
  /** The value. */
  from: number;
  to: number;
  /** The key of a pair; absent for items of a list. */
  key?: { from: number; to: number };
}

/** "$.nodes[3].config["a b"]" as segments; `undefined` for a text that is no path. */
export function parsePath(text: string): Segment[] | undefined {
  if (!text.startsWith("$")) return undefined;
  const segments: Segment[] = [];
  const part = /\.([^.[\]"]+)|\[(\d+)\]|\[("(?:\\.|[^"\\])*")\]/y;
  part.lastIndex = 1;
  while (part.lastIndex < text.length) {
    const match = part.exec(text);
    if (!match) return undefined;
    const [, bare, index, quoted] = match;
    segments.push(bare ?? (index !== undefined ? Number(index) : (JSON.parse(quoted ?? '""') as string)));
  }
  return segments;
}

/** "/nodes/0/a~1b" (RFC 6901) as segments. Digits stay texts: the walk compares both spellings. */
export function parsePointer(pointer: string): Segment[] | undefined {
  if (pointer === "") return [];
  if (!pointer.startsWith("/")) return undefined;
  return pointer.slice(1).split("/").map((part) => part.replace(/~1/g, "/").replace(/~0/g, "~"));
}

const isSame = (a: Segment, b: Segment) => String(a) === String(b);

const VALUES = new Set([
  "Object", "Array", "String", "Number", "True", "False", "Null",
  "BlockMapping", "BlockSequence", "FlowMapping", "FlowSequence", "Literal", "QuotedLiteral", "BlockLiteral", "Anchored", "Tagged", "Alias",
]);

function unquoted(text: string): string {
  if (!text.startsWith('"')) return text.startsWith("'") ? text.slice(1, -1).replace(/''/g, "'") : text.trim();
  try {
    return JSON.parse(text) as string;
  } catch {
    return text.slice(1, -1);
  }
}

/** All places of a syntax tree of JSON or YAML, parents before their children. */
export function placesOf(tree: Tree, text: (from: number, to: number) => string): Place[] {
  const places: Place[] = [];
  const valueOf = (node: SyntaxNode): SyntaxNode | undefined => {
    for (let child = node.lastChild; child; child = child.prevSibling) if (VALUES.has(child.name)) return child;
    return undefined;
  };
  const walk = (node: SyntaxNode, path: Segment[]) => {
    let index = 0;
    for (let child = node.firstChild; child; child = child.nextSibling) {
      if (child.name === "Pair" || child.name === "Property") {
        const key = child.getChild("Key") ?? child.getChild("PropertyName");
        if (!key) continue;
        const below = [...path, unquoted(text(key.from, key.to))];
        const value = valueOf(child);
        places.push({ path: below, from: value?.from ?? key.from, to: value?.to ?? child.to, key: { from: key.from, to: key.to } });
        if (value) walk(value, below);
      } else if (child.name === "Item" || (node.name === "Array" && VALUES.has(child.name))) {
        const value = child.name === "Item" ? valueOf(child) : child;
        const below = [...path, index];
        index += 1;
        places.push({ path: below, from: value?.from ?? child.from, to: value?.to ?? child.to });
        if (value) walk(value, below);
      } else if (node.name === "Anchored" || node.name === "Tagged") {
        if (VALUES.has(child.name)) walk(child, path);
      }
    }
  };
  const root = tree.topNode;
  const document = root.getChild("Document") ?? root;
  for (let child = document.firstChild; child; child = child.nextSibling) if (VALUES.has(child.name)) walk(child, []);
  return places;
}

/** The place of a path, or of its nearest parent that the text has. */
export function placeOf(places: Place[], path: Segment[]): Place | undefined {
  let best: Place | undefined;
  for (const place of places) {
    if (place.path.length > path.length || !place.path.every((segment, n) => isSame(segment, path[n] as Segment))) continue;
    if (!best || place.path.length > best.path.length) best = place;
  }
  return best;
}

/** The path that a position is in. */
export function pathAt(places: Place[], at: number): Segment[] {
  let best: Segment[] = [];
  for (const { path, from, to, key } of places) {
    if ((key?.from ?? from) <= at && at <= to && path.length >= best.length) best = path;
  }
  return best;
}

/** Whether `path` is `prefix` or lies inside of it. */
export function startsWith(path: Segment[], prefix: Segment[]): boolean {
  return prefix.length <= path.length && prefix.every((segment, n) => isSame(segment, path[n] as Segment));
}
