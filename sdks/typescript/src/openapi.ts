// shape 4cc367b4fd30906e43e8e983b6ccfc8bac3d8df6de9e6b019299b380e4c66d36
// Generated from the server's OpenAPI document by `./x types`. Do not edit.

/** A page of a list; `next` is the cursor of the following page. */
export interface List<T> {
  items: T[];
  next?: string | null;
}

/** The program and its store. */
export interface About {
  /** Whether several servers may share the store. */
  is_shared: boolean;
  project: string;
  /** How long ended runs are kept; absent = for ever. */
  retain_ms?: number | null;
  /** The id of the server that answers. */
  server: string;
  /** Servers with a heartbeat. */
  servers: Array<ServerSummary>;
  up_ms: number;
  version: string;
  /** How long a worker may be silent. */
  worker_ttl_ms: number;
}

/** An account with its balance. */
export interface AccountInfo {
  /** The amount that can be spent. */
  balance: number;
  created_at: Time;
  /** The amount that open charges hold; the unused part returns to the balance. */
  held: number;
  id: string;
  name: string;
}

/** Something that waits for a person. */
export interface ApprovalInfo {
  /** People who may decide; empty = any person. */
  assignees: Array<string>;
  /** The name of the flow. */
  flow: string;
  /** A JSON Schema for the decision's form. */
  form?: unknown;
  /** The question for the person who decides. */
  input?: unknown;
  node: string;
  run: string;
  since?: Time | null;
  title?: string | null;
  /** When it is too late. */
  until?: Time | null;
}

/** One attempt at a node, with the beginnings of its values. */
export interface AttemptHead {
  action?: string | null;
  /** Counts from 1 within a visit. */
  attempt: number;
  /** The index or the name of the branch, in a fan. */
  branch?: string | null;
  error?: FaultInfo | null;
  /** The fence of the call; absent where no call was made. */
  fence?: number | null;
  finished_at?: Time | null;
  input: ValueHead;
  /** The type as the definition spells it. */
  kind: string;
  node: string;
  output?: ValueHead | null;
  /** When the call or the wait began. */
  queued_at: Time;
  service?: string | null;
  /** When a worker took the call out of a queue; for any other attempt, when it began. */
  started_at?: Time | null;
  /** `ok`, `error`, `canceled`, `queued`, `running`, `suspended` or `waiting`. */
  status: string;
  /** The entry into the node that it belongs to. */
  visit: number;
  worker?: string | null;
}

/** Something that needs a person. */
export interface AttentionItem {
  /** The command that shows more, or the remedy. */
  command?: string | null;
  count?: number | null;
  /** `trouble`, `no_worker`, `missed_schedule`, `dead_letters`, `lease_expired`, `low_balance` or `queue_paused`. */
  kind: string;
  since?: Time | null;
  /** The name or id of the thing. */
  subject: string;
  text: string;
}

/** A place where the audit is not as it was written. */
export interface AuditBreak {
  reason: string;
  seq: number;
}

/** The last line of the audit. Keep it in another place: it proves that no line up to it was changed or deleted. */
export interface AuditHead {
  /** The hash of that line; 64 zeros while there is none. */
  hash: string;
  /** 0 while there is no line. */
  seq: number;
}

/** A change that a client requested. Never changed, never deleted. */
export interface AuditLine {
  at: Time;
  /** The code of the problem, if the change was refused or failed. */
  code?: string | null;
  /** SHA-256 of the line and of the hash of the line before it, as 64 hexadecimal digits. */
  hash: string;
  /** Where the connection came from. */
  ip?: string | null;
  /** The id of the API key. */
  key?: string | null;
  method: string;
  /** The person that the caller acted for, by its own word: `X-Windlass-Actor` or `by` of a request with a key. */
  on_behalf_of?: string | null;
  path: string;
  /** Why, if the request said so. */
  reason?: string | null;
  /** `done`, `refused`, or `failed`: the server could not answer, and it may have been done. */
  result: string;
  /** From 1, without gaps. */
  seq: number;
  /** The HTTP status of the answer. */
  status: number;
  /** The id or the name of the subject, as the request wrote it. */
  subject: string;
  /** The name of the change, such as `run.cancel`. */
  what: string;
  /** The name of the API key; on an open server the header `X-Windlass-Actor`, or the field `by`, or `anonymous`. */
  who: string;
}

/** The result of a check of the whole audit. */
export interface AuditVerification {
  /** The first place where the audit is not as it was written. */
  broken?: AuditBreak | null;
  /** The head that the store kept. */
  head: AuditHead;
  /** The lines from the first that are as they were written. */
  intact: number;
}

/** How delays between attempts grow. */
export type BackoffKind = "fixed" | "exponential";

/** How far the branches of a fan are. */
export interface BranchCounts {
  failed: number;
  open: number;
  total: number;
  /** Not started yet. */
  waiting: number;
}

/** The budget of a run. */
export interface Budget {
  /** The most that the estimates of all its calls may sum up to; refunds count as not spent. */
  budget: number;
}

/** A bulk action that was accepted. */
export interface BulkAccepted {
  id: string;
  /** Runs that were chosen. */
  matched: number;
}

/** An action on a run. */
export type BulkAction = "cancel" | "retry" | "rerun" | "pause" | "resume" | "signal";

/** Further values of an action. */
export interface BulkArgs {
  /** The node from which a rerun starts. */
  from?: string | null;
  /** The key of a signal. */
  key?: string | null;
  /** The shared state with which a rerun starts. */
  shared?: Record<string, unknown> | null;
  /** The value of a signal. */
  value?: unknown;
}

/** The effect that a bulk action would have. */
export interface BulkDryRun {
  by_status: Record<string, number>;
  dry_run: boolean;
  matched: number;
  /** Whether there are more runs than one action may have: it would be refused. */
  more?: boolean;
  outcomes: BulkOutcomes;
  /** The first of the runs. */
  sample: Array<string>;
}

/** A run on which the action failed. */
export interface BulkFailureInfo {
  /** The code of the problem. */
  code: string;
  id: string;
  message: string;
}

/** A bulk action and its progress. */
export interface BulkInfo {
  action: BulkAction;
  actor: string;
  args: BulkArgs;
  created_at: Time;
  done: number;
  ended_at?: Time | null;
  failed: number;
  /** The first failures; empty in lists. */
  failures?: Array<BulkFailureInfo>;
  id: string;
  kind: BulkKind;
  matched: number;
  /** Whether there are more failures. */
  more_failures?: boolean;
  query?: string | null;
  reason: string;
  status: BulkStatus;
  succeeded: number;
  updated_at: Time;
}

/** The things that an action is about. */
export type BulkKind = "runs";

/** How many runs would take an action, by their status now. */
export interface BulkOutcomes {
  apply: number;
  refuse: number;
}

/** An action on many runs. Give `query` or `ids`. */
export interface BulkRequest {
  action: BulkAction;
  args?: BulkArgs;
  /** Changes nothing; the answer tells how many runs would take the action. */
  dry_run?: boolean;
  ids?: Array<string> | null;
  kind: BulkKind;
  /** A query of the query language of runs; empty = all runs. */
  query?: string | null;
  /** For the audit, and for the runs that are canceled. */
  reason?: string;
}

/** Where a bulk action stands. */
export type BulkStatus = "running" | "completed" | "canceled";

/** The three ways in which a call or a job ends. */
export type CallOutcome = "done" | "suspended" | "failed";

/** Says how a call that was suspended, or that a push worker took on, ended. */
export interface CallReport {
  error?: string | null;
  /** Lines for people, as in the end of a job. */
  logs?: unknown;
  memo?: unknown;
  outcome?: CallOutcome;
  recheck_ms?: number | null;
  result?: unknown;
  /** Whether trying again can help; absent = yes. */
  retryable?: boolean | null;
  /** With `failed`: as in the end of a job. */
  temporary?: boolean;
  worker_id?: string | null;
}

/** Stop the run. */
export interface Cancel {
  by?: string | null;
  reason?: string | null;
}

/** The handling of slots that passed while no server was running. */
export type CatchupRule = "none" | "last" | "all";

/** A change of any run, as the stream of all runs tells it. */
export interface ChangeEvent {
  at: Time;
  flow_id: string;
  /** The node that was entered last. */
  node?: string | null;
  run: string;
  /** The number of the journal's entry. */
  seq: number;
  status: RunStatus;
}

/** A worker's request for jobs. A job matches by its queue or by its service. */
export interface ClaimRequest {
  /** How long the jobs are kept from others, 1,000 to 3,600,000; absent = 30,000. */
  lease_ms?: number | null;
  /** At most so many, 1 to 1,000; absent = 1. */
  max?: number | null;
  queues?: Array<string>;
  services?: Array<string>;
  /** How long to wait when there is nothing, up to 60,000; absent = not at all. */
  wait_ms?: number | null;
  worker_id: string;
}

/** The jobs that the worker holds now. */
export interface ClaimResponse {
  /** The worker gets no more jobs and should stop when its current ones have ended. */
  draining?: boolean;
  jobs: Array<ClaimedJob>;
}

/** A claimed job. */
export interface ClaimedJob {
  attempt: number;
  /** The call it carries: how it ended can be reported under this id once it was suspended. */
  call?: string | null;
  /** When the attempt is given up. */
  deadline?: Time | null;
  id: string;
  /** The input of the call; the payload of a job without a run. */
  input?: unknown;
  /** The idempotency key: the same for every attempt. */
  key: string;
  /** Names this claim. Opaque: it is sent back with `finish` and `extend`. */
  lease: string;
  /** The end of the lease: another worker can claim the job then, unless the lease is extended. */
  lease_until: Time;
  /** The value that the attempt left when it was suspended. */
  memo?: unknown;
  node?: string | null;
  /** The parameters of the call. Jobs of one run share large ones in memory. */
  params?: unknown;
  /** How urgent it is; higher goes first. */
  priority?: number;
  queue: string;
  /** The run whose call it carries. */
  run?: string | null;
  service: string;
}

/** End a suspended or waiting node with this result. */
export interface Continue {
  node: string;
  result?: unknown;
}

/** The number of things with one value of a property. */
export interface CountedValue {
  count: number;
  /** Whether there are more, which were not counted. */
  more?: boolean;
  value: string;
}

/** A task that failed for good, until a client replays or discards it. */
export interface DeadLetter {
  attempt: number;
  created_at: Time;
  error: FaultInfo;
  failed_at: Time;
  /** The group that it belongs to. */
  fingerprint: string;
  max_retries: number;
  name: string;
  payload: unknown;
  priority: number;
  queue_name: string;
  task_id: string;
  /** Its last attempt. */
  task_run_id: string;
  /** The worker of the last attempt. */
  worker_id?: string | null;
}

/** Dead letters that failed in the same way, numbers, ids and quoted words aside. */
export interface DeadLetterGroupInfo {
  /** How many they are. */
  count: number;
  /** The error of the latest one. */
  error: FaultInfo;
  fingerprint: string;
  first_at: Time;
  last_at: Time;
  /** The latest one. */
  latest_task_id: string;
}

/** Dead letters of a queue, grouped by error, the largest group first. */
export interface DeadLetterGroups {
  count: number;
  groups: Array<DeadLetterGroupInfo>;
  queue: string;
}

/** A dead letter: an object, or, unless `format=objects` is asked for, its JSON as text. */
export type DeadLetterItem = string | DeadLetter;

/** A dead letter that stays as it is. */
export interface DeadLetterRefusal {
  reason: string;
  task_id: string;
}

/** The result of a replay or a discard. */
export interface DeadLettersMoved {
  /** Which. */
  ids?: Array<string>;
  /** How many were replayed, or discarded. */
  moved: number;
  queue: string;
  /** Those that stay as they are: asked for by id and no dead letters of this queue, or, however they were asked for, with a deduplication key that another task has now. */
  refused?: Array<DeadLetterRefusal>;
}

/** Dead letters of a queue, oldest first. */
export interface DeadLetters_DeadLetterItem {
  /** The number of items on this page. */
  count: number;
  items: Array<string | DeadLetter>;
  /** The next page: send it back as `after`. */
  next?: string | null;
  queue: string;
}

/** A person decides. */
export interface Decide {
  by?: string | null;
  comment?: string | null;
  /** `true` or `"approved"`, `false` or `"rejected"`, or another action. */
  decision: unknown;
  /** Absent: the only approval that is open. */
  node?: string | null;
}

/** A definition to be looked at. Give `definition` or `yaml`. */
export interface Definition {
  /** The definition as an object. */
  definition?: Record<string, unknown> | null;
  /** The definition as text, YAML or JSON. */
  yaml?: string | null;
}

/** One difference. */
export interface DefinitionChange {
  after?: unknown;
  before?: unknown;
  kind: DefinitionChangeKind;
  /** Where, as a JSON pointer: `/nodes/fetch/service`. */
  path: string;
}

/** The kind of a change. */
export type DefinitionChangeKind = "added" | "removed" | "changed";

/** Money to be put into an account. */
export interface DepositRequest {
  /** At least 1. */
  amount: number;
  /** Names the payment: the same key and amount again puts nothing in again. */
  key: string;
}

/** The result of a deposit: the account now, and the ledger entry of the deposit. */
export type DepositResponse = (AccountInfo) & ({
  /** `false`: the same deposit was made before; `entry` is the entry of that time. */
  created: boolean;
  entry: LedgerEntry;
});

/** Gives dead letters up: the oldest `count`, those of a group, or these. */
export interface DiscardDeadLetters {
  /** At most so many, up to 10,000; with a fingerprint, absent = all, up to 10,000 a request. */
  count?: number | null;
  /** Those of this group. */
  fingerprint?: string | null;
  /** These tasks. */
  ids?: Array<string> | null;
  /** Why. */
  reason: string;
}

/** Something that is not as it must be. */
export interface DoctorFinding {
  node?: string | null;
  /** The action of a person, if `repair` cannot help. */
  remedy?: string | null;
  /** Whether something was done about it. */
  repaired: boolean;
  /** The id of the run or account, or the key of a row. */
  subject: string;
  what: string;
}

/** The number of examined runs and accounts, and the findings. */
export interface DoctorReport {
  /** At most 1,000: there may be more. */
  findings: Array<DoctorFinding>;
  n_accounts: number;
  n_runs: number;
  pages?: PageCheck;
}

/** Look at every open run and every account. */
export interface DoctorRequest {
  /** Repair the findings: wake runs that no timer would wake. */
  repair?: boolean;
}

/** The effect of a new round of a run, assuming that every node succeeds. */
export interface DryRun {
  /** The rest of the run's budget, if it has one. */
  budget_left?: number | null;
  calls: DryRunCalls;
  cost: DryRunCost;
  id: string;
  /** Whether there are more nodes than are listed: their calls and costs are not counted. */
  more?: boolean;
  /** In the order of the definition, outermost first. Nodes inside of a kept or skipped node are not listed. */
  nodes: Array<DryRunNode>;
  /** The number the round would have. */
  round: number;
}

/** The number of calls of a round. */
export interface DryRunCalls {
  /** Nodes that run or may run. */
  at_most: number;
  /** Nodes that run. */
  sure: number;
}

/** The estimated charges of a round, in minor units. A call that was made before is estimated with the same input, a child run at the cost of the last one if that completed. */
export interface DryRunCost {
  /** Nodes that run or may run. */
  at_most: number;
  /** Nodes that run. */
  estimated: number;
  /** Calls and child runs whose cost is unknown. */
  unknown: number;
}

/** One node or branch of a dry run. */
export interface DryRunNode {
  /** The kind of callee, if the node makes a call: `push worker`, `pull worker`, `local function`, `script` or `child run`. */
  by?: string | null;
  /** The charge for one call, if it is known in advance. */
  estimate?: number | null;
  /** The type as the definition spells it. */
  kind: string;
  /** Its path; `*` stands for every item of a fan and every turn of a loop. */
  node: string;
  /** The service, if the node makes a call. */
  service?: string | null;
  /** `runs`, `may_run` (if the nodes before lead to it), `goes_on` (some nodes inside run, the others are kept), `kept` or `skipped`. */
  status: string;
  /** How often, where the path has a `*`: as often as in the last round. Absent = unknown. */
  times?: number | null;
}

/** The handling of slots when clocks change. A pattern for every hour follows real time under all of these. */
export type DstRule = "shift" | "skip" | "twice";

/** How long something took, over many; null when there was none. */
export interface DurationPercentiles {
  max?: number | null;
  mean?: number | null;
  p50?: number | null;
  p95?: number | null;
  p99?: number | null;
}

/** An example flow of the program. */
export interface ExampleInfo {
  /** Whether there is a flow of this name. */
  loaded: boolean;
  name: string;
}

/** The examples to be published. */
export interface ExampleNames {
  /** Absent = all. */
  names?: Array<string> | null;
}

/** The examples that were published. */
export interface ExamplesLoaded {
  /** Names of flows that were there already. */
  kept: Array<string>;
  published: Array<PublishResponse>;
}

/** Ends of jobs and the next claim, in one request. */
export interface ExchangeRequest {
  claim: ClaimRequest;
  /** The ends: at most 1,000. */
  finish?: Array<JobResult>;
}

/** The verdicts on the ends, and the jobs that the worker holds now. */
export interface ExchangeResponse {
  /** The ends were read, and the claim failed with this code, from `/docs/errors`: claim again. */
  code?: string | null;
  /** The worker gets no more jobs and should stop when its current ones have ended. */
  draining?: boolean;
  jobs: Array<ClaimedJob>;
  /** The verdicts, in the order of the ends. */
  results: Array<FinishVerdict>;
}

/** The tasks that the steps of a definition become. */
export interface ExpandResponse {
  tasks: Array<ExpandedTaskInfo>;
}

/** A step as it runs. */
export interface ExpandedTaskInfo {
  /** The tasks that must be settled before it. */
  dependOn: Array<string>;
  id: string;
  operator: string;
  /** The body of a loop. Its tasks exist once in each turn. */
  steps?: Array<ExpandedTaskInfo>;
  /** The positional id: `{parallel}_b{branch}_s{step}` inside branches, the step's own id elsewhere. In the body of a loop it ends with `_i{turn}`; a run has the number of the turn in place of `{turn}`. */
  task_id: string;
  /** The title for people. */
  title?: string | null;
}

/** Keep these claims alive. */
export interface ExtendRequest {
  /** From now on so long, 1,000 to 3,600,000; absent = 30,000. */
  lease_ms?: number | null;
  /** Leases from `claim`; at most 1,000. */
  leases: Array<string>;
}

/** The verdicts on the leases, in their order. */
export interface ExtendResponse {
  results: Array<ExtendVerdict>;
}

/** The verdict on one lease. */
export interface ExtendVerdict {
  /** With `error`: the code of the problem, from `/docs/errors`. */
  code?: string | null;
  lease: string;
  verdict: LeaseVerdict;
}

/** A failure, and where it happened. */
export interface FaultInfo {
  /** One word: `error`, `transport`, `timeout`, `no_worker`, `lost`, `balance`, … */
  kind: string;
  message: string;
  /** The node; absent where it is told by the place. */
  node?: string | null;
  /** Whether the worker that failed marked the error as retryable. */
  retryable: boolean;
}

/** One place that is wrong. */
export interface FieldError {
  /** The remedy, where it is known. */
  hint?: string | null;
  /** Where: `definition.nodes.fetch.service`, `results[0].lease`, `?limit`. */
  path: string;
  /** The reason. */
  reason: string;
}

/** Ends of jobs, each for itself. */
export interface FinishRequest {
  /** At most 1,000. */
  results: Array<JobResult>;
}

/** The verdicts on the results, in their order. */
export interface FinishResponse {
  results: Array<FinishVerdict>;
}

/** The verdict on one result. */
export interface FinishVerdict {
  /** With `error`: the code of the problem, from `/docs/errors`. */
  code?: string | null;
  id: string;
  verdict: LeaseVerdict;
}

/** A flow with the version that is started when none is named. */
export type FlowDetail = (FlowInfo) & ({
  /** The highest version that is published. */
  version?: Version | null;
});

/** How two versions of a flow differ. */
export interface FlowDiff {
  /** The newer version as it was published. */
  after_text?: string;
  /** The older version as it was published. */
  before_text?: string;
  /** In the order of the paths. */
  changes: Array<DefinitionChange>;
  flow_id: string;
  from: number;
  /** Whether there are more changes than are listed. */
  more?: boolean;
  /** Nodes that were added, removed or changed, in the order of their ids. */
  nodes?: Array<NodeChange>;
  to: number;
}

/** A flow, laid out: places are whole pixels, from the corner at the top left. */
export interface FlowGraph {
  direction: GraphDirection;
  edges: Array<GraphEdge>;
  /** `graph`, `dag` or `steps`. */
  form: string;
  height: number;
  /** Whether some nodes are not drawn, because there are too many; see `hidden` of nodes. */
  more: boolean;
  /** Boxes come before the nodes inside them. */
  nodes: Array<GraphNode>;
  width: number;
}

/** A named definition. */
export interface FlowInfo {
  created_at: Time;
  description: string;
  id: string;
  is_template: boolean;
  labels: Record<string, string>;
  /** The highest number among its versions; 0 = none yet. */
  latest_version: number;
  name: string;
  updated_at: Time;
}

/** A flow to be made, with its first version. Give `definition` or `yaml`. */
export interface FlowRequest {
  /** The definition as an object. */
  definition?: Record<string, unknown> | null;
  description?: string;
  /** Whether it is meant to be copied: flows are made of it with `instantiate`. It can be run, too. */
  is_template?: boolean;
  labels?: Record<string, string>;
  name: string;
  /** The definition as text, YAML or JSON. */
  yaml?: string | null;
}

/** Statistics of a flow on the server that answers, since the server started. */
export interface FlowStatsInfo {
  /** How many calls a run had at once on average: the times of its calls added up, by its own; of runs that ended and that this server saw from their beginning on. */
  average_parallelism: number;
  /** By node; of more than 100 nodes, the others are counted together as `/other`. */
  by_node: Array<NodeDurations>;
  flow: string;
  /** The most that were at once. */
  max_running: number;
  nodes: NodePace;
  /** Calls of its runs that workers hold now. */
  running: number;
  runs: RunPace;
  timestamp: Time;
}

/** The place of a label. */
export interface GraphArea {
  h: number;
  w: number;
  x: number;
  y: number;
}

/** The direction in which a graph is read. */
export type GraphDirection = "lr" | "tb";

/** An edge of a graph. */
export interface GraphEdge {
  /** The action that is waited for. */
  action?: string | null;
  /** Ids of nodes. */
  from: string;
  /** Stays the same for a version: `a>b`, `a>b#2`. */
  id: string;
  kind: GraphEdgeKind;
  /** The action or the condition; absent for the default action. */
  label?: string | null;
  label_box?: GraphArea | null;
  /** Corners of the line, each `[x, y]`, from the border of one node to that of the other. All parts are level or upright. */
  points: Array<Array<number>>;
  /** The label, cut to its place. */
  short?: string | null;
  to: string;
  when: GraphEdgeWhen;
}

/** How an edge runs. */
export type GraphEdgeKind = "forward" | "back" | "self";

/** The condition under which an edge is followed. */
export type GraphEdgeWhen = "always" | "action" | "condition";

/** A node of a graph, or a box with nodes inside. */
export interface GraphNode {
  /** Whether it has nodes inside. */
  box: boolean;
  /** A second line, cut to the width of the node. */
  detail?: string;
  h: number;
  /** Nodes inside that are not drawn. */
  hidden?: number | null;
  /** The path of the node in runs, with `*` for the index of a branch or an iteration: `a`, `sf/b`, `loop/* /b`, `par/0`. */
  id: string;
  /** The last part of the id. */
  key: string;
  kind: GraphNodeKind;
  /** The title, or the key. */
  label: string;
  /** The id of the box around it. */
  parent?: string | null;
  /** The place in the definition, as the `path` of a problem names it: `$.nodes.fetch`. */
  path?: string | null;
  /** The label, cut to the width of the node. */
  short: string;
  /** Whether its scope begins with it. */
  start: boolean;
  w: number;
  /** The kind, type or operator as the definition spells it. */
  word: string;
  x: number;
  y: number;
}

/** The kind of a node in a graph. */
export type GraphNodeKind = "call" | "flow" | "choice" | "parallel" | "foreach" | "subflow" | "loop" | "branch" | "timer" | "signal" | "approval" | "compute" | "pass" | "return" | "end";

/** The server is there. */
export interface Health {
  /** `ok`. */
  status: string;
  /** The version of the program. */
  version?: string;
}

/** A flow to be made of a template. */
export interface InstantiateRequest {
  /** Absent = that of the template. */
  description?: string | null;
  labels?: Record<string, string>;
  /** The name of the new flow. */
  name: string;
  /** Values that become the defaults of the variables that the template declares. */
  variables?: Record<string, unknown>;
  /** The version of the template; absent = the highest that is published. */
  version?: number | null;
}

/** One attempt at a job. */
export interface JobAttempt {
  /** From 1. */
  attempt: number;
  created_at: Time;
  error?: FaultInfo | null;
  finished_at?: Time | null;
  next_retry_at?: Time | null;
  result?: unknown;
  started_at?: Time | null;
  /** `retrying`: the attempt failed and another one follows. */
  status: JobStatus;
  worker_id?: string | null;
}

/** The price of a job and the part of it that was paid, in minor units. */
export interface JobCost {
  actual: number;
  estimated: number;
}

/** The job that a request created, or the open job that holds its deduplication key. */
export interface JobCreated {
  /** The job existed before: it holds the same deduplication key. */
  duplicate?: boolean;
  id: string;
  status: JobStatus;
}

/** A job with its payload, its settings and its latest attempt. Payload and result are `P`s. */
export type JobDetail = (JobSummary) & ({
  account?: string | null;
  cost?: JobCost | null;
  /** The reason that was given when the dead letter was discarded. */
  discarded?: string | null;
  latest_attempt: JobAttempt;
  limit_key?: string;
  /** The value that a worker left for the next attempt when it suspended the job. */
  memo?: unknown;
  payload?: unknown;
  retry: JobRetry;
  run_at?: Time | null;
  /** Time limit of one attempt; absent = none. */
  timeout_ms?: number | null;
  unique_for_ms?: number | null;
});

/** How one job ended. */
export interface JobResult {
  error?: string | null;
  id: string;
  lease: string;
  /** The log of the attempt as text; the last 64 KiB are kept. */
  log?: string | null;
  /** The same line by line, [`WorkerLogLine`]s or plain texts: the first 1,000, each with 4,096 bytes of text, and 256 KiB together. Unreadable lines are replaced by a line that says so. */
  logs?: unknown;
  memo?: unknown;
  outcome: CallOutcome;
  recheck_ms?: number | null;
  result?: unknown;
  /** With `failed`: the minimum delay of the next attempt, even if the backoff is shorter; for a call of a run, up to an hour. */
  retry_after_ms?: number | null;
  /** Whether trying again can help; absent = yes. */
  retryable?: boolean | null;
  /** With `failed`: a network error, a time-out or a busy service. A node of the dag form is then tried again within a second, and after three more tries suspended and called again, independent of its own retries. */
  temporary?: boolean;
}

/** How often a failed job is tried again, and the delay before each try; absent fields have their defaults. */
export interface JobRetry {
  /** `exponential` doubles the delay with each try; default `exponential`. */
  backoff?: BackoffKind | null;
  /** The longest delay; default one hour. */
  cap_ms?: number | null;
  /** The first delay; default 5,000. */
  delay_ms?: number | null;
  /** Whether each delay is a random part of its length between a half and the whole; default true. */
  jitter?: boolean | null;
  /** Tries after the first attempt, 0 to 999; default 2. */
  max?: number | null;
}

/** The state of a job, or of one attempt at it. */
export type JobStatus = "queued" | "running" | "retrying" | "completed" | "failed" | "canceled";

/** A job in a list: without its payload and its results. */
export interface JobSummary {
  /** The number of the latest attempt, from 1. */
  attempt: number;
  /** The running attempt was told to stop. */
  cancel_requested?: boolean;
  created_at: Time;
  dedup_key?: string;
  /** When a worker can claim it next, while it waits for a time: `queued` before `run_at`, `retrying`, or suspended. */
  due_at?: Time | null;
  /** The error of a failed job, or of the attempt before a retry. */
  error?: FaultInfo | null;
  id: string;
  /** Whether the job is in the dead letter queue. */
  is_dead_letter?: boolean;
  name: string;
  /** The node of that run. */
  node?: string | null;
  priority: number;
  queue: string;
  /** Tries after the first attempt. */
  retry_max: number;
  /** The run whose call it carries: cancel or retry that run instead. */
  run?: string | null;
  /** The schedule that created it. */
  schedule?: string | null;
  status: JobStatus;
  /** Only while `running`: a worker suspended the job, and the job is claimed again at `due_at`. */
  suspended?: boolean;
  updated_at: Time;
  /** The worker of the latest attempt. */
  worker_id?: string | null;
}

/** The answer to one job or, in order, to an array of jobs. */
export type JobsCreated = JobCreated | List_JobCreated;

/** The events that one commit appended to the journal of a run. */
export interface JournalEntry {
  at: Time;
  /** The command that did it. */
  command: string;
  /** The events in order; `e` names the kind of each. */
  events: Array<Record<string, unknown>>;
  /** Its number, from 1. */
  seq: number;
}

/** A key, without its secret. */
export interface KeyInfo {
  created_at: Time;
  created_by: string;
  expires_at?: Time | null;
  /** The public part of the key. */
  id: string;
  name: string;
  queues?: Array<string>;
  revoked_at?: Time | null;
  role: KeyRole;
  scripts?: boolean;
  services?: Array<string>;
  /** The last use, to the minute. */
  used_at?: Time | null;
}

/** A new key. No other answer shows its text. */
export type KeyMade = (KeyInfo) & ({
  /** The text to send as `Authorization: Bearer`. */
  key: string;
});

/** A named set of permissions. */
export type KeyRole = "viewer" | "operator" | "worker" | "author" | "admin";

/** The latest start of a schedule. */
export type LastRun = (StartedId) & ({
  /** A client triggered it. */
  manual?: boolean;
  /** The time of the slot, or of the trigger. */
  slot: Time;
});

/** The state of a lease, as its worker is told. */
export type LeaseVerdict = "ok" | "lost" | "canceled" | "error";

/** One entry of an account's ledger. Never changed, never deleted. */
export interface LedgerEntry {
  /** The change of the balance: negative for a charge, 0 for a settlement without a refund. */
  amount: number;
  at: Time;
  balance_after: number;
  /** The cost of a call beyond its estimate, which the account does not pay. */
  borne_by_platform?: number;
  /** Unique within the account. */
  key: string;
  /** `deposit`, `charge`, `settle` or `refund`. */
  kind: string;
  node?: string | null;
  run?: string | null;
  /** From 1, without gaps within the account. */
  seq: number;
  /** The id of the task, for jobs outside of runs. */
  task?: string | null;
}

export type List_AccountInfo = List<AccountInfo>;

export type List_ApprovalInfo = List<ApprovalInfo>;

export type List_AuditLine = List<AuditLine>;

export type List_BulkInfo = List<BulkInfo>;

export type List_ExampleInfo = List<ExampleInfo>;

export type List_FlowInfo = List<FlowInfo>;

export type List_JobAttempt = List<JobAttempt>;

export type List_JobCreated = List<JobCreated>;

export type List_JobSummary = List<JobSummary>;

export type List_JournalEntry = List<JournalEntry>;

export type List_KeyInfo = List<KeyInfo>;

export type List_LedgerEntry = List<LedgerEntry>;

export type List_LogLine = List<LogLine>;

export type List_NodeAttemptInfo = List<NodeAttemptInfo>;

export type List_PriceInfo = List<PriceInfo>;

export type List_RunSummary = List<RunSummary>;

export type List_ServiceInfo = List<ServiceInfo>;

export type List_VersionSummary = List<VersionSummary>;

/** Calls in progress at once, now and lately. */
export interface LoadInfo {
  last_10s: ParallelismInfo;
  last_hour: ParallelismInfo;
  last_minute: ParallelismInfo;
  max_running: number;
  running: number;
  /** Calls that this server put into a queue and that no worker has claimed yet. */
  waiting?: number;
}

/** How serious a line of a log is. */
export type LogLevel = "info" | "warn" | "error";

/** One line of a run's log: an event in words, or a line from a worker. */
export interface LogLine {
  at: Time;
  /** Further fields, without long values; for a worker's line, the fields that it sent. */
  data?: unknown;
  /** The attempt that said it; absent = the run says it itself. */
  fence?: number | null;
  level: LogLevel;
  message: string;
  /** The node it is about; absent = the run. */
  node?: string | null;
  /** The title of the node. */
  title?: string | null;
}

/** A slot that should have started something. */
export interface MissedSlot {
  at: Time;
  /** Why it did not. */
  reason: string;
  slot: Time;
}

/** An account to be opened. */
export interface NewAccount {
  /** The id that runs and jobs name as their `account`. */
  id: string;
  /** For people; absent = the id. */
  name?: string | null;
}

/** A job to create, with its payload as a `P`. */
export interface NewJob {
  /** The account that pays. */
  account?: string | null;
  /** A queue has at most one open job with this key; empty = no key. */
  dedup_key?: string;
  /** Jobs of a queue with the same key share the queue's limits per key, and keys take turns. */
  limit_key?: string;
  /** The kind of work: workers of this service, or of the queue, claim the job. */
  name: string;
  payload?: unknown;
  /** Jobs with a higher priority are claimed first; default 0. */
  priority?: number;
  queue: string;
  retry?: JobRetry | null;
  /** The earliest time of the first attempt. */
  run_at?: Time | null;
  /** Time limit of one attempt, from its claim; absent or 0 = none. */
  timeout_ms?: number | null;
  /** How long after its creation the job holds its key, even if it ends before. */
  unique_for_ms?: number | null;
}

/** One job, or an array of up to 10,000. */
export type NewJobs = NewJob | Array<NewJob>;

/** A key to be made. */
export interface NewKey {
  /** When the key ends; absent = it ends when it is revoked. */
  expires_at?: Time | null;
  /** The name of its owner, which the audit shows. */
  name: string;
  /** The queues whose work the key may do; of workers. `*` = all. */
  queues?: Array<string>;
  role: KeyRole;
  /** The right to publish definitions with scripts; of authors and admins. */
  scripts?: boolean;
  /** The services whose work the key may do; of workers. `*` = all. */
  services?: Array<string>;
}

/** The price of one call of a service: `unit_price × max(units, min_unit)`, in whole minor units. */
export interface NewPrice {
  /** How many it took, which may also be in `$result`. Absent, or a reference that leads nowhere = as many as estimated. */
  actual_units?: unknown;
  /** So many units are paid for at least. */
  min_unit?: number;
  unit_price: number;
  /** How many units a call will take: a whole number, or a reference such as `$params.seconds` or `$input.seconds`. Absent = 1; a reference that leads nowhere = `min_unit`. */
  units?: unknown;
}

/** A schedule to be made. It starts one of: a copy of an existing task, a task, a run of a flow. */
export interface NewSchedule {
  /** With `flow`: who pays. */
  account?: string | null;
  catchup?: CatchupRule | null;
  /** Five fields, or six with seconds first, or a word such as `@daily`. */
  cron_expr: string;
  dst?: DstRule | null;
  /** Absent = yes. */
  enabled?: boolean | null;
  /** The name or the id of the flow that is started. */
  flow?: string | null;
  /** Default: the name of the flow or task that it starts. */
  name?: string | null;
  overlap?: OverlapRule | null;
  /** The parameters of the run, with `flow`. */
  params?: Record<string, unknown> | null;
  task?: null | ScheduledTask;
  /** The id of a task: tasks like it are created. */
  task_template_id?: string | null;
  /** An IANA name; absent = UTC. */
  timezone?: string | null;
  /** With `flow`: the number of the version; absent = the latest published one when it fires. */
  version?: number | null;
  /** How late a missed slot may still be caught up; absent or 0 = a day. */
  window_ms?: number | null;
}

/** A task to be created. */
export interface NewTask {
  /** The account that pays. */
  account?: string | null;
  backoff?: TaskBackoff | null;
  /** Among open tasks of a queue there is one with this key; empty = no matter. */
  dedup_key?: string;
  /** Tasks of a queue with the same key share the queue's limits per key, and keys take turns. */
  limit_key?: string;
  /** All attempts, the first included, up to 1,000; absent = 3. */
  max_retries?: number | null;
  /** The kind of work: workers of this service, or of the queue, claim the task. */
  name: string;
  payload?: unknown;
  /** Higher goes first. */
  priority?: number;
  queue_name: string;
  /** Not before; for the type `scheduled`. */
  run_at?: Time | null;
  /** Time limit of one attempt, from its claim; absent or 0 = none. */
  timeout_ms?: number | null;
  /** Required, except in the task of a schedule. */
  type: TaskType | null;
  /** How long after its creation the key stays taken, even if the task ends before. */
  unique_for_ms?: number | null;
}

/** When something is due. */
export interface NextRuns {
  count: number;
  cron_expr: string;
  /** The same on the clocks of the time zone. */
  local: Array<string>;
  /** Soonest first. */
  next_runs: Array<Time>;
  timezone: string;
}

/** A body that says nothing. */
export type NoBody = Record<string, unknown>;

/** One attempt at a node. */
export interface NodeAttemptInfo {
  action?: string | null;
  /** Counts from 1 within a visit. */
  attempt: number;
  /** The index or the name of the branch, in a fan. */
  branch?: string | null;
  error?: FaultInfo | null;
  /** The fence of the call; absent where no call was made. */
  fence?: number | null;
  finished_at?: Time | null;
  input?: unknown;
  /** The type as the definition spells it. */
  kind?: string;
  node: string;
  output?: unknown;
  service?: string | null;
  started_at: Time;
  /** `ok`, `error`, `canceled`, `queued`, `running`, `suspended` or `waiting`. */
  status: string;
  /** The entry into the node that it belongs to. */
  visit: number;
  worker?: string | null;
}

/** A node that differs between two versions. */
export interface NodeChange {
  kind: DefinitionChangeKind;
  /** Its id in the graph: `fetch`, `each/* /resize`. */
  node: string;
  /** The places that differ, as JSON pointers into the newer version; of a removed node, into the older one. */
  pointers: Array<string>;
}

/** How long the attempts at a node took. */
export interface NodeDurations {
  /** Durations of attempts, from the claim or the push. */
  duration_ms: DurationPercentiles;
  failed: number;
  /** Its path, with `*` for the numbers of branches and turns. */
  node: string;
  /** Durations of the node, from its first call until its end, waits included. */
  node_ms?: DurationPercentiles;
  succeeded: number;
  /** Attempts that ended suspended; their continuations are counted again. */
  suspended?: number;
  /** All attempts added up. */
  total_ms: number;
  /** Durations in a queue before that. */
  waiting_ms?: DurationPercentiles;
}

/** The state of one node of a run. */
export interface NodeInfo {
  action?: string | null;
  /** Attempts made in this visit. */
  attempts?: number;
  /** How far the branches of a fan are. */
  branches?: BranchCounts | null;
  /** The call that may be reported now, without the signature that the report needs: its worker has the whole id. */
  call?: string | null;
  /** The child run that makes its call, or made it last. */
  child?: string | null;
  error?: FaultInfo | null;
  finished_at?: Time | null;
  /** The job that carries its call, or carried it last. */
  job?: string | null;
  /** The type as the definition spells it. */
  kind?: string;
  output?: unknown;
  /** The round in which it was entered last; absent if it was not entered. */
  round?: number | null;
  started_at?: Time | null;
  /** `pending`, `running`, `waiting`, `retrying`, `suspended`, `parked`, `completed`, `failed`, `skipped` or `canceled`. */
  status: string;
  /** Steps form: where it is among the branches around it, `{parallel}_b{branch}_s{step}`; in a turn of a loop with `_i{turn}` behind it. */
  task_id?: string | null;
  /** The title for people. */
  title?: string | null;
}

/** Activity of nodes lately, and since the server started. */
export interface NodePace {
  last_10s: NodeWindow;
  last_hour: NodeWindow;
  last_minute: NodeWindow;
  total: NodeWindow;
}

/** How nodes went in a span of time. */
export interface NodeWindow {
  /** Durations of attempts, from the claim or the push. */
  duration_ms: DurationPercentiles;
  /** Nodes, and branches of fans, that were over: done or failed for good. */
  ended: number;
  failed: number;
  /** The same a second. */
  per_second: number;
  /** Attempts that workers claimed or were pushed. */
  started: number;
  succeeded: number;
  /** Attempts that ended suspended; their continuations are counted again. */
  suspended?: number;
  /** How long they were in a queue before that; of calls that need none, nothing. */
  waiting_ms?: DurationPercentiles;
}

/** The reaction to a call that the account cannot pay. */
export type OnShortBalance = "fail" | "wait";

/** The behaviour of a slot while the job or run of an earlier slot is still open. */
export type OverlapRule = "skip" | "queue" | "cancel" | "allow";

/** The figures of the first page. */
export interface Overview {
  at: Time;
  /** Things that need a person, the most urgent first. */
  attention: Array<AttentionItem>;
  /** Whether the store has no flow and no run. */
  is_empty: boolean;
  /** Services with work or workers. */
  services: Array<ServiceDemand>;
  tiles: OverviewTiles;
}

/** The numbers of the first page. */
export interface OverviewTiles {
  /** Open approvals. */
  approvals: TileCount;
  dead_letters: TileCount;
  /** Runs that were created and failed in the last 24 hours. */
  failed_24h: TileCount;
  /** Jobs and calls in queues. */
  queued: TileCount;
  /** Runs with a call in progress. */
  running: TileCount;
  /** Runs that wait for a timer, a signal, an approval, a retry or money. */
  waiting: TileCount;
  workers: WorkerCounts;
}

/** The estimated and the actual cost of a run's own calls, in minor units. */
export interface OwnCost {
  actual: number;
  estimated: number;
}

/** The tables of a SQLite file whose pages were checked within ten seconds. The next check goes on with the others. */
export interface PageCheck {
  /** Reasons why tables could not be checked. */
  failures?: Array<string>;
  n_checked: number;
  /** 0 if the database checks its own pages. */
  n_tables: number;
}

/** How many calls were open at once in a span of time. */
export interface ParallelismInfo {
  /** `busy_ms` by `wall_ms`. */
  average: number;
  /** The times of all calls added up. */
  busy_ms: number;
  /** The share of the window for each number of open calls; numbers that never occurred are left out. */
  distribution: Array<ParallelismLevel>;
  max: number;
  /** The length of the window. */
  wall_ms: number;
}

/** The time of a window in which a range of calls was open. */
export interface ParallelismLevel {
  from: number;
  ms: number;
  /** The share of the whole window, from 0 to 1. */
  share: number;
  /** Null = any more. */
  to?: number | null;
}

/** The call of a run that started another run. */
export interface ParentCall {
  node: string;
  run: string;
}

/** A problem on the queue platform surface: the text that its clients know, and the fields of a problem. */
export type PlatformProblem = (ProblemDetails) & ({
  /** Everything that is wrong, for people. */
  error: string;
});

/** A price that is no more. */
export interface PriceDeleted {
  deleted: boolean;
  service: string;
}

/** The price of a service. */
export interface PriceInfo {
  actual_units?: unknown;
  min_unit: number;
  service: string;
  unit_price: number;
  units: unknown;
  updated_at: Time;
}

/** Why a request was not fulfilled. */
export interface ProblemDetails {
  /** One stable word for programs. */
  code: string;
  /** The explanation of this occurrence, with the remedy. */
  detail: string;
  /** Every place that is wrong, where there are places. */
  errors?: Array<FieldError>;
  /** The HTTP status. */
  status: number;
  /** The same for every problem of this code. */
  title: string;
  /** Where the code is explained: `/docs/errors#<code>`. */
  type: string;
}

/** How bad a problem is. */
export type ProblemSeverity = "error" | "warning";

/** Resources of the server process; null where the operating system does not tell. */
export interface ProcessStatsInfo {
  /** CPU time of all its threads. */
  cpu_ms?: number | null;
  open_files?: number | null;
  resident_bytes?: number | null;
  /** Tasks of the asynchronous runtime that are alive. */
  tasks: number;
  threads?: number | null;
  up_ms: number;
}

/** The published version. */
export interface PublishResponse {
  /** The flow. */
  id: string;
  name: string;
  /** The number of the version. */
  version: number;
  version_id: string;
  /** Warnings. */
  warnings?: Array<ValidationProblem>;
}

/** A change of a queue; absent fields keep their values. */
export interface QueueChange {
  /** With PUT, a limit that is not named is lifted; with PATCH it stays, and null lifts it. */
  limits?: QueueLimitSettings | null;
  paused?: boolean | null;
}

/** A queue as it stands. */
export interface QueueInfo {
  dead_letters: number;
  /** Open tasks by state: `pending`, `queued`, `running`, `suspended`, `retrying`. */
  depth: Record<string, number>;
  limits: QueueLimitSettings;
  name: string;
  /** How long the task that can be claimed longest has been waiting; null when none can be. */
  oldest_age_ms?: number | null;
  /** All open tasks. */
  open: number;
  /** Nothing is handed out from it. */
  paused: boolean;
  stats: QueueStatsInfo;
}

/** The limits of a queue; an absent limit does not apply. */
export interface QueueLimitSettings {
  /** Tasks of the queue that workers may have at once. */
  concurrency?: number | null;
  /** Whether keys take turns even if nothing limits them. */
  fair?: boolean;
  /** Tasks with the same `limit_key` that workers may have at once. */
  key_concurrency?: number | null;
  /** How often one with the same `limit_key` is handed out. */
  key_rate?: RateLimit | null;
  /** How often one is handed out. */
  rate?: RateLimit | null;
}

/** How a queue went lately, as far as the server that answers has seen it. */
export interface QueueStatsInfo {
  last_10s: QueueWindow;
  last_hour: QueueWindow;
  last_minute: QueueWindow;
}

/** Counts and durations of one time window. */
export interface QueueWindow {
  created: number;
  /** Tasks that became dead letters. */
  dead: number;
  /** Attempts that failed, whether or not another one followed. */
  failed: number;
  per_second: Rates;
  started: number;
  succeeded: number;
  /** From when a task could be claimed until it was. */
  wait_ms: DurationPercentiles;
  /** From the claim to the end of the attempt. */
  work_ms: DurationPercentiles;
}

/** One page of the queues that have settings, open tasks or dead letters, by name. */
export interface Queues {
  /** The number of items on this page. */
  count: number;
  /** The cursor of the next page; absent on the last page. */
  next?: string | null;
  queues: Array<QueueInfo>;
}

/** So many in so long. */
export interface RateLimit {
  /** How many may come at once after a pause; absent = `count`. */
  burst?: number | null;
  count: number;
  per_ms: number;
}

/** The same per second. */
export interface Rates {
  created: number;
  dead: number;
  failed: number;
  started: number;
  succeeded: number;
}

/** Whether the server takes work. */
export interface Readiness {
  /** How far the wall clock of the server is behind its time. Above a minute it is a warning, above a day a trouble. */
  clock_skew_ms?: number;
  ready: boolean;
  /** Only if it hands out jobs through Redis. One that is away keeps it from nothing. */
  redis?: RedisStatsInfo | null;
  timestamp: Time;
  /** The reason why the server takes no work. */
  troubles?: Array<string>;
  /** Things that an operator should know although the server takes work. */
  warnings?: Array<string>;
}

/** How it goes with the Redis that a server hands out jobs through. */
export interface RedisStatsInfo {
  /** How often a queue was filled from the store. */
  fills: number;
  /** How often it was away since the server started. */
  outages: number;
  /** Whether jobs are handed out through it now; while they are not, the store alone is used, and nothing is lost. */
  up: boolean;
}

/** A worker whose registration was refused because of its address. */
export interface RefusedWorker {
  at: Time;
  id: string;
  /** Why, with the setting that allows it. */
  reason: string;
  url: string;
}

/** Tries dead letters again: the oldest `count`, those of a group, or these. */
export interface ReplayDeadLetters {
  /** At most so many, up to 10,000; absent = 1, or with a fingerprint all, up to 10,000 a request. */
  count?: number | null;
  /** Those of this group. */
  fingerprint?: string | null;
  /** These tasks. */
  ids?: Array<string> | null;
  /** Absent = the priority that each has. */
  override_priority?: number | null;
  /** Laid over each payload; null in it removes a field. */
  patch?: unknown;
  /** At most so many begin per second, the others later; absent = all at once. */
  per_second?: number | null;
  /** The same request again, with the same id, replays nothing again. */
  replay_id?: string | null;
}

/** The verdict on a report. */
export interface ReportResponse {
  /** The call. */
  id: string;
  verdict: LeaseVerdict;
}

/** From a node on again. */
export interface RerunRequest {
  from: string;
  /** The shared state to go on with; absent = as it is. */
  shared?: Record<string, unknown> | null;
}

/** The end of the old key when a new one takes its place. */
export interface RotateKey {
  /** How long the old key stays valid; absent = a day, 0 = it ends at once. */
  grace_ms?: number | null;
}

/** The answer to a retry or a rerun: the run, or with `?dry_run=1` the effect it would have. */
export type RoundAnswer = DryRun | RunSummary;

/** The estimated and the actual cost of a run, in minor units, with all its child runs that have ended. */
export interface RunCost {
  actual: number;
  estimated: number;
  /** The part of its own calls, where child runs cost something too. Not shown in lists. */
  own?: OwnCost | null;
}

/** Numbers of runs, by a property. */
export interface RunCounts {
  at: Time;
  /** The property. */
  by: string;
  counts: Array<CountedValue>;
}

/** A run, wholly. */
export type RunDetail = (RunSummary) & ({
  budget?: number | null;
  exec_mode: StartMode;
  manual: boolean;
  /** Whether there are more nodes than are shown: branches of large fans are left out. */
  more_nodes?: boolean;
  /** By path: `fetch`, `sub/fetch`, `each/3`. */
  node_states: Record<string, NodeInfo>;
  params: Record<string, unknown>;
  priority: RunPriority;
  /** The output of the run, once it has ended. */
  result?: unknown;
  /** The shared state of the outermost scope. */
  shared: Record<string, unknown>;
  start_node_ids?: Array<string>;
});

/** How runs went lately, and since the server started. */
export interface RunPace {
  last_10s: RunWindow;
  last_hour: RunWindow;
  last_minute: RunWindow;
  total: RunWindow;
}

/** A run with its graph, its nodes and its attempts. */
export interface RunPage {
  /** The newest attempts, oldest first. */
  attempts: Array<AttemptHead>;
  budget?: number | null;
  /** Child runs, newest first. */
  children: Array<RunSummary>;
  exec_mode: StartMode;
  /** The graph of its version, laid out from left to right. */
  graph: FlowGraph;
  manual: boolean;
  /** Whether there are older attempts. */
  more_attempts: boolean;
  more_children: boolean;
  /** Whether there are more nodes than are shown. */
  more_nodes: boolean;
  /** By path, without outputs: attempts have them. */
  node_states: Record<string, NodeInfo>;
  params: ValueHead;
  priority: RunPriority;
  result?: ValueHead | null;
  run: RunSummary;
  /** Entries of the journal that are in it: patches with a lower number are older. */
  seq: number;
  shared: ValueHead;
  start_node_ids?: Array<string>;
  /** Why it waits. */
  why: Array<WaitReason>;
}

/** Five classes; higher ones go first. */
export type RunPriority = "lowest" | "low" | "medium" | "high" | "highest";

/** A run to be started. */
export interface RunRequest {
  /** The account that pays. */
  account?: string | null;
  /** The most that its calls may cost, in minor units. */
  budget?: number | null;
  exec_mode?: StartMode;
  labels?: Record<string, string>;
  /** Advanced only by steps from outside. */
  manual?: boolean;
  on_short_balance?: OnShortBalance;
  /** The parameters of the run. */
  params?: Record<string, unknown> | null;
  /** Absent: the definition's. */
  priority?: RunPriority | null;
  /** Starting again with the same id and the same body starts nothing and answers with the run that is there. */
  request_id?: string | null;
  /** For the modes `specified_starts` and `isolated_nodes`. */
  start_node_ids?: Array<string>;
  /** Another word for `params`; give one of the two. */
  variables?: Record<string, unknown> | null;
  /** The number of the version; absent or 0 = the highest that is published. */
  version?: number | null;
}

/** A run as it was after so many entries of its journal. */
export interface RunState {
  /** Entries of the journal that are in it. */
  at: number;
  cost: RunCost;
  error?: FaultInfo | null;
  id: string;
  /** Entries of the journal in all. */
  len: number;
  /** Whether there are more nodes than are shown: branches of large fans are left out. */
  more_nodes?: boolean;
  node_states: Record<string, NodeInfo>;
  params: Record<string, unknown>;
  result?: unknown;
  round: number;
  shared: Record<string, unknown>;
  /** The newest value of every signal. */
  signals: Record<string, unknown>;
  status: RunStatus;
  /** When the last of these entries was written. */
  time: Time;
}

/** Statistics of a run, from its journal. */
export interface RunStats {
  attempts: number;
  /** Durations of the attempts at its nodes, from the claim. */
  duration_ms: DurationPercentiles;
  flow: string;
  /** By node; of more than 1,000 nodes, those that took longest. */
  nodes: Array<NodeDurations>;
  /** While it went on, in all its rounds. */
  parallelism: ParallelismInfo;
  run: string;
  status: RunStatus;
  /** Durations in a queue before that. */
  waiting_ms?: DurationPercentiles;
}

/** Where a run stands. */
export type RunStatus = "pending" | "running" | "waiting" | "paused" | "canceling" | "completed" | "failed" | "canceled";

/** A run as it is listed. */
export interface RunSummary {
  account?: string | null;
  /** The action with which a node of the outermost scope ended last. */
  action?: string | null;
  cost: RunCost;
  created_at: Time;
  ended_at?: Time | null;
  /** Why it failed. */
  error?: FaultInfo | null;
  /** The name of the flow. */
  flow: string;
  flow_id: string;
  id: string;
  labels?: Record<string, string>;
  /** Entries in its journal. */
  len: number;
  /** The node that was entered last. */
  node?: string | null;
  /** The call of another run that started it. */
  parent?: ParentCall | null;
  request_id?: string | null;
  /** Starts at 1; retry and rerun open the next. */
  round: number;
  schedule_id?: string | null;
  status: RunStatus;
  step_count: number;
  updated_at: Time;
  /** The number of the version. */
  version: number;
  version_id: string;
  /** When it goes on by itself. */
  wake_at?: Time | null;
}

/** How runs went in a span of time. */
export interface RunWindow {
  canceled: number;
  completed: number;
  /** From the start to the end of each round. */
  duration_ms: DurationPercentiles;
  failed: number;
  /** Runs that ended, however they did, a second. */
  per_second: number;
  started: number;
}

/** A schedule that is no more. */
export interface ScheduleDeleted {
  deleted: boolean;
  id: string;
}

/** A schedule as it stands. */
export interface ScheduleInfo {
  account?: string | null;
  catchup: CatchupRule;
  created_at: Time;
  cron_expr: string;
  /** Everything up to this moment is decided. */
  decided_until?: Time | null;
  dst: DstRule;
  enabled: boolean;
  /** How often it started something. */
  fired?: number;
  /** The flow that it starts a run of, by name. */
  flow?: string | null;
  id: string;
  /** Why the latest slot that should have started something did not; absent once a later one did. */
  last_error?: MissedSlot | null;
  /** The latest start. */
  last_run?: LastRun | null;
  name: string;
  /** The next slots, soonest first; none while it is not enabled. */
  next_runs: Array<Time>;
  overlap: OverlapRule;
  params?: Record<string, unknown> | null;
  /** Slots that passed without a start, for any reason. */
  passed?: number;
  /** Jobs and runs that it started and that have not ended, oldest first. */
  running: Array<StartedId>;
  /** The same. */
  schedule_id: string;
  /** The task that it creates. */
  task?: NewTask | null;
  timezone: string;
  updated_at: Time;
  version?: number | null;
  /** Slots that wait for an open job or run, oldest first. */
  waiting?: Array<Time>;
  /** How late a missed slot may still be caught up. */
  window_ms: number;
}

/** A change of a schedule; absent fields keep their values. The target is replaced as a whole. */
export interface SchedulePatch {
  account?: string | null;
  catchup?: CatchupRule | null;
  cron_expr?: string | null;
  dst?: DstRule | null;
  enabled?: boolean | null;
  flow?: string | null;
  name?: string | null;
  overlap?: OverlapRule | null;
  params?: Record<string, unknown> | null;
  task?: null | ScheduledTask;
  task_template_id?: string | null;
  timezone?: string | null;
  version?: number | null;
  window_ms?: number | null;
}

/** Asks when something would be due. */
export interface SchedulePreviewRequest {
  /** 1 to 1,000; absent = 5. */
  count?: number | null;
  cron_expr: string;
  dst?: DstRule | null;
  timezone?: string | null;
}

/** A task to be created. */
export interface ScheduledTask {
  /** The account that pays. */
  account?: string | null;
  backoff?: TaskBackoff | null;
  /** Among open tasks of a queue there is one with this key; empty = no matter. */
  dedup_key?: string;
  /** Tasks of a queue with the same key share the queue's limits per key, and keys take turns. */
  limit_key?: string;
  /** All attempts, the first included, up to 1,000; absent = 3. */
  max_retries?: number | null;
  /** The kind of work: workers of this service, or of the queue, claim the task. */
  name: string;
  payload?: unknown;
  /** Higher goes first. */
  priority?: number;
  queue_name: string;
  /** Time limit of one attempt, from its claim; absent or 0 = none. */
  timeout_ms?: number | null;
  /** Required, except in the task of a schedule. */
  type?: TaskType | null;
  /** How long after its creation the key stays taken, even if the task ends before. */
  unique_for_ms?: number | null;
}

/** One page of schedules, oldest first. */
export interface Schedules {
  /** The number of items on this page. */
  count: number;
  /** The cursor of the next page; absent on the last page. */
  next?: string | null;
  schedules: Array<ScheduleInfo>;
}

/** A thing that was found. */
export interface SearchHit {
  id: string;
  /** `run`, `flow`, `queue` or `job`. */
  kind: string;
  status?: string | null;
  title: string;
}

/** Things that were found. */
export interface SearchHits {
  items: Array<SearchHit>;
}

/** Columns of a chart, all of the same length. */
export interface Series {
  /** The beginning of each point, in seconds since 1970. */
  at: Array<number>;
  from: Time;
  /** By name; null = nothing was recorded. */
  series: Record<string, unknown>;
  /** Seconds between two points. */
  step: number;
  to: Time;
}

/** Objects in the memory of the server. */
export interface ServerStatsInfo {
  /** Calls that the server makes itself. */
  calls: number;
  /** Runs in memory. */
  hot_runs: number;
  /** Inputs that wait to be decided. */
  inputs: number;
}

/** One server on the store. */
export interface ServerSummary {
  heartbeat_at: Time;
  id: string;
  name: string;
  started_at: Time;
  version: string;
}

/** All settings of a service: an absent field removes its setting. They apply to runs that are started from now on; `calls_max` applies at once. */
export interface ServiceChange {
  /** 1 to 100,000. */
  calls_max?: number | null;
  priority?: RunPriority | null;
  /** 100 to 86,400,000. */
  recheck_ms?: number | null;
  /** The secret under which calls to push workers are signed: `whsec_` and 24 to 64 bytes as base64. Absent = as before, null = none. No answer has it. */
  secret?: string | null;
  /** 100 to 2,592,000,000 (30 days). */
  timeout_ms?: number | null;
  /** Suspended calls wait for a report. Not beside `recheck_ms`. */
  until_reported?: boolean;
}

/** The demand for a service and its supply. */
export interface ServiceDemand {
  /** Calls that these workers take at a time. */
  capacity: number;
  /** Live workers. */
  n_workers: number;
  name: string;
  /** Calls and jobs that wait in its queue. */
  queued: number;
  running: number;
}

/** A service that has live workers or settings. */
export interface ServiceInfo {
  /** Calls to push workers at once, over all servers. Absent = the limit of every service. */
  calls_max?: number | null;
  /** Calls that these workers can take at once, as they reported it; a worker of several services counts for each. */
  capacity?: number;
  /** Whether calls to its push workers are signed under a secret of the service. */
  is_signed?: boolean;
  /** Calls that these workers reported as in progress. */
  load?: number;
  /** Demand: jobs that wait for a worker, at most 10,000 counted, and calls that wait for a push worker of this server. */
  n_waiting?: number;
  /** Supply: workers that serve it and are alive. */
  n_workers?: number;
  name: string;
  /** The class of a call whose node has none. Absent = that of the run. */
  priority?: RunPriority | null;
  /** How often suspended calls are asked again where neither the worker nor the node says, and the first wait while temporary faults go on. Absent = suspended calls wait for a report, those of the dag form for 10 seconds, as after temporary faults. */
  recheck_ms?: number | null;
  /** The time limit over all attempts of a call whose node has none; a silent worker fails 60 seconds later. */
  timeout_ms?: number | null;
  /** Whether suspended calls wait for a report where neither the worker nor the node says. */
  until_reported?: boolean;
  /** When something was set for it last. */
  updated_at?: Time | null;
}

/** A value from outside. */
export interface Signal {
  by?: string | null;
  /** The same signal sent again under the same id is a no-op. */
  id?: string | null;
  key: string;
  value: unknown;
}

/** Which nodes of a definition run. */
export type StartMode = "all" | "specified_starts" | "isolated_nodes";

/** The result of a request to start a run. */
export interface StartResponse {
  /** `false`: an earlier request with the same id started it. */
  created: boolean;
  /** The name of the flow. */
  flow: string;
  flow_id: string;
  id: string;
  /** The run as it is after the wait, when `wait_ms` asked for one. */
  run?: RunDetail | null;
  status: RunStatus;
  /** The number of the version. */
  version: number;
  version_id: string;
}

/** The task or the run that a schedule started. */
export type StartedId = {
  task_id: string;
} | {
  /** As the native surface names it. */
  run_id: string;
};

/** The differences of a run between two entries of its journal. */
export interface StateDiff {
  /** In the order of the paths: of `status`, `round`, `shared`, `signals`, `node_states`, `error`, `result` and `cost`. */
  changes: Array<DefinitionChange>;
  from: number;
  id: string;
  /** Whether there are more changes than are listed. */
  more?: boolean;
  to: number;
}

/** How everything on the server that answers went since it started. */
export interface StatsResponse {
  /** Flows that are counted by themselves, by name; at most 200, those that were heard of lately. */
  flows: Array<string>;
  nodes: NodePace;
  parallelism: LoadInfo;
  process: ProcessStatsInfo;
  /** Only if the server hands out jobs through Redis. */
  redis?: RedisStatsInfo | null;
  runs: RunPace;
  server: ServerStatsInfo;
  timestamp: Time;
}

/** The delays between attempts of a task; absent fields have their defaults. */
export interface TaskBackoff {
  /** The first delay; absent = 5,000. */
  base_ms?: number | null;
  /** The longest delay; absent = an hour. */
  cap_ms?: number | null;
  /** Whether delays are randomised, so that tasks which failed together are not retried together; default true. */
  jitter?: boolean | null;
  kind?: BackoffKind | null;
}

/** The price of a task and the part of it that was paid, in minor units. */
export interface TaskCost {
  actual: number;
  estimated: number;
}

/** The result of a request to create a task. */
export interface TaskCreated {
  /** One with the same deduplication key was there: this is it. */
  duplicate?: boolean;
  /** `queued`, or `pending` before its time; for a duplicate, the status of the existing task. */
  status: string;
  task_id: string;
}

/** A task, its latest run, and where it stands in one word. */
export interface TaskDetail {
  /** `pending`, `queued`, `running`, `retrying`, `completed`, `failed` or `cancelled`. */
  display_status: string;
  latest_run: TaskRun;
  task: TaskInfo;
}

/** A task. */
export interface TaskInfo {
  account?: string | null;
  backoff?: TaskBackoff;
  /** Whether its worker has been told to stop. */
  cancel_requested?: boolean;
  /** The charge of the latest round, and the part of it that was paid. */
  cost?: TaskCost | null;
  created_at: Time;
  dedup_key: string;
  /** Why it was given up. */
  discarded?: string | null;
  /** Why it has failed. */
  error?: FaultInfo | null;
  id: string;
  /** Whether it lies in the dead letter queue. */
  is_dead_letter?: boolean;
  limit_key?: string;
  /** All attempts, the first included. */
  max_retries: number;
  /** The value that a worker left when it suspended the task. */
  memo?: unknown;
  name: string;
  payload: unknown;
  priority: number;
  queue_name: string;
  run_at?: Time | null;
  /** The run whose call it carries, as the native surface names it: cancel or retry it there. */
  run_id?: string | null;
  /** The schedule that made it. */
  schedule_id?: string | null;
  /** `pending`, `queued` (until it ends), `completed`, `failed` or `cancelled`. */
  status: string;
  /** Time limit of one attempt; absent = none. */
  timeout_ms?: number | null;
  type: TaskType;
  unique_for_ms?: number | null;
  updated_at: Time;
}

/** One page of tasks, newest first. */
export interface TaskList {
  /** The number of items on this page. */
  count: number;
  /** The cursor of the next page; null on the last page. */
  next?: string | null;
  tasks: Array<TaskSummary>;
}

/** One attempt at a task. */
export interface TaskRun {
  /** From 1. */
  attempt: number;
  created_at: Time;
  error?: FaultInfo | null;
  finished_at?: Time | null;
  /** A UUID: that of the task, with the number of the attempt in the place of its last eight digits. */
  id: string;
  next_retry_at?: Time | null;
  result?: unknown;
  started_at?: Time | null;
  /** `queued`, `running`, `succeeded`, `failed`, `retrying` or `cancelled`. */
  status: string;
  task_id: string;
  worker_id?: string | null;
}

/** Attempts at a task, oldest first. */
export interface TaskRuns {
  /** The number of items on this page. */
  count: number;
  /** The cursor of the next page. */
  next?: string | null;
  runs: Array<TaskRun>;
  task_id: string;
}

/** A task as it stands in a list: without its payload and its results. */
export interface TaskSummary {
  /** The number of the latest attempt. */
  attempt: number;
  created_at: Time;
  dedup_key: string;
  /** Where it stands, in one word. */
  display_status: string;
  /** The latest error. */
  error?: FaultInfo | null;
  id: string;
  is_dead_letter?: boolean;
  max_retries: number;
  name: string;
  /** When it can be claimed, while it waits for a moment. */
  next_run_at?: Time | null;
  priority: number;
  queue_name: string;
  run_id?: string | null;
  schedule_id?: string | null;
  status: string;
  type: TaskType;
  updated_at: Time;
  /** The worker of the latest attempt. */
  worker_id?: string | null;
}

/** When a task is due. */
export type TaskType = "immediate" | "scheduled";

/** The result of a batch, in its order. */
export interface TasksCreated {
  count: number;
  tasks: Array<TaskCreated>;
}

/** A number that is counted up to a bound. */
export interface TileCount {
  count: number;
  /** Whether there are more, which were not counted. */
  more?: boolean;
}

/** A moment, in milliseconds since 1970-01-01T00:00:00Z; RFC 3339 text on the wire. */
export type Time = string;

/** Turns a schedule on or off. */
export interface Toggle {
  /** Absent = the other way round. */
  enabled?: boolean | null;
}

/** The start that a trigger caused. */
export type Triggered = (StartedId) & ({
  schedule_id: string;
});

/** All problems of a definition, and its graph if it can be published. */
export interface Validation {
  /** `graph`, `dag` or `steps`, if that could be told. */
  form?: string | null;
  /** The graph, laid out from left to right. */
  graph?: FlowGraph | null;
  /** Nodes in all its scopes together. */
  n_nodes?: number | null;
  /** Whether it can be published. */
  ok: boolean;
  problems: Array<ValidationProblem>;
}

/** One thing that is wrong with a definition. */
export interface ValidationProblem {
  /** The column in that line, from 1. */
  column?: number | null;
  hint?: string | null;
  /** The line in the text, from 1, if the definition was given as text. */
  line?: number | null;
  /** Where: `$.nodes.fetch.service`, `line 4 column 2`. */
  path: string;
  /** The same place as a JSON pointer: `/nodes/fetch/service`. */
  pointer?: string | null;
  reason: string;
  severity: ProblemSeverity;
}

/** A value, or its beginning if it is long. */
export interface ValueHead {
  /** Bytes of the value as JSON text. */
  bytes: number;
  /** The beginning of the text of a longer value. */
  head?: string | null;
  /** The value, if its text has at most 2,048 bytes. */
  value?: unknown;
}

/** One immutable definition of a flow. */
export type Version = (VersionSummary) & ({
  /** The definition as an object. */
  definition: Record<string, unknown>;
  /** The text as it was published. */
  text: string;
});

/** A version to be published. Give `definition` or `yaml`. */
export interface VersionRequest {
  /** The definition as an object. */
  definition?: Record<string, unknown> | null;
  /** The change note, for people. */
  note?: string;
  /** The definition as text, YAML or JSON. */
  yaml?: string | null;
}

/** A version as it is listed. */
export interface VersionSummary {
  created_at: Time;
  flow_id: string;
  /** `graph`, `dag` or `steps`. */
  form: string;
  id: string;
  note: string;
  /** `draft`, `published` or `archived`. */
  status: string;
  /** Its number. */
  version: number;
}

/** One thing that keeps a run from going on. */
export interface WaitReason {
  /** The error before the wait. */
  after?: string | null;
  /** The price of the call that waits for money, in minor units. */
  amount?: number | null;
  /** People who may decide. */
  assignees?: Array<string>;
  attempt?: number | null;
  /** The remedy. */
  command?: string | null;
  /** The key of the signal. */
  key?: string | null;
  /** The amount that the account lacks. */
  missing?: number | null;
  /** Workers of the service that are alive. */
  n_workers?: number | null;
  /** Where; empty = the run itself. */
  node: string;
  service?: string | null;
  /** The same in a sentence. */
  text: string;
  /** When it goes on, or gives up, by itself. */
  until?: Time | null;
  /** `start`, `resume`, `step`, `turn` (it goes on by itself), `nothing`, `cancel_confirmation`, `answer`, `worker`, `queue` (which is paused), `limit` (of the queue), `retry`, `report`, `timer`, `signal`, `approval`, `balance` or `budget`. */
  waits_for: string;
}

/** The reasons why a run waits. */
export interface Why {
  id: string;
  /** Outermost first. */
  reasons: Array<WaitReason>;
  status: RunStatus;
}

/** Workers by their state. */
export interface WorkerCounts {
  draining: number;
  online: number;
  /** Without a heartbeat for longer than a worker may be silent. */
  stale: number;
}

/** A process that performs calls. */
export interface WorkerInfo {
  capacity: number;
  heartbeat_at: Time;
  id: string;
  /** The worker gets no more jobs, and stops when its current ones have ended. */
  is_draining?: boolean;
  load: number;
  name: string;
  queues: Array<string>;
  services: Array<string>;
  /** `online` or `offline`. */
  status: string;
  /** Jobs that it has now, oldest first; at most 100. */
  tasks?: Array<WorkerTask>;
  /** `http`, `async` or `local`. */
  type?: string;
  /** Where it is called; empty for one that only claims. */
  url?: string;
}

/** A job that a worker has now. */
export interface WorkerTask {
  attempt: number;
  name: string;
  queue_name: string;
  /** When it was claimed. */
  since: Time;
  task_id: string;
}

/** One page of workers, dead or alive, by id. */
export interface Workers {
  /** The number of items on this page. */
  count: number;
  /** The cursor of the next page; absent on the last page. */
  next?: string | null;
  /** Workers that this server refused because of their addresses, the latest refusal first; at most 100, and none from before the start of the server. */
  refused?: Array<RefusedWorker>;
  workers: Array<WorkerInfo>;
}

export type ListAccountsQuery = { cursor?: string; limit?: number };

export type ShowLedgerQuery = { run?: string; order?: "newest" | "oldest"; cursor?: string; limit?: number };

export type ListApprovalsQuery = { assignee?: string; cursor?: string; limit?: number };

export type ShowAuditQuery = { who?: string; what?: string; subject?: string; order?: "newest" | "oldest"; cursor?: string; limit?: number };

export type VerifyAuditQuery = { head?: string };

export type ListBulksQuery = { cursor?: string; limit?: number };

export type WatchRunsQuery = { topics?: string; last_event_id?: number };

export type ListFlowsQuery = { q?: string; label?: string; is_template?: boolean; cursor?: string; limit?: number };

export type CompareVersionsQuery = { from?: number; to?: number };

export type ShowFlowGraphQuery = { version?: number; dir?: "lr" | "tb" };

export type DrawFlowGraphQuery = { version?: number; dir?: "lr" | "tb"; run?: string };

export type StartRunQuery = { wait_ms?: number };

export type ListJobsQuery = { status?: string; queue?: string; name?: string; worker?: string; schedule?: string; since?: Time; until?: Time; cursor?: string; limit?: number };

export type ListJobAttemptsQuery = { cursor?: string; limit?: number };

export type ListKeysQuery = { cursor?: string; limit?: number };

export type ListPricesQuery = { cursor?: string; limit?: number };

export type ListQueuesQuery = { cursor?: string; limit?: number };

export type ListDeadLettersQuery = { count?: number; fingerprint?: string; after?: string; format?: string };

export type ListRunsQuery = { query?: string; flow?: string; status?: string; account?: string; parent?: string; label?: string; since?: Time; until?: Time; q?: string; cursor?: string; limit?: number };

export type CountRunsQuery = { query?: string; by?: string };

export type ListAttemptsQuery = { cursor?: string; limit?: number };

export type ShowRunGraphQuery = { dir?: "lr" | "tb" };

export type ListJournalQuery = { cursor?: string; limit?: number };

export type ListLogsQuery = { level?: "info" | "warn" | "error"; node?: string; follow?: boolean; cursor?: string; limit?: number };

export type DownloadOutputQuery = { of?: string; fence?: number };

export type RerunRunQuery = { dry_run?: boolean };

export type RetryRunQuery = { dry_run?: boolean };

export type ShowRunStateQuery = { at?: number };

export type CompareRunStatesQuery = { from?: number; to?: number };

export type ListSchedulesQuery = { cursor?: string; limit?: number };

export type ShowNextRunsQuery = { count?: number };

export type SearchQuery = { q: string; limit?: number };

export type ShowSeriesQuery = { range?: string; from?: Time; to?: Time; step?: number; queue?: string };

export type ListServicesQuery = { cursor?: string; limit?: number };

export type ListTasksQuery = { status?: string; queue?: string; name?: string; worker?: string; schedule?: string; since?: Time; until?: Time; cursor?: string; limit?: number };

export type ListTaskRunsQuery = { cursor?: string; limit?: number };

export type ListWorkersQuery = { status?: string; cursor?: string; limit?: number };

/** Each route: the parameters of its path and its query, its body and its answer. */
export interface Routes {
  "GET /api/v1/about": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: About;
  };
  "GET /api/v1/accounts": {
    path: undefined;
    query: ListAccountsQuery;
    body: undefined;
    answer: List_AccountInfo;
  };
  "POST /api/v1/accounts": {
    path: undefined;
    query: undefined;
    body: NewAccount;
    answer: AccountInfo;
  };
  "GET /api/v1/accounts/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: AccountInfo;
  };
  "POST /api/v1/accounts/{id}/deposit": {
    path: { id: string };
    query: undefined;
    body: DepositRequest;
    answer: DepositResponse;
  };
  "GET /api/v1/accounts/{id}/ledger": {
    path: { id: string };
    query: ShowLedgerQuery;
    body: undefined;
    answer: List_LedgerEntry;
  };
  "GET /api/v1/approvals": {
    path: undefined;
    query: ListApprovalsQuery;
    body: undefined;
    answer: List_ApprovalInfo;
  };
  "GET /api/v1/audit": {
    path: undefined;
    query: ShowAuditQuery;
    body: undefined;
    answer: List_AuditLine;
  };
  "GET /api/v1/audit/head": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: AuditHead;
  };
  "GET /api/v1/audit/verify": {
    path: undefined;
    query: VerifyAuditQuery;
    body: undefined;
    answer: AuditVerification;
  };
  "GET /api/v1/bulk": {
    path: undefined;
    query: ListBulksQuery;
    body: undefined;
    answer: List_BulkInfo;
  };
  "POST /api/v1/bulk": {
    path: undefined;
    query: undefined;
    body: BulkRequest;
    answer: BulkDryRun | BulkAccepted;
  };
  "GET /api/v1/bulk/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: BulkInfo;
  };
  "POST /api/v1/bulk/{id}/cancel": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: BulkInfo;
  };
  "POST /api/v1/calls/{id}/report": {
    path: { id: string };
    query: undefined;
    body: CallReport;
    answer: ReportResponse;
  };
  "POST /api/v1/doctor": {
    path: undefined;
    query: undefined;
    body: DoctorRequest;
    answer: DoctorReport;
  };
  "GET /api/v1/events": {
    path: undefined;
    query: WatchRunsQuery;
    body: undefined;
    answer: string;
  };
  "GET /api/v1/examples": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: List_ExampleInfo;
  };
  "POST /api/v1/examples": {
    path: undefined;
    query: undefined;
    body: ExampleNames;
    answer: ExamplesLoaded;
  };
  "GET /api/v1/flows": {
    path: undefined;
    query: ListFlowsQuery;
    body: undefined;
    answer: List_FlowInfo;
  };
  "POST /api/v1/flows": {
    path: undefined;
    query: undefined;
    body: FlowRequest;
    answer: PublishResponse;
  };
  "POST /api/v1/flows/expand": {
    path: undefined;
    query: undefined;
    body: Definition;
    answer: ExpandResponse;
  };
  "POST /api/v1/flows/validate": {
    path: undefined;
    query: undefined;
    body: Definition;
    answer: Validation;
  };
  "GET /api/v1/flows/{flow}": {
    path: { flow: string };
    query: undefined;
    body: undefined;
    answer: FlowDetail;
  };
  "GET /api/v1/flows/{flow}/diff": {
    path: { flow: string };
    query: CompareVersionsQuery;
    body: undefined;
    answer: FlowDiff;
  };
  "GET /api/v1/flows/{flow}/graph": {
    path: { flow: string };
    query: ShowFlowGraphQuery;
    body: undefined;
    answer: FlowGraph;
  };
  "GET /api/v1/flows/{flow}/graph.svg": {
    path: { flow: string };
    query: DrawFlowGraphQuery;
    body: undefined;
    answer: string;
  };
  "POST /api/v1/flows/{flow}/instantiate": {
    path: { flow: string };
    query: undefined;
    body: InstantiateRequest;
    answer: PublishResponse;
  };
  "POST /api/v1/flows/{flow}/runs": {
    path: { flow: string };
    query: StartRunQuery;
    body: RunRequest;
    answer: StartResponse;
  };
  "GET /api/v1/flows/{flow}/stats": {
    path: { flow: string };
    query: undefined;
    body: undefined;
    answer: FlowStatsInfo;
  };
  "GET /api/v1/flows/{flow}/versions": {
    path: { flow: string };
    query: undefined;
    body: undefined;
    answer: List_VersionSummary;
  };
  "POST /api/v1/flows/{flow}/versions": {
    path: { flow: string };
    query: undefined;
    body: VersionRequest;
    answer: PublishResponse;
  };
  "GET /api/v1/flows/{flow}/versions/{version}": {
    path: { flow: string; version: number };
    query: undefined;
    body: undefined;
    answer: Version;
  };
  "GET /api/v1/jobs": {
    path: undefined;
    query: ListJobsQuery;
    body: undefined;
    answer: List_JobSummary;
  };
  "POST /api/v1/jobs": {
    path: undefined;
    query: undefined;
    body: NewJobs;
    answer: JobCreated | JobsCreated;
  };
  "POST /api/v1/jobs/claim": {
    path: undefined;
    query: undefined;
    body: ClaimRequest;
    answer: ClaimResponse;
  };
  "POST /api/v1/jobs/exchange": {
    path: undefined;
    query: undefined;
    body: ExchangeRequest;
    answer: ExchangeResponse;
  };
  "POST /api/v1/jobs/extend": {
    path: undefined;
    query: undefined;
    body: ExtendRequest;
    answer: ExtendResponse;
  };
  "POST /api/v1/jobs/finish": {
    path: undefined;
    query: undefined;
    body: FinishRequest;
    answer: FinishResponse;
  };
  "GET /api/v1/jobs/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: JobDetail;
  };
  "GET /api/v1/jobs/{id}/attempts": {
    path: { id: string };
    query: ListJobAttemptsQuery;
    body: undefined;
    answer: List_JobAttempt;
  };
  "POST /api/v1/jobs/{id}/cancel": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: JobDetail;
  };
  "POST /api/v1/jobs/{id}/retry": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: JobDetail;
  };
  "GET /api/v1/keys": {
    path: undefined;
    query: ListKeysQuery;
    body: undefined;
    answer: List_KeyInfo;
  };
  "POST /api/v1/keys": {
    path: undefined;
    query: undefined;
    body: NewKey;
    answer: KeyMade;
  };
  "POST /api/v1/keys/{id}/revoke": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: KeyInfo;
  };
  "POST /api/v1/keys/{id}/rotate": {
    path: { id: string };
    query: undefined;
    body: RotateKey;
    answer: KeyMade;
  };
  "GET /api/v1/overview": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: Overview;
  };
  "GET /api/v1/prices": {
    path: undefined;
    query: ListPricesQuery;
    body: undefined;
    answer: List_PriceInfo;
  };
  "GET /api/v1/prices/{service}": {
    path: { service: string };
    query: undefined;
    body: undefined;
    answer: PriceInfo;
  };
  "PUT /api/v1/prices/{service}": {
    path: { service: string };
    query: undefined;
    body: NewPrice;
    answer: PriceInfo;
  };
  "DELETE /api/v1/prices/{service}": {
    path: { service: string };
    query: undefined;
    body: undefined;
    answer: PriceDeleted;
  };
  "GET /api/v1/queues": {
    path: undefined;
    query: ListQueuesQuery;
    body: undefined;
    answer: Queues;
  };
  "GET /api/v1/queues/{name}": {
    path: { name: string };
    query: undefined;
    body: undefined;
    answer: QueueInfo;
  };
  "PUT /api/v1/queues/{name}": {
    path: { name: string };
    query: undefined;
    body: QueueChange;
    answer: QueueInfo;
  };
  "PATCH /api/v1/queues/{name}": {
    path: { name: string };
    query: undefined;
    body: QueueChange;
    answer: QueueInfo;
  };
  "GET /api/v1/queues/{name}/dlq": {
    path: { name: string };
    query: ListDeadLettersQuery;
    body: undefined;
    answer: DeadLetters_DeadLetterItem;
  };
  "POST /api/v1/queues/{name}/dlq/discard": {
    path: { name: string };
    query: undefined;
    body: DiscardDeadLetters;
    answer: DeadLettersMoved;
  };
  "GET /api/v1/queues/{name}/dlq/groups": {
    path: { name: string };
    query: undefined;
    body: undefined;
    answer: DeadLetterGroups;
  };
  "POST /api/v1/queues/{name}/dlq/replay": {
    path: { name: string };
    query: undefined;
    body: ReplayDeadLetters;
    answer: DeadLettersMoved;
  };
  "POST /api/v1/queues/{name}/pause": {
    path: { name: string };
    query: undefined;
    body: NoBody;
    answer: QueueInfo;
  };
  "POST /api/v1/queues/{name}/resume": {
    path: { name: string };
    query: undefined;
    body: NoBody;
    answer: QueueInfo;
  };
  "GET /api/v1/runs": {
    path: undefined;
    query: ListRunsQuery;
    body: undefined;
    answer: List_RunSummary;
  };
  "GET /api/v1/runs/counts": {
    path: undefined;
    query: CountRunsQuery;
    body: undefined;
    answer: RunCounts;
  };
  "GET /api/v1/runs/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: RunDetail;
  };
  "GET /api/v1/runs/{id}/attempts": {
    path: { id: string };
    query: ListAttemptsQuery;
    body: undefined;
    answer: List_NodeAttemptInfo;
  };
  "POST /api/v1/runs/{id}/budget": {
    path: { id: string };
    query: undefined;
    body: Budget;
    answer: RunSummary;
  };
  "POST /api/v1/runs/{id}/cancel": {
    path: { id: string };
    query: undefined;
    body: Cancel;
    answer: RunSummary;
  };
  "POST /api/v1/runs/{id}/continue": {
    path: { id: string };
    query: undefined;
    body: Continue;
    answer: RunSummary;
  };
  "POST /api/v1/runs/{id}/decide": {
    path: { id: string };
    query: undefined;
    body: Decide;
    answer: RunSummary;
  };
  "GET /api/v1/runs/{id}/events": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: string;
  };
  "GET /api/v1/runs/{id}/graph": {
    path: { id: string };
    query: ShowRunGraphQuery;
    body: undefined;
    answer: FlowGraph;
  };
  "GET /api/v1/runs/{id}/journal": {
    path: { id: string };
    query: ListJournalQuery;
    body: undefined;
    answer: List_JournalEntry;
  };
  "GET /api/v1/runs/{id}/logs": {
    path: { id: string };
    query: ListLogsQuery;
    body: undefined;
    answer: List_LogLine;
  };
  "GET /api/v1/runs/{id}/output": {
    path: { id: string };
    query: DownloadOutputQuery;
    body: undefined;
    answer: unknown;
  };
  "POST /api/v1/runs/{id}/pause": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: RunSummary;
  };
  "POST /api/v1/runs/{id}/rerun": {
    path: { id: string };
    query: RerunRunQuery;
    body: RerunRequest;
    answer: RoundAnswer;
  };
  "POST /api/v1/runs/{id}/resume": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: RunSummary;
  };
  "POST /api/v1/runs/{id}/retry": {
    path: { id: string };
    query: RetryRunQuery;
    body: NoBody;
    answer: RoundAnswer;
  };
  "POST /api/v1/runs/{id}/signal": {
    path: { id: string };
    query: undefined;
    body: Signal;
    answer: RunSummary;
  };
  "GET /api/v1/runs/{id}/state": {
    path: { id: string };
    query: ShowRunStateQuery;
    body: undefined;
    answer: RunState;
  };
  "GET /api/v1/runs/{id}/state/diff": {
    path: { id: string };
    query: CompareRunStatesQuery;
    body: undefined;
    answer: StateDiff;
  };
  "GET /api/v1/runs/{id}/stats": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: RunStats;
  };
  "POST /api/v1/runs/{id}/step": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: RunSummary;
  };
  "GET /api/v1/runs/{id}/view": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: RunPage;
  };
  "GET /api/v1/runs/{id}/why": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: Why;
  };
  "GET /api/v1/schedules": {
    path: undefined;
    query: ListSchedulesQuery;
    body: undefined;
    answer: Schedules;
  };
  "POST /api/v1/schedules": {
    path: undefined;
    query: undefined;
    body: NewSchedule;
    answer: ScheduleInfo;
  };
  "POST /api/v1/schedules/preview": {
    path: undefined;
    query: undefined;
    body: SchedulePreviewRequest;
    answer: NextRuns;
  };
  "GET /api/v1/schedules/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: ScheduleInfo;
  };
  "PATCH /api/v1/schedules/{id}": {
    path: { id: string };
    query: undefined;
    body: SchedulePatch;
    answer: ScheduleInfo;
  };
  "DELETE /api/v1/schedules/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: ScheduleDeleted;
  };
  "GET /api/v1/schedules/{id}/next": {
    path: { id: string };
    query: ShowNextRunsQuery;
    body: undefined;
    answer: NextRuns;
  };
  "POST /api/v1/schedules/{id}/toggle": {
    path: { id: string };
    query: undefined;
    body: Toggle;
    answer: ScheduleInfo;
  };
  "POST /api/v1/schedules/{id}/trigger": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: Triggered;
  };
  "GET /api/v1/search": {
    path: undefined;
    query: SearchQuery;
    body: undefined;
    answer: SearchHits;
  };
  "GET /api/v1/series": {
    path: undefined;
    query: ShowSeriesQuery;
    body: undefined;
    answer: Series;
  };
  "GET /api/v1/services": {
    path: undefined;
    query: ListServicesQuery;
    body: undefined;
    answer: List_ServiceInfo;
  };
  "GET /api/v1/services/{service}": {
    path: { service: string };
    query: undefined;
    body: undefined;
    answer: ServiceInfo;
  };
  "PUT /api/v1/services/{service}": {
    path: { service: string };
    query: undefined;
    body: ServiceChange;
    answer: ServiceInfo;
  };
  "GET /api/v1/stats": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: StatsResponse;
  };
  "GET /api/v1/tasks": {
    path: undefined;
    query: ListTasksQuery;
    body: undefined;
    answer: TaskList;
  };
  "POST /api/v1/tasks": {
    path: undefined;
    query: undefined;
    body: NewTask;
    answer: TaskCreated;
  };
  "POST /api/v1/tasks/batch": {
    path: undefined;
    query: undefined;
    body: Array<NewTask>;
    answer: TasksCreated;
  };
  "GET /api/v1/tasks/{id}": {
    path: { id: string };
    query: undefined;
    body: undefined;
    answer: TaskDetail;
  };
  "POST /api/v1/tasks/{id}/cancel": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: TaskDetail;
  };
  "POST /api/v1/tasks/{id}/retry": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: TaskDetail;
  };
  "GET /api/v1/tasks/{id}/runs": {
    path: { id: string };
    query: ListTaskRunsQuery;
    body: undefined;
    answer: TaskRuns;
  };
  "GET /api/v1/workers": {
    path: undefined;
    query: ListWorkersQuery;
    body: undefined;
    answer: Workers;
  };
  "POST /api/v1/workers/{id}/drain": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: WorkerInfo;
  };
  "POST /api/v1/workers/{id}/undrain": {
    path: { id: string };
    query: undefined;
    body: NoBody;
    answer: WorkerInfo;
  };
  "GET /healthz": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: Health;
  };
  "GET /readyz": {
    path: undefined;
    query: undefined;
    body: undefined;
    answer: Readiness;
  };
}
