//! Signs of life of workers: their claims go on, and they hear which of them nobody wants any more.

use std::collections::HashSet;
use std::time::Duration;

use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobInput};
use windlass_store::StoreError;

use super::Verdict;
use super::change::moved;
use super::finish::{AGAIN, TRIES, refused};
use super::many::each;
use crate::{Runtime, RuntimeError};

/// Claims that are read from the store at once.
const AT_ONCE: usize = 32;

impl Runtime {
    /// Keeps claims alive, each for itself, and says which of them nobody wants any more.
    pub async fn extend(
        &self,
        claims: Vec<(JobId, u64)>,
        lease: Duration,
    ) -> Vec<Result<Verdict, RuntimeError>> {
        let lease_ms = u64::try_from(lease.as_millis()).unwrap_or(u64::MAX);
        let (n, runtime) = (claims.len(), self.clone());
        // A task of its own: whoever goes away meanwhile leaves nothing half done.
        let all = self.tasks().spawn(async move { runtime.extend_all(claims, lease_ms).await });
        all.await.unwrap_or_else(|_| std::iter::repeat_with(|| Err(RuntimeError::Broken)).take(n).collect())
    }

    async fn extend_all(
        &self,
        claims: Vec<(JobId, u64)>,
        lease_ms: u64,
    ) -> Vec<Result<Verdict, RuntimeError>> {
        let now = self.clock().now();
        let mut answers: Vec<_> = claims.iter().map(|_| Err(RuntimeError::Broken)).collect();
        let mut seen: HashSet<JobId> = HashSet::new();
        let (mut changes, mut together, mut alone) = (Vec::new(), Vec::new(), Vec::new());
        for (at, (job, fence)) in claims.into_iter().enumerate() {
            let row = self.jobs().dispatch.row(job).filter(|_| seen.insert(job));
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
            let runtime = self.clone();
            async move { (at, runtime.extend_one(job, fence, lease_ms).await) }
        };
        for (at, answer) in each(alone, AT_ONCE, extend).await.into_iter().flatten() {
            answers[at] = answer;
        }
        answers
    }

    async fn extend_one(&self, job: JobId, fence: u64, lease_ms: u64) -> Result<Verdict, RuntimeError> {
        for _ in 0..TRIES {
            let Some(row) = self.reload(job).await? else { return Ok(Verdict::Lost) };
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
        Err(RuntimeError::Busy { retry_after: AGAIN })
    }
}

/// What a worker is told that holds its job.
fn alive(job: &Job) -> Verdict {
    if job.cancel_requested() { Verdict::Canceled } else { Verdict::Ok }
}
