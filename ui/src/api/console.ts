// The types of the console's own routes, under the names of the pages, and the one type that the OpenAPI document does
// not have: patches come over the event stream.
import type { AttemptHead, AttentionItem, NodeInfo, RunPage, RunSummary, ServiceDemand, ValueHead, WaitReason } from "./openapi";

export type { About, BulkDryRun, BulkInfo, BulkRequest, FlowGraph, GraphEdge, GraphNode, Overview, RunCounts, SearchHit } from "./openapi";
export type Attention = AttentionItem;
export type AttemptView = AttemptHead;
export type Payload = ValueHead;
export type RunView = RunPage;
export type ServiceLoad = ServiceDemand;

/** A change of a run: parts of its view, each whole. */
export interface RunPatch {
  topic: string;
  seq: number;
  run?: RunSummary;
  node_states?: Record<string, NodeInfo>;
  removed?: string[];
  attempts?: AttemptView[];
  why?: WaitReason[];
  /** The view must be read again. */
  reset?: boolean;
}
