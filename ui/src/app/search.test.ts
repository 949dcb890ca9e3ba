import { expect, test } from "vitest";
import { parseSearch, writeSearch } from "./search";

test("search parameters are plain texts, both ways", () => {
  const search = { q: 'status:failed flow:"a b"', cursor: "5", tab: "état/1" };
  expect(parseSearch(writeSearch(search))).toEqual(search);
  expect(writeSearch({ q: "status:failed,canceled", tab: undefined, node: "" })).toBe("?q=status:failed,canceled");
  expect(writeSearch({})).toBe("");
});
