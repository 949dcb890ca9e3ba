import { expect, test } from "vitest";
import { asRange, perSecond, stacked } from "./series";

test("a rate is a count by the length of its step", () => {
  expect(perSecond([10, null, 0], 10)).toEqual([1, null, 0]);
  expect(perSecond(undefined, 10)).toEqual([]);
});

test("bars stand on each other; a step without any figure has no bar", () => {
  expect(stacked([[1, null, null, 4], [2, 3, null, null], [null, 1, null, 0]])).toEqual([[1, null, null, 4], [3, 3, null, 4], [3, 4, null, 4]]);
});

test("an unknown range is an hour", () => {
  expect([asRange("7d"), asRange("9y")]).toEqual(["7d", "1h"]);
});
