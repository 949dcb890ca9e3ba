// The vocabulary of a definition at a place: the fields and the words of docs/definitions.md, for the completion.
import type { Segment } from "./positions";

export interface Vocabulary {
  services: string[];
  flows: string[];
  /** The keys or ids of the nodes of the text. */
  nodes: string[];
}

const KINDS = ["executor", "local", "choice", "parallel", "foreach", "subflow", "flow_ref", "timer", "wait_event", "approval"];
const ROOT = { all: ["form", "title", "description"], graph: ["start", "nodes", "edges"], dag: ["variables", "nodes", "edges", "on_failure"], steps: ["steps", "status", "priority"] };
const NODE = [
  "kind", "title", "description", "service", "exec_type", "func", "script", "params", "prep", "post", "timeout_ms", "max_retries", "wait_ms", "max_attempts", "attempt_delay_ms",
  "weighted_by_load", "at_most_once", "cost", "choice_cases", "default_action", "parallel_execs", "parallel_services", "foreach_execs", "parallel_mode", "max_parallel",
  "failure_strategy", "subflow", "subflow_execs", "flow", "version",
];
const DAG_NODE = ["id", "type", "name", "config", "retry", "timeout_ms", "exec_type", "cost", "recheck_ms", "at_most_once"];
const STEP = ["id", "title", "operator", "parameters", "dependOn", "settings", "branches", "steps"];
const INSIDE: Record<string, string[]> = {
  prep: ["input_key", "input_map"], post: ["output_key", "output_map", "action_static", "action_key"], script: ["cmd", "args", "code", "language", "timeout_ms", "env", "work_dir", "stdin_mode", "output_mode"],
  cost: ["estimate", "actual"], retry: ["max", "delay_ms", "backoff", "delay"], settings: ["retry", "timeout", "exec_type", "at_most_once", "cost"], timeout: ["delay"],
  choice_cases: ["action", "expr"], parallel_execs: ["service", "exec_type", "func", "params", "prep", "post", "subflow", "name"], foreach_execs: ["service", "params", "index"],
  expr: ["and", "or", "not", "eq", "ne", "gt", "lt", "ge", "le", "exists", "in", "contains"], branches: ["conditions", "steps"],
};
const PARAMS: Record<string, string[]> = { approval: ["assignees", "form", "approval_key", "timeout_ms"], timer: ["delay_ms", "until"], wait_event: ["signal_key", "timeout_ms"] };
const TYPES = ["start", "end", "variable_set", "condition", "delay", ...KINDS];
const OPERATORS = [
  "@trigger/manual", "@control/flow/parallel", "@control/flow/branches", "@control/flow/loop", "@internal/define", "@internal/assign", "@internal/return", "@internal/text/join",
  "@internal/text/split", "@internal/json/get", "@internal/json/set", "@internal/time/now", "@workflow/approval", "@subflow/call",
];
const VALUES: Record<string, string[]> = {
  form: ["graph", "dag", "steps"], kind: KINDS, exec_type: ["http", "queue", "local_func", "local_script"], parallel_mode: ["sequential", "concurrent"],
  failure_strategy: ["fail_fast", "retry", "collect_errors", "ignore_errors", "continue"], on_failure: ["stop", "continue"], backoff: ["fixed", "exponential"], status: ["normal", "stopped"],
  priority: ["highest", "high", "medium", "low", "lowest"], func: ["echo", "log_result", "upper", "lower", "mul", "sum", "route", "sleep", "fail", "transform"],
  at_most_once: ["true", "false"], weighted_by_load: ["true", "false"], action: ["default", "error", "timeout", "approved", "rejected"], mode: ["limit", "array"], stdin_mode: ["json", "none"], output_mode: ["json", "text"],
};

export type Form = "graph" | "dag" | "steps";

/** The form of a text that may be broken. */
export function formOfText(text: string): Form {
  if (/["']?form["']?\s*:\s*["']?dag/.test(text) || /["']?source["']?\s*:/.test(text)) return "dag";
  if (/(^|[{,\s])["']?steps["']?\s*:/.test(text)) return "steps";
  return /["']?nodes["']?\s*:\s*(\[|\n\s*-)/.test(text) ? "dag" : "graph";
}

/** The keys that may stand in the mapping at `path`. `kind` is the kind of the node around it. */
export function keysAt(path: Segment[], form: Form, kind?: string): string[] {
  const last = path.at(-1);
  const field = typeof last === "number" ? path.at(-2) : last;
  if (path.length === 0) return [...ROOT.all, ...ROOT[form]];
  if (field === "params" && kind && PARAMS[kind]) return PARAMS[kind];
  if (typeof field === "string" && INSIDE[field] && (typeof last !== "number" || field !== "settings")) return INSIDE[field];
  if (field === "edges") return form === "dag" ? ["source", "target", "condition", "action"] : ["from", "action", "to"];
  if (form === "steps") return field === "steps" ? STEP : [];
  if (form === "dag") return field === "nodes" ? DAG_NODE : field === "config" ? NODE : [];
  if (path.at(-2) === "nodes") return NODE;
  if (field === "subflow") return [...ROOT.all, ...ROOT.graph];
  return [];
}

/** The values that may follow the key at the end of `path`. */
export function valuesAt(path: Segment[], form: Form, words: Vocabulary): string[] {
  const key = path.findLast((segment) => typeof segment === "string");
  if (typeof key !== "string") return [];
  if (["from", "to", "source", "target", "start", "dependOn", "node"].includes(key)) return words.nodes;
  if (key === "service" || key === "parallel_services" || key === "services") return words.services;
  if (key === "flow") return words.flows;
  if (key === "type") return [...TYPES, ...words.services];
  if (key === "operator") return [...OPERATORS, ...words.services];
  if (["input_key", "input_map", "source", "value"].includes(key) || path.includes("input_map")) return referencesOf(form, words.nodes);
  return VALUES[key] ?? [];
}

/** References that a text may begin with. */
export function referencesOf(form: Form, nodes: string[]): string[] {
  if (form === "steps") return [...nodes.map((id) => `{{__${id}}}`), "{{$var.}}"];
  const outputs = nodes.map((id) => `$node.${id}.output`);
  return form === "dag" ? ["$var.", ...outputs] : ["$params.", "$shared.", ...outputs];
}
