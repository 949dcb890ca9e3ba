import { describe, expect, it } from "vitest";
import type { FlowGraph } from "../../api/console";
import { decisionsOf, goesTo, mayDecide } from "./approvals";

describe("an approval", () => {
  it("may be decided by everyone unless people are named", () => {
    expect(mayDecide({ assignees: [] }, undefined)).toBe(true);
    expect(mayDecide({ assignees: ["ann"] }, undefined)).toBe(false);
    expect(mayDecide({ assignees: ["ann"] }, "ann")).toBe(true);
  });

  it("names the node that a decision leads to", () => {
    const graph = {
      nodes: [{ id: "review", key: "review" }, { id: "publish", key: "publish" }, { id: "other", key: "other" }],
      edges: [{ from: "review", to: "publish", when: "action", action: "approved" }, { from: "review", to: "other", when: "always" }],
    } as unknown as FlowGraph;
    expect(goesTo(graph, "review", "approved")).toBe("publish");
    expect(goesTo(graph, "review", "rejected")).toBe("other");
    expect(goesTo(graph, "publish", "approved")).toBeUndefined();
  });

  it("finds decisions in a journal", () => {
    const entries = [{ seq: 1, at: "t", command: "c", events: [{ e: "entered", node: "a" }, { e: "decided", node: "review", decision: "approved", by: "ann" }] }];
    expect(decisionsOf(entries)).toEqual([{ node: "review", decision: "approved", by: "ann", comment: undefined, at: "t" }]);
  });
});
