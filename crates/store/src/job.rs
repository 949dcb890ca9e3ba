//! Jobs as they are stored.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::id::{JobId, RunId, ScheduleId};
use windlass_engine::job::{Job, JobSpec, State};
use windlass_engine::path::NodePath;
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::Fault;
use windlass_engine::time::Timestamp;

use crate::page::Part;

pub use crate::ready::{HeldRow, KeyBatch, KeyQuery, KeyRows, Portion, ReadyCursor, ReadyQuery};

/// A job, its revision, and its origin.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JobRow {
    /// From 1; goes up with every change.
    pub rev: Revision,
    pub job: Job,
    pub origin: JobOrigin,
}

/// The origin of a job. Never changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct JobOrigin {
    /// The call that it carries.
    pub call: Option<CallRef>,
    pub schedule: Option<ScheduleId>,
}

/// One call of a run: where an answer goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallRef {
    pub run: RunId,
    pub node: NodePath,
    pub fence: Fence,
}

/// Where a job stands, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobStatus {
    Pending,
    Queued,
    Running,
    Suspended,
    Retrying,
    Completed,
    Failed,
    Canceled,
}

/// Statuses of open jobs.
const N_OPEN: usize = 5;

impl JobStatus {
    /// Every status.
    pub const ALL: [JobStatus; 8] = [
        JobStatus::Pending,
        JobStatus::Queued,
        JobStatus::Running,
        JobStatus::Suspended,
        JobStatus::Retrying,
        JobStatus::Completed,
        JobStatus::Failed,
        JobStatus::Canceled,
    ];

    /// Whether a job with this status is open.
    pub fn is_open(self) -> bool {
        match self {
            JobStatus::Pending
            | JobStatus::Queued
            | JobStatus::Running
            | JobStatus::Suspended
            | JobStatus::Retrying => true,
            JobStatus::Completed | JobStatus::Failed | JobStatus::Canceled => false,
        }
    }

    /// The status of a job.
    pub fn of(job: &Job) -> Self {
        match job.state {
            State::Pending { .. } => JobStatus::Pending,
            State::Queued { .. } => JobStatus::Queued,
            State::Running { .. } => JobStatus::Running,
            State::Suspended { .. } => JobStatus::Suspended,
            State::Retrying { .. } => JobStatus::Retrying,
            State::Succeeded => JobStatus::Completed,
            State::Failed { .. } => JobStatus::Failed,
            State::Canceled => JobStatus::Canceled,
        }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            JobStatus::Pending => "pending",
            JobStatus::Queued => "queued",
            JobStatus::Running => "running",
            JobStatus::Suspended => "suspended",
            JobStatus::Retrying => "retrying",
            JobStatus::Completed => "completed",
            JobStatus::Failed => "failed",
            JobStatus::Canceled => "canceled",
        }
    }

    /// The word for the job as a whole: queued from its time until it ends.
    pub fn whole_word(self) -> &'static str {
        match self {
            JobStatus::Queued | JobStatus::Running | JobStatus::Suspended | JobStatus::Retrying => "queued",
            JobStatus::Pending | JobStatus::Completed | JobStatus::Failed | JobStatus::Canceled => {
                self.word()
            }
        }
    }
}

/// From when on a job can be claimed, unless something else happens to it before: the moment it was queued, or the
/// end of its wait. `None` = not by time alone.
pub fn due_at(job: &Job) -> Option<Timestamp> {
    match job.state {
        State::Queued { since } => Some(since),
        State::Pending { until } | State::Suspended { until } | State::Retrying { until } => Some(until),
        State::Running { .. } | State::Succeeded | State::Failed { .. } | State::Canceled => None,
    }
}

/// The group of a dead letter; `None` if it is not one.
pub fn fingerprint(job: &Job) -> Option<String> {
    match &job.state {
        State::Failed { reason, .. } if job.is_dead_letter() => Some(reason.fingerprint()),
        State::Failed { .. }
        | State::Pending { .. }
        | State::Queued { .. }
        | State::Running { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Canceled => None,
    }
}

/// The worker that has the job now.
pub(crate) fn holder(state: &State) -> Option<&String> {
    match state {
        State::Running { worker, .. } => Some(worker),
        State::Pending { .. }
        | State::Queued { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Canceled => None,
    }
}

/// The stored specification of a job. The payload is kept apart: inside, it would be nested deeper than the reader of
/// JSON follows.
pub(crate) fn without_payload(spec: &JobSpec) -> JobSpec {
    let JobSpec { name, queue, priority, payload: _, dedup_key, unique_for_ms, .. } = spec;
    let JobSpec { limit_key, max_retries, run_at, timeout_ms, backoff, account, price, run, .. } = spec;
    JobSpec {
        name: name.clone(),
        queue: queue.clone(),
        priority: *priority,
        payload: RawJson::default(),
        dedup_key: dedup_key.clone(),
        unique_for_ms: *unique_for_ms,
        limit_key: limit_key.clone(),
        max_retries: *max_retries,
        run_at: *run_at,
        timeout_ms: *timeout_ms,
        backoff: *backoff,
        account: account.clone(),
        price: price.clone(),
        run: *run,
    }
}

/// Which jobs are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobQuery {
    /// Empty = any.
    pub statuses: Vec<JobStatus>,
    pub queue: Option<String>,
    /// The name of the job: the service, for a call.
    pub name: Option<String>,
    pub run: Option<RunId>,
    pub schedule: Option<ScheduleId>,
    /// The group of a dead letter.
    pub fingerprint: Option<String>,
    /// The worker that has it now.
    pub worker: Option<String>,
    /// Only dead letters, or none.
    pub is_dead_letter: Option<bool>,
    /// Created at or after.
    pub since: Option<Timestamp>,
    /// Created before.
    pub until: Option<Timestamp>,
    pub part: Part,
}

/// Bytes of a payload in an outline.
pub const OUTLINE_PAYLOAD_MAX: usize = 4_096;

/// Jobs to be shown, without their large payloads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OutlineQuery {
    /// These jobs, in any order.
    Ids(Vec<JobId>),
    /// Jobs of a queue that can be claimed later than `now`, the earliest first.
    Delayed { queue: String, now: Timestamp, limit: usize },
    /// Dead letters of a queue, the newest first.
    DeadLetters { queue: String, limit: usize },
}

/// A job to be shown.
#[derive(Debug, Clone, PartialEq)]
pub struct JobOutline {
    pub row: JobRow,
    /// The payload is a text with the beginning of a larger one: at least as many bytes as an outline has.
    pub is_cut: bool,
}

impl JobOutline {
    /// The outline of a whole job.
    pub(crate) fn of(mut row: JobRow) -> Self {
        let payload = row.job.spec.payload.as_str();
        let is_cut = payload.len() > OUTLINE_PAYLOAD_MAX;
        if is_cut {
            let beginning: String = payload.chars().take(OUTLINE_PAYLOAD_MAX).collect();
            let spec = JobSpec { payload: Value::String(beginning).into(), ..(*row.job.spec).clone() };
            row.job.spec = Arc::new(spec);
        }
        JobOutline { row, is_cut }
    }
}

/// The index that a list of jobs is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum JobIndex {
    Run,
    Schedule,
    DeadLetter,
    /// Running jobs, which all have a wake-up.
    Running,
    Queue,
    Status,
    Creation,
}

impl JobQuery {
    /// The index for this query.
    pub(crate) fn index(&self) -> JobIndex {
        match self {
            JobQuery { run: Some(_), .. } => JobIndex::Run,
            JobQuery { schedule: Some(_), .. } => JobIndex::Schedule,
            JobQuery { is_dead_letter: Some(true), .. } | JobQuery { fingerprint: Some(_), .. } => {
                JobIndex::DeadLetter
            }
            JobQuery { worker: Some(_), .. } => JobIndex::Running,
            _ if self.statuses == [JobStatus::Running] => JobIndex::Running,
            JobQuery { queue: Some(_), .. } => JobIndex::Queue,
            _ if !self.statuses.is_empty() => JobIndex::Status,
            _ => JobIndex::Creation,
        }
    }

    /// Whether the index leaves a part of the query open, so that every row has to be examined.
    pub(crate) fn is_examined(&self) -> bool {
        let has_dead = self.is_dead_letter.is_some() || self.fingerprint.is_some();
        let has_name = self.name.is_some();
        let has_status = !self.statuses.is_empty() || self.worker.is_some();
        match self.index() {
            JobIndex::Run | JobIndex::Schedule => has_name || has_status || has_dead || self.queue.is_some(),
            JobIndex::DeadLetter => has_name || has_status,
            JobIndex::Running => has_name || has_dead || self.queue.is_some(),
            JobIndex::Queue => has_name || has_status || has_dead,
            JobIndex::Status => {
                let (open, _) = self.asked_statuses();
                has_name || has_dead || (!open.is_empty() && open.len() < N_OPEN)
            }
            JobIndex::Creation => has_name || has_dead,
        }
    }

    /// The open statuses and the ended statuses that are asked for.
    pub(crate) fn asked_statuses(&self) -> (Vec<JobStatus>, Vec<JobStatus>) {
        let asked = |status: &JobStatus| self.statuses.is_empty() || self.statuses.contains(status);
        JobStatus::ALL.into_iter().filter(asked).partition(|status| status.is_open())
    }
}

/// Groups of dead letters that are told of at once.
pub const GROUPS_MAX: usize = 1_000;

/// Dead letters of a queue that failed in the same way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DeadLetterGroup {
    /// Names the group: jobs whose reasons differ only in numbers, ids and quoted words have the same.
    pub fingerprint: String,
    pub n: u64,
    /// The time of the latest one.
    pub reason: Fault,
    pub latest: JobId,
    /// When the first and the last of them died.
    pub first_at: Timestamp,
    pub last_at: Timestamp,
}

impl JobRow {
    /// The id of the job.
    pub fn id(&self) -> JobId {
        self.job.id
    }

    /// Whether the query asks for it, its part aside.
    pub fn matches(&self, query: &JobQuery) -> bool {
        let (job, spec) = (&self.job, &self.job.spec);
        (query.statuses.is_empty() || query.statuses.contains(&JobStatus::of(job)))
            && query.queue.as_ref().is_none_or(|queue| *queue == spec.queue)
            && query.name.as_ref().is_none_or(|name| *name == spec.name)
            && (query.run.is_none() || query.run == spec.run)
            && (query.schedule.is_none() || query.schedule == self.origin.schedule)
            && (query.fingerprint.is_none() || query.fingerprint == fingerprint(job))
            && (query.worker.is_none() || query.worker.as_ref() == holder(&job.state))
            && query.is_dead_letter.is_none_or(|is| is == job.is_dead_letter())
            && query.since.is_none_or(|since| job.created_at >= since)
            && query.until.is_none_or(|until| job.created_at < until)
    }
}
