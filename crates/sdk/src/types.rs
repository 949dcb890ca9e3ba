//! The words of the native HTTP surface and of the queue platform surface, as types: what is sent, what is answered. The server and its clients share
//! them, and the OpenAPI document is made from them.
//!
//! Requests refuse fields that nobody knows. Answers may get more fields with time; whoever reads them ignores what
//! it does not know.

mod account;
mod action;
mod audit;
mod doctor;
mod flow;
mod job;
mod price;
mod problem;
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
mod worker;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

pub use account::{Account, Budget, Deposit, Deposited, LedgerEntry, LedgerQuery, NewAccount};
pub use action::{Approval, Cancel, Continue, Decide, NoBody, Rerun, Signal};
pub use audit::{AuditLine, AuditQuery};
pub use doctor::{Examination, Examine, Finding};
pub use flow::{
    Change, ChangeKind, Definition, ExpandedTask, Expansion, Flow, FlowDetail, FlowDiff, Instantiate,
    NewFlow, NewVersion, Published, Severity, Validation, ValidationProblem, Version, VersionSummary,
};
pub use job::{
    CallReport, Claim, Claimed, ClaimedJob, Extend, ExtendVerdict, Extended, Finish, FinishVerdict, Finished,
    JobResult, Outcome, Reported, Verdict,
};
pub use price::{NewPrice, Price, PriceDeleted};
pub use problem::{FieldError, PlatformProblem, Problem};
pub use query::{
    ApprovalsQuery, DiffQuery, FlowsQuery, LineOrder, LogsQuery, PageQuery, RunsQuery, StartQuery, StateQuery,
};
pub use queue::{
    DeadLetter, DeadLetters, DiscardLetters, Letter, LetterGroup, LetterGroups, LetterRefused, LettersMoved,
    LettersQuery, LimitChange, Queue, QueueChange, QueueLimits, QueueStats, Queues, Rate, Rates,
    ReplayLetters, Spread, Stretch,
};
pub use round::{
    PlanQuery, PlannedCalls, PlannedCost, PlannedNode, RoundAnswer, RoundPlan, StateDiff, StateDiffQuery,
};
pub use run::{
    Branches, Cost, ExecMode, Fault, NewRun, NodeState, OnShortBalance, OwnCost, Parent, Priority, Run,
    RunState, RunStatus, RunSummary, Started,
};
pub use schedule::{
    Begun, Catchup, Dst, LastRun, Misfire, NewSchedule, NextQuery, NextRuns, Overlap, Preview, Schedule,
    ScheduleChange, ScheduleDeleted, Schedules, Toggle, Triggered,
};
pub use service::{Service, ServiceChange};
pub use stats::{
    FlowStats, Level, Load, NodeDurations, NodePace, NodeStretch, Parallelism, ProcessStats, RedisStats,
    RunPace, RunStats, RunStretch, ServerStats, Stats,
};
pub use task::{
    BackoffKind, NewTask, Task, TaskBackoff, TaskCost, TaskCreated, TaskDetail, TaskList, TaskRun, TaskRuns,
    TaskSummary, TaskType, TasksCreated, TasksQuery,
};
pub use time::Time;
pub use trace::{Attempt, ChangeEvent, EndEvent, JournalEntry, LogLevel, LogLine, Reason, Said, Why};
pub use worker::{Health, Readiness, Worker, WorkerTask, Workers};

/// One page of a list.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct List<T> {
    /// What is on this page.
    pub items: Vec<T>,
    /// Where the next page begins: send it back as `cursor`. Absent or null on the last page.
    #[serde(default)]
    pub next: Option<String>,
}
