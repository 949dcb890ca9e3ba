//! Claims: a worker asks for jobs and gets some at once, or waits for some.
//!
//! A claim is a state machine. `ClaimState` names its states; `ClaimTask::step` performs one state and returns the next.
//!
//! ```text
//!                  every other claim of queues and services
//!    claim ──┬──────────────────────────────► PopRedis ── jobs ──► Done
//!            │                                   │ none
//!            ▼                                   ▼
//!   ┌──────► Take ◄──────────────────────────────┘
//!   │         │
//!   │         ├─ jobs ────────────────────────► Grant ─── claimed ─────────────► Done
//!   ├─────────┼────────────────── lost to others ─┘
//!   │         ├─ the store may have more ─────► Read
//!   ├─────────┼──────────────────────── read ─────┘
//!   │         ├─ nothing ─────────────────────► Wait ──── jobs from Redis, or too late ──► Done
//!   ├─────────┼── woken, or a worker drains ──────┘
//!   │         ├─ too many claims wait ────────► Crowded ─ jobs from Redis, or no wait ───► Done
//!   │         │                                   └────── otherwise ───────────► error: busy
//!   │         ├─ all jobs in memory are held back by limits: read more
//!   └─────────┘
//! ```
//!
//! A worker that drains gets an empty answer, and a server that drains an error; `Take` checks both.

mod grant;
mod pop;
mod turn;

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use windlass_queue::{ClaimQuery, StoreRead, StoreReadQuery, StoreReadResult, TakeResult, TakenJobs, Waiter};
use windlass_store::StoreError;

use super::{CLAIM_MAX, CLAIM_NAMES_MAX, ClaimRequest, LeasedJob, WAIT_MAX};
use crate::RuntimeError;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

use grant::ClaimWriter;

/// When to come again while too many claims wait.
const CROWDED_RETRY: Duration = Duration::from_secs(1);
/// When a waiting claim asks the store again although it was not woken, while the index is incomplete.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Reads in a row by one claim while limits hold back every job that was read: enough to go around a million limit
/// keys.
const READS_MAX: usize = 1_000;

/// The states of a claim; the module's header draws them.
enum ClaimState<'a> {
    /// Pops jobs from Redis before it asks the dispatcher.
    PopRedis,
    /// Asks the dispatcher for jobs.
    Take,
    /// Commits the claims of jobs that the dispatcher handed out.
    Grant(TakenJobs),
    /// Reads ready jobs from the store into the dispatcher's index.
    Read(StoreRead<'a>),
    /// Waits until the dispatcher wakes it, with a last look into Redis.
    Wait(Waiter<'a>),
    /// Too many claims wait already.
    Crowded,
    Done(Vec<LeasedJob>),
}

/// How a wait for jobs ended.
enum WaitEnd {
    TimedOut,
    /// There may be jobs.
    Woken,
    /// A worker is told to drain, perhaps this one.
    WorkerDrains,
}

/// One claim on its way through its states.
struct ClaimTask<'a> {
    jobs: &'a Jobs,
    writer: ClaimWriter,
    query: Arc<ClaimQuery>,
    max: usize,
    /// The worker accepts to wait.
    waits: bool,
    begun: Instant,
    until: Instant,
    drain_notices: watch::Receiver<()>,
    /// Ask whether the worker drains before the next take.
    check_drain: bool,
    /// The place in the dispatcher's wait queue, once it waited.
    ticket: Option<u64>,
    /// The dispatcher may answer that the store has to be read first.
    may_read: bool,
    n_reads: usize,
}

impl Jobs {
    /// Hands out jobs; waits for some when there are none. A worker that drains gets none, at once.
    pub async fn claim(&self, claim: ClaimRequest) -> Result<Vec<LeasedJob>, RuntimeError> {
        ClaimTask::new(self, claim, false).run().await
    }

    /// The same; heartbeats of the worker keep the leases.
    pub(super) async fn claim_kept_by_beats(
        &self,
        claim: ClaimRequest,
    ) -> Result<Vec<LeasedJob>, RuntimeError> {
        ClaimTask::new(self, claim, true).run().await
    }

    /// Reads more ready jobs in the background when few are left in memory.
    fn read_ahead(&self, query: &Arc<ClaimQuery>) {
        if !self.state().dispatch.is_low(query) {
            return;
        }
        let (jobs, query) = (self.clone(), query.clone());
        self.tasks().spawn(async move {
            let Some(fill) = jobs.state().dispatch.read_ahead(&query, jobs.clock().now()) else {
                return;
            };
            if let Err(error) = jobs.read_ready(fill).await {
                tracing::warn!(%error, "ready jobs could not be read ahead");
            }
        });
    }

    /// Answers the dispatcher's questions from the store.
    async fn read_ready(&self, mut fill: StoreRead<'_>) -> Result<(), StoreError> {
        while let Some(question) = fill.query(self.clock().now()) {
            fill.add_result(match question {
                StoreReadQuery::Ready(query) => {
                    StoreReadResult::Ready(self.store().ready(self.project(), query).await?)
                }
                StoreReadQuery::ReadyByKey(query) => {
                    StoreReadResult::ReadyByKey(self.store().ready_by_key(self.project(), query).await?)
                }
                StoreReadQuery::Held(queue) => {
                    StoreReadResult::Held(self.store().held(self.project(), queue).await?)
                }
            });
        }
        Ok(())
    }
}

impl<'a> ClaimTask<'a> {
    fn new(jobs: &'a Jobs, claim: ClaimRequest, kept_by_beats: bool) -> Self {
        let begun = Instant::now();
        let lease_ms = u64::try_from(claim.lease.as_millis()).unwrap_or(u64::MAX);
        ClaimTask {
            jobs,
            writer: ClaimWriter { jobs: jobs.clone(), worker: claim.worker.into(), lease_ms, kept_by_beats },
            query: Arc::new(ClaimQuery { queues: first(claim.queues), services: first(claim.services) }),
            max: claim.max.clamp(1, CLAIM_MAX),
            waits: !claim.wait.is_zero(),
            begun,
            until: begun + claim.wait.min(WAIT_MAX),
            drain_notices: jobs.workers().drain_notices(),
            check_drain: true,
            ticket: None,
            may_read: true,
            n_reads: 0,
        }
    }

    async fn run(mut self) -> Result<Vec<LeasedJob>, RuntimeError> {
        let mut state = self.begin();
        loop {
            state = match state {
                ClaimState::Done(claimed) => return Ok(claimed),
                state => self.step(state).await?,
            };
        }
    }

    /// The first state: every other claim that names queues and services begins with Redis, so that neither starves.
    fn begin(&self) -> ClaimState<'a> {
        let Some(relay) = &self.jobs.state().relay else { return ClaimState::Take };
        let is_mixed = !self.query.services.is_empty() && !self.query.queues.is_empty();
        if is_mixed && relay.next_mixed().is_multiple_of(2) { ClaimState::PopRedis } else { ClaimState::Take }
    }

    async fn step(&mut self, state: ClaimState<'a>) -> Result<ClaimState<'a>, RuntimeError> {
        match state {
            ClaimState::PopRedis => {
                let popped = self.writer.claim_via_redis(&self.query, self.max).await?;
                Ok(popped.map_or(ClaimState::Take, ClaimState::Done))
            }
            ClaimState::Take => self.take(),
            ClaimState::Grant(taken) => self.grant(taken).await,
            ClaimState::Read(fill) => {
                self.jobs.read_ready(fill).await?;
                self.n_reads += 1;
                // The jobs that were read are handed out before more are read.
                self.may_read = false;
                Ok(ClaimState::Take)
            }
            ClaimState::Wait(waiter) => self.wait(waiter).await,
            ClaimState::Crowded => match self.writer.claim_via_redis(&self.query, self.max).await? {
                Some(claimed) => Ok(ClaimState::Done(claimed)),
                None if self.waits => Err(RuntimeError::Busy { retry_after: CROWDED_RETRY }),
                None => Ok(ClaimState::Done(Vec::new())),
            },
            ClaimState::Done(claimed) => Ok(ClaimState::Done(claimed)),
        }
    }

    fn take(&mut self) -> Result<ClaimState<'a>, RuntimeError> {
        if self.jobs.state().closed.is_cancelled() {
            return Err(RuntimeError::Draining);
        }
        // Only at first and after a notice: a claim that was woken for a job takes it, since no other was woken for it.
        if std::mem::take(&mut self.check_drain)
            && self.jobs.workers().is_worker_draining(&self.writer.worker)
        {
            return Ok(ClaimState::Done(Vec::new()));
        }
        let (dispatch, now) = (&self.jobs.state().dispatch, self.jobs.clock().now());
        Ok(match dispatch.take(&self.query, self.max, self.may_read, self.ticket, now) {
            TakeResult::Jobs(taken) => ClaimState::Grant(taken),
            TakeResult::Read(fill) => ClaimState::Read(fill),
            // Limits hold back every job that was read, and the store has more.
            TakeResult::Wait(waiter)
                if !self.may_read && !waiter.is_complete() && self.n_reads < READS_MAX =>
            {
                (self.ticket, self.may_read) = (Some(waiter.waiter()), true);
                ClaimState::Take
            }
            TakeResult::Wait(waiter) => ClaimState::Wait(waiter),
            TakeResult::Crowded => ClaimState::Crowded,
        })
    }

    async fn grant(&mut self, taken: TakenJobs) -> Result<ClaimState<'a>, RuntimeError> {
        if taken.is_sooner {
            self.jobs.state().sooner.notify_one();
        }
        self.jobs.read_ahead(&self.query);
        let claimed = self.writer.grant(taken).await?;
        if claimed.is_empty() {
            self.may_read = true;
            return Ok(ClaimState::Take);
        }
        // A claim that waited may have been woken for another job, which is left to another claim then.
        self.ticket.inspect(|_| self.jobs.state().dispatch.pass_on(&self.query));
        Ok(ClaimState::Done(claimed))
    }

    async fn wait(&mut self, waiter: Waiter<'a>) -> Result<ClaimState<'a>, RuntimeError> {
        self.ticket = Some(waiter.waiter());
        // The claim is registered as waiting now, so a job that reaches Redis after this look wakes it.
        if let Some(claimed) = self.writer.claim_via_redis(&self.query, self.max).await? {
            return Ok(ClaimState::Done(claimed));
        }
        // While another claim reads the store, an empty answer would be premature.
        let until =
            if waiter.is_complete() { self.until } else { self.until.max(self.begun + RECHECK_INTERVAL) };
        self.may_read = true;
        match self.wait_for_jobs(waiter, until).await {
            WaitEnd::TimedOut => return Ok(ClaimState::Done(Vec::new())),
            WaitEnd::Woken => {}
            WaitEnd::WorkerDrains => self.check_drain = true,
        }
        Ok(ClaimState::Take)
    }

    async fn wait_for_jobs(&mut self, mut waiter: Waiter<'a>, until: Instant) -> WaitEnd {
        if Instant::now() >= until {
            return WaitEnd::TimedOut;
        }
        let is_complete = waiter.is_complete() && !waiter.is_shared();
        let recheck_at = if is_complete { until } else { until.min(Instant::now() + RECHECK_INTERVAL) };
        tokio::select! {
            biased;
            // A waiter that is dropped before it heard of its job leaves the job to another. The sender lives as long
            // as the server.
            _ = self.drain_notices.changed() => WaitEnd::WorkerDrains,
            () = waiter.woken() => WaitEnd::Woken,
            () = self.jobs.state().closed.cancelled() => WaitEnd::Woken,
            () = tokio::time::sleep_until(recheck_at) => {
                if recheck_at < until { WaitEnd::Woken } else { WaitEnd::TimedOut }
            }
        }
    }
}

/// As many names as a claim may ask for.
fn first(mut names: Vec<String>) -> Vec<String> {
    names.truncate(CLAIM_NAMES_MAX);
    names
}
