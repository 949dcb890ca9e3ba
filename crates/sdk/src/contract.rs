//! The HTTP contract of the native surface and of the queue platform surface: requests and responses as types. The
//! server and its clients share them, and the OpenAPI document is made from them.
//! Payloads and results are of a type `P`: a tree of values unless the caller wants another form.
//!
//! Requests refuse unknown fields. Responses may get more fields with time; clients ignore unknown ones.

mod account;
mod action;
mod audit;
mod bulk;
mod doctor;
mod flow;
mod graph;
mod job;
mod key;
mod overview;
mod price;
mod problem;
mod pull;
mod query;
mod queue;
mod round;
mod run;
mod schedule;
mod service;
mod stats;
mod task;
mod time;
mod trace;
mod view;
mod worker;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use account::{
    AccountInfo, Budget, DepositRequest, DepositResponse, LedgerEntry, LedgerListQuery, NewAccount,
};
pub use action::{ApprovalInfo, Cancel, Continue, Decide, NoBody, RerunRequest, Signal};
pub use audit::{AuditBreak, AuditHead, AuditLine, AuditListQuery, AuditVerification, AuditVerifyQuery};
pub use bulk::{
    BulkAccepted, BulkAction, BulkAnswer, BulkArgs, BulkDryRun, BulkFailureInfo, BulkInfo, BulkKind,
    BulkOutcomes, BulkRequest, BulkStatus,
};
pub use doctor::{DoctorFinding, DoctorReport, DoctorRequest, PageCheck};
pub use flow::{
    Definition, DefinitionChange, DefinitionChangeKind, ExampleInfo, ExampleNames, ExamplesLoaded,
    ExpandResponse, ExpandedTaskInfo, FlowDetail, FlowDiff, FlowInfo, FlowRequest, InstantiateRequest,
    NodeChange, ProblemSeverity, PublishResponse, Validation, ValidationProblem, Version, VersionRequest,
    VersionSummary,
};
pub use graph::{
    FlowGraph, GraphArea, GraphDirection, GraphEdge, GraphEdgeKind, GraphEdgeWhen, GraphNode, GraphNodeKind,
    GraphQuery, GraphSvgQuery, RunGraphQuery,
};
pub use job::{
    JobAttempt, JobCost, JobCreated, JobDetail, JobRetry, JobStatus, JobSummary, JobsCreated, JobsQuery,
    NewJob, NewJobs,
};
pub use key::{KeyInfo, KeyMade, KeyRole, NewKey, RotateKey};
pub use overview::{
    About, AttentionItem, Overview, OverviewTiles, Series, SeriesQuery, ServerSummary, ServiceDemand,
    TileCount, WorkerCounts,
};
pub use price::{NewPrice, PriceDeleted, PriceInfo};
pub use problem::{FieldError, PlatformProblem, ProblemDetails};
pub use pull::{
    CallOutcome, CallReport, ClaimRequest, ClaimResponse, ClaimedJob, ExchangeRequest, ExchangeResponse,
    ExtendRequest, ExtendResponse, ExtendVerdict, FinishRequest, FinishResponse, FinishVerdict, JobResult,
    LeaseVerdict, ReportResponse,
};
pub use query::{
    ApprovalsQuery, DiffQuery, EventsQuery, FlowsQuery, ListOrder, LogsQuery, PageQuery, RunsQuery,
    StartQuery, StateQuery, WidePageQuery, WorkersQuery,
};
pub use queue::{
    DeadLetter, DeadLetterGroupInfo, DeadLetterGroups, DeadLetterItem, DeadLetterRefusal, DeadLetters,
    DeadLettersMoved, DeadLettersQuery, DiscardDeadLetters, DurationPercentiles, LimitChange, QueueChange,
    QueueInfo, QueueLimitSettings, QueueStatsInfo, QueueWindow, Queues, RateLimit, Rates, ReplayDeadLetters,
};
pub use round::{
    DryRun, DryRunCalls, DryRunCost, DryRunNode, DryRunQuery, RoundAnswer, StateDiff, StateDiffQuery,
};
pub use run::{
    BranchCounts, FaultInfo, NodeInfo, OnShortBalance, OwnCost, ParentCall, RunCost, RunDetail, RunPriority,
    RunRequest, RunState, RunStatus, RunSummary, StartMode, StartResponse,
};
pub use schedule::{
    CatchupRule, DstRule, LastRun, MissedSlot, NewSchedule, NextQuery, NextRuns, OverlapRule,
    ScheduleDeleted, ScheduleInfo, SchedulePatch, SchedulePreviewRequest, Schedules, StartedId, Toggle,
    Triggered,
};
pub use service::{SecretChange, ServiceChange, ServiceInfo};
pub use stats::{
    FlowStatsInfo, LoadInfo, NodeDurations, NodePace, NodeWindow, ParallelismInfo, ParallelismLevel,
    ProcessStatsInfo, RedisStatsInfo, RunPace, RunStats, RunWindow, ServerStatsInfo, StatsResponse,
};
pub use task::{
    BackoffKind, NewTask, TaskBackoff, TaskCost, TaskCreated, TaskDetail, TaskInfo, TaskList, TaskRun,
    TaskRuns, TaskSummary, TaskType, TasksCreated, TasksQuery,
};
pub use time::Time;
pub use trace::{
    ChangeEvent, EndEvent, JournalEntry, LogLevel, LogLine, NodeAttemptInfo, WaitReason, Why, WorkerLogLine,
};
pub use view::{
    AttemptHead, CountedValue, OutputQuery, RunChanges, RunCounts, RunCountsQuery, RunPage, RunPatch,
    SearchHit, SearchHits, SearchQuery, ValueHead,
};
pub use worker::{Health, Readiness, RefusedWorker, WorkerInfo, WorkerTask, Workers};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct List<T> {
    /// The items of this page.
    pub items: Vec<T>,
    /// The cursor of the next page; absent or null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}

/// Whether a payload or a result is left out of a request.
fn is_default<P: Default + PartialEq>(value: &P) -> bool {
    *value == P::default()
}
