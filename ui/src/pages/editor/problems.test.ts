import { describe, expect, it } from "vitest";
import type { FlowGraph } from "../../api/console";
import { badNodes, nodeAt, withLine } from "./problems";

const graph = { nodes: [{ id: "a", path: "$.nodes.a" }, { id: "a/b", path: "$.nodes.a.subflow.nodes.b" }, { id: "end//end" }] } as unknown as FlowGraph;

describe("problems of a text", () => {
  it("find their node, the deepest one", () => {
    expect(nodeAt(graph, ["nodes", "a", "subflow", "nodes", "b", "kind"])).toBe("a/b");
    expect(nodeAt(graph, ["nodes", "a", "service"])).toBe("a");
    expect(nodeAt(graph, ["edges", 0])).toBeUndefined();
  });
  it("mark nodes with errors, not with warnings", () => {
    const problem = (path: string, severity: "error" | "warning") => ({ path, severity, reason: "" });
    expect([...badNodes(graph, [problem("$.nodes.a.x", "error"), problem("$.nodes.a.subflow.nodes.b", "warning")])]).toEqual([["a", "bad"]]);
  });
  it("have the line of an unreadable text", () => expect(withLine({ path: "line 3 column 13", reason: "", severity: "error" })).toMatchObject({ line: 3, column: 13 }));
});
