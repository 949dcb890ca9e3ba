// The types of the console's own routes.

import type { FaultInfo, NodeInfo, RunSummary, WaitReason } from "./openapi";

export interface Tile { count: number; more?: boolean }

export interface Attention {
  kind: string;
  subject: string;
  text: string;
  count?: number | null;
  since?: string | null;
  command?: string | null;
}

export interface ServiceLoad { name: string; queued: number; running: number; n_workers: number; capacity: number }

export interface Overview {
  at: string;
  tiles: {
    running: Tile; queued: Tile; waiting: Tile; failed_24h: Tile; dead_letters: Tile; approvals: Tile;
    workers: { online: number; stale: number; draining: number };
  };
  services: ServiceLoad[];
  attention: Attention[];
  is_empty: boolean;
}

export interface About {
  version: string;
  store: { kind: string; bytes?: number | null };
  server: string;
  project: string;
  up_ms: number;
  settings: Record<string, unknown>;
}

export interface SearchHit { kind: string; id: string; title: string; status?: string }

/** A JSON value in a view: whole when it is small, else the beginning of its text. */
export interface Payload { bytes: number; value?: unknown; head?: string }

export interface AttemptView {
  fence?: number | null;
  node: string;
  visit: number;
  attempt: number;
  status: string;
  kind?: string;
  service?: string | null;
  input?: Payload | null;
  output?: Payload | null;
  error?: FaultInfo | null;
  action?: string | null;
  worker?: string | null;
  queued_at?: string | null;
  started_at?: string | null;
  finished_at?: string | null;
}

export interface RunView {
  seq: number;
  run: RunSummary;
  exec_mode: string;
  start_node_ids?: string[];
  priority: string;
  manual: boolean;
  budget?: number | null;
  params?: Payload | null;
  shared?: Payload | null;
  result?: Payload | null;
  node_states: Record<string, NodeInfo>;
  more_nodes?: boolean;
  graph?: FlowGraph | null;
  attempts: AttemptView[];
  more_attempts?: boolean;
  why: WaitReason[];
  children: RunSummary[];
  more_children?: boolean;
}

/** A change of a run: parts of its view, each whole. */
export interface RunPatch {
  topic: string;
  seq: number;
  run?: RunSummary;
  node_states?: Record<string, NodeInfo>;
  removed?: string[];
  attempts?: AttemptView[];
  why?: WaitReason[];
  reset?: boolean;
}

export interface GraphNode {
  id: string;
  parent?: string | null;
  key: string;
  label: string;
  short: string;
  kind: string;
  word: string;
  detail?: string | null;
  path?: string | null;
  start: boolean;
  box: boolean;
  hidden?: number | null;
  x: number; y: number; w: number; h: number;
}

export interface GraphEdge {
  id: string;
  from: string;
  to: string;
  kind: string;
  when: string;
  action?: string | null;
  label?: string | null;
  short?: string | null;
  label_box?: { x: number; y: number; w: number; h: number } | null;
  points: [number, number][];
}

export interface FlowGraph {
  direction: string;
  form: string;
  width: number;
  height: number;
  nodes: GraphNode[];
  edges: GraphEdge[];
  more: boolean;
}

export interface RunCounts { by: string; counts: { value: string; count: number; more?: boolean }[]; at: string }

export interface Series {
  from: string;
  to: string;
  step: number;
  at: number[];
  series: Record<string, (number | null)[]>;
}

export interface BulkRequest {
  kind: "runs";
  query?: string;
  ids?: string[];
  action: string;
  args?: Record<string, unknown>;
  reason?: string;
  dry_run?: boolean;
}

export interface BulkDryRun {
  dry_run: boolean;
  matched: number;
  more?: boolean;
  outcomes: Record<string, number>;
  by_status: Record<string, number>;
  sample: string[];
}

export interface BulkInfo {
  id: string;
  kind: string;
  action: string;
  query?: string | null;
  args: Record<string, unknown>;
  reason?: string | null;
  actor?: string | null;
  status: string;
  matched: number;
  done: number;
  succeeded: number;
  failed: number;
  created_at: string;
  updated_at: string;
  ended_at?: string | null;
  failures?: { id: string; code: string; message: string }[];
  more_failures?: boolean;
}
