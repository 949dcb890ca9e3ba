import { expect, test } from "vitest";
import { cut } from "./Node";
import type { FlowGraph, GraphEdge, GraphNode } from "../api/console";
import type { NodeInfo } from "../api/openapi";
import { edgeState, nodeOf, overlayOf, pathsOf, tally, worst } from "./overlay";
import { pathOf } from "./path";
import { firstNode, walk } from "./walk";

const node = (id: string, x: number, y: number, more: Partial<GraphNode> = {}): GraphNode => ({ id, key: id, label: id, short: id, kind: "call", word: "task", start: false, box: false, x, y, w: 100, h: 44, ...more });
const edge = (from: string, to: string, more: Partial<GraphEdge> = {}): GraphEdge => ({ id: `${from}>${to}`, from, to, kind: "forward", when: "always", points: [], ...more });
const info = (status: string, more: Partial<NodeInfo> = {}): NodeInfo => ({ status, ...more });

const graph: FlowGraph = {
  direction: "lr", form: "graph", width: 800, height: 400, more: false,
  nodes: [
    node("start", 0, 100, { start: true }), node("upper", 200, 40), node("lower", 200, 160), node("each", 400, 60, { box: true, w: 160, h: 120 }),
    node("each/*", 420, 100, { parent: "each" }), node("each/0", 420, 150, { parent: "each" }), node("end//end", 700, 100, { kind: "end", w: 16, h: 16 }),
  ],
  edges: [edge("start", "upper", { when: "action", action: "a" }), edge("start", "lower", { when: "action", action: "b" }), edge("upper", "each"), edge("each", "end//end"), edge("lower", "lower", { kind: "self" })],
};

test("paths of a run find their node: an exact segment wins over a star", () => {
  const overlays = overlayOf(graph, { start: info("completed"), "each/0": info("failed"), "each/1": info("completed"), "each/2": info("running"), nowhere: info("running") });
  expect(overlays.get("each/0")?.status).toBe("failed");
  expect(overlays.get("each/*")).toMatchObject({ status: "running", total: 2, progress: { done: 1, total: 2 } });
  expect(overlays.has("nowhere")).toBe(false);
  expect(pathsOf(graph, "each/*", { "each/10": info("completed"), "each/2": info("completed"), "each/3": info("failed") })).toEqual(["each/3", "each/2", "each/10"]);
  expect(nodeOf(graph, "each/7")?.id).toBe("each/*");
});

test("a box that the run does not know has the status of the nodes inside", () => {
  const inner = (status: string) => overlayOf({ ...graph, nodes: graph.nodes.filter((one) => one.id !== "each/0") }, { "each/1": info(status) }).get("each")?.status;
  expect([inner("failed"), inner("completed"), inner("running")]).toEqual(["failed", "completed", "running"]);
  expect(overlayOf(graph, { start: info("completed") }).has("each")).toBe(false);
});

test("the worst status wins, and an unknown one counts as active", () => {
  expect(worst(["completed", "running", "failed"])).toBe("failed");
  expect(worst(["completed", "quantum", "skipped"])).toBe("quantum");
});

test("an edge is taken, not taken or open", () => {
  const overlays = overlayOf(graph, { start: info("completed", { action: "a" }), upper: info("running"), lower: info("skipped") });
  const [toUpper, toLower, toEach] = graph.edges.map((one) => edgeState(one, overlays));
  expect([toUpper, toLower, toEach]).toEqual(["took", "not", "open"]);
  expect(tally(graph, overlays)).toMatchObject({ done: 1, active: 1, skipped: 1, total: 6 });
});

test("the walk follows edges along the flow and geometry across it", () => {
  expect(firstNode(graph)).toBe("start");
  expect(walk(graph, "start", "ArrowRight")).toBe("upper");
  expect(walk(graph, "upper", "ArrowLeft")).toBe("start");
  expect(walk(graph, "upper", "ArrowDown")).toBe("lower");
  expect(walk(graph, "upper", "ArrowRight")).toBe("each");
  expect(walk(graph, "start", "ArrowLeft")).toBeUndefined();
  expect(walk(graph, "gone", "ArrowLeft")).toBe("start");
});

test("every node can be reached with the arrow keys", () => {
  const reached = new Set<string>(["start"]);
  const queue = ["start"];
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const arrow of ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"] as const) {
      const next = walk(graph, at, arrow);
      if (next && !reached.has(next)) {
        reached.add(next);
        queue.push(next);
      }
    }
  }
  expect([...reached].sort()).toEqual(graph.nodes.filter((one) => one.kind !== "end").map((one) => one.id).sort());
});

test("corners are rounded, and no more than the shorter segment allows", () => {
  expect(pathOf([[0, 0], [20, 0], [20, 40]])).toBe("M0 0L12 0Q20 0 20 8L20 40");
  expect(pathOf([[0, 0], [4, 0], [4, 40]])).toBe("M0 0L2 0Q4 0 4 2L4 40");
  expect(pathOf([[0, 0], [9, 0]])).toBe("M0 0L9 0");
  expect(pathOf([])).toBe("");
});

test("texts are cut by their width: a Chinese character takes the room of two", () => {
  expect(cut("approval", 8)).toBe("approval");
  expect(cut("approvals", 8)).toBe("approva…");
  expect(cut("等待审批", 8)).toBe("等待审批");
  expect(cut("等待审批中", 8)).toBe("等待审…");
});
