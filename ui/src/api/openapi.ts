// shape 4cc367b4fd30906e43e8e983b6ccfc8bac3d8df6de9e6b019299b380e4c66d36
// Generated from the server's OpenAPI document by `./x types`. Do not edit.

/** A page of a list; `next` is the cursor of the following page. */
export interface List<T> {
  items: T[];
  next?: string | null;
}

export interface About {
  is_shared: boolean;
  project: string;
  retain_ms?: number | null;
  server: string;
  servers: Array<ServerSummary>;
  up_ms: number;
  version: string;
  worker_ttl_ms: number;
}

export interface AccountInfo {
  balance: number;
  created_at: Time;
  held: number;
  id: string;
  name: string;
}

export interface ApprovalInfo {
  assignees: Array<string>;
  flow: string;
  form?: unknown;
  input?: unknown;
  node: string;
  run: string;
  since?: Time | null;
  title?: string | null;
  until?: Time | null;
}

export interface AttemptHead {
  action?: string | null;
  attempt: number;
  branch?: string | null;
  error?: FaultInfo | null;
  fence?: number | null;
  finished_at?: Time | null;
  input: ValueHead;
  kind: string;
  node: string;
  output?: ValueHead | null;
  queued_at: Time;
  service?: string | null;
  started_at?: Time | null;
  status: string;
  visit: number;
  worker?: string | null;
}

export interface AttentionItem {
  command?: string | null;
  count?: number | null;
  kind: string;
  since?: Time | null;
  subject: string;
  text: string;
}

export interface AuditBreak {
  reason: string;
  seq: number;
}

export interface AuditHead {
  hash: string;
  seq: number;
}

export interface AuditLine {
  at: Time;
  code?: string | null;
  hash: string;
  ip?: string | null;
  key?: string | null;
  method: string;
  on_behalf_of?: string | null;
  path: string;
  reason?: string | null;
  result: string;
  seq: number;
  status: number;
  subject: string;
  what: string;
  who: string;
}

export interface AuditVerification {
  broken?: AuditBreak | null;
  head: AuditHead;
  intact: number;
}

export type BackoffKind = "fixed" | "exponential";

export interface BranchCounts {
  failed: number;
  open: number;
  total: number;
  waiting: number;
}

export interface Budget {
  budget: number;
}

export interface BulkAccepted {
  id: string;
  matched: number;
}

export type BulkAction = "cancel" | "retry" | "rerun" | "pause" | "resume" | "signal";

export interface BulkArgs {
  from?: string | null;
  key?: string | null;
  shared?: Record<string, unknown> | null;
  value?: unknown;
}

export interface BulkDryRun {
  by_status: Record<string, number>;
  dry_run: boolean;
  matched: number;
  more?: boolean;
  outcomes: BulkOutcomes;
  sample: Array<string>;
}

export interface BulkFailureInfo {
  code: string;
  id: string;
  message: string;
}

export interface BulkInfo {
  action: BulkAction;
  actor: string;
  args: BulkArgs;
  created_at: Time;
  done: number;
  ended_at?: Time | null;
  failed: number;
  failures?: Array<BulkFailureInfo>;
  id: string;
  kind: BulkKind;
  matched: number;
  more_failures?: boolean;
  query?: string | null;
  reason: string;
  status: BulkStatus;
  succeeded: number;
  updated_at: Time;
}

export type BulkKind = "runs";

export interface BulkOutcomes {
  apply: number;
  refuse: number;
}

export interface BulkRequest {
  action: BulkAction;
  args?: BulkArgs;
  dry_run?: boolean;
  ids?: Array<string> | null;
  kind: BulkKind;
  query?: string | null;
  reason?: string;
}

export type BulkStatus = "running" | "completed" | "canceled";

export type CallOutcome = "done" | "suspended" | "failed";

export interface CallReport {
  error?: string | null;
  logs?: unknown;
  memo?: unknown;
  outcome?: CallOutcome;
  recheck_ms?: number | null;
  result?: unknown;
  retryable?: boolean | null;
  temporary?: boolean;
  worker_id?: string | null;
}

export interface Cancel {
  by?: string | null;
  reason?: string | null;
}

export type CatchupRule = "none" | "last" | "all";

export interface ChangeEvent {
  at: Time;
  flow_id: string;
  node?: string | null;
  run: string;
  seq: number;
  status: RunStatus;
}

export interface ClaimRequest {
  lease_ms?: number | null;
  max?: number | null;
  queues?: Array<string>;
  services?: Array<string>;
  wait_ms?: number | null;
  worker_id: string;
}

export interface ClaimResponse {
  draining?: boolean;
  jobs: Array<ClaimedJob>;
}

export interface ClaimedJob {
  attempt: number;
  call?: string | null;
  deadline?: Time | null;
  id: string;
  input?: unknown;
  key: string;
  lease: string;
  lease_until: Time;
  memo?: unknown;
  node?: string | null;
  params?: unknown;
  priority?: number;
  queue: string;
  run?: string | null;
  service: string;
}

export interface Continue {
  node: string;
  result?: unknown;
}

export interface CountedValue {
  count: number;
  more?: boolean;
  value: string;
}

export interface DeadLetter {
  attempt: number;
  created_at: Time;
  error: FaultInfo;
  failed_at: Time;
  fingerprint: string;
  max_retries: number;
  name: string;
  payload: unknown;
  priority: number;
  queue_name: string;
  task_id: string;
  task_run_id: string;
  worker_id?: string | null;
}

export interface DeadLetterGroupInfo {
  count: number;
  error: FaultInfo;
  fingerprint: string;
  first_at: Time;
  last_at: Time;
  latest_task_id: string;
}

export interface DeadLetterGroups {
  count: number;
  groups: Array<DeadLetterGroupInfo>;
  queue: string;
}

export type DeadLetterItem = string | DeadLetter;

export interface DeadLetterRefusal {
  reason: string;
  task_id: string;
}

export interface DeadLettersMoved {
  ids?: Array<string>;
  moved: number;
  queue: string;
  refused?: Array<DeadLetterRefusal>;
}

export interface DeadLetters_DeadLetterItem {
  count: number;
  items: Array<string | DeadLetter>;
  next?: string | null;
  queue: string;
}

export interface Decide {
  by?: string | null;
  comment?: string | null;
  decision: unknown;
  node?: string | null;
}

export interface Definition {
  definition?: Record<string, unknown> | null;
  yaml?: string | null;
}

export interface DefinitionChange {
  after?: unknown;
  before?: unknown;
  kind: DefinitionChangeKind;
  path: string;
}

export type DefinitionChangeKind = "added" | "removed" | "changed";

export interface DepositRequest {
  amount: number;
  key: string;
}

export type DepositResponse = (AccountInfo) & ({
  created: boolean;
  entry: LedgerEntry;
});

export interface DiscardDeadLetters {
  count?: number | null;
  fingerprint?: string | null;
  ids?: Array<string> | null;
  reason: string;
}

export interface DoctorFinding {
  node?: string | null;
  remedy?: string | null;
  repaired: boolean;
  subject: string;
  what: string;
}

export interface DoctorReport {
  findings: Array<DoctorFinding>;
  n_accounts: number;
  n_runs: number;
  pages?: PageCheck;
}

export interface DoctorRequest {
  repair?: boolean;
}

export interface DryRun {
  budget_left?: number | null;
  calls: DryRunCalls;
  cost: DryRunCost;
  id: string;
  more?: boolean;
  nodes: Array<DryRunNode>;
  round: number;
}

export interface DryRunCalls {
  at_most: number;
  sure: number;
}

export interface DryRunCost {
  at_most: number;
  estimated: number;
  unknown: number;
}

export interface DryRunNode {
  by?: string | null;
  estimate?: number | null;
  kind: string;
  node: string;
  service?: string | null;
  status: string;
  times?: number | null;
}

export type DstRule = "shift" | "skip" | "twice";

export interface DurationPercentiles {
  max?: number | null;
  mean?: number | null;
  p50?: number | null;
  p95?: number | null;
  p99?: number | null;
}

export interface ExampleInfo {
  loaded: boolean;
  name: string;
}

export interface ExampleNames {
  names?: Array<string> | null;
}

export interface ExamplesLoaded {
  kept: Array<string>;
  published: Array<PublishResponse>;
}

export interface ExchangeRequest {
  claim: ClaimRequest;
  finish?: Array<JobResult>;
}

export interface ExchangeResponse {
  code?: string | null;
  draining?: boolean;
  jobs: Array<ClaimedJob>;
  results: Array<FinishVerdict>;
}

export interface ExpandResponse {
  tasks: Array<ExpandedTaskInfo>;
}

export interface ExpandedTaskInfo {
  dependOn: Array<string>;
  id: string;
  operator: string;
  steps?: Array<ExpandedTaskInfo>;
  task_id: string;
  title?: string | null;
}

export interface ExtendRequest {
  lease_ms?: number | null;
  leases: Array<string>;
}

export interface ExtendResponse {
  results: Array<ExtendVerdict>;
}

export interface ExtendVerdict {
  code?: string | null;
  lease: string;
  verdict: LeaseVerdict;
}

export interface FaultInfo {
  kind: string;
  message: string;
  node?: string | null;
  retryable: boolean;
}

export interface FieldError {
  hint?: string | null;
  path: string;
  reason: string;
}

export interface FinishRequest {
  results: Array<JobResult>;
}

export interface FinishResponse {
  results: Array<FinishVerdict>;
}

export interface FinishVerdict {
  code?: string | null;
  id: string;
  verdict: LeaseVerdict;
}

export type FlowDetail = (FlowInfo) & ({
  version?: Version | null;
});

export interface FlowDiff {
  after_text?: string;
  before_text?: string;
  changes: Array<DefinitionChange>;
  flow_id: string;
  from: number;
  more?: boolean;
  nodes?: Array<NodeChange>;
  to: number;
}

export interface FlowGraph {
  direction: GraphDirection;
  edges: Array<GraphEdge>;
  form: string;
  height: number;
  more: boolean;
  nodes: Array<GraphNode>;
  width: number;
}

export interface FlowInfo {
  created_at: Time;
  description: string;
  id: string;
  is_template: boolean;
  labels: Record<string, string>;
  latest_version: number;
  name: string;
  updated_at: Time;
}

export interface FlowRequest {
  definition?: Record<string, unknown> | null;
  description?: string;
  is_template?: boolean;
  labels?: Record<string, string>;
  name: string;
  yaml?: string | null;
}

export interface FlowStatsInfo {
  average_parallelism: number;
  by_node: Array<NodeDurations>;
  flow: string;
  max_running: number;
  nodes: NodePace;
  running: number;
  runs: RunPace;
  timestamp: Time;
}

export interface GraphArea {
  h: number;
  w: number;
  x: number;
  y: number;
}

export type GraphDirection = "lr" | "tb";

export interface GraphEdge {
  action?: string | null;
  from: string;
  id: string;
  kind: GraphEdgeKind;
  label?: string | null;
  label_box?: GraphArea | null;
  points: Array<Array<number>>;
  short?: string | null;
  to: string;
  when: GraphEdgeWhen;
}

export type GraphEdgeKind = "forward" | "back" | "self";

export type GraphEdgeWhen = "always" | "action" | "condition";

export interface GraphNode {
  box: boolean;
  detail?: string;
  h: number;
  hidden?: number | null;
  id: string;
  key: string;
  kind: GraphNodeKind;
  label: string;
  parent?: string | null;
  path?: string | null;
  short: string;
  start: boolean;
  w: number;
  word: string;
  x: number;
  y: number;
}

export type GraphNodeKind = "call" | "flow" | "choice" | "parallel" | "foreach" | "subflow" | "loop" | "branch" | "timer" | "signal" | "approval" | "compute" | "pass" | "return" | "end";

export interface Health {
  status: string;
  version?: string;
}

export interface InstantiateRequest {
  description?: string | null;
  labels?: Record<string, string>;
  name: string;
  variables?: Record<string, unknown>;
  version?: number | null;
}

export interface JobAttempt {
  attempt: number;
  created_at: Time;
  error?: FaultInfo | null;
  finished_at?: Time | null;
  next_retry_at?: Time | null;
  result?: unknown;
  started_at?: Time | null;
  status: JobStatus;
  worker_id?: string | null;
}

export interface JobCost {
  actual: number;
  estimated: number;
}

export interface JobCreated {
  duplicate?: boolean;
  id: string;
  status: JobStatus;
}

export type JobDetail = (JobSummary) & ({
  account?: string | null;
  cost?: JobCost | null;
  discarded?: string | null;
  latest_attempt: JobAttempt;
  limit_key?: string;
  memo?: unknown;
  payload?: unknown;
  retry: JobRetry;
  run_at?: Time | null;
  timeout_ms?: number | null;
  unique_for_ms?: number | null;
});

export interface JobResult {
  error?: string | null;
  id: string;
  lease: string;
  log?: string | null;
  logs?: unknown;
  memo?: unknown;
  outcome: CallOutcome;
  recheck_ms?: number | null;
  result?: unknown;
  retry_after_ms?: number | null;
  retryable?: boolean | null;
  temporary?: boolean;
}

export interface JobRetry {
  backoff?: BackoffKind | null;
  cap_ms?: number | null;
  delay_ms?: number | null;
  jitter?: boolean | null;
  max?: number | null;
}

export type JobStatus = "queued" | "running" | "retrying" | "completed" | "failed" | "canceled";

export interface JobSummary {
  attempt: number;
  cancel_requested?: boolean;
  created_at: Time;
  dedup_key?: string;
  due_at?: Time | null;
  error?: FaultInfo | null;
  id: string;
  is_dead_letter?: boolean;
  name: string;
  node?: string | null;
  priority: number;
  queue: string;
  retry_max: number;
  run?: string | null;
  schedule?: string | null;
  status: JobStatus;
  suspended?: boolean;
  updated_at: Time;
  worker_id?: string | null;
}

export type JobsCreated = JobCreated | List_JobCreated;

export interface JournalEntry {
  at: Time;
  command: string;
  events: Array<Record<string, unknown>>;
  seq: number;
}

export interface KeyInfo {
  created_at: Time;
  created_by: string;
  expires_at?: Time | null;
  id: string;
  name: string;
  queues?: Array<string>;
  revoked_at?: Time | null;
  role: KeyRole;
  scripts?: boolean;
  services?: Array<string>;
  used_at?: Time | null;
}

export type KeyMade = (KeyInfo) & ({
  key: string;
});

export type KeyRole = "viewer" | "operator" | "worker" | "author" | "admin";

export type LastRun = (StartedId) & ({
  manual?: boolean;
  slot: Time;
});

export type LeaseVerdict = "ok" | "lost" | "canceled" | "error";

export interface LedgerEntry {
  amount: number;
  at: Time;
  balance_after: number;
  borne_by_platform?: number;
  key: string;
  kind: string;
  node?: string | null;
  run?: string | null;
  seq: number;
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

export interface LoadInfo {
  last_10s: ParallelismInfo;
  last_hour: ParallelismInfo;
  last_minute: ParallelismInfo;
  max_running: number;
  running: number;
  waiting?: number;
}

export type LogLevel = "info" | "warn" | "error";

export interface LogLine {
  at: Time;
  data?: unknown;
  fence?: number | null;
  level: LogLevel;
  message: string;
  node?: string | null;
  title?: string | null;
}

export interface MissedSlot {
  at: Time;
  reason: string;
  slot: Time;
}

export interface NewAccount {
  id: string;
  name?: string | null;
}

export interface NewJob {
  account?: string | null;
  dedup_key?: string;
  limit_key?: string;
  name: string;
  payload?: unknown;
  priority?: number;
  queue: string;
  retry?: JobRetry | null;
  run_at?: Time | null;
  timeout_ms?: number | null;
  unique_for_ms?: number | null;
}

export type NewJobs = NewJob | Array<NewJob>;

export interface NewKey {
  expires_at?: Time | null;
  name: string;
  queues?: Array<string>;
  role: KeyRole;
  scripts?: boolean;
  services?: Array<string>;
}

export interface NewPrice {
  actual_units?: unknown;
  min_unit?: number;
  unit_price: number;
  units?: unknown;
}

export interface NewSchedule {
  account?: string | null;
  catchup?: CatchupRule | null;
  cron_expr: string;
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

export interface NewTask {
  account?: string | null;
  backoff?: TaskBackoff | null;
  dedup_key?: string;
  limit_key?: string;
  max_retries?: number | null;
  name: string;
  payload?: unknown;
  priority?: number;
  queue_name: string;
  run_at?: Time | null;
  timeout_ms?: number | null;
  type: TaskType | null;
  unique_for_ms?: number | null;
}

export interface NextRuns {
  count: number;
  cron_expr: string;
  local: Array<string>;
  next_runs: Array<Time>;
  timezone: string;
}

export type NoBody = Record<string, unknown>;

export interface NodeAttemptInfo {
  action?: string | null;
  attempt: number;
  branch?: string | null;
  error?: FaultInfo | null;
  fence?: number | null;
  finished_at?: Time | null;
  input?: unknown;
  kind?: string;
  node: string;
  output?: unknown;
  service?: string | null;
  started_at: Time;
  status: string;
  visit: number;
  worker?: string | null;
}

export interface NodeChange {
  kind: DefinitionChangeKind;
  node: string;
  pointers: Array<string>;
}

export interface NodeDurations {
  duration_ms: DurationPercentiles;
  failed: number;
  node: string;
  node_ms?: DurationPercentiles;
  succeeded: number;
  suspended?: number;
  total_ms: number;
  waiting_ms?: DurationPercentiles;
}

export interface NodeInfo {
  action?: string | null;
  attempts?: number;
  branches?: BranchCounts | null;
  call?: string | null;
  child?: string | null;
  error?: FaultInfo | null;
  finished_at?: Time | null;
  job?: string | null;
  kind?: string;
  output?: unknown;
  round?: number | null;
  started_at?: Time | null;
  status: string;
  task_id?: string | null;
  title?: string | null;
}

export interface NodePace {
  last_10s: NodeWindow;
  last_hour: NodeWindow;
  last_minute: NodeWindow;
  total: NodeWindow;
}

export interface NodeWindow {
  duration_ms: DurationPercentiles;
  ended: number;
  failed: number;
  per_second: number;
  started: number;
  succeeded: number;
  suspended?: number;
  waiting_ms?: DurationPercentiles;
}

export type OnShortBalance = "fail" | "wait";

export type OverlapRule = "skip" | "queue" | "cancel" | "allow";

export interface Overview {
  at: Time;
  attention: Array<AttentionItem>;
  is_empty: boolean;
  services: Array<ServiceDemand>;
  tiles: OverviewTiles;
}

export interface OverviewTiles {
  approvals: TileCount;
  dead_letters: TileCount;
  failed_24h: TileCount;
  queued: TileCount;
  running: TileCount;
  waiting: TileCount;
  workers: WorkerCounts;
}

export interface OwnCost {
  actual: number;
  estimated: number;
}

export interface PageCheck {
  failures?: Array<string>;
  n_checked: number;
  n_tables: number;
}

export interface ParallelismInfo {
  average: number;
  busy_ms: number;
  distribution: Array<ParallelismLevel>;
  max: number;
  wall_ms: number;
}

export interface ParallelismLevel {
  from: number;
  ms: number;
  share: number;
  to?: number | null;
}

export interface ParentCall {
  node: string;
  run: string;
}

export type PlatformProblem = (ProblemDetails) & ({
  error: string;
});

export interface PriceDeleted {
  deleted: boolean;
  service: string;
}

export interface PriceInfo {
  actual_units?: unknown;
  min_unit: number;
  service: string;
  unit_price: number;
  units: unknown;
  updated_at: Time;
}

export interface ProblemDetails {
  code: string;
  detail: string;
  errors?: Array<FieldError>;
  status: number;
  title: string;
  type: string;
}

export type ProblemSeverity = "error" | "warning";

export interface ProcessStatsInfo {
  cpu_ms?: number | null;
  open_files?: number | null;
  resident_bytes?: number | null;
  tasks: number;
  threads?: number | null;
  up_ms: number;
}

export interface PublishResponse {
  id: string;
  name: string;
  version: number;
  version_id: string;
  warnings?: Array<ValidationProblem>;
}

export interface QueueChange {
  limits?: QueueLimitSettings | null;
  paused?: boolean | null;
}

export interface QueueInfo {
  dead_letters: number;
  depth: Record<string, number>;
  limits: QueueLimitSettings;
  name: string;
  oldest_age_ms?: number | null;
  open: number;
  paused: boolean;
  stats: QueueStatsInfo;
}

export interface QueueLimitSettings {
  concurrency?: number | null;
  fair?: boolean;
  key_concurrency?: number | null;
  key_rate?: RateLimit | null;
  rate?: RateLimit | null;
}

export interface QueueStatsInfo {
  last_10s: QueueWindow;
  last_hour: QueueWindow;
  last_minute: QueueWindow;
}

export interface QueueWindow {
  created: number;
  dead: number;
  failed: number;
  per_second: Rates;
  started: number;
  succeeded: number;
  wait_ms: DurationPercentiles;
  work_ms: DurationPercentiles;
}

export interface Queues {
  count: number;
  next?: string | null;
  queues: Array<QueueInfo>;
}

export interface RateLimit {
  burst?: number | null;
  count: number;
  per_ms: number;
}

export interface Rates {
  created: number;
  dead: number;
  failed: number;
  started: number;
  succeeded: number;
}

export interface Readiness {
  clock_skew_ms?: number;
  ready: boolean;
  redis?: RedisStatsInfo | null;
  timestamp: Time;
  troubles?: Array<string>;
  warnings?: Array<string>;
}

export interface RedisStatsInfo {
  fills: number;
  outages: number;
  up: boolean;
}

export interface RefusedWorker {
  at: Time;
  id: string;
  reason: string;
  url: string;
}

export interface ReplayDeadLetters {
  count?: number | null;
  fingerprint?: string | null;
  ids?: Array<string> | null;
  override_priority?: number | null;
  patch?: unknown;
  per_second?: number | null;
  replay_id?: string | null;
}

export interface ReportResponse {
  id: string;
  verdict: LeaseVerdict;
}

export interface RerunRequest {
  from: string;
  shared?: Record<string, unknown> | null;
}

export interface RotateKey {
  grace_ms?: number | null;
}

export type RoundAnswer = DryRun | RunSummary;

export interface RunCost {
  actual: number;
  estimated: number;
  own?: OwnCost | null;
}

export interface RunCounts {
  at: Time;
  by: string;
  counts: Array<CountedValue>;
}

export type RunDetail = (RunSummary) & ({
  budget?: number | null;
  exec_mode: StartMode;
  manual: boolean;
  more_nodes?: boolean;
  node_states: Record<string, NodeInfo>;
  params: Record<string, unknown>;
  priority: RunPriority;
  result?: unknown;
  shared: Record<string, unknown>;
  start_node_ids?: Array<string>;
});

export interface RunPace {
  last_10s: RunWindow;
  last_hour: RunWindow;
  last_minute: RunWindow;
  total: RunWindow;
}

export interface RunPage {
  attempts: Array<AttemptHead>;
  budget?: number | null;
  children: Array<RunSummary>;
  exec_mode: StartMode;
  graph: FlowGraph;
  manual: boolean;
  more_attempts: boolean;
  more_children: boolean;
  more_nodes: boolean;
  node_states: Record<string, NodeInfo>;
  params: ValueHead;
  priority: RunPriority;
  result?: ValueHead | null;
  run: RunSummary;
  seq: number;
  shared: ValueHead;
  start_node_ids?: Array<string>;
  why: Array<WaitReason>;
}

export type RunPriority = "lowest" | "low" | "medium" | "high" | "highest";

export interface RunRequest {
  account?: string | null;
  budget?: number | null;
  exec_mode?: StartMode;
  labels?: Record<string, string>;
  manual?: boolean;
  on_short_balance?: OnShortBalance;
  params?: Record<string, unknown> | null;
  priority?: RunPriority | null;
  request_id?: string | null;
  start_node_ids?: Array<string>;
  variables?: Record<string, unknown> | null;
  version?: number | null;
}

export interface RunState {
  at: number;
  cost: RunCost;
  error?: FaultInfo | null;
  id: string;
  len: number;
  more_nodes?: boolean;
  node_states: Record<string, NodeInfo>;
  params: Record<string, unknown>;
  result?: unknown;
  round: number;
  shared: Record<string, unknown>;
  signals: Record<string, unknown>;
  status: RunStatus;
  time: Time;
}

export interface RunStats {
  attempts: number;
  duration_ms: DurationPercentiles;
  flow: string;
  nodes: Array<NodeDurations>;
  parallelism: ParallelismInfo;
  run: string;
  status: RunStatus;
  waiting_ms?: DurationPercentiles;
}

export type RunStatus = "pending" | "running" | "waiting" | "paused" | "canceling" | "completed" | "failed" | "canceled";

export interface RunSummary {
  account?: string | null;
  action?: string | null;
  cost: RunCost;
  created_at: Time;
  ended_at?: Time | null;
  error?: FaultInfo | null;
  flow: string;
  flow_id: string;
  id: string;
  labels?: Record<string, string>;
  len: number;
  node?: string | null;
  parent?: ParentCall | null;
  request_id?: string | null;
  round: number;
  schedule_id?: string | null;
  status: RunStatus;
  step_count: number;
  updated_at: Time;
  version: number;
  version_id: string;
  wake_at?: Time | null;
}

export interface RunWindow {
  canceled: number;
  completed: number;
  duration_ms: DurationPercentiles;
  failed: number;
  per_second: number;
  started: number;
}

export interface ScheduleDeleted {
  deleted: boolean;
  id: string;
}

export interface ScheduleInfo {
  account?: string | null;
  catchup: CatchupRule;
  created_at: Time;
  cron_expr: string;
  decided_until?: Time | null;
  dst: DstRule;
  enabled: boolean;
  fired?: number;
  flow?: string | null;
  id: string;
  last_error?: MissedSlot | null;
  last_run?: LastRun | null;
  name: string;
  next_runs: Array<Time>;
  overlap: OverlapRule;
  params?: Record<string, unknown> | null;
  passed?: number;
  running: Array<StartedId>;
  schedule_id: string;
  task?: NewTask | null;
  timezone: string;
  updated_at: Time;
  version?: number | null;
  waiting?: Array<Time>;
  window_ms: number;
}

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

export interface SchedulePreviewRequest {
  count?: number | null;
  cron_expr: string;
  dst?: DstRule | null;
  timezone?: string | null;
}

export interface ScheduledTask {
  account?: string | null;
  backoff?: TaskBackoff | null;
  dedup_key?: string;
  limit_key?: string;
  max_retries?: number | null;
  name: string;
  payload?: unknown;
  priority?: number;
  queue_name: string;
  timeout_ms?: number | null;
  type?: TaskType | null;
  unique_for_ms?: number | null;
}

export interface Schedules {
  count: number;
  next?: string | null;
  schedules: Array<ScheduleInfo>;
}

export interface SearchHit {
  id: string;
  kind: string;
  status?: string | null;
  title: string;
}

export interface SearchHits {
  items: Array<SearchHit>;
}

export interface Series {
  at: Array<number>;
  from: Time;
  series: Record<string, unknown>;
  step: number;
  to: Time;
}

export interface ServerStatsInfo {
  calls: number;
  hot_runs: number;
  inputs: number;
}

export interface ServerSummary {
  heartbeat_at: Time;
  id: string;
  name: string;
  started_at: Time;
  version: string;
}

export interface ServiceChange {
  calls_max?: number | null;
  priority?: RunPriority | null;
  recheck_ms?: number | null;
  secret?: string | null;
  timeout_ms?: number | null;
  until_reported?: boolean;
}

export interface ServiceDemand {
  capacity: number;
  n_workers: number;
  name: string;
  queued: number;
  running: number;
}

export interface ServiceInfo {
  calls_max?: number | null;
  capacity?: number;
  is_signed?: boolean;
  load?: number;
  n_waiting?: number;
  n_workers?: number;
  name: string;
  priority?: RunPriority | null;
  recheck_ms?: number | null;
  timeout_ms?: number | null;
  until_reported?: boolean;
  updated_at?: Time | null;
}

export interface Signal {
  by?: string | null;
  id?: string | null;
  key: string;
  value: unknown;
}

export type StartMode = "all" | "specified_starts" | "isolated_nodes";

export interface StartResponse {
  created: boolean;
  flow: string;
  flow_id: string;
  id: string;
  run?: RunDetail | null;
  status: RunStatus;
  version: number;
  version_id: string;
}

export type StartedId = {
  task_id: string;
} | {
  run_id: string;
};

export interface StateDiff {
  changes: Array<DefinitionChange>;
  from: number;
  id: string;
  more?: boolean;
  to: number;
}

export interface StatsResponse {
  flows: Array<string>;
  nodes: NodePace;
  parallelism: LoadInfo;
  process: ProcessStatsInfo;
  redis?: RedisStatsInfo | null;
  runs: RunPace;
  server: ServerStatsInfo;
  timestamp: Time;
}

export interface TaskBackoff {
  base_ms?: number | null;
  cap_ms?: number | null;
  jitter?: boolean | null;
  kind?: BackoffKind | null;
}

export interface TaskCost {
  actual: number;
  estimated: number;
}

export interface TaskCreated {
  duplicate?: boolean;
  status: string;
  task_id: string;
}

export interface TaskDetail {
  display_status: string;
  latest_run: TaskRun;
  task: TaskInfo;
}

export interface TaskInfo {
  account?: string | null;
  backoff?: TaskBackoff;
  cancel_requested?: boolean;
  cost?: TaskCost | null;
  created_at: Time;
  dedup_key: string;
  discarded?: string | null;
  error?: FaultInfo | null;
  id: string;
  is_dead_letter?: boolean;
  limit_key?: string;
  max_retries: number;
  memo?: unknown;
  name: string;
  payload: unknown;
  priority: number;
  queue_name: string;
  run_at?: Time | null;
  run_id?: string | null;
  schedule_id?: string | null;
  status: string;
  timeout_ms?: number | null;
  type: TaskType;
  unique_for_ms?: number | null;
  updated_at: Time;
}

export interface TaskList {
  count: number;
  next?: string | null;
  tasks: Array<TaskSummary>;
}

export interface TaskRun {
  attempt: number;
  created_at: Time;
  error?: FaultInfo | null;
  finished_at?: Time | null;
  id: string;
  next_retry_at?: Time | null;
  result?: unknown;
  started_at?: Time | null;
  status: string;
  task_id: string;
  worker_id?: string | null;
}

export interface TaskRuns {
  count: number;
  next?: string | null;
  runs: Array<TaskRun>;
  task_id: string;
}

export interface TaskSummary {
  attempt: number;
  created_at: Time;
  dedup_key: string;
  display_status: string;
  error?: FaultInfo | null;
  id: string;
  is_dead_letter?: boolean;
  max_retries: number;
  name: string;
  next_run_at?: Time | null;
  priority: number;
  queue_name: string;
  run_id?: string | null;
  schedule_id?: string | null;
  status: string;
  type: TaskType;
  updated_at: Time;
  worker_id?: string | null;
}

export type TaskType = "immediate" | "scheduled";

export interface TasksCreated {
  count: number;
  tasks: Array<TaskCreated>;
}

export interface TileCount {
  count: number;
  more?: boolean;
}

export type Time = string;

export interface Toggle {
  enabled?: boolean | null;
}

export type Triggered = (StartedId) & ({
  schedule_id: string;
});

export interface Validation {
  form?: string | null;
  graph?: FlowGraph | null;
  n_nodes?: number | null;
  ok: boolean;
  problems: Array<ValidationProblem>;
}

export interface ValidationProblem {
  column?: number | null;
  hint?: string | null;
  line?: number | null;
  path: string;
  pointer?: string | null;
  reason: string;
  severity: ProblemSeverity;
}

export interface ValueHead {
  bytes: number;
  head?: string | null;
  value?: unknown;
}

export type Version = (VersionSummary) & ({
  definition: Record<string, unknown>;
  text: string;
});

export interface VersionRequest {
  definition?: Record<string, unknown> | null;
  note?: string;
  yaml?: string | null;
}

export interface VersionSummary {
  created_at: Time;
  flow_id: string;
  form: string;
  id: string;
  note: string;
  status: string;
  version: number;
}

export interface WaitReason {
  after?: string | null;
  amount?: number | null;
  assignees?: Array<string>;
  attempt?: number | null;
  command?: string | null;
  key?: string | null;
  missing?: number | null;
  n_workers?: number | null;
  node: string;
  service?: string | null;
  text: string;
  until?: Time | null;
  waits_for: string;
}

export interface Why {
  id: string;
  reasons: Array<WaitReason>;
  status: RunStatus;
}

export interface WorkerCounts {
  draining: number;
  online: number;
  stale: number;
}

export interface WorkerInfo {
  capacity: number;
  heartbeat_at: Time;
  id: string;
  is_draining?: boolean;
  load: number;
  name: string;
  queues: Array<string>;
  services: Array<string>;
  status: string;
  tasks?: Array<WorkerTask>;
  type?: string;
  url?: string;
}

export interface WorkerTask {
  attempt: number;
  name: string;
  queue_name: string;
  since: Time;
  task_id: string;
}

export interface Workers {
  count: number;
  next?: string | null;
  refused?: Array<RefusedWorker>;
  workers: Array<WorkerInfo>;
}

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
    query: { cursor?: string; limit?: number };
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
    query: { run?: string; order?: "newest" | "oldest"; cursor?: string; limit?: number };
    body: undefined;
    answer: List_LedgerEntry;
  };
  "GET /api/v1/approvals": {
    path: undefined;
    query: { assignee?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: List_ApprovalInfo;
  };
  "GET /api/v1/audit": {
    path: undefined;
    query: { who?: string; what?: string; subject?: string; order?: "newest" | "oldest"; cursor?: string; limit?: number };
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
    query: { head?: string };
    body: undefined;
    answer: AuditVerification;
  };
  "GET /api/v1/bulk": {
    path: undefined;
    query: { cursor?: string; limit?: number };
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
    query: { topics?: string; last_event_id?: number };
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
    query: { q?: string; label?: string; is_template?: boolean; cursor?: string; limit?: number };
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
    query: { from?: number; to?: number };
    body: undefined;
    answer: FlowDiff;
  };
  "GET /api/v1/flows/{flow}/graph": {
    path: { flow: string };
    query: { version?: number; dir?: "lr" | "tb" };
    body: undefined;
    answer: FlowGraph;
  };
  "GET /api/v1/flows/{flow}/graph.svg": {
    path: { flow: string };
    query: { version?: number; dir?: "lr" | "tb"; run?: string };
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
    query: { wait_ms?: number };
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
    query: { status?: string; queue?: string; name?: string; worker?: string; schedule?: string; since?: Time; until?: Time; cursor?: string; limit?: number };
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
    query: { cursor?: string; limit?: number };
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
    query: { cursor?: string; limit?: number };
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
    query: { cursor?: string; limit?: number };
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
    query: { cursor?: string; limit?: number };
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
    query: { count?: number; fingerprint?: string; after?: string; format?: string };
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
    query: { query?: string; flow?: string; status?: string; account?: string; parent?: string; label?: string; since?: Time; until?: Time; q?: string; cursor?: string; limit?: number };
    body: undefined;
    answer: List_RunSummary;
  };
  "GET /api/v1/runs/counts": {
    path: undefined;
    query: { query?: string; by?: string };
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
    query: { cursor?: string; limit?: number };
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
    query: { dir?: "lr" | "tb" };
    body: undefined;
    answer: FlowGraph;
  };
  "GET /api/v1/runs/{id}/journal": {
    path: { id: string };
    query: { cursor?: string; limit?: number };
    body: undefined;
    answer: List_JournalEntry;
  };
  "GET /api/v1/runs/{id}/logs": {
    path: { id: string };
    query: { level?: "info" | "warn" | "error"; node?: string; follow?: boolean; cursor?: string; limit?: number };
    body: undefined;
    answer: List_LogLine;
  };
  "GET /api/v1/runs/{id}/output": {
    path: { id: string };
    query: { of?: string; fence?: number };
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
    query: { dry_run?: boolean };
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
    query: { dry_run?: boolean };
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
    query: { at?: number };
    body: undefined;
    answer: RunState;
  };
  "GET /api/v1/runs/{id}/state/diff": {
    path: { id: string };
    query: { from?: number; to?: number };
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
    query: { cursor?: string; limit?: number };
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
    query: { count?: number };
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
    query: { q: string; limit?: number };
    body: undefined;
    answer: SearchHits;
  };
  "GET /api/v1/series": {
    path: undefined;
    query: { range?: string; from?: Time; to?: Time; step?: number; queue?: string };
    body: undefined;
    answer: Series;
  };
  "GET /api/v1/services": {
    path: undefined;
    query: { cursor?: string; limit?: number };
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
    query: { status?: string; queue?: string; name?: string; worker?: string; schedule?: string; since?: Time; until?: Time; cursor?: string; limit?: number };
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
    query: { cursor?: string; limit?: number };
    body: undefined;
    answer: TaskRuns;
  };
  "GET /api/v1/workers": {
    path: undefined;
    query: { status?: string; cursor?: string; limit?: number };
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
