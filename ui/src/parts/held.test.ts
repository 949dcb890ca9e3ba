import { describe, expect, it } from "vitest";
import { holdRows } from "./held";

const rows = (text: string) => [...text].map((key) => ({ key, n: text.length }));
const hold = (shown: string | undefined, next: string) => {
  const { rows: held, waiting } = holdRows(shown === undefined ? undefined : [...shown], rows(next), (row) => row.key);
  return `${held.map((row) => row.key).join("")}+${waiting}`;
};

describe("rows that hold still", () => {
  it("shows the first answer as it is", () => expect(hold(undefined, "abc")).toBe("abc+0"));
  it("lets new rows above wait", () => expect(hold("cd", "abcd")).toBe("cd+2"));
  it("appends rows of a later page", () => expect(hold("ab", "abcd")).toBe("abcd+0"));
  it("drops rows that are gone and keeps the places of the others", () => expect(hold("abc", "ca")).toBe("ac+0"));
  it("starts over when no known row is left", () => expect(hold("ab", "cd")).toBe("cd+0"));
  it("gives known rows their new values", () => {
    const { rows: held } = holdRows(["a"], [{ key: "a", n: 7 }], (row) => row.key);
    expect(held).toEqual([{ key: "a", n: 7 }]);
  });
});
