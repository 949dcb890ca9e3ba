/** Windlass for TypeScript: a client, workers and flows. */
export { App, type AppOptions, type RunOptions, type ServeOptions } from "./app.ts";
export { Call, CallLog, Suspended, type CallFields, type LogEntry } from "./call.ts";
export { Client, type ClientOptions } from "./client.ts";
export type { Accounts } from "./client/accounts.ts";
export type { Approvals } from "./client/approvals.ts";
export type { Calls } from "./client/calls.ts";
export type { DeadLetters } from "./client/dead-letters.ts";
export type { AppliedFlow, Flows } from "./client/flows.ts";
export type { JobHandle, Jobs } from "./client/jobs.ts";
export type { Queues } from "./client/queues.ts";
export type { FollowOptions, RunHandle, Runs } from "./client/runs.ts";
export type { Schedules } from "./client/schedules.ts";
export type { WorkerRegistration, Workers } from "./client/workers.ts";
export {
  AccessError, BusyError, CallStopped, ConflictError, Fatal, InvalidRequestError, JobFailedError, NotFoundError,
  RunFailedError, SchemaError, ServerError, Temporary, UnreachableError, WaitTimeoutError, WindlassError,
  type StopReason,
} from "./errors.ts";
export {
  Flow, FlowNode, type ConfigValue, type FlowOptions, type NodeOptions, type Predecessor, type VariableDefinition,
} from "./flow/flow.ts";
export type { Reference } from "./flow/reference.ts";
export type { JsonChange } from "./json.ts";
export type {
  AccountInfo, ApprovalInfo, CallReport, Cancel, CompareVersionsQuery, DeadLetter, DeadLetterGroups, DeadLettersMoved,
  Decide, Definition, DepositRequest, DepositResponse, DiscardDeadLetters, DryRun, ExpandResponse, FaultInfo, FieldError,
  FlowDetail, FlowDiff, FlowInfo, FlowRequest, InstantiateRequest, JobAttempt, JobDetail, JobRetry, JobStatus, JobSummary,
  JournalEntry, LedgerEntry, List, ListAccountsQuery, ListApprovalsQuery, ListAttemptsQuery, ListDeadLettersQuery,
  ListFlowsQuery, ListJobAttemptsQuery, ListJobsQuery, ListJournalQuery, ListLogsQuery, ListRunsQuery, LogLine, NewAccount,
  NewJob, NewSchedule, NextRuns, NodeAttemptInfo, NodeInfo, PublishResponse, QueueChange, QueueInfo, ReplayDeadLetters,
  ReportResponse, RerunRequest, RunDetail, RunRequest, RunStatus, RunSummary, ScheduleInfo, SchedulePatch,
  SchedulePreviewRequest, ShowLedgerQuery, Signal, StartResponse, Triggered, Validation, ValidationProblem, Version,
  VersionRequest, VersionSummary, WaitReason, Why, WorkerInfo,
} from "./openapi.ts";
export type { FetchHandler, PushOptions } from "./push/fetch-handler.ts";
export type { NodeHandler } from "./push/node-handler.ts";
export type { PushServerOptions } from "./push/push-server.ts";
export type { Registration, RegistrationOptions } from "./push/registration.ts";
export { sign, SignatureVerifier, type SignatureHeaders } from "./push/signature.ts";
export type { StandardSchema } from "./schema.ts";
export type { Handler, SendOptions, Service, ServiceOptions } from "./service.ts";
export type { RequestOptions } from "./transport.ts";
export type { WaitOptions } from "./waiting.ts";
export type { WorkerLog } from "./worker/logging.ts";
export type { Worker, WorkerOptions } from "./worker/worker.ts";
