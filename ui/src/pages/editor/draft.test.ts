import { describe, expect, it } from "vitest";
import { readable } from "./draft";

describe("a published text", () => {
  it("gets lines if it is one line of JSON", () => expect(readable('{"a":{"b":1}}')).toBe('{\n  "a": {\n    "b": 1\n  }\n}\n'));
  it("stays as it was written otherwise", () => {
    for (const text of ['{\n "a": 1}', "a: 1\nb: 2\n", "{broken", "a: {b: 1}"]) expect(readable(text)).toBe(text);
  });
});
