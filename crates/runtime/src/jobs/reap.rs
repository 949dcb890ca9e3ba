//! Expiry of jobs: leases, time limits and waits end here.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use windlass_engine::id::JobId;
use windlass_engine::input::CallOutcome;
use windlass_engine::job::{Job, JobInput, State};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::FaultKind;
use windlass_engine::time::{LATEST, Timestamp};
use windlass_store::StoreError;
use windlass_store::commit::JobChange;
use windlass_store::job::JobRow;
use windlass_store::page::NameRange;

use super::change::{EndOutcome, moved};
use super::with_ready_jobs;
use crate::RuntimeError;
use crate::bounded::map_concurrent;
use crate::calls::log::Log;
use crate::jobs::JobsState;
use crate::part::{RuntimePart, part};

/// How often the store is swept for lost wake-ups; normally the dispatcher knows all of them.
const SWEEP_MS: u64 = 60_000;
/// The delay before a failed write is retried.
const RETRY_MS: u64 = 1_000;
/// The longest grace for the heartbeat of a worker after a time without a server.
const GRACE_MS_MAX: u64 = 30_000;
/// Jobs that are expired together.
const BATCH_MAX: usize = 500;
/// Wake-ups that are read from the store at once.
const READ_LIMIT: usize = 10_000;
/// Rows that are read, and runs that are updated, at once.
const CONCURRENCY: usize = 64;

/// A due job, as far as it could be read.
enum DueRow {
    Found(Arc<JobRow>),
    Gone,
    /// The store could not be read.
    Unread,
}

part! {
    /// The task that expires leases, time limits and waits of jobs.
    pub(crate) Reaper, jobs: JobsState
}

impl Reaper {
    /// Looks at jobs when their time has come.
    pub(crate) async fn reap_loop(self) {
        loop {
            tokio::select! {
                () = self.clock().sleep_until(self.next_job_wake()) => {}
                () = self.state().sooner.notified() => continue,
                () = self.stopped() => return,
            }
            if self.reap_due().await {
                continue;
            }
            // A job that the store did not take is still the first due one.
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(RETRY_MS)) => {}
                () = self.stopped() => return,
            }
        }
    }

    fn next_job_wake(&self) -> Timestamp {
        let sweep_at = Timestamp(self.state().sweep_at.load(Ordering::Relaxed));
        self.state().dispatch.next_wake().map_or(sweep_at, |at| at.min(sweep_at))
    }

    /// Handles all due jobs; `false` = some failed.
    pub(super) async fn reap_due(&self) -> bool {
        let now = self.clock().now();
        self.state().dispatch.refill_limits(now);
        if self.state().sweep_at.load(Ordering::Relaxed) <= now.0 {
            self.look_for_jobs(now).await;
            self.look_for_wakes(now).await;
        } else if self.state().dispatch.needs_wakes(now) {
            self.look_for_wakes(now).await;
        }
        let mut is_done = true;
        loop {
            let due = self.state().dispatch.due(now, BATCH_MAX);
            if due.is_empty() {
                return is_done;
            }
            is_done &= self.reap(due).await;
        }
    }

    /// Checks the store for ready jobs that the index does not know.
    async fn look_for_jobs(&self, now: Timestamp) {
        if self.is_shared() {
            return self.state().dispatch.invalidate();
        }
        match self.store().queues(self.project(), NameRange::All, now).await {
            Ok(queues) => self.state().dispatch.invalidate_queues(&with_ready_jobs(queues)),
            Err(error) => tracing::warn!(%error, "queues could not be looked through"),
        }
    }

    async fn look_for_wakes(&self, now: Timestamp) {
        if let Err(error) = self.load_wakes().await {
            tracing::warn!(%error, "the wake-ups of jobs could not be read; they are read again");
            self.state().sweep_at.store(now.after(RETRY_MS).0, Ordering::Relaxed);
        }
    }

    /// Reads the earliest wake-ups from the store: other servers may have some of them too.
    pub(super) async fn load_wakes(&self) -> Result<(), RuntimeError> {
        let wakes = self.store().due(LATEST, READ_LIMIT).await?.jobs;
        let wakes: Vec<(Timestamp, JobId)> = wakes
            .into_iter()
            .map(|wake| (wake.at.after(self.cluster().delay_ms(wake.id.uuid())), wake.id))
            .collect();
        self.state().dispatch.add_wakes(&wakes, wakes.len() < READ_LIMIT);
        self.state().sweep_at.store(self.clock().now().after(SWEEP_MS).0, Ordering::Relaxed);
        Ok(())
    }

    /// Handles these jobs. Each of them has its next wake-up afterwards, if it needs one. `false` = some failed.
    async fn reap(&self, due: Vec<JobId>) -> bool {
        let (now, mut is_done) = (self.clock().now(), true);
        let (mut changes, mut together, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (id, row) in due.iter().zip(self.rows(due.clone()).await) {
            let row = match row {
                DueRow::Found(row) => row,
                DueRow::Gone => continue,
                DueRow::Unread => {
                    self.state().dispatch.wake(*id, Some(now.after(RETRY_MS)));
                    is_done = false;
                    continue;
                }
            };
            let input = match self.overdue(&row.job, now).await {
                Ok(input) => input,
                Err(error) => {
                    is_done &= self.reap_later(*id, &error);
                    continue;
                }
            };
            let change = input.and_then(|input| moved(&row, input, now).ok().flatten());
            match change {
                None => self.state().dispatch.wake(*id, row.job.wake_at()),
                Some(change) if row.origin.call.is_some() && !change.job.is_open() => {
                    ends.push((row, change))
                }
                Some(change) => {
                    together.push(*id);
                    changes.push(change);
                }
            }
        }
        for (id, answer) in together.into_iter().zip(self.jobs().commit_jobs(changes).await) {
            is_done &= match answer {
                Ok(()) => true,
                Err(StoreError::Conflict { .. }) => self.look_again(id).await,
                Err(error) => self.reap_later(id, &error),
            };
        }
        let ended = map_concurrent(ends, CONCURRENCY, |(row, change)| {
            let reaper = self.clone();
            async move { reaper.reap_call(&row, change).await }
        });
        ended.await.into_iter().all(|ended| ended == Some(true)) && is_done
    }

    /// The input for a due job. A lease from before this server's start is extended until its worker, which had no
    /// server to talk to, had the time for a heartbeat; a lease that heartbeats keep goes on with them.
    async fn overdue(&self, job: &Job, now: Timestamp) -> Result<Option<JobInput>, StoreError> {
        let Some(input) = job.overdue(now) else { return Ok(None) };
        let JobInput::LeaseExpired { fence } = input else { return Ok(Some(input)) };
        let heard_by = heard_by(job, self.ctx().server.started_at);
        let until = heard_by.max(self.jobs().polled_until(job).await?);
        let left = until.map_or(0, |until| until.since(now));
        Ok(Some(if left > 0 { JobInput::Extend { fence, lease_ms: left } } else { input }))
    }

    /// Ends an expired job of a run; `false` = that failed.
    async fn reap_call(&self, row: &JobRow, change: JobChange) -> bool {
        let outcome = outcome(&change.job);
        match self.jobs().end_job(row, change, outcome, None, Log::default()).await {
            Ok(EndOutcome::Yes | EndOutcome::Unwanted) => true,
            Ok(EndOutcome::Outdated) => self.look_again(row.id()).await,
            Err(error) => self.reap_later(row.id(), &error),
        }
    }

    /// Another writer was first. `false` = its row could not be read.
    async fn look_again(&self, id: JobId) -> bool {
        match self.jobs().reload(id).await {
            // Even if it was known already, its wake-up was taken out.
            Ok(Some(row)) => self.state().dispatch.wake(id, row.job.wake_at()),
            Ok(None) | Err(StoreError::Corrupt(_)) => {}
            Err(error) => return self.reap_later(id, &error),
        }
        true
    }

    /// Leaves a job for later, and says that it is not done.
    fn reap_later(&self, id: JobId, error: &dyn std::fmt::Display) -> bool {
        tracing::warn!(job = %id, %error, "a due job could not be expired; it is retried");
        self.state().dispatch.wake(id, Some(self.clock().now().after(RETRY_MS)));
        false
    }

    /// Jobs as the dispatcher has them, or as they are stored.
    async fn rows(&self, ids: Vec<JobId>) -> Vec<DueRow> {
        let (mut rows, mut missing) = (Vec::with_capacity(ids.len()), Vec::new());
        for (at, id) in ids.into_iter().enumerate() {
            match self.state().dispatch.row(id) {
                Some(row) => rows.push(DueRow::Found(row)),
                None => {
                    rows.push(DueRow::Unread);
                    missing.push((at, id));
                }
            }
        }
        let read = |(at, id)| {
            let jobs = self.jobs();
            async move { (at, jobs.reload(id).await) }
        };
        for (at, row) in map_concurrent(missing, CONCURRENCY, read).await.into_iter().flatten() {
            rows[at] = match row {
                Ok(Some(row)) => DueRow::Found(row),
                Ok(None) => DueRow::Gone,
                // The next sweep finds it again, in case that it can be read by then.
                Err(StoreError::Corrupt(_)) => DueRow::Gone,
                Err(_) => DueRow::Unread,
            };
        }
        rows
    }
}

/// Until when the worker of a job can be heard of again, if its claim was last written before the server started: for
/// as long as its lease was, within a bound.
fn heard_by(job: &Job, started_at: Timestamp) -> Option<Timestamp> {
    let State::Running { lease_until, .. } = &job.state else { return None };
    let lease_ms = lease_until.since(job.updated_at);
    (job.updated_at < started_at).then(|| started_at.after(lease_ms.min(GRACE_MS_MAX)))
}

/// The outcome of an expired job, for its run.
fn outcome(job: &Job) -> CallOutcome<RawJson> {
    match &job.latest().error {
        Some(fault) if fault.kind == FaultKind::Lost => CallOutcome::WorkerLost,
        Some(fault) => CallOutcome::Failed(fault.clone()),
        // It was to stop, and had its time.
        None => CallOutcome::Canceled,
    }
}
