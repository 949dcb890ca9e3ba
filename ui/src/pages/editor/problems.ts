// The answer of `POST /api/v1/flows/validate`, and the nodes that its problems are about.
import type { FlowGraph } from "../../api/console";
import type { Validation, ValidationProblem } from "../../api/openapi";
import { parsePath, parsePointer, type Segment, startsWith } from "./positions";

export type EditorProblem = ValidationProblem & { pointer?: string | null; line?: number | null; column?: number | null; code?: string | null };
export type EditorValidation = Omit<Validation, "problems"> & { problems: EditorProblem[]; graph?: FlowGraph | null };

/** The line that an unreadable text names in its path: "line 3 column 13". */
export function withLine(problem: EditorProblem): EditorProblem {
  const named = /^line (\d+)(?: column (\d+))?/.exec(problem.path);
  if (!named || problem.line) return problem;
  return { ...problem, line: Number(named[1]), column: Number(named[2] ?? 1) };
}

export function pathOf(problem: EditorProblem): Segment[] | undefined {
  return (problem.pointer ? parsePointer(problem.pointer) : undefined) ?? parsePath(problem.path);
}

/** The node of the graph that a path lies in: the deepest one. */
export function nodeAt(graph: FlowGraph, path: Segment[]): string | undefined {
  let best: { id: string; length: number } | undefined;
  for (const { id, path: own } of graph.nodes) {
    const segments = own ? parsePath(own) : undefined;
    if (segments && startsWith(path, segments) && (!best || segments.length > best.length)) best = { id, length: segments.length };
  }
  return best?.id;
}

/** The tones of the nodes with errors. */
export function badNodes(graph: FlowGraph, problems: EditorProblem[]): Map<string, string> {
  const tones = new Map<string, string>();
  for (const problem of problems) {
    const path = problem.severity === "error" ? pathOf(problem) : undefined;
    const id = path && nodeAt(graph, path);
    if (id) tones.set(id, "bad");
  }
  return tones;
}
