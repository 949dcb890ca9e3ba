//! Durable claims: the jobs that the dispatcher chose become committed leases. A job with a failed commit goes back to
//! the dispatcher, or is read again when another server changed it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::oneshot;
use windlass_engine::id::JobId;
use windlass_engine::job::{JobInput, State};
use windlass_engine::params::Params;
use windlass_engine::raw_json::RawJson;
use windlass_engine::time::Timestamp;
use windlass_queue::TakenJobs;
use windlass_store::StoreError;
use windlass_store::blob::{self, FoundBlobs, StoredCall};
use windlass_store::commit::JobChange;
use windlass_store::error::Subject;
use windlass_store::job::{JobRow, ReadyQuery, due_at};
use windlass_store::queue::Spent;

use crate::RuntimeError;
use crate::jobs::change::moved;
use crate::jobs::{Jobs, JobsState, LeasedJob};
use crate::part::{Inner, RuntimePart};

/// How long a job that another server is writing rests before it is handed out again.
const HELD_DELAY: Duration = Duration::from_millis(50);

/// Writes claims for one worker. It is cloned into tasks that complete even when the worker's request goes away.
#[derive(Clone)]
pub(super) struct ClaimWriter {
    pub(super) jobs: Jobs,
    pub(super) worker: Arc<str>,
    pub(super) lease_ms: u64,
    pub(super) kept_by_beats: bool,
}

impl RuntimePart for ClaimWriter {
    fn inner(&self) -> &Arc<Inner> {
        self.jobs.inner()
    }
}

impl ClaimWriter {
    pub(super) fn state(&self) -> &JobsState {
        self.jobs.state()
    }

    /// Makes the claims durable. If the request goes away meanwhile, the jobs are released.
    pub(super) async fn grant(&self, taken: TakenJobs) -> Result<Vec<LeasedJob>, RuntimeError> {
        let (reply, granted) = oneshot::channel();
        let writer = self.clone();
        self.tasks().spawn(async move {
            let granted = writer.write_claims(taken).await;
            if let Err(Ok(claimed)) = reply.send(granted) {
                writer.release(claimed).await;
            }
        });
        granted.await.unwrap_or(Err(RuntimeError::Broken))
    }

    pub(super) async fn write_claims(&self, taken: TakenJobs) -> Result<Vec<LeasedJob>, RuntimeError> {
        let now = self.clock().now();
        let (mut changes, mut claims, mut stale) = (Vec::new(), Vec::new(), Vec::new());
        let blobs = match self.blobs_of(&taken.rows).await {
            Ok(blobs) => blobs,
            Err(error) => {
                self.state().dispatch.put_back(&taken.rows);
                return Err(error.into());
            }
        };
        for row in &taken.rows {
            match self.granted(row, now) {
                Some(change) => match claimed(&change, &blobs) {
                    Ok(claimed) => {
                        claims.push((row, claimed));
                        changes.push(change);
                    }
                    Err(error) => {
                        // It comes back when the server starts again; other jobs must not wait for it.
                        tracing::error!(job = %row.id(), %error, "a job cannot be handed out: its call cannot be read");
                        self.state().dispatch.give_up(row);
                    }
                },
                None => stale.push(row.clone()),
            }
        }
        let (mut done, mut started, mut trouble) = (Vec::new(), Vec::new(), None);
        let answers = if taken.turns.is_empty() {
            tokio::join!(self.jobs.commit_claims(changes), self.save_spent(taken.spent, now)).0
        } else {
            self.commit_turns(changes, &taken.turns, taken.spent, now).await
        };
        for ((row, claimed), answer) in claims.into_iter().zip(answers) {
            match answer {
                Ok(()) => {
                    let wait_ms = due_at(&row.job).map_or(0, |due| now.since(due));
                    started.push((row.job.spec.queue.as_str(), wait_ms));
                    done.push(claimed);
                }
                // Another server had the turn at the queue: its running jobs are counted again before this job is
                // handed out.
                Err(StoreError::Conflict { what: Subject::Queue(_), .. }) => {
                    self.state().lost.turns.fetch_add(1, Ordering::Relaxed);
                    self.state().dispatch.put_back(std::slice::from_ref(row));
                }
                Err(StoreError::Conflict { .. }) => {
                    self.state().lost.to_others.fetch_add(1, Ordering::Relaxed);
                    stale.push(row.clone());
                }
                Err(error @ (StoreError::Damaged(_) | StoreError::Corrupt(_))) => {
                    // Its row shares a damaged page. The next claim takes the jobs behind it.
                    tracing::error!(job = %row.id(), %error, "a job is set aside: its claim cannot be written");
                    self.state().dispatch.give_up(row);
                    trouble = Some(error);
                }
                Err(error) => {
                    self.state().dispatch.put_back(std::slice::from_ref(row));
                    trouble = Some(error);
                }
            }
        }
        self.stats().record_claims(started, now);
        trouble = self.check_stale(stale).await.or(trouble);
        match trouble {
            Some(error) if done.is_empty() => Err(error.into()),
            Some(_) | None => Ok(done),
        }
    }

    /// The large parameters of calls: jobs of one run share them.
    async fn blobs_of(&self, rows: &[Arc<JobRow>]) -> Result<FoundBlobs, StoreError> {
        let hashes = blob::blobs_of_jobs(rows.iter().map(|row| &**row));
        if hashes.is_empty() {
            return Ok(FoundBlobs::new());
        }
        self.store().blobs(self.project(), hashes).await
    }

    /// Reads jobs with a failed claim, and updates the dispatcher; `Some` = they could not be read.
    async fn check_stale(&self, stale: Vec<Arc<JobRow>>) -> Option<StoreError> {
        match self.unchanged(&stale).await {
            Ok(held) => {
                self.put_back_later(held);
                None
            }
            // Handed out again, their claim fails again, and they are read then.
            Err(error) => {
                self.state().dispatch.put_back(&stale);
                Some(error)
            }
        }
    }

    /// Jobs that are still stored as they were handed out: another server is just writing them. The dispatcher learns
    /// the stored state of the others.
    async fn unchanged(&self, rows: &[Arc<JobRow>]) -> Result<Vec<Arc<JobRow>>, StoreError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids = rows.iter().map(|row| row.id()).collect();
        let query = ReadyQuery { ids, now: self.clock().now(), limit: rows.len(), ..ReadyQuery::default() };
        let found = self.store().ready(self.project(), query).await?.into_iter();
        let mut found: HashMap<JobId, JobRow> = found.map(|row| (row.id(), row)).collect();
        let (mut held, dispatch) = (Vec::new(), &self.state().dispatch);
        for row in rows {
            match found.remove(&row.id()) {
                Some(stored) if stored.rev == row.rev => held.push(row.clone()),
                Some(stored) => {
                    // The dispatcher had a revision that the store never took.
                    if stored.rev < row.rev {
                        dispatch.forget(row.id());
                    }
                    self.state().offer_rows([stored]);
                }
                // It is claimed or has ended; the server that wrote that keeps its wake-up.
                None => dispatch.give_up(row),
            }
        }
        Ok(held)
    }

    /// Hands these jobs out again after a moment, when the other server's write is over.
    fn put_back_later(&self, rows: Vec<Arc<JobRow>>) {
        if rows.is_empty() {
            return;
        }
        let writer = self.clone();
        self.tasks().spawn(async move {
            tokio::time::sleep(HELD_DELAY).await;
            let held = writer.unchanged(&rows).await.unwrap_or(rows);
            writer.state().dispatch.put_back(&held);
        });
    }

    /// Writes the consumed tokens of rate limits, so that a restart does not refill the buckets.
    pub(super) async fn save_spent(&self, spent: Vec<Spent>, now: Timestamp) {
        if spent.is_empty() {
            return;
        }
        if let Err(error) = self.store().save_spent(self.project(), spent, now).await {
            tracing::warn!(%error, "the used tokens of a rate could not be written; a restart would refill the bucket");
        }
    }

    /// Releases claims that no worker heard of. If that cannot be written, the leases run out.
    pub(super) async fn release(&self, claims: Vec<LeasedJob>) {
        let now = self.clock().now();
        let back = |claim: LeasedJob| {
            let row = self.state().dispatch.row(claim.job)?;
            moved(&row, JobInput::Release { fence: claim.fence }, now).ok().flatten()
        };
        let answers = self.jobs.commit_jobs(claims.into_iter().filter_map(back).collect()).await;
        for error in answers.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "a job could not be given back; its lease runs out");
        }
    }

    /// The job in the hands of the worker; `None` = it cannot be claimed.
    fn granted(&self, row: &JobRow, now: Timestamp) -> Option<JobChange> {
        // The store counts a job as ready as soon as its wait is over; its row may still say that it waits.
        let due = row.job.overdue(now).and_then(|input| moved(row, input, now).ok().flatten());
        let due = due.map(|change| JobRow { rev: row.rev, job: change.job, origin: change.origin });
        let (worker, lease_ms) = (self.worker.to_string(), self.lease_ms);
        let claim = if self.kept_by_beats {
            JobInput::ClaimKeptByBeats { worker, lease_ms }
        } else {
            JobInput::Claim { worker, lease_ms }
        };
        moved(due.as_ref().unwrap_or(row), claim, now).ok().flatten()
    }
}

/// The claim as its worker receives it.
fn claimed(change: &JobChange, blobs: &FoundBlobs) -> Result<LeasedJob, StoreError> {
    let job = &change.job;
    let (lease_until, deadline) = match &job.state {
        State::Running { lease_until, deadline, .. } => (*lease_until, *deadline),
        State::Pending { .. }
        | State::Queued { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Canceled => (job.updated_at, None),
    };
    let JobInputs { input, params, attempt, key } = inputs(change, blobs)?;
    Ok(LeasedJob {
        job: job.id,
        fence: job.fence,
        attempt,
        key,
        queue: job.spec.queue.clone(),
        service: job.spec.name.clone(),
        priority: job.spec.priority,
        input,
        params,
        memo: job.memo.clone(),
        created_at: job.created_at,
        started_at: job.latest().started_at.unwrap_or(job.updated_at),
        lease_until,
        deadline,
        call: change.origin.call.clone(),
    })
}

struct JobInputs {
    input: RawJson,
    params: Params,
    attempt: u32,
    key: String,
}

/// The inputs of the worker: the payload of a plain job, or the fields of a run's call in it.
fn inputs(change: &JobChange, blobs: &FoundBlobs) -> Result<JobInputs, StoreError> {
    let (payload, latest) = (&change.job.spec.payload, change.job.latest());
    if change.origin.call.is_none() {
        let (params, key) = (Params::default(), change.job.id.to_string());
        return Ok(JobInputs { input: payload.clone(), params, attempt: latest.number, key });
    }
    let call = StoredCall::read(payload)?;
    let params = call.params(blobs)?;
    Ok(JobInputs { input: call.input, params, attempt: call.attempt, key: call.key })
}
