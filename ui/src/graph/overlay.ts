// The states of a run over the drawing of its flow. A run names nodes by path (`each/3/call`); the drawing has one node
// for all branches (`each/*/call`), which shows counters and the worst status.
import type { FlowGraph, GraphEdge, GraphNode } from "../api/console";
import type { NodeInfo, WaitReason } from "../api/openapi";
import { ms } from "../format/time";

export interface NodeOverlay {
  status: string;
  /** The state, where the drawing has one node for one path. */
  info?: NodeInfo;
  /** The paths that this node stands for, and how many are in which status. */
  total: number;
  counts: Record<string, number>;
  /** Done and all branches of a fan, a loop or a `*` node. */
  progress?: { done: number; total: number };
  attempts: number;
  /** When the next attempt is made. */
  retryAt?: number;
}

export type EdgeState = "took" | "not" | "open";

/** The more severe status wins where one node stands for many. */
const SEVERITY = ["failed", "retrying", "running", "parked", "suspended", "waiting", "canceling", "queued", "pending", "completed", "canceled", "skipped"];
const DONE = new Set(["completed", "ok", "done"]);

function severity(status: string): number {
  const place = SEVERITY.indexOf(status);
  return place < 0 ? 2.5 : place;
}

export function worst(statuses: Iterable<string>): string {
  let found = "skipped";
  for (const status of statuses) if (severity(status) < severity(found)) found = status;
  return found;
}

interface TrieNode {
  id?: string;
  next: Map<string, TrieNode>;
}

/** Finds the node of the drawing that shows a path of a run. */
export class PathIndex {
  private readonly root: TrieNode = { next: new Map() };
  private readonly found = new Map<string, string | undefined>();

  constructor(graph: FlowGraph) {
    for (const { id } of graph.nodes) {
      let at = this.root;
      for (const segment of id.split("/")) {
        const next = at.next.get(segment) ?? { next: new Map() };
        at.next.set(segment, next);
        at = next;
      }
      at.id = id;
    }
  }

  /** The id of the node; an exact segment wins over `*`. */
  find(path: string): string | undefined {
    if (!this.found.has(path)) this.found.set(path, this.walk(this.root, path.split("/"), 0));
    return this.found.get(path);
  }

  private walk(at: TrieNode, segments: string[], depth: number): string | undefined {
    const segment = segments[depth];
    if (segment === undefined) return at.id;
    for (const next of [at.next.get(segment), at.next.get("*")]) {
      const id = next && this.walk(next, segments, depth + 1);
      if (id !== undefined) return id;
    }
    return undefined;
  }
}

const indexes = new WeakMap<FlowGraph, PathIndex>();

export function indexOf(graph: FlowGraph): PathIndex {
  const index = indexes.get(graph) ?? new PathIndex(graph);
  indexes.set(graph, index);
  return index;
}

/** The overlay of every node of the drawing that the run has entered. */
export function overlayOf(graph: FlowGraph, states: Record<string, NodeInfo>, why: WaitReason[] = []): Map<string, NodeOverlay> {
  const index = indexOf(graph);
  const overlays = new Map<string, NodeOverlay>();
  for (const [path, info] of Object.entries(states)) {
    const id = index.find(path);
    if (id === undefined) continue;
    let overlay = overlays.get(id);
    if (!overlay) {
      overlays.set(id, alone(info));
      continue;
    }
    if (overlay.info) overlays.set(id, (overlay = { ...overlay, counts: { ...overlay.counts } }));
    overlay.total += 1;
    overlay.counts[info.status] = (overlay.counts[info.status] ?? 0) + 1;
    overlay.info = undefined;
    overlay.attempts = Math.max(overlay.attempts, info.attempts ?? 0);
    if (severity(info.status) < severity(overlay.status)) overlay.status = info.status;
  }
  for (const reason of why) {
    const id = reason.waits_for === "retry" ? index.find(reason.node) : undefined;
    const overlay = id === undefined ? undefined : overlays.get(id);
    if (id !== undefined && overlay?.total === 1 && overlay.status === "retrying") overlays.set(id, { ...overlay, retryAt: ms(reason.until) });
  }
  for (const overlay of overlays.values()) {
    if (overlay.total > 1) overlay.progress = { done: sum(overlay.counts, DONE), total: overlay.total };
  }
  addBoxes(graph, overlays);
  return overlays;
}

/** Boxes that the run knows nothing of (such as a parallel inside of a loop) get the status of the nodes inside. */
function addBoxes(graph: FlowGraph, overlays: Map<string, NodeOverlay>) {
  const inside = new Map<string, string[]>();
  for (const node of [...graph.nodes].reverse()) {
    const statuses = inside.get(node.id);
    if (node.box && statuses && !overlays.has(node.id)) {
      const ofAll = worst(statuses);
      const status = ofAll === "pending" && statuses.some((one) => DONE.has(one)) ? "running" : ofAll;
      overlays.set(node.id, { status, total: 1, counts: { [status]: 1 }, attempts: 0 });
    }
    const overlay = overlays.get(node.id);
    if (node.parent && overlay) inside.set(node.parent, [...(inside.get(node.parent) ?? []), overlay.status]);
  }
}

const known = new WeakMap<NodeInfo, NodeOverlay>();

/** The overlay of a node with one path. It is the same object for as long as the state is, so that a patch renders only
 * the nodes that it changes. */
function alone(info: NodeInfo): NodeOverlay {
  const overlay = known.get(info) ?? { status: info.status, info, total: 1, counts: { [info.status]: 1 }, progress: fanProgress(info), attempts: info.attempts ?? 0 };
  known.set(info, overlay);
  return overlay;
}

function fanProgress(info: NodeInfo): NodeOverlay["progress"] {
  const { branches } = info;
  return branches && branches.total > 0 ? { done: doneOf(branches), total: branches.total } : undefined;
}

/** The branches that are done: those that failed are not. */
export function doneOf({ total, open, waiting, failed }: NonNullable<NodeInfo["branches"]>): number {
  return Math.max(0, total - open - waiting - failed);
}

function sum(counts: Record<string, number>, of: Set<string>): number {
  return Object.entries(counts).reduce((total, [status, n]) => total + (of.has(status) ? n : 0), 0);
}

/** Whether the run has taken an edge. An edge out of a node that is not done is open. */
export function edgeState(edge: GraphEdge, overlays: Map<string, NodeOverlay>): EdgeState {
  const from = overlays.get(edge.from);
  const to = overlays.get(edge.to);
  const entered = to !== undefined && to.status !== "pending" && to.status !== "skipped";
  if (!from || !(DONE.has(from.status) || from.status === "failed")) return "open";
  const isEnd = edge.to.endsWith("//end");
  if (edge.when === "action") {
    const chosen = (from.info?.action ?? (from.status === "failed" ? "error" : "default")) === (edge.action ?? "default");
    return chosen && (isEnd || entered) ? "took" : "not";
  }
  if (entered) return "took";
  if (isEnd) return edge.when === "always" && DONE.has(from.status) ? "took" : "not";
  return to?.status === "pending" && edge.when !== "condition" ? "open" : "not";
}

/** Counts of the nodes by their part in the run, without the boxes. */
export function tally(graph: FlowGraph, overlays: Map<string, NodeOverlay>): { done: number; active: number; todo: number; skipped: number; failed: number; total: number } {
  const sums = { done: 0, active: 0, todo: 0, skipped: 0, failed: 0, total: 0 };
  for (const node of graph.nodes) {
    if (node.kind === "end" || node.kind === "branch") continue;
    sums.total += 1;
    sums[part(overlays.get(node.id)?.status)] += 1;
  }
  return sums;
}

function part(status: string | undefined): "done" | "active" | "todo" | "skipped" | "failed" {
  if (status === undefined || status === "pending") return "todo";
  if (DONE.has(status)) return "done";
  if (status === "failed") return "failed";
  return status === "skipped" || status === "canceled" ? "skipped" : "active";
}

/** Whether a node is a problem: the switch "only problems" keeps these. */
export function isProblem(overlay: NodeOverlay | undefined): boolean {
  return overlay !== undefined && (["failed", "retrying", "parked"].includes(overlay.status) || (overlay.counts.failed ?? 0) > 0);
}

/** The paths of a run that a node of the drawing stands for, the most severe first. */
export function pathsOf(graph: FlowGraph, id: string, states: Record<string, NodeInfo>): string[] {
  const index = indexOf(graph);
  const paths = Object.keys(states).filter((path) => index.find(path) === id);
  const rank = (path: string) => severity(states[path]?.status ?? "");
  return paths.sort((a, b) => rank(a) - rank(b) || a.localeCompare(b, "en", { numeric: true }));
}

/** The node of the drawing for a selection, which is a path of the run or an id of the drawing. */
export function nodeOf(graph: FlowGraph, selection: string): GraphNode | undefined {
  const id = graph.nodes.some((node) => node.id === selection) ? selection : indexOf(graph).find(selection);
  return graph.nodes.find((node) => node.id === id);
}
