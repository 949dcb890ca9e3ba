//! The pull loop of a worker: it claims jobs up to the free slots, extends their leases, and sends their results.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::Services;
use super::handler::{CallLogger, HandlerOutcome, ServiceCall};
use super::held_leases::{ClaimId, HeldLeases};
use super::result_sender::{EndedJob, ResultSender};
use super::slots::Slots;
use crate::contract::{ClaimRequest, ClaimResponse, ClaimedJob, ExtendRequest, LeaseVerdict};
use crate::{Client, ClientError};

/// Jobs that are asked for, extended or finished at once.
pub(super) const BATCH: usize = 500;
/// How long one claim waits for work. Short enough that a server which went away is noticed.
const WAIT_MS: u64 = 20_000;
/// The first pause after a call that failed; each next one is twice as long.
pub(super) const PAUSE: Duration = Duration::from_millis(100);
/// The longest pause.
pub(super) const PAUSE_MAX: Duration = Duration::from_secs(5);
/// How long an answer may be on its way when the worker is told to stop.
const ON_ITS_WAY: Duration = Duration::from_millis(200);

pub(super) struct Puller {
    pub(super) client: Client,
    pub(super) id: String,
    pub(super) services: Services,
    pub(super) slots: Arc<Slots>,
    pub(super) lease: Duration,
    pub(super) held: Arc<HeldLeases>,
    /// The time at which the worker stops, even with open calls.
    pub(super) end: CancellationToken,
}

impl Puller {
    /// Works until `shutdown`, and then on until everything that was claimed is handed in. When the server wants the
    /// worker to go, it cancels `shutdown` itself.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let this = Arc::new(self);
        let (ended, results) = mpsc::channel(this.slots.max().min(BATCH));
        let handed_in = this.end.child_token();
        let keeping = tokio::spawn(Arc::clone(&this).keep(handed_in.clone()));
        let telling = tokio::spawn(this.sender().run(results));
        let jobs = TaskTracker::new();
        let mut pause = PAUSE;
        while let Some(permit) = shutdown.run_until_cancelled(this.slots.pull.take_free(BATCH)).await {
            match this.claim_until(permit.num_permits(), &shutdown).await {
                None => break,
                Some(Ok(ClaimResponse { jobs: claimed, draining })) => {
                    pause = PAUSE;
                    this.take_all(claimed, permit, &jobs, &ended);
                    if draining {
                        tracing::info!(worker = %this.id, "the server wants this worker to go: it claims no more");
                        shutdown.cancel();
                    }
                }
                Some(Err(error)) => {
                    this.slots.pull.put_back(permit);
                    tracing::warn!(worker = %this.id, %error, "no jobs could be claimed, will try again");
                    let pause_now = error.retry_after.unwrap_or(pause).min(PAUSE_MAX);
                    shutdown.run_until_cancelled(tokio::time::sleep(pause_now)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                }
            }
        }
        jobs.close();
        jobs.wait().await;
        drop(ended);
        // Neither task panics; if one did, the leases bring everything back.
        let _ended = telling.await;
        handed_in.cancel();
        let _ended = keeping.await;
    }

    fn sender(&self) -> ResultSender {
        ResultSender {
            client: self.client.clone(),
            id: self.id.clone(),
            held: Arc::clone(&self.held),
            end: self.end.clone(),
        }
    }

    /// Claims jobs. At the shutdown it waits a moment longer for a response on its way; jobs of a later response return
    /// to the queue when their leases end.
    async fn claim_until(
        &self,
        max: usize,
        shutdown: &CancellationToken,
    ) -> Option<Result<ClaimResponse, ClientError>> {
        let mut claim = Box::pin(self.claim(max));
        match shutdown.run_until_cancelled(&mut claim).await {
            Some(claimed) => Some(claimed),
            None => tokio::time::timeout(ON_ITS_WAY, claim).await.ok(),
        }
    }

    async fn claim(&self, max: usize) -> Result<ClaimResponse, ClientError> {
        let claim = ClaimRequest {
            worker_id: self.id.clone(),
            queues: self.services.queues.keys().cloned().collect(),
            services: self.services.names().map(str::to_owned).collect(),
            max: Some(max),
            wait_ms: Some(WAIT_MS),
            lease_ms: Some(millis(self.lease)),
        };
        self.client.jobs().claim(&claim).await
    }

    fn take_all(
        self: &Arc<Self>,
        claimed: Vec<ClaimedJob>,
        mut permits: OwnedSemaphorePermit,
        jobs: &TaskTracker,
        ended: &mpsc::Sender<EndedJob>,
    ) {
        // A claim that got all that it asked for may have left jobs behind.
        if claimed.len() == permits.num_permits() {
            self.slots.grow();
        }
        for job in claimed {
            let claim = ClaimId { job: job.id.clone(), lease: job.lease.clone() };
            let cancel = self.held.take(claim.clone());
            let (this, ended, permit) = (Arc::clone(self), ended.clone(), permits.split(1));
            jobs.spawn(async move {
                let logger = CallLogger::default();
                let outcome = this.work(job, cancel, logger.clone()).await;
                // The slot is free before the result is sent, so that the next job need not wait; but not before the
                // channel has room for the result, so that unsent results do not pile up.
                let Ok(place) = ended.reserve().await else { return };
                if let Some(permit) = permit {
                    this.slots.pull.put_back(permit);
                }
                if this.held.has(&claim) {
                    place.send(EndedJob { claim, outcome, logs: logger.take() });
                }
            });
        }
        self.slots.pull.put_back(permits);
    }

    async fn work(&self, job: ClaimedJob, cancel: CancellationToken, logger: CallLogger) -> HandlerOutcome {
        let Some(handler) = self.services.of_job(&job.service, &job.queue) else {
            return HandlerOutcome::failed(format!("worker `{}` does not serve `{}`", self.id, job.service));
        };
        let deadline = job.deadline.and_then(|at| u64::try_from(at.0).ok()).map(Duration::from_millis);
        let deadline: Option<SystemTime> = deadline.and_then(|since| UNIX_EPOCH.checked_add(since));
        let call = ServiceCall {
            service: job.service,
            queue: Some(job.queue),
            run: job.run,
            node: job.node,
            call: job.call,
            input: job.input,
            params: job.params.into_iter().map(|(key, value)| (key, Arc::unwrap_or_clone(value))).collect(),
            memo: job.memo.filter(|memo| !memo.is_null()),
            key: job.key,
            attempt: job.attempt,
            priority: job.priority,
            deadline,
            cancel,
            logger,
        };
        handler.answer(call).await
    }

    /// Keeps leases alive at a third of their length, and passes on who is to stop.
    async fn keep(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = tokio::time::interval(self.lease / 3);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        while stop.run_until_cancelled(ticks.tick()).await.is_some() {
            for claims in self.held.claims().chunks(BATCH) {
                if let Err(error) = self.extend(claims).await {
                    tracing::warn!(worker = %self.id, %error, "leases could not be extended, will try again");
                }
            }
        }
    }

    async fn extend(&self, claims: &[ClaimId]) -> Result<(), ClientError> {
        let leases = claims.iter().map(|claim| claim.lease.clone()).collect();
        let extended =
            self.client.jobs().extend(&ExtendRequest { leases, lease_ms: Some(millis(self.lease)) }).await?;
        for (claim, said) in claims.iter().zip(extended.results) {
            match said.verdict {
                // Asked again at the next turn.
                LeaseVerdict::Ok | LeaseVerdict::Error => {}
                LeaseVerdict::Canceled => self.held.cancel(claim),
                LeaseVerdict::Lost => self.held.let_go(claim),
            }
        }
        Ok(())
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
