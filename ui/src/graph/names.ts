// The order and the names of nodes for lists: the drawing says where a node stands, a list says when it comes.
import type { FlowGraph, GraphNode } from "../api/console";

const orders = new WeakMap<FlowGraph, Map<string, number>>();

/** The place of every node in reading order: along the flow, the nodes inside of a box behind the box. */
export function readingOrder(graph: FlowGraph): Map<string, number> {
  const known = orders.get(graph);
  if (known) return known;
  const inside = new Map<string, GraphNode[]>();
  for (const node of graph.nodes) inside.set(node.parent ?? "", [...(inside.get(node.parent ?? "") ?? []), node]);
  const isTopDown = graph.direction === "tb";
  const along = (node: GraphNode) => (isTopDown ? node.y : node.x);
  const across = (node: GraphNode) => (isTopDown ? node.x : node.y);
  const order = new Map<string, number>();
  const add = (parent: string) => {
    for (const node of (inside.get(parent) ?? []).sort((a, b) => along(a) - along(b) || across(a) - across(b))) {
      if (order.has(node.id)) continue;
      order.set(node.id, order.size);
      add(node.id);
    }
  };
  add("");
  orders.set(graph, order);
  return order;
}

const sorted = new WeakMap<FlowGraph, GraphNode[]>();

/** The nodes in reading order. */
export function inReadingOrder(graph: FlowGraph): GraphNode[] {
  const known = sorted.get(graph);
  if (known) return known;
  const order = readingOrder(graph);
  const nodes = [...graph.nodes].sort((a, b) => (order.get(a.id) ?? 0) - (order.get(b.id) ?? 0));
  sorted.set(graph, nodes);
  return nodes;
}

const labels = new WeakMap<FlowGraph, Map<string, string>>();
const INDEX = /^\d/;

/** The name of a path for people: its last part, or for the index of a branch the label that the drawing has for it. */
export function nameOf(graph: FlowGraph | undefined | null, path: string): string {
  const last = path.slice(path.lastIndexOf("/") + 1);
  if (!graph || !INDEX.test(last)) return last;
  const known = labels.get(graph) ?? new Map(graph.nodes.map((node) => [node.id, node.label]));
  labels.set(graph, known);
  return known.get(path)?.slice(0, 60) ?? last;
}

/** The same within a sentence, where an index alone names nothing: `each/3`. */
export function nameInText(graph: FlowGraph | undefined | null, path: string): string {
  const name = nameOf(graph, path);
  return INDEX.test(name) ? path.split("/").slice(-2).join("/") : name;
}
