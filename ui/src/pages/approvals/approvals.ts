// The inbox: who may decide, and where a decision leads.
import type { FlowGraph } from "../../api/console";
import type { ApprovalInfo, JournalEntry } from "../../api/openapi";

export const approvalKey = ({ run, node }: Pick<ApprovalInfo, "run" | "node">) => `${run}/${node}`;

/** Whether a person may decide: no person is named, or this one is. */
export function mayDecide({ assignees }: Pick<ApprovalInfo, "assignees">, person: string | undefined): boolean {
  return assignees.length === 0 || (person !== undefined && assignees.includes(person));
}

/** The node that follows an approval after an action; `undefined` if the graph does not tell. */
export function goesTo(graph: FlowGraph, id: string, action: string): string | undefined {
  const edges = graph.edges.filter((edge) => edge.from === id);
  const edge = edges.find((one) => one.when === "action" && one.action === action) ?? edges.find((one) => one.when === "always" || one.action === "default");
  return edge && graph.nodes.find((node) => node.id === edge.to)?.key;
}

export interface Decision { node: string; decision: unknown; by?: string; comment?: string; at: string }

/** The decisions that the journal of a run holds. */
export function decisionsOf(entries: JournalEntry[]): Decision[] {
  return entries.flatMap(({ at, events }) => events.filter((event) => event["e"] === "decided").map((event) => ({
    node: String(event["node"] ?? ""), decision: event["decision"], at,
    by: typeof event["by"] === "string" ? event["by"] : undefined, comment: typeof event["comment"] === "string" ? event["comment"] : undefined,
  })));
}
