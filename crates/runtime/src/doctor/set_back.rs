//! Repair of a store after a clock that was wrong: stored times that are ahead of the wall clock are set back.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::id::CommandId;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::{Order, Part};
use windlass_store::store::SetBack;

use super::PAGE_SIZE;
use crate::RuntimeError;
use crate::clock::Clock;
use crate::ctx::sync_clock;

/// The result of a repair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SetBackReport {
    /// The wall clock, to which times were set back.
    pub now: Timestamp,
    /// Open jobs whose leases, retries and waits are that much earlier.
    pub n_open_jobs: usize,
    /// Rows with times that were ahead.
    pub rows: SetBack,
}

/// Sets stored times back that are ahead of the wall clock, in a store that no server uses. Journals are left as they
/// are: a run that waits notes in its journal that its times are set back, when the next server wakes it.
pub async fn set_back_at_rest(store: Arc<dyn Store>) -> Result<SetBackReport, RuntimeError> {
    let clock = Clock::default();
    sync_clock(&clock, &*store).await?;
    let now = clock.wall();
    let n_open_jobs = set_open_jobs_back(&*store, now).await?;
    Ok(SetBackReport { now, n_open_jobs, rows: store.set_back(now).await? })
}

async fn set_open_jobs_back(store: &dyn Store, now: Timestamp) -> Result<usize, RuntimeError> {
    let (project, mut n) = (Project::DEFAULT, 0);
    let statuses = JobStatus::ALL.into_iter().filter(|status| status.is_open()).collect();
    let part = Part { order: Order::Oldest, limit: PAGE_SIZE, ..Part::default() };
    let mut query = JobQuery { statuses, part, ..JobQuery::default() };
    loop {
        let page = store.jobs(&project, query.clone()).await?;
        let jobs: Vec<JobChange> = page
            .items
            .into_iter()
            .filter_map(|mut row| {
                let is_ahead = row.job.set_back(now);
                is_ahead.then_some(JobChange { expected_rev: row.rev, job: row.job, origin: row.origin })
            })
            .collect();
        n += jobs.len();
        if !jobs.is_empty() {
            let commit = Commit { jobs, ..Commit::new(&project, CommandId::new(Uuid::now_v7()), now) };
            store.commit_one(commit).await?;
        }
        match page.next {
            Some(next) => query.part.cursor = Some(next),
            None => return Ok(n),
        }
    }
}
