//! Conversions from rows to the contract of the queue platform surface.

use std::sync::Arc;

use serde_json::json;
use uuid::Uuid;
use windlass_engine::id::{JobId, ScheduleId};
use windlass_engine::job::{Attempt, AttemptStatus, Job, JobSpec, State, attempt_id};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Backoff, Fault};
use windlass_sdk::contract::{
    BackoffKind, NewTask, TaskBackoff, TaskCost, TaskDetail, TaskInfo, TaskRun, TaskSummary, TaskType, Time,
};
use windlass_store::job::{JobRow, JobStatus};

use crate::problem::{ApiError, ApiResult, Code};
use crate::shape::{job_due_at, job_error, job_fault, time};

/// An id as this surface writes it.
pub(super) fn uuid(id: Uuid) -> String {
    id.hyphenated().to_string()
}

/// A problem about a job in the words of this surface; `text` is the id as the path has it.
pub(super) fn task_words(text: &str, error: ApiError) -> ApiError {
    if error.code() != Code::UnknownJob {
        return error;
    }
    let shown: String = text.chars().take(80).collect();
    ApiError::new(Code::UnknownTask, format!("there is no task `{shown}`: list tasks with GET /api/v1/tasks"))
}

/// The code of this surface for a problem with a job.
pub(crate) fn task_code(code: Code) -> Code {
    match code {
        Code::UnknownJob => Code::UnknownTask,
        Code::JobEnded => Code::TaskEnded,
        Code::JobOpen => Code::TaskOpen,
        Code::JobOfRun => Code::TaskOfRun,
        other => other,
    }
}

/// The status of a task as a whole: `queued` from its time until it ends.
pub(super) fn whole_word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "pending",
        JobStatus::Queued | JobStatus::Running | JobStatus::Suspended | JobStatus::Retrying => "queued",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Canceled => "cancelled",
    }
}

/// The status of a task as it is shown.
fn display_word(status: JobStatus) -> &'static str {
    match status {
        JobStatus::Pending => "pending",
        JobStatus::Queued => "queued",
        JobStatus::Running | JobStatus::Suspended => "running",
        JobStatus::Retrying => "retrying",
        JobStatus::Completed => "completed",
        JobStatus::Failed => "failed",
        JobStatus::Canceled => "cancelled",
    }
}

fn attempt_word(status: AttemptStatus) -> &'static str {
    match status {
        AttemptStatus::Queued => "queued",
        AttemptStatus::Running => "running",
        AttemptStatus::Succeeded => "succeeded",
        AttemptStatus::Failed => "failed",
        AttemptStatus::Retrying => "retrying",
        AttemptStatus::Canceled => "cancelled",
    }
}

/// The schedule that the path names.
pub(super) fn schedule_id(text: &str) -> ApiResult<ScheduleId> {
    let id = text.parse().ok().or_else(|| Uuid::try_parse(text).ok().map(ScheduleId::new));
    id.ok_or_else(|| unknown_schedule(text))
}

pub(super) fn unknown_schedule(text: &str) -> ApiError {
    let shown: String = text.chars().take(80).collect();
    let detail = format!("there is no schedule `{shown}`: list schedules with GET /api/v1/schedules");
    ApiError::new(Code::UnknownSchedule, detail)
}

/// The id of an attempt. The view `task_runs` says the same.
pub(super) fn run_id(job: JobId, number: u32) -> String {
    uuid(attempt_id(job, number))
}

/// The name of a queue from the path: one that a task could have.
pub(super) fn queue_name(text: String) -> ApiResult<String> {
    let spec = JobSpec::new("any", text);
    match spec.problems().into_iter().next() {
        None => Ok(spec.queue),
        Some(problem) => {
            Err(ApiError::new(Code::BadPath, format!("the name of the queue: {}", problem.reason)))
        }
    }
}

pub(super) fn detail(row: JobRow) -> TaskDetail<RawJson> {
    TaskDetail {
        latest_run: latest(&row.job),
        display_status: display_word(JobStatus::of(&row.job)).to_owned(),
        task: task(row),
    }
}

fn task(row: JobRow) -> TaskInfo<RawJson> {
    let JobRow { job, origin, .. } = row;
    let (status, is_dead_letter) = (whole_word(JobStatus::of(&job)).to_owned(), job.is_dead_letter());
    let cancel_requested = job.cancel_requested();
    let cost = job.cost().map(|bill| TaskCost { estimated: bill.estimated.0, actual: bill.actual.0 });
    let (error, discarded) = match job.state {
        State::Failed { reason, discarded } => (Some(job_fault(&reason)), discarded),
        State::Pending { .. }
        | State::Queued { .. }
        | State::Running { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Canceled => (None, None),
    };
    let spec = Arc::unwrap_or_clone(job.spec);
    let run_at = spec.run_at.filter(|_| !spec.is_template()).map(time);
    TaskInfo {
        id: uuid(job.id.uuid()),
        kind: kind(&spec, origin.schedule),
        backoff: backoff(&spec),
        name: spec.name,
        queue_name: spec.queue,
        priority: spec.priority,
        payload: spec.payload,
        max_retries: spec.max_retries,
        status,
        dedup_key: spec.dedup_key,
        created_at: time(job.created_at),
        updated_at: time(job.updated_at),
        run_at,
        timeout_ms: Some(spec.timeout_ms).filter(|ms| *ms > 0),
        unique_for_ms: Some(spec.unique_for_ms).filter(|ms| *ms > 0),
        limit_key: spec.limit_key,
        account: spec.account,
        cost,
        memo: job.memo,
        error,
        is_dead_letter,
        discarded,
        cancel_requested,
        schedule_id: origin.schedule.map(|schedule| uuid(schedule.uuid())),
        run_id: spec.run.map(|run| run.to_string()),
    }
}

fn kind(spec: &JobSpec, schedule: Option<ScheduleId>) -> TaskType {
    if spec.run_at.is_some() || schedule.is_some() { TaskType::Scheduled } else { TaskType::Immediate }
}

fn backoff(spec: &JobSpec) -> TaskBackoff {
    TaskBackoff {
        kind: Some(match spec.backoff.kind {
            Backoff::Fixed => BackoffKind::Fixed,
            Backoff::Exponential => BackoffKind::Exponential,
        }),
        base_ms: Some(spec.backoff.base_ms),
        cap_ms: Some(spec.backoff.cap_ms),
        jitter: Some(spec.backoff.jitter),
    }
}

/// The latest attempt. While it waits between two attempts, that is the next one, and it says when.
fn latest(job: &Job) -> TaskRun<RawJson> {
    let mut latest = run(job.id, job.latest().clone());
    if let State::Retrying { until } = job.state {
        latest.next_retry_at = Some(time(until));
    }
    latest
}

pub(super) fn run(job: JobId, attempt: Attempt) -> TaskRun<RawJson> {
    TaskRun {
        id: run_id(job, attempt.number),
        task_id: uuid(job.uuid()),
        attempt: attempt.number,
        status: attempt_word(attempt.status).to_owned(),
        worker_id: attempt.worker,
        started_at: attempt.started_at.map(time),
        finished_at: attempt.finished_at.map(time),
        result: attempt.result.or_else(|| attempt.error.as_ref().map(error_result)),
        next_retry_at: attempt.next_retry_at.map(time),
        created_at: time(attempt.created_at),
        error: attempt.error.as_ref().map(job_fault),
    }
}

/// The error of an attempt where clients of this surface look for it.
fn error_result(fault: &Fault) -> RawJson {
    RawJson::from(json!({ "error": fault.message, "kind": fault.kind.word() }))
}

pub(super) fn summary(row: JobRow) -> TaskSummary {
    let JobRow { job, origin, .. } = row;
    TaskSummary {
        id: uuid(job.id.uuid()),
        kind: kind(&job.spec, origin.schedule),
        max_retries: job.spec.max_retries,
        priority: job.spec.priority,
        status: whole_word(JobStatus::of(&job)).to_owned(),
        display_status: display_word(JobStatus::of(&job)).to_owned(),
        attempt: job.latest().number,
        worker_id: job.latest().worker.clone(),
        next_run_at: job_due_at(&job).map(time),
        error: job_error(&job),
        is_dead_letter: job.is_dead_letter(),
        schedule_id: origin.schedule.map(|schedule| uuid(schedule.uuid())),
        run_id: job.spec.run.map(|run| run.to_string()),
        created_at: time(job.created_at),
        updated_at: time(job.updated_at),
        name: job.spec.name.clone(),
        queue_name: job.spec.queue.clone(),
        dedup_key: job.spec.dedup_key.clone(),
    }
}

/// A task as the body that would create it.
pub(super) fn new_task(spec: JobSpec) -> NewTask {
    NewTask {
        kind: Some(if spec.run_at.is_some() { TaskType::Scheduled } else { TaskType::Immediate }),
        backoff: Some(backoff(&spec)),
        name: spec.name,
        queue_name: spec.queue,
        priority: spec.priority,
        payload: spec.payload.value(),
        dedup_key: spec.dedup_key,
        unique_for_ms: Some(spec.unique_for_ms).filter(|ms| *ms > 0),
        limit_key: spec.limit_key,
        max_retries: Some(spec.max_retries),
        run_at: spec.run_at.map(|at| Time(at.0)),
        timeout_ms: Some(spec.timeout_ms).filter(|ms| *ms > 0),
        account: spec.account,
    }
}
