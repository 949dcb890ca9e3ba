//! Handlers that serve services in this process: a worker that lives in the server.
//!
//! Handlers receive jobs like any worker, so leases, retries, suspensions, cancels and other servers need no rules of
//! their own; see ADR 8.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinHandle;
use windlass_engine::input::CallOutcome;
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::weight::Excess;
use windlass_store::worker::{WorkerBeat, WorkerRow};

use crate::RuntimeError;
use crate::calls::Calls;
use crate::calls::function::{Function, FunctionCall};
use crate::calls::log::{Log, Logger};
use crate::jobs::{CLAIM_MAX, ClaimRequest, ClaimVerdict, JobEnd, LeasedJob};
use crate::part::RuntimePart;
use crate::workers::BeatVerdict;

/// How long a job is kept from others after this server has died with it.
const LEASE: Duration = Duration::from_secs(10);
/// How long one claim waits for work.
const WAIT: Duration = Duration::from_secs(20);
/// How long to wait after the store could not be asked.
const PAUSE: Duration = Duration::from_millis(500);
/// How often an end is reported again while the store fails; after that the lease runs out and the job comes back.
const TELLINGS: u32 = 20;

impl Calls {
    /// Serves the services of registered handlers until the server stops.
    pub(crate) async fn serve_handlers(self) {
        let services: Vec<String> = self.settings().functions.services().map(str::to_owned).collect();
        if services.is_empty() {
            return;
        }
        let id = format!("{}-handlers-{}", self.settings().name, self.epoch());
        let slots = Arc::new(Semaphore::new(self.settings().handlers_max.max(1)));
        self.tasks().spawn(self.clone().show_handlers(id.clone(), services.clone()));
        let mut drained = self.workers().drain_notices();
        loop {
            let claimed = tokio::select! {
                claimed = self.claim_for_handlers(&id, &services, &slots) => claimed,
                () = self.stopped() => return,
            };
            match claimed {
                // A claim would return at once, again and again.
                Ok((jobs, _)) if jobs.is_empty() && self.workers().is_worker_draining(&id) => {
                    tokio::select! {
                        changed = drained.changed() => changed.expect("the state lives as long as the runtime"),
                        () = self.stopped() => return,
                    }
                }
                Ok((jobs, mut permits)) => {
                    for job in jobs {
                        let permit = permits.split(1);
                        self.tasks().spawn(self.clone().handle(job, id.clone(), permit));
                    }
                }
                Err(RuntimeError::Draining) => return,
                Err(error) => {
                    tracing::warn!(%error, "no jobs could be claimed for handlers, will try again");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Sends heartbeats like any worker, so that the list of workers shows the handlers of this server.
    async fn show_handlers(self, id: String, services: Vec<String>) {
        let every = self.settings().worker_ttl / 3;
        loop {
            let now = self.clock().now();
            let beat = WorkerBeat { id: id.clone(), url: None, load: None, at: now };
            let verdict = self.workers().beat(beat, "").await;
            if !matches!(verdict, Ok(BeatVerdict::Known)) {
                let row = WorkerRow {
                    id: id.clone(),
                    name: self.settings().name.clone(),
                    url: String::new(),
                    kind: "handlers".to_owned(),
                    services: services.clone(),
                    queues: Vec::new(),
                    load: 0,
                    capacity: i64::try_from(self.settings().handlers_max).unwrap_or(i64::MAX),
                    is_draining: false,
                    peer: String::new(),
                    replaced: Vec::new(),
                    secret: None,
                    registered_at: now,
                    beat_at: now,
                };
                if let Err(error) = self.workers().register(row).await {
                    tracing::warn!(%error, "the handlers of this server could not be shown, will try again");
                }
            }
            tokio::select! {
                () = tokio::time::sleep(every) => {}
                () = self.stopped() => return,
            }
        }
    }

    /// As many jobs as there are free slots, with the slots.
    async fn claim_for_handlers(
        &self,
        id: &str,
        services: &[String],
        slots: &Arc<Semaphore>,
    ) -> Result<(Vec<LeasedJob>, OwnedSemaphorePermit), RuntimeError> {
        let first = slots.clone().acquire_owned().await;
        let mut permits = first.expect("the slots of handlers are never closed");
        let more = u32::try_from(slots.available_permits().min(CLAIM_MAX - 1)).unwrap_or(0);
        if let Ok(rest) = slots.clone().try_acquire_many_owned(more) {
            permits.merge(rest);
        }
        let claim = ClaimRequest {
            worker: id.to_owned(),
            queues: Vec::new(),
            services: services.to_vec(),
            max: permits.num_permits(),
            wait: WAIT,
            lease: LEASE,
        };
        Ok((self.jobs().claim(claim).await?, permits))
    }

    /// Runs the handler of one job, extends its lease meanwhile, and reports its end.
    async fn handle(self, job: LeasedJob, id: String, _slot: Option<OwnedSemaphorePermit>) {
        self.state().n_handling.fetch_add(1, Ordering::Relaxed);
        let logger = Logger::default();
        let work = self.begin(&job, logger.clone());
        if let Some(outcome) = self.follow(&job, work).await {
            self.tell_end(&job, outcome, logger.take(), &id).await;
        }
        self.state().n_handling.fetch_sub(1, Ordering::Relaxed);
    }

    /// The handler at work, on a task of its own: a panic ends no more than this call.
    fn begin(&self, job: &LeasedJob, logger: Logger) -> JoinHandle<CallOutcome> {
        let LeasedJob { service, attempt, key, input, params, memo, deadline, call, .. } = job.clone();
        let (run, node) = call.map(|call| (call.run, call.node)).unzip();
        let memo = memo.filter(|memo| !memo.is_null()).map(Arc::new);
        let function = self.settings().functions.find(&service).cloned();
        let input = Arc::new(input.value());
        let call = FunctionCall { service, run, node, attempt, key, input, params, memo, deadline, logger };
        tokio::spawn(async move {
            match function {
                Some(Function::Slow(function)) => function(call).await,
                Some(Function::Quick(function)) => function(&call),
                None => CallOutcome::Failed(Fault::new(FaultKind::Error, "its handler is gone")),
            }
        })
    }

    /// Waits for the end of the work and extends its lease; `None` = the job is lost to this server, so its end is not
    /// reported.
    async fn follow(&self, job: &LeasedJob, mut work: JoinHandle<CallOutcome>) -> Option<CallOutcome> {
        loop {
            tokio::select! {
                ended = &mut work => {
                    let panicked = || format!("the handler of `{}` panicked; see the server's log", job.service);
                    return Some(ended.unwrap_or_else(|_| {
                        CallOutcome::Failed(Fault::new(FaultKind::Error, panicked()))
                    }));
                }
                () = tokio::time::sleep(LEASE / 3) => {}
                () = self.stopped() => {
                    // Left to the next server, which finds the lease run out.
                    work.abort();
                    return None;
                }
            }
            match self.jobs().extend(vec![(job.job, job.fence)], LEASE).await.pop() {
                Some(Ok(ClaimVerdict::Canceled)) => {
                    work.abort();
                    return Some(CallOutcome::Canceled);
                }
                Some(Ok(ClaimVerdict::Lost)) => {
                    work.abort();
                    return None;
                }
                Some(Ok(ClaimVerdict::Ok)) | None => {}
                Some(Err(error)) => {
                    tracing::warn!(job = %job.job, %error, "a lease could not be extended, will try again");
                }
            }
        }
    }

    async fn tell_end(&self, job: &LeasedJob, outcome: CallOutcome, log: Log, id: &str) {
        let outcome = written(outcome);
        for _ in 0..TELLINGS {
            let end = JobEnd {
                job: job.job,
                fence: job.fence,
                outcome: outcome.clone(),
                worker: Some(id.to_owned()),
                log: log.clone(),
                retry_after_ms: None,
            };
            match self.jobs().finish(vec![end]).await.pop() {
                Some(Err(error)) => {
                    tracing::warn!(job = %job.job, %error, "the end of a job was not taken, will try again");
                }
                Some(Ok(_)) | None => return,
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                () = self.stopped() => return,
            }
        }
    }
}

/// The outcome with its result as text. A result that is nested too deep for readers of JSON is a failure.
fn written(outcome: CallOutcome) -> CallOutcome<RawJson> {
    match outcome.map_result(|result| RawJson::from(&*result)) {
        CallOutcome::Done(result) if result.weigh() == Err(Excess::Deep) => {
            let message = format!("its result {}: flatten it", Excess::Deep);
            CallOutcome::Failed(Fault::new(FaultKind::Error, message).permanent())
        }
        outcome => outcome,
    }
}
