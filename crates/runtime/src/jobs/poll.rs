//! Claims of workers that poll: they work for minutes on a job and never extend its lease.
//!
//! A worker that sends heartbeats keeps its jobs by them: a job is lost two TTLs of a worker after the last heartbeat,
//! and never before the shortest lease. Any other worker has each job for the setting `poll_lease`. Heartbeats write
//! nothing to jobs: a lease is short, and at its end the worker's last heartbeat says how long it goes on.

use std::time::Duration;

use windlass_engine::counter::Fence;
use windlass_engine::job::{Job, LEASE_MS_DEFAULT, State};
use windlass_engine::time::Timestamp;
use windlass_store::StoreError;
use windlass_store::worker::WorkerRow;

use super::{ClaimRequest, ClaimVerdict, Jobs, LeasedJob};
use crate::part::RuntimePart;
use crate::{RuntimeError, Settings};

/// The shortest lease of a job that a worker polled.
const LEASE_MIN: Duration = Duration::from_millis(LEASE_MS_DEFAULT);

impl Jobs {
    /// Hands out one job to a worker that polls, if there is one. `lease_until` is the end as known now.
    pub async fn poll(
        &self,
        worker: String,
        services: Vec<String>,
    ) -> Result<Option<LeasedJob>, RuntimeError> {
        let lease = lease_of_beats(self.settings());
        let claim = ClaimRequest {
            worker: worker.clone(),
            queues: Vec::new(),
            services,
            max: 1,
            wait: Duration::ZERO,
            lease: lease.min(self.settings().poll_lease),
        };
        let Some(mut claimed) = self.claim_kept_by_beats(claim).await?.into_iter().next() else {
            return Ok(None);
        };
        let row = self.workers().worker(&worker).await?;
        let kept_until = kept_until(claimed.started_at, row.as_ref(), self.settings());
        claimed.lease_until = claimed.lease_until.max(kept_until);
        Ok(Some(claimed))
    }

    /// A sign of life of a polled job: its lease begins anew.
    pub async fn keep_polled(&self, job: &Job, fence: Fence) -> Result<ClaimVerdict, RuntimeError> {
        let row = match holder(job) {
            Some(worker) => self.workers().worker(worker).await?,
            None => None,
        };
        let settings = self.settings();
        let lease = if row.is_some_and(|row| has_beaten(&row)) {
            lease_of_beats(settings)
        } else {
            settings.poll_lease.max(LEASE_MIN)
        };
        let extended = self.extend(vec![(job.id, fence)], lease).await.into_iter().next();
        extended.unwrap_or(Err(RuntimeError::Broken))
    }

    /// Until when an expired lease goes on, by the last heartbeat of its worker; `None` = heartbeats do not keep it.
    pub(super) async fn polled_until(&self, job: &Job) -> Result<Option<Timestamp>, StoreError> {
        let (Some(worker), Some(started_at)) = (holder(job), job.latest().started_at) else {
            return Ok(None);
        };
        // Another server may have received a heartbeat that this one has not read yet.
        let row = self.workers().stored_worker(worker).await?;
        Ok(Some(kept_until(started_at, row.as_ref(), self.settings())))
    }
}

/// The worker of a job whose lease heartbeats keep.
fn holder(job: &Job) -> Option<&str> {
    match &job.state {
        State::Running { worker, kept_by_beats: true, .. } => Some(worker),
        State::Running { kept_by_beats: false, .. }
        | State::Pending { .. }
        | State::Queued { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Canceled => None,
    }
}

/// How long a heartbeat keeps a job.
fn lease_of_beats(settings: &Settings) -> Duration {
    settings.worker_ttl.saturating_mul(2).max(LEASE_MIN)
}

fn has_beaten(row: &WorkerRow) -> bool {
    row.beat_at > row.registered_at
}

/// Until when a worker keeps a job that it took at `started_at`. Heartbeats of a worker that registered later say
/// nothing about the job: the process that took it may be gone.
fn kept_until(started_at: Timestamp, worker: Option<&WorkerRow>, settings: &Settings) -> Timestamp {
    let ms = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    match worker.filter(|row| has_beaten(row) && row.registered_at <= started_at) {
        Some(row) => {
            let by_beats = row.beat_at.after(ms(settings.worker_ttl.saturating_mul(2)));
            by_beats.max(started_at.after(ms(LEASE_MIN)))
        }
        None => started_at.after(ms(settings.poll_lease)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(registered_at: i64, beat_at: i64) -> WorkerRow {
        WorkerRow {
            id: "w".to_owned(),
            name: "w".to_owned(),
            url: String::new(),
            kind: "async".to_owned(),
            services: Vec::new(),
            queues: Vec::new(),
            load: 0,
            capacity: 0,
            is_draining: false,
            peer: String::new(),
            replaced: Vec::new(),
            secret: None,
            registered_at: Timestamp(registered_at),
            beat_at: Timestamp(beat_at),
        }
    }

    #[test]
    fn heartbeats_keep_a_job_and_other_workers_have_it_for_the_setting() {
        let settings = Settings::default();
        let until = |row: Option<WorkerRow>| kept_until(Timestamp(1_000), row.as_ref(), &settings).0;
        assert_eq!(until(Some(row(0, 500))), 31_000, "never before the shortest lease");
        assert_eq!(until(Some(row(0, 200_000))), 230_000, "two TTLs after the last heartbeat");
        assert_eq!(until(Some(row(0, 0))), 601_000, "it never sent a heartbeat");
        assert_eq!(until(None), 601_000, "it never registered");
        assert_eq!(until(Some(row(2_000, 900_000))), 601_000, "it began anew after it took the job");
    }
}
