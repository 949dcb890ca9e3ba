// The walk over a drawing with the arrow keys: along the direction of the flow it follows edges, across it goes to the
// nearest node.
import type { FlowGraph, GraphNode } from "../api/console";

export type Arrow = "ArrowLeft" | "ArrowRight" | "ArrowUp" | "ArrowDown";

const centre = (node: GraphNode) => ({ x: node.x + node.w / 2, y: node.y + node.h / 2 });

function distance(a: GraphNode, b: GraphNode): number {
  const [from, to] = [centre(a), centre(b)];
  return Math.hypot(from.x - to.x, from.y - to.y);
}

const canStop = (node: GraphNode | undefined): node is GraphNode => node !== undefined && node.kind !== "end";

/** Where the walk begins: the node that the run begins with. */
export function firstNode(graph: FlowGraph): string | undefined {
  return (graph.nodes.find((node) => node.start && !node.parent && canStop(node)) ?? graph.nodes.find(canStop))?.id;
}

/** The node after an arrow key; `undefined` = the walk stays. */
export function walk(graph: FlowGraph, from: string, arrow: Arrow): string | undefined {
  const nodes = new Map(graph.nodes.map((node) => [node.id, node]));
  const at = nodes.get(from);
  if (!at) return firstNode(graph);
  const [ahead, back]: Arrow[] = graph.direction === "tb" ? ["ArrowDown", "ArrowUp"] : ["ArrowRight", "ArrowLeft"];
  if (arrow === ahead || arrow === back) {
    const linked = graph.edges
      .filter((edge) => edge.kind !== "self" && edge.from !== edge.to && (arrow === ahead ? edge.from : edge.to) === from)
      .map((edge) => nodes.get(arrow === ahead ? edge.to : edge.from))
      .filter(canStop)
      .filter((node) => isBeyond(at, node, arrow));
    const next = linked.sort((a, b) => distance(at, a) - distance(at, b))[0];
    if (next) return next.id;
  }
  return nearest(graph, at, arrow)?.id;
}

function isBeyond(at: GraphNode, node: GraphNode, arrow: Arrow): boolean {
  const [from, to] = [centre(at), centre(node)];
  switch (arrow) {
    case "ArrowLeft": return to.x < from.x - 1;
    case "ArrowRight": return to.x > from.x + 1;
    case "ArrowUp": return to.y < from.y - 1;
    case "ArrowDown": return to.y > from.y + 1;
  }
}

/** The nearest node in the direction; a node beside the way counts as farther. */
function nearest(graph: FlowGraph, at: GraphNode, arrow: Arrow): GraphNode | undefined {
  const isVertical = arrow === "ArrowUp" || arrow === "ArrowDown";
  let found: GraphNode | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const node of graph.nodes) {
    if (node.id === at.id || !canStop(node) || !isBeyond(at, node, arrow)) continue;
    const [from, to] = [centre(at), centre(node)];
    const [along, aside] = isVertical ? [Math.abs(to.y - from.y), Math.abs(to.x - from.x)] : [Math.abs(to.x - from.x), Math.abs(to.y - from.y)];
    const cost = along + 2 * aside;
    if (cost < least) {
      least = cost;
      found = node;
    }
  }
  return found;
}
