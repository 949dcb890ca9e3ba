//! What time does to jobs: leases and time limits run out, waits end.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use windlass_engine::id::JobId;
use windlass_engine::input::Outcome;
use windlass_engine::job::{Job, JobInput, State};
use windlass_engine::retry::FaultKind;
use windlass_engine::time::{LATEST, Timestamp};
use windlass_store::StoreError;
use windlass_store::commit::JobChange;
use windlass_store::job::JobRow;

use super::change::{Ended, moved};
use super::many::each;
use super::with_ready_jobs;
use crate::log::Log;
use crate::{Runtime, RuntimeError};

/// How often the store is asked whether something got lost. Nothing should: it is told in memory of everything.
const SWEEP_MS: u64 = 60_000;
/// When to try again what the store could not take.
const AGAIN_MS: u64 = 1_000;
/// How long, at most, a worker has to be heard of again after a time without a server.
const GRACE_MS_MAX: u64 = 30_000;
/// Jobs that are looked at together.
const AT_ONCE: usize = 500;
/// Wake-ups that are read from the store at once.
const WAKES: usize = 10_000;
/// Rows that are read, and runs that are told, at once.
const OPEN_MAX: usize = 64;

impl Runtime {
    /// Looks at jobs when their time has come.
    pub(crate) async fn keep_jobs(self) {
        loop {
            let wait = self.clock().until(self.next_job_wake());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.jobs().sooner.notified() => continue,
                () = self.stopped() => return,
            }
            if self.reap_due().await {
                continue;
            }
            // What the store did not take is still the first thing that it says is due.
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(AGAIN_MS)) => {}
                () = self.stopped() => return,
            }
        }
    }

    fn next_job_wake(&self) -> Timestamp {
        let sweep_at = Timestamp(self.jobs().sweep_at.load(Ordering::Relaxed));
        self.jobs().dispatch.next_wake().map_or(sweep_at, |at| at.min(sweep_at))
    }

    /// Does to jobs what time asks for; `false` = for some it could not be done.
    pub(super) async fn reap_due(&self) -> bool {
        let now = self.clock().now();
        self.jobs().dispatch.open_limits(now);
        if self.jobs().sweep_at.load(Ordering::Relaxed) <= now.0 {
            self.look_for_jobs(now).await;
            self.look_for_wakes(now).await;
        } else if self.jobs().dispatch.ask_for_wakes(now) {
            self.look_for_wakes(now).await;
        }
        let mut is_done = true;
        loop {
            let due = self.jobs().dispatch.due(now, AT_ONCE);
            if due.is_empty() {
                return is_done;
            }
            is_done &= self.reap(due).await;
        }
    }

    /// Asks whether there are ready jobs that nobody told of.
    async fn look_for_jobs(&self, now: Timestamp) {
        if !self.is_alone() {
            return self.jobs().dispatch.doubt();
        }
        match self.store().queues(now).await {
            Ok(queues) => self.jobs().dispatch.doubt_queues(&with_ready_jobs(queues)),
            Err(error) => tracing::warn!(%error, "queues could not be looked through"),
        }
    }

    async fn look_for_wakes(&self, now: Timestamp) {
        if let Err(error) = self.load_wakes().await {
            tracing::warn!(%error, "the wake-ups of jobs could not be read; they are read again");
            self.jobs().sweep_at.store(now.after(AGAIN_MS).0, Ordering::Relaxed);
        }
    }

    /// Reads the earliest wake-ups from the store: other servers may have some of them too.
    pub(super) async fn load_wakes(&self) -> Result<(), RuntimeError> {
        let wakes = self.store().due(LATEST, WAKES).await?.jobs;
        let wakes: Vec<(Timestamp, JobId)> = wakes
            .into_iter()
            .map(|wake| (wake.at.after(self.peers().delay_ms(wake.id.uuid())), wake.id))
            .collect();
        self.jobs().dispatch.heard_wakes(&wakes, wakes.len() < WAKES);
        self.jobs().sweep_at.store(self.clock().now().after(SWEEP_MS).0, Ordering::Relaxed);
        Ok(())
    }

    /// Looks at these jobs. Whatever happens, each of them has its next wake-up afterwards, if it needs one. `false` =
    /// some could not be looked at.
    async fn reap(&self, due: Vec<JobId>) -> bool {
        let (now, mut is_done) = (self.clock().now(), true);
        let (mut changes, mut together, mut ends) = (Vec::new(), Vec::new(), Vec::new());
        for (id, row) in due.iter().zip(self.rows(due.clone()).await) {
            let Some(row) = row else {
                // It could not be read: neither gone nor looked at.
                self.jobs().dispatch.wake(*id, Some(now.after(AGAIN_MS)));
                is_done = false;
                continue;
            };
            let Some(row) = row else { continue };
            let change = self.overdue(&row.job, now).and_then(|input| moved(&row, input, now).ok().flatten());
            match change {
                None => self.jobs().dispatch.wake(*id, row.job.wake_at()),
                Some(change) if row.origin.call.is_some() && !change.job.is_open() => {
                    ends.push((row, change))
                }
                Some(change) => {
                    together.push(*id);
                    changes.push(change);
                }
            }
        }
        for (id, answer) in together.into_iter().zip(self.commit_jobs(changes).await) {
            is_done &= match answer {
                Ok(()) => true,
                Err(StoreError::Conflict { .. }) => self.look_again(id).await,
                Err(error) => self.reap_later(id, &error),
            };
        }
        let ended = each(ends, OPEN_MAX, |(row, change)| {
            let runtime = self.clone();
            async move { runtime.reap_call(&row, change).await }
        });
        ended.await.into_iter().all(|ended| ended == Some(true)) && is_done
    }

    /// What time asks of a job. A lease from before this server is not over while its worker, which had nobody to
    /// talk to, has not had the time to be heard of.
    fn overdue(&self, job: &Job, now: Timestamp) -> Option<JobInput> {
        let input = job.overdue(now)?;
        let JobInput::LeaseExpired { fence } = input else { return Some(input) };
        let left = heard_by(job, self.life_row().row.started_at).map_or(0, |until| until.since(now));
        Some(if left > 0 { JobInput::Extend { fence, lease_ms: left } } else { input })
    }

    /// Ends a job of a run whose time is over; `false` = that could not be done.
    async fn reap_call(&self, row: &JobRow, change: JobChange) -> bool {
        let outcome = outcome(&change.job);
        match self.end_job(row, change, outcome, None, Log::default()).await {
            Ok(Ended::Yes | Ended::Unwanted) => true,
            Ok(Ended::Outdated) => self.look_again(row.id()).await,
            Err(error) => self.reap_later(row.id(), &error),
        }
    }

    /// Somebody else wrote first. `false` = what they wrote could not be read.
    async fn look_again(&self, id: JobId) -> bool {
        match self.reload(id).await {
            // Even if it was known already, its wake-up was taken out.
            Ok(Some(row)) => self.jobs().dispatch.wake(id, row.job.wake_at()),
            Ok(None) => {}
            Err(error) => return self.reap_later(id, &error),
        }
        true
    }

    /// Leaves a job for later, and says that it is not done.
    fn reap_later(&self, id: JobId, error: &dyn std::fmt::Display) -> bool {
        tracing::warn!(job = %id, %error, "a job that is due could not be looked at; it is tried again");
        self.jobs().dispatch.wake(id, Some(self.clock().now().after(AGAIN_MS)));
        false
    }

    /// Jobs as they are kept, or as they are stored; nothing for those that could not be read.
    async fn rows(&self, ids: Vec<JobId>) -> Vec<Option<Option<Arc<JobRow>>>> {
        let mut rows: Vec<_> = ids.iter().map(|id| Some(self.jobs().dispatch.row(*id))).collect();
        let missing = rows.iter().zip(&ids).enumerate();
        let missing: Vec<(usize, JobId)> =
            missing.filter(|(_, (row, _))| **row == Some(None)).map(|(at, (_, id))| (at, *id)).collect();
        let read = |(at, id)| {
            let runtime = self.clone();
            async move { (at, runtime.reload(id).await.ok()) }
        };
        for (at, row) in each(missing, OPEN_MAX, read).await.into_iter().flatten() {
            rows[at] = row;
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

/// What a run is told of a job whose time is over.
fn outcome(job: &Job) -> Outcome {
    match &job.latest().error {
        Some(fault) if fault.kind == FaultKind::Lost => Outcome::WorkerLost,
        Some(fault) => Outcome::Failed(fault.clone()),
        // It was to stop, and had its time.
        None => Outcome::Canceled,
    }
}
