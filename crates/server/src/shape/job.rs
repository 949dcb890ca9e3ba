//! Jobs of the store as the native contract writes them.

use std::sync::Arc;

use windlass_engine::job::{Attempt, AttemptStatus, Job, JobSpec, State};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Backoff, Fault as EngineFault};
use windlass_engine::time::Timestamp;
use windlass_runtime::jobs::CreatedJob;
use windlass_sdk::contract::{
    BackoffKind, FaultInfo, JobAttempt, JobCost, JobCreated, JobDetail, JobRetry, JobStatus, JobSummary,
};
use windlass_store::job::{JobRow, JobStatus as StoredStatus};

use super::time;

/// The answer to a request for a new job.
pub(crate) fn job_created(created: CreatedJob) -> JobCreated {
    JobCreated { id: created.job.to_string(), status: status(created.status), duplicate: !created.created }
}

/// A job before its time is `queued`, a suspended one `running`; `due_at` and `suspended` tell them apart.
fn status(stored: StoredStatus) -> JobStatus {
    match stored {
        StoredStatus::Pending | StoredStatus::Queued => JobStatus::Queued,
        StoredStatus::Running | StoredStatus::Suspended => JobStatus::Running,
        StoredStatus::Retrying => JobStatus::Retrying,
        StoredStatus::Completed => JobStatus::Completed,
        StoredStatus::Failed => JobStatus::Failed,
        StoredStatus::Canceled => JobStatus::Canceled,
    }
}

fn attempt_status(stored: AttemptStatus) -> JobStatus {
    match stored {
        AttemptStatus::Queued => JobStatus::Queued,
        AttemptStatus::Running => JobStatus::Running,
        AttemptStatus::Succeeded => JobStatus::Completed,
        AttemptStatus::Failed => JobStatus::Failed,
        AttemptStatus::Retrying => JobStatus::Retrying,
        AttemptStatus::Canceled => JobStatus::Canceled,
    }
}

/// The error of a job or of an attempt.
pub(crate) fn job_fault(fault: &EngineFault) -> FaultInfo {
    FaultInfo {
        node: None,
        message: fault.message.clone(),
        kind: fault.kind.word().to_owned(),
        retryable: fault.retryable,
    }
}

/// When a job can be claimed, while it waits for a time.
pub(crate) fn job_due_at(job: &Job) -> Option<Timestamp> {
    if job.spec.is_template() {
        return None;
    }
    match job.state {
        State::Pending { until } | State::Suspended { until } | State::Retrying { until } => Some(until),
        State::Queued { .. }
        | State::Running { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Canceled => None,
    }
}

/// The error of a failed job; of one that waits for its next attempt, the error of the attempt before.
pub(crate) fn job_error(job: &Job) -> Option<FaultInfo> {
    match &job.state {
        State::Failed { reason, .. } => Some(job_fault(reason)),
        State::Retrying { .. } => {
            job.attempts.iter().rev().take(2).find_map(|attempt| attempt.error.as_ref()).map(job_fault)
        }
        State::Pending { .. }
        | State::Queued { .. }
        | State::Running { .. }
        | State::Suspended { .. }
        | State::Succeeded
        | State::Canceled => None,
    }
}

/// A job in a list.
pub(crate) fn job_summary(row: &JobRow) -> JobSummary {
    let (job, spec) = (&row.job, &row.job.spec);
    let stored = StoredStatus::of(job);
    JobSummary {
        id: job.id.to_string(),
        name: spec.name.clone(),
        queue: spec.queue.clone(),
        status: status(stored),
        due_at: job_due_at(job).map(time),
        suspended: stored == StoredStatus::Suspended,
        cancel_requested: job.cancel_requested(),
        priority: spec.priority,
        dedup_key: spec.dedup_key.clone(),
        attempt: job.latest().number,
        retry_max: spec.attempts_max() - 1,
        worker_id: job.latest().worker.clone(),
        error: job_error(job),
        is_dead_letter: job.is_dead_letter(),
        schedule: row.origin.schedule.map(|schedule| schedule.to_string()),
        run: spec.run.map(|run| run.to_string()),
        node: row.origin.call.as_ref().map(|call| call.node.to_string()),
        created_at: time(job.created_at),
        updated_at: time(job.updated_at),
    }
}

/// A job with everything.
pub(crate) fn job_detail(row: JobRow) -> JobDetail<RawJson> {
    let summary = job_summary(&row);
    let job = row.job;
    let mut latest_attempt = job_attempt(job.latest().clone());
    if let State::Retrying { until } = job.state {
        latest_attempt.next_retry_at = Some(time(until));
    }
    let cost = job.cost().map(|bill| JobCost { estimated: bill.estimated.0, actual: bill.actual.0 });
    let discarded = match job.state {
        State::Failed { discarded, .. } => discarded,
        State::Pending { .. }
        | State::Queued { .. }
        | State::Running { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Canceled => None,
    };
    let spec = Arc::unwrap_or_clone(job.spec);
    let run_at = spec.run_at.filter(|_| !spec.is_template()).map(time);
    JobDetail {
        summary,
        retry: retry(&spec),
        payload: spec.payload,
        run_at,
        timeout_ms: Some(spec.timeout_ms).filter(|ms| *ms > 0),
        unique_for_ms: Some(spec.unique_for_ms).filter(|ms| *ms > 0),
        limit_key: spec.limit_key,
        account: spec.account,
        cost,
        memo: job.memo,
        discarded,
        latest_attempt,
    }
}

fn retry(spec: &JobSpec) -> JobRetry {
    JobRetry {
        max: Some(spec.attempts_max() - 1),
        delay_ms: Some(spec.backoff.base_ms),
        backoff: Some(match spec.backoff.kind {
            Backoff::Fixed => BackoffKind::Fixed,
            Backoff::Exponential => BackoffKind::Exponential,
        }),
        cap_ms: Some(spec.backoff.cap_ms),
        jitter: Some(spec.backoff.jitter),
    }
}

/// One attempt at a job.
pub(crate) fn job_attempt(attempt: Attempt) -> JobAttempt<RawJson> {
    JobAttempt {
        attempt: attempt.number,
        status: attempt_status(attempt.status),
        worker_id: attempt.worker,
        created_at: time(attempt.created_at),
        started_at: attempt.started_at.map(time),
        finished_at: attempt.finished_at.map(time),
        result: attempt.result,
        error: attempt.error.as_ref().map(job_fault),
        next_retry_at: attempt.next_retry_at.map(time),
    }
}
