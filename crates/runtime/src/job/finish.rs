//! Ends: a worker says how its job went.

use std::collections::HashSet;
use std::time::Duration;

use windlass_engine::id::JobId;
use windlass_engine::input::Outcome;
use windlass_engine::job::{Job, JobInput, Outcome as JobOutcome, State, Verdict as Told};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::StoreError;
use windlass_store::job::JobRow;

use super::change::{Ended, moved};
use super::many::each;
use super::{Finish, Verdict};
use crate::call::unhurry;
use crate::{Runtime, RuntimeError};

/// Ends that are taken to their runs at once, of one request.
const AT_ONCE: usize = 256;
/// How often one is decided again: others write to a job a few times in its life, not all the time.
pub(super) const TRIES: usize = 10;
/// When to come again after that.
pub(super) const AGAIN: Duration = Duration::from_millis(500);
/// When a plain job that was suspended is asked about unless its worker says when: nobody reports to it.
const RECHECK_MS_DEFAULT: u64 = 30_000;

impl Runtime {
    /// Takes the ends of jobs, each for itself.
    pub async fn finish(&self, mut ends: Vec<Finish>) -> Vec<Result<Verdict, RuntimeError>> {
        for end in &mut ends {
            unhurry(&mut end.outcome);
            if let Outcome::Failed(fault) = &mut end.outcome {
                fault.retry_after_ms = end.retry_after_ms;
            }
        }
        let (n, runtime) = (ends.len(), self.clone());
        // A task of its own: whoever goes away meanwhile leaves nothing half done.
        let all = self.tasks().spawn(async move { runtime.finish_all(ends).await });
        all.await.unwrap_or_else(|_| std::iter::repeat_with(|| Err(RuntimeError::Broken)).take(n).collect())
    }

    /// Plain jobs in one commit; those of runs, and whatever turns out not to be simple, each for itself.
    async fn finish_all(&self, ends: Vec<Finish>) -> Vec<Result<Verdict, RuntimeError>> {
        let now = self.clock().now();
        let mut answers: Vec<_> = ends.iter().map(|_| Err(RuntimeError::Broken)).collect();
        let mut seen: HashSet<JobId> = HashSet::new();
        let (mut changes, mut together, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for (at, end) in ends.into_iter().enumerate() {
            let row = self.jobs().dispatch.row(end.job).filter(|row| row.origin.call.is_none());
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
            let runtime = self.clone();
            async move { (at, runtime.finish_one(end).await) }
        };
        for (at, answer) in each(alone, AT_ONCE, finish).await.into_iter().flatten() {
            answers[at] = answer;
        }
        answers
    }

    async fn finish_one(&self, end: Finish) -> Result<Verdict, RuntimeError> {
        for nth in 0..TRIES {
            let kept = self.jobs().dispatch.row(end.job).filter(|_| nth == 0);
            let is_kept = kept.is_some();
            let row = match kept {
                Some(row) => row,
                None => match self.reload(end.job).await? {
                    Some(row) => row,
                    None => return Ok(Verdict::Lost),
                },
            };
            let change = match moved(&row, asked(&row, &end), self.clock().now()) {
                // What is kept may be old: a no is never said without looking.
                Ok(None) | Err(_) if is_kept => continue,
                Ok(None) => return Ok(accepted(&row.job)),
                Err(_) => return Ok(refused(&row.job, end.fence)),
                Ok(Some(change)) => change,
            };
            let (verdict, worker) = (accepted(&change.job), end.worker.clone().or_else(|| holder(&row.job)));
            let unwanted = if verdict == Verdict::Canceled { verdict } else { Verdict::Lost };
            match self.end_job(&row, change, end.outcome.clone(), worker, end.log.clone()).await? {
                Ended::Yes => return Ok(verdict),
                Ended::Unwanted => return Ok(unwanted),
                Ended::Outdated => {}
            }
        }
        Err(RuntimeError::Busy { retry_after: AGAIN })
    }
}

fn asked(row: &JobRow, end: &Finish) -> JobInput {
    let outcome = recorded(&end.outcome, row.origin.call.is_some(), end.retry_after_ms);
    JobInput::Finish { fence: end.fence, outcome }
}

/// The outcome as the job keeps it. Of a call, the run alone decides about trying again or asking again, so the job
/// is over.
fn recorded(outcome: &Outcome, is_call: bool, retry_after_ms: Option<u64>) -> JobOutcome {
    match outcome {
        Outcome::Done(value) => JobOutcome::Done { result: (**value).clone() },
        Outcome::Suspended { memo, .. } if is_call => JobOutcome::Done { result: memo.clone() },
        Outcome::Suspended { memo, recheck_ms } => {
            let recheck_ms = recheck_ms.unwrap_or(RECHECK_MS_DEFAULT);
            JobOutcome::Suspended { memo: memo.clone(), recheck_ms }
        }
        Outcome::Failed(fault) => {
            let fault = fault.clone().after(None);
            let fault = if is_call { fault.permanent() } else { fault };
            JobOutcome::Failed { fault, retry_after_ms }
        }
        Outcome::Canceled | Outcome::WorkerLost | Outcome::ServerLost => {
            let fault = Fault::new(FaultKind::Canceled, "cancelled").permanent();
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
        | State::Cancelled => None,
    }
}

/// What a worker is told whose word was taken.
fn accepted(job: &Job) -> Verdict {
    if job.state == State::Cancelled { Verdict::Canceled } else { Verdict::Ok }
}

/// What a worker is told whose claim is not, or no longer, the job's.
pub(super) fn refused(job: &Job, fence: u64) -> Verdict {
    match job.verdict(fence) {
        Told::Canceled => Verdict::Canceled,
        Told::Go | Told::Done | Told::Stale => Verdict::Lost,
    }
}
