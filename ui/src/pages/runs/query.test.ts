import { expect, test } from "vitest";
import { completions, errorPlace, FIELDS, quotedValue, terms, valuesOf, withField, without, withTerm } from "./query";

test("terms are split at spaces outside of quotes, with their places", () => {
  const found = terms('status:failed  -flow:"a b" error~"say \\"no\\" twice" word params.x=5');
  expect(found.map((one) => one.text)).toEqual(["status:failed", '-flow:"a b"', 'error~"say \\"no\\" twice"', "word", "params.x=5"]);
  expect(found[1]).toMatchObject({ field: "flow", operator: ":", isNegated: true, from: 15, to: 26 });
  expect(found[3]).toEqual({ text: "word", from: 52, to: 56, value: "word", isNegated: false });
  expect(found[4]).toMatchObject({ field: "params.x", operator: "=", value: "5" });
});

test("terms are added once and removed", () => {
  expect(withTerm("status:failed", "flow:pay")).toBe("status:failed flow:pay");
  expect(withTerm("status:failed", "status:failed")).toBe("status:failed");
  const query = "a b a";
  const [first] = terms(query);
  expect(first && without(query, first)).toBe("b a");
});

test("a field is set to one value; its negation stays", () => {
  expect(withField("status:failed -status:paused x", "status", "running")).toBe("-status:paused x status:running");
  expect(withField("status:failed x", "status", undefined)).toBe("x");
  expect(withField("", "flow", "a b")).toBe('flow:"a b"');
  expect(valuesOf("status:failed,canceled -status:paused", "status")).toEqual(["failed", "canceled"]);
});

test("values with spaces, commas and quotes are quoted", () => {
  expect([quotedValue("a"), quotedValue("a b"), quotedValue('"'), quotedValue("")]).toEqual(["a", '"a b"', '"\\""', '""']);
});

test("fields are completed first, then their values", () => {
  expect(completions("", {}).length).toBe(FIELDS.length);
  expect(completions("st", {})).toEqual([{ text: "status:", hint: "status", isWhole: false }]);
  expect(completions("-st", {})[0]?.text).toBe("-status:");
  expect(completions("status:fa", {})).toEqual([{ text: "status:failed", isWhole: true }]);
  expect(completions("status:failed,wai", {})[0]?.text).toBe("status:failed,waiting");
  expect(completions("flow:hum", { flow: ["digital human", "pay"] })).toEqual([{ text: 'flow:"digital human"', isWhole: true }]);
  expect(completions("nothing:", {})).toEqual([]);
});

test("the place of a mistake is read from the server's error", () => {
  expect(errorPlace("?query:7")).toBe(7);
  expect(errorPlace("?limit")).toBeUndefined();
});
