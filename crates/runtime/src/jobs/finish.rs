//! Ends of jobs, as workers report them. A job that carries a call of a run ends in the commit that tells the run.

use std::collections::HashSet;
use std::time::Duration;

use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::input::CallOutcome;
use windlass_engine::job::{Job, JobInput, JobOutcome, State, Verdict as JobVerdict};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::StoreError;
use windlass_store::job::JobRow;

use super::change::{EndOutcome, moved};
use super::{ClaimVerdict, JobEnd};
use crate::RuntimeError;
use crate::bounded::map_concurrent;
use crate::calls::raise_recheck_interval;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

/// Ends that are taken to their runs at once, of one request.
const CONCURRENCY: usize = 256;
/// How often one is decided again: other writers change a job a few times in all, not continuously.
pub(super) const ATTEMPTS_MAX: usize = 10;
/// When to come again after that.
pub(super) const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The default recheck interval of a suspended plain job: no report wakes it earlier.
const RECHECK_MS_DEFAULT: u64 = 30_000;

impl Jobs {
    /// Takes the ends of jobs, each for itself.
    pub async fn finish(&self, mut ends: Vec<JobEnd>) -> Vec<Result<ClaimVerdict, RuntimeError>> {
        for end in &mut ends {
            raise_recheck_interval(&mut end.outcome);
            if let CallOutcome::Failed(fault) = &mut end.outcome {
                fault.retry_after_ms = end.retry_after_ms;
            }
        }
        let (n, jobs) = (ends.len(), self.clone());
        // On a task of its own, so that a dropped request leaves nothing half done.
        let all = self.tasks().spawn(async move { jobs.finish_all(ends).await });
        all.await.unwrap_or_else(|_| std::iter::repeat_with(|| Err(RuntimeError::Broken)).take(n).collect())
    }

    /// Commits plain jobs together; jobs of runs, and those with a conflict, each on its own.
    async fn finish_all(&self, ends: Vec<JobEnd>) -> Vec<Result<ClaimVerdict, RuntimeError>> {
        let now = self.clock().now();
        let mut answers: Vec<_> = ends.iter().map(|_| Err(RuntimeError::Broken)).collect();
        let mut seen: HashSet<JobId> = HashSet::new();
        let (mut changes, mut together, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for (at, end) in ends.into_iter().enumerate() {
            let row = self.state().dispatch.row(end.job).filter(|row| row.origin.call.is_none());
            let row = row.filter(|_| seen.insert(end.job));
            match row.and_then(|row| moved(&row, asked(&row, &end), now).ok().flatten()) {
                Some(change) => {
                    together.push((at, end, accepted(&change.job)));
                    changes.push(change);
                }
                None => alone.push((at, end)),
            }
        }
        for ((at, end, verdict), answer) in together.into_iter().zip(self.commit_jobs(changes).await) {
            match answer {
                Ok(()) => answers[at] = Ok(verdict),
                Err(StoreError::Conflict { .. }) => alone.push((at, end)),
                Err(error) => answers[at] = Err(error.into()),
            }
        }
        let finish = |(at, end)| {
            let jobs = self.clone();
            async move { (at, jobs.finish_one(end).await) }
        };
        for (at, answer) in map_concurrent(alone, CONCURRENCY, finish).await.into_iter().flatten() {
            answers[at] = answer;
        }
        answers
    }

    async fn finish_one(&self, end: JobEnd) -> Result<ClaimVerdict, RuntimeError> {
        for nth in 0..ATTEMPTS_MAX {
            let kept = self.state().dispatch.row(end.job).filter(|_| nth == 0);
            let is_kept = kept.is_some();
            let row = match kept {
                Some(row) => row,
                None => match self.reload(end.job).await? {
                    Some(row) => row,
                    None => return Ok(ClaimVerdict::Lost),
                },
            };
            let change = match moved(&row, asked(&row, &end), self.clock().now()) {
                // The cached row may be old: a refusal is never based on it.
                Ok(None) | Err(_) if is_kept => continue,
                Ok(None) => return Ok(accepted(&row.job)),
                Err(_) => return Ok(refused(&row.job, end.fence)),
                Ok(Some(change)) => change,
            };
            let (verdict, worker) = (accepted(&change.job), end.worker.clone().or_else(|| holder(&row.job)));
            let unwanted = if verdict == ClaimVerdict::Canceled { verdict } else { ClaimVerdict::Lost };
            match self.end_job(&row, change, end.outcome.clone(), worker, end.log.clone()).await? {
                EndOutcome::Yes => return Ok(verdict),
                EndOutcome::Unwanted => return Ok(unwanted),
                EndOutcome::Outdated => {}
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY })
    }
}

fn asked(row: &JobRow, end: &JobEnd) -> JobInput {
    let outcome = recorded(&end.outcome, row.origin.call.is_some(), end.retry_after_ms);
    JobInput::Finish { fence: end.fence, outcome }
}

/// The outcome as the job stores it. A run decides itself about retries and rechecks of its calls, so the job of a call
/// is over.
fn recorded(outcome: &CallOutcome<RawJson>, is_call: bool, retry_after_ms: Option<u64>) -> JobOutcome {
    match outcome {
        CallOutcome::Done(result) => JobOutcome::Done { result: result.clone() },
        CallOutcome::Suspended { memo, .. } if is_call => JobOutcome::Done { result: memo.into() },
        CallOutcome::Suspended { memo, recheck_ms } => {
            let recheck_ms = recheck_ms.unwrap_or(RECHECK_MS_DEFAULT);
            JobOutcome::Suspended { memo: memo.clone(), recheck_ms }
        }
        CallOutcome::Failed(fault) => {
            let fault = fault.clone().after(None);
            let fault = if is_call { fault.permanent() } else { fault };
            JobOutcome::Failed { fault, retry_after_ms }
        }
        CallOutcome::Canceled | CallOutcome::WorkerLost | CallOutcome::ServerLost => {
            let fault = Fault::new(FaultKind::Canceled, "canceled").permanent();
            JobOutcome::Failed { fault, retry_after_ms: None }
        }
    }
}

fn holder(job: &Job) -> Option<String> {
    match &job.state {
        State::Running { worker, .. } => Some(worker.clone()),
        State::Pending { .. }
        | State::Queued { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Canceled => None,
    }
}

/// The verdict for a worker with an accepted end.
fn accepted(job: &Job) -> ClaimVerdict {
    if job.state == State::Canceled { ClaimVerdict::Canceled } else { ClaimVerdict::Ok }
}

/// The verdict for a worker without the current claim.
pub(super) fn refused(job: &Job, fence: Fence) -> ClaimVerdict {
    match job.verdict(fence) {
        JobVerdict::Canceled => ClaimVerdict::Canceled,
        JobVerdict::Go | JobVerdict::Done | JobVerdict::Stale => ClaimVerdict::Lost,
    }
}
