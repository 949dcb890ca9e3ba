//! Heartbeats of workers: their leases are extended, and they learn which jobs are canceled.

use std::collections::HashSet;
use std::time::Duration;

use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobInput};
use windlass_store::StoreError;

use super::ClaimVerdict;
use super::change::moved;
use super::finish::{ATTEMPTS_MAX, RETRY_DELAY, refused};
use crate::RuntimeError;
use crate::bounded::map_concurrent;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

/// Claims that are read from the store at once.
const CONCURRENCY: usize = 32;

impl Jobs {
    /// Extends leases, each on its own, and returns which jobs are canceled.
    pub async fn extend(
        &self,
        claims: Vec<(JobId, Fence)>,
        lease: Duration,
    ) -> Vec<Result<ClaimVerdict, RuntimeError>> {
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let (n, jobs) = (claims.len(), self.clone());
        // On a task of its own, so that a dropped request leaves nothing half done.
        let all = self.tasks().spawn(async move { jobs.extend_all(claims, lease_ms).await });
        all.await.unwrap_or_else(|_| std::iter::repeat_with(|| Err(RuntimeError::Broken)).take(n).collect())
    }

    async fn extend_all(
        &self,
        claims: Vec<(JobId, Fence)>,
        lease_ms: u64,
    ) -> Vec<Result<ClaimVerdict, RuntimeError>> {
        let now = self.clock().now();
        let mut answers: Vec<_> = claims.iter().map(|_| Err(RuntimeError::Broken)).collect();
        let mut seen: HashSet<JobId> = HashSet::new();
        let (mut changes, mut together, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (job, fence)) in claims.into_iter().enumerate() {
            let row = self.state().dispatch.row(job).filter(|_| seen.insert(job));
            let extend = JobInput::Extend { fence, lease_ms };
            match row.and_then(|row| moved(&row, extend, now).ok().flatten()) {
                Some(change) => {
                    together.push((at, job, fence, alive(&change.job)));
                    changes.push(change);
                }
                None => alone.push((at, job, fence)),
            }
        }
        for ((at, job, fence, verdict), answer) in together.into_iter().zip(self.commit_jobs(changes).await) {
            match answer {
                Ok(()) => answers[at] = Ok(verdict),
                Err(StoreError::Conflict { .. }) => alone.push((at, job, fence)),
                Err(error) => answers[at] = Err(error.into()),
            }
        }
        let extend = |(at, job, fence)| {
            let jobs = self.clone();
            async move { (at, jobs.extend_one(job, fence, lease_ms).await) }
        };
        for (at, answer) in map_concurrent(alone, CONCURRENCY, extend).await.into_iter().flatten() {
            answers[at] = answer;
        }
        answers
    }

    async fn extend_one(
        &self,
        job: JobId,
        fence: Fence,
        lease_ms: u64,
    ) -> Result<ClaimVerdict, RuntimeError> {
        for _ in 0..ATTEMPTS_MAX {
            let Some(row) = self.reload(job).await? else { return Ok(ClaimVerdict::Lost) };
            let change = match moved(&row, JobInput::Extend { fence, lease_ms }, self.clock().now()) {
                Err(_) => return Ok(refused(&row.job, fence)),
                // Its lease is longer than that already.
                Ok(None) => return Ok(alive(&row.job)),
                Ok(Some(change)) => change,
            };
            let verdict = alive(&change.job);
            match self.commit_jobs(vec![change]).await.pop().unwrap_or(Ok(())) {
                Ok(()) => return Ok(verdict),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY })
    }
}

/// The verdict for a worker that holds its job.
fn alive(job: &Job) -> ClaimVerdict {
    if job.cancel_requested() { ClaimVerdict::Canceled } else { ClaimVerdict::Ok }
}
