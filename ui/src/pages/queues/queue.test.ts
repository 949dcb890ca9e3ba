import { describe, expect, it } from "vitest";
import { queuesWords } from "../../words/queues";
import { depths, formOf, limitFlags, limitsOf, limitsText } from "./queue";

const limits = { concurrency: 5, rate: { count: 100, per_ms: 60_000, burst: 7 }, key_concurrency: 1, fair: true };

describe("a queue", () => {
  it("counts what waits apart from what can be claimed", () => {
    expect(depths({ depth: { queued: 3, pending: 2, retrying: 1, running: 4, suspended: 1 } })).toEqual({ ready: 3, later: 4, running: 4 });
  });
  it("says its limits in one line", () => expect(limitsText(limits, queuesWords.en)).toBe("5 at once, 100 / m, 1 at once per key"));
  it("gives a form back as it was", () => expect(JSON.parse(JSON.stringify(limitsOf(formOf(limits))))).toEqual(limits));
  it("takes an empty field for no limit", () => expect(limitFlags(formOf({}))).toEqual(["--concurrency", "none", "--rate", "none", "--key-concurrency", "none", "--key-rate", "none", "--no-fair"]));
});
