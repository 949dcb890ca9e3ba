import { describe, expect, it } from "vitest";
import { byTrouble, demandShare, verdictOf } from "./verdict";

const service = (queued: number, running: number, n_workers: number, capacity: number, name = "s") => ({ name, queued, running, n_workers, capacity });

describe("the verdict of a service", () => {
  it("names a missing worker only where calls wait", () => {
    expect(verdictOf(service(41, 0, 0, 0))).toBe("no_worker");
    expect(verdictOf(service(0, 0, 0, 0))).toBe("none");
  });
  it("says short when every slot is taken", () => expect(verdictOf(service(5, 4, 1, 4))).toBe("short"));
  it("knows workers without a limit", () => expect(verdictOf(service(5, 4, 1, 0))).toBe("keeps_up"));
  it("puts trouble first and does not order the rest by counts", () => {
    const names = byTrouble([service(0, 0, 1, 4, "b"), service(9, 1, 1, 4, "c"), service(1, 0, 0, 0, "z"), service(1, 1, 1, 4, "a")]).map(({ name }) => name);
    expect(names).toEqual(["z", "a", "b", "c"]);
  });
  it("draws demand on a logarithmic scale", () => {
    expect(demandShare(0, 100)).toBe(0);
    expect(demandShare(100, 100)).toBe(1);
    expect(demandShare(10, 1000)).toBeGreaterThan(0.3);
  });
});
