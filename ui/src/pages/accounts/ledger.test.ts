import { describe, expect, it } from "vitest";
import { csvField, ledgerCsv } from "./ledger";

describe("the ledger as a file", () => {
  it("quotes what would end a field", () => expect(csvField('a,"b"')).toBe('"a,""b"""'));
  it("leaves no formula for a spreadsheet", () => expect(csvField("=1+1")).toBe("'=1+1"));
  it("keeps negative amounts as numbers", () => {
    const text = ledgerCsv([{ seq: 2, at: "t", kind: "charge", amount: -12, balance_after: 88, key: "k" }]);
    expect(text.split("\r\n")[1]).toBe("2,t,charge,-12,88,,,,,k");
  });
});
