import { describe, expect, it } from "vitest";
import { diffLines, mergePatch, readJson } from "./json-input";

describe("typed JSON", () => {
  it("takes an empty text for none", () => expect(readJson("  ")).toEqual({ value: undefined, error: undefined }));
  it("names the error", () => expect(readJson("{").error).toBeTruthy());
  it("wants an object where the server does", () => expect(readJson("[1]", "object").error).toBeTruthy());
});

describe("merge patch", () => {
  it("removes fields with null and merges objects", () => {
    expect(mergePatch({ a: 1, b: { c: 2, d: 3 } }, { a: null, b: { c: 4 }, e: 5 })).toEqual({ b: { c: 4, d: 3 }, e: 5 });
  });
  it("replaces all that is no object", () => expect(mergePatch({ a: [1, 2] }, { a: [3] })).toEqual({ a: [3] }));
  it("keeps the prototype out of it", () => {
    const result = mergePatch({}, JSON.parse('{"__proto__": {"x": 1}}')) as Record<string, unknown>;
    expect((result as { x?: unknown }).x).toBeUndefined();
    expect(Object.keys(result)).toEqual(["__proto__"]);
  });
});

describe("lines of two texts", () => {
  it("finds the common ones", () => {
    expect(diffLines("a\nb\nc", "a\nx\nc").map(({ kind, text }) => `${kind[0]}${text}`)).toEqual(["sa", "rb", "ax", "sc"]);
  });
});
