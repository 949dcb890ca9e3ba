/** References into a run, written as properties: `render.output.urls[0]` is the text `$node.render.output.urls[0]`. */

/** A reference; every property of it is a reference too. In a template string it is its text. */
export interface Reference {
  // `any` and not `Reference`: with `noUncheckedIndexedAccess` a second step would be an error.
  readonly [field: string]: any;
}

const TEXT = Symbol("the text of a reference");
const ROOT = Symbol("the node that a reference reads");

/** Makes a reference; `node` is the node that it reads. */
export function reference(text: string, node?: string): Reference {
  const target = { [TEXT]: text, [ROOT]: node };
  return new Proxy(target, {
    get(of, property) {
      if (property === TEXT || property === ROOT) return of[property as typeof TEXT];
      if (property === Symbol.toPrimitive || property === "toString" || property === "toJSON") return () => text;
      // A reference is no promise, and the symbols of the language are no fields.
      if (typeof property === "symbol" || property === "then") return undefined;
      if (/^\d+$/.test(property)) return reference(`${text}[${property}]`, node);
      if (/^[A-Za-z_][\w-]*$/.test(property)) return reference(`${text}.${property}`, node);
      throw new TypeError(`\`${property}\` cannot stand in a reference: fields have letters, digits, _ and -`);
    },
  }) as unknown as Reference;
}

function isReference(value: unknown): value is Reference & { [TEXT]: string; [ROOT]: string | undefined } {
  return typeof value === "object" && value !== null && (value as { [TEXT]?: string })[TEXT] !== undefined;
}

/** A value with all references as texts; `read` hears of every node that it reads. */
export function plain(value: unknown, read: (node: string) => void): unknown {
  if (isReference(value)) {
    if (value[ROOT] !== undefined) read(value[ROOT]);
    return value[TEXT];
  }
  if (typeof value === "string") {
    for (const [, node] of value.matchAll(/\$node\.([\w-]+)/g)) if (node !== undefined) read(node);
    return value;
  }
  if (Array.isArray(value)) return value.map((one) => plain(one, read));
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, plain(one, read)]));
}
