// Changes between two steps of a run.
import type { DefinitionChange } from "../../api/openapi";

/** Keys that the runtime keeps for itself: hidden unless asked for. `of` is a key or a JSON pointer. */
export function isRuntimeKey(of: string): boolean {
  return /^(\/(shared\/)?)?_rt(\.|\/|$)/.test(of);
}

/** A JSON pointer as people write paths: `/a/b/0` as `a.b[0]`. */
export function pathText(pointer: string): string {
  const parts = pointer.split("/").slice(1).map((part) => part.replaceAll("~1", "/").replaceAll("~0", "~"));
  const text = parts.map((part, n) => (/^\d+$/.test(part) ? `[${part}]` : n === 0 ? part : `.${part}`)).join("");
  return text || pointer || "$";
}

export interface ChangeParts {
  /** Changes of the shared state, by their path inside of it. */
  shared: DefinitionChange[];
  /** Nodes whose status has changed. */
  moves: { node: string; to: string }[];
  /** Everything else: outputs, times, signals, cost. */
  others: DefinitionChange[];
}

/** Sorts the changes of a step by their part of the run. */
export function partsOf(changes: DefinitionChange[], withRuntime: boolean): ChangeParts {
  const parts: ChangeParts = { shared: [], moves: [], others: [] };
  for (const change of changes) {
    if (!withRuntime && isRuntimeKey(change.path)) continue;
    const status = /^\/node_states\/([^/]+)\/status$/.exec(change.path);
    if (change.path.startsWith("/shared/")) parts.shared.push({ ...change, path: change.path.slice("/shared".length) });
    else if (status?.[1] && typeof change.after === "string") parts.moves.push({ node: status[1].replaceAll("~1", "/").replaceAll("~0", "~"), to: change.after });
    else parts.others.push(change);
  }
  return parts;
}
