// Paths of the shared state.

/** Keys that the runtime keeps for itself: hidden unless asked for. `of` is a key or a JSON pointer. */
export function isRuntimeKey(of: string): boolean {
  return /^(\/(shared\/)?)?_rt(\.|\/|$)/.test(of);
}

/** A JSON pointer as people write paths: `/a/b/0` as `a.b[0]`. */
export function pathText(pointer: string): string {
  const parts = pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const text = parts.map((part, n) => (/^\d+$/.test(part) ? `[${part}]` : n === 0 ? part : `.${part}`)).join("");
  return text || pointer || "$";
}
