//! Workers: registration, heartbeats, draining, and the choice of a worker for each call.
//!
//! The store holds the workers of all servers; this server caches the live ones, because every call asks for one.
//! Registrations and heartbeats go to the store first. Those at other servers are read from there at intervals.

mod permit;
mod pool;
mod refused;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OnceCell, watch};
use windlass_engine::effect::CallSpec;
use windlass_engine::limits::NAME_BYTES;
use windlass_engine::time::Timestamp;
use windlass_store::page::NameRange;
use windlass_store::service::{LiveService, WaitingService};
use windlass_store::worker::{WorkerAddress, WorkerBeat, WorkerQuery, WorkerRow};
use windlass_store::{Refusal, StoreError};

use crate::calls::address::AddressPolicy;
use crate::part::{RuntimePart, part};
use crate::{RuntimeError, Settings};

pub(crate) use permit::{PermitError, WorkerPermit};
pub(crate) use pool::{ChosenWorker, NoWorker};
use pool::{PoolLimits, WorkerPool};
pub use refused::RefusedRegistration;
use refused::RefusedRegistrations;

/// Services, and queues, of one worker.
const NAMES_MAX: usize = 1_000;
/// When a worker that found no room should come again: by then a dead one may have been forgotten.
const RETRY_AFTER: Duration = Duration::from_secs(5);

/// Why a worker was not registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Its address may not be called.
    #[error("{0}")]
    Address(String),
    /// Its fields are invalid.
    #[error("{0}")]
    Invalid(String),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl From<StoreError> for RegisterError {
    fn from(error: StoreError) -> Self {
        RegisterError::Runtime(error.into())
    }
}

/// The answer to a heartbeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BeatVerdict {
    Known,
    /// The worker is not registered.
    Unknown,
    /// Another worker registered the id from another address.
    Lost,
}

/// The state of `Workers`.
#[derive(Debug)]
pub(crate) struct WorkersState {
    loaded: OnceCell<()>,
    pool: Mutex<WorkerPool>,
    refused: Mutex<RefusedRegistrations>,
    /// Held while all workers are read or one is drained, so that an older read does not undo a newer write.
    reading: tokio::sync::Mutex<()>,
    /// A worker was told to drain: every waiting claim checks whether it is its own.
    drained: watch::Sender<()>,
    /// Wakes the refresh loop: another server wrote workers or settings.
    look: Notify,
}

impl WorkersState {
    /// An empty pool: the store is read at the first call.
    pub(crate) fn new(settings: &Settings) -> Self {
        let limits = PoolLimits {
            service_calls: settings.service_calls_max,
            worker_calls: settings.worker_calls_max,
            ttl_ms: ttl_ms(settings),
            n_servers: 1,
        };
        WorkersState {
            loaded: OnceCell::new(),
            pool: Mutex::new(WorkerPool::new(limits)),
            refused: Mutex::default(),
            reading: tokio::sync::Mutex::new(()),
            drained: watch::Sender::new(()),
            look: Notify::new(),
        }
    }

    /// Everything under the lock is whole between two statements that can panic: there are none.
    fn pool(&self) -> MutexGuard<'_, WorkerPool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn refused(&self) -> MutexGuard<'_, RefusedRegistrations> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

part! {
    /// The owner of workers: which are registered, which live, and which gets the next call.
    pub Workers, workers: WorkersState
}

impl Workers {
    /// Notifies of every worker that begins or stops draining.
    pub(crate) fn drain_notices(&self) -> watch::Receiver<()> {
        self.state().drained.subscribe()
    }

    /// Divides the capacity of each worker between so many servers.
    pub(crate) fn set_servers(&self, n_servers: usize) {
        self.state().pool().shared_by(n_servers);
    }

    /// Reads workers and settings from the store soon: another server wrote some.
    pub(crate) fn refresh_soon(&self) {
        self.state().look.notify_one();
    }

    /// Registers a worker, or again. Returns the address of the live worker that it took the id from, if it did: the
    /// next heartbeat or claim of that one is refused.
    pub async fn register(&self, worker: WorkerRow) -> Result<Option<WorkerAddress>, RegisterError> {
        check_names(&worker).map_err(RegisterError::Invalid)?;
        self.check_address(&worker.id, &worker.kind, &worker.url).await?;
        let now = self.clock().now();
        // A worker from the future would live until then.
        let mut worker = WorkerRow {
            registered_at: worker.registered_at.min(now),
            beat_at: worker.beat_at.min(now),
            ..worker
        };
        self.load_workers().await?;
        if !self.state().pool().has_room(&worker.id, now) {
            return Err(RuntimeError::Busy { retry_after: RETRY_AFTER }.into());
        }
        let known = self.worker(&worker.id).await?.filter(|known| known.beat_at >= self.alive_since());
        let taken_from = known.and_then(|known| worker.take_over(known));
        self.store().save_worker(self.project(), worker.clone()).await?;
        self.relay().relay_beat(&worker.id);
        self.state().refused().forget(&worker.id);
        self.state().pool().put(worker, now);
        Ok(taken_from)
    }

    /// A heartbeat that comes from this network address.
    pub async fn beat(&self, beat: WorkerBeat, peer: &str) -> Result<BeatVerdict, RegisterError> {
        let Some(known) = self.worker(&beat.id).await? else { return Ok(BeatVerdict::Unknown) };
        if known.has_replaced(beat.url.as_deref(), peer) {
            return Ok(BeatVerdict::Lost);
        }
        let now = self.clock().now();
        // A heartbeat without an address does not remove the address of the worker.
        let url = beat.url.filter(|url| !url.is_empty() && *url != known.url);
        if let Some(url) = &url {
            self.check_address(&known.id, &known.kind, url).await?;
        }
        let beat = WorkerBeat { url, at: beat.at.min(now), ..beat };
        match self.store().beat_worker(self.project(), beat.clone()).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::UnknownWorker(_))) => return Ok(BeatVerdict::Unknown),
            Err(error) => return Err(error.into()),
        }
        self.relay().relay_beat(&beat.id);
        let mut pool = self.state().pool();
        if !pool.beat(&beat, now) {
            // It registered with another server, or was forgotten as dead.
            pool.put(known, now);
            pool.beat(&beat, now);
        }
        Ok(BeatVerdict::Known)
    }

    /// Whether another worker took this id from the worker that claims from this network address.
    pub fn is_replaced(&self, id: &str, peer: &str) -> bool {
        self.state().pool().worker(id).is_some_and(|row| row.has_replaced(None, peer))
    }

    /// Gives a worker no more work, so that it ends when its jobs are done; or gives it work again. Registering again
    /// does so too. `false` = the worker is not registered.
    pub async fn drain_worker(&self, id: &str, is_draining: bool) -> Result<bool, RuntimeError> {
        let _nobody_reads = self.state().reading.lock().await;
        match self.store().drain_worker(self.project(), id, is_draining).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::UnknownWorker(_))) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.state().pool().drain(id, is_draining, self.clock().now());
        self.state().drained.send_replace(());
        Ok(true)
    }

    /// Whether a worker is to go, as far as this server knows.
    pub fn is_worker_draining(&self, id: &str) -> bool {
        self.state().pool().worker(id).is_some_and(|row| row.is_draining)
    }

    /// Workers that match, dead or alive, by id.
    pub async fn list(&self, query: WorkerQuery) -> Result<Vec<WorkerRow>, RuntimeError> {
        Ok(self.store().workers(self.project(), query).await?)
    }

    /// Sets how many calls of single services this server makes at once, instead of the limit of all services.
    pub(crate) fn limit_services(&self, calls_max: HashMap<String, u32>) {
        let now = self.clock().now();
        self.state().pool().limit_services(calls_max, now);
    }

    /// Calls of services that wait for a free push worker of this server, by name.
    pub fn waiting_calls(&self) -> BTreeMap<String, usize> {
        self.state().pool().waiting()
    }

    /// Services whose jobs wait for a worker, by name.
    pub async fn waiting_services(&self, names: NameRange) -> Result<Vec<WaitingService>, RuntimeError> {
        Ok(self.store().waiting_services(self.project(), names, self.clock().now()).await?)
    }

    /// Registrations that this server refused because of the address, the latest first.
    pub fn refused(&self) -> Vec<RefusedRegistration> {
        self.state().refused().list()
    }

    /// Services that live workers serve, by name.
    pub async fn live_services(&self, names: NameRange) -> Result<Vec<LiveService>, RuntimeError> {
        Ok(self.store().live_services(self.project(), self.alive_since(), names).await?)
    }

    /// The earliest last heartbeat of a live worker.
    pub fn alive_since(&self) -> Timestamp {
        Timestamp(self.clock().now().0.saturating_sub_unsigned(ttl_ms(self.settings())))
    }

    /// The least loaded live worker of a service.
    pub async fn allocate(&self, service: &str) -> Result<Option<WorkerRow>, RuntimeError> {
        self.load_workers().await?;
        Ok(self.state().pool().allocate(service, self.clock().now()))
    }

    /// Whether the service of a call has a live worker that it has not been made to within this try.
    pub(crate) fn has_other_worker(&self, spec: &CallSpec, called: &str) -> bool {
        let tried: Vec<&str> = spec.avoid.iter().map(String::as_str).chain([called]).collect();
        self.state().pool().has_other(&spec.service, &tried, self.clock().now())
    }

    /// Reads workers, and settings that other servers wrote, until the server stops.
    pub(crate) async fn refresh_loop(self) {
        loop {
            self.refresh_workers().await;
            if self.is_shared()
                && let Err(error) = self.refresh_settings().await
            {
                tracing::warn!(%error, "settings of other servers could not be read, will try again");
            }
            tokio::select! {
                () = tokio::time::sleep(self.settings().worker_refresh) => {}
                () = self.state().look.notified() => {}
                () = self.stopped() => return,
            }
        }
    }

    /// Reads settings of services and queues, which may have been changed through another server.
    async fn refresh_settings(&self) -> Result<(), RuntimeError> {
        self.calls().load_services().await?;
        self.jobs().load_queue_settings().await?;
        Ok(())
    }

    /// Reads the heartbeats that other servers received, and removes dead workers.
    pub(crate) async fn refresh_workers(&self) {
        if let Err(error) = self.read_workers().await {
            tracing::warn!(%error, "workers could not be read, will try again");
            self.state().pool().tidy(self.clock().now());
        }
    }

    async fn read_workers(&self) -> Result<(), RuntimeError> {
        let reading = self.state().reading.lock().await;
        let now = self.clock().now();
        let query = WorkerQuery { alive_since: Some(self.alive_since()), ..WorkerQuery::default() };
        let rows = self.store().workers(self.project(), query).await?;
        let n_alive = rows.len();
        let mut pool = self.state().pool();
        let is_told = |row: &WorkerRow, pool: &WorkerPool| {
            pool.worker(&row.id).is_some_and(|known| known.is_draining != row.is_draining)
        };
        // Another server may have changed whether a worker drains.
        if rows.iter().any(|row| is_told(row, &pool)) {
            self.state().drained.send_replace(());
        }
        let n_known = rows.into_iter().map(|row| pool.put(row, now)).filter(|known| *known).count();
        pool.tidy(now);
        drop(pool);
        drop(reading);
        if n_known < n_alive {
            tracing::warn!(
                n_alive,
                n_known,
                "more workers live than one server can know: some are not called"
            );
        }
        Ok(())
    }

    async fn load_workers(&self) -> Result<(), RuntimeError> {
        let load = || async {
            self.expect_workers().await?;
            self.read_workers().await
        };
        self.state().loaded.get_or_try_init(load).await.copied()
    }

    /// While no server ran, no worker could send a heartbeat: each has the usual time for it from the start of this
    /// server. Until then a worker is not called, since it may be dead, but calls wait for it.
    async fn expect_workers(&self) -> Result<(), RuntimeError> {
        let until = self.ctx().server.started_at.after(ttl_ms(self.settings()));
        if self.clock().now() < until {
            let rows = self.store().workers(self.project(), WorkerQuery::default()).await?;
            self.state().pool().expect(&rows, until);
        }
        Ok(())
    }

    /// A worker as this server knows it, dead or alive.
    pub(crate) async fn worker(&self, id: &str) -> Result<Option<WorkerRow>, RuntimeError> {
        let known = self.state().pool().worker(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        Ok(self.stored_worker(id).await?)
    }

    /// A worker as the store has it, with the heartbeats that other servers received.
    pub(crate) async fn stored_worker(&self, id: &str) -> Result<Option<WorkerRow>, StoreError> {
        let query = WorkerQuery { ids: NameRange::One(id.to_owned()), ..WorkerQuery::default() };
        Ok(self.store().workers(self.project(), query).await?.pop())
    }

    /// Whether a worker of this kind may have this address: one that is never called may have any.
    async fn check_address(&self, id: &str, kind: &str, url: &str) -> Result<(), RegisterError> {
        if url.is_empty() || !pool::is_called(kind) {
            return Ok(());
        }
        AddressPolicy::of(self.settings()).check(url).await.map_err(|reason| {
            tracing::warn!(worker = id, %reason, "a worker was not registered");
            self.state().refused().add(id, url, &reason, self.clock().now());
            RegisterError::Address(reason)
        })
    }
}

pub(crate) fn ttl_ms(settings: &Settings) -> u64 {
    u64::try_from(settings.worker_ttl.as_millis()).unwrap_or(u64::MAX)
}

fn check_names(worker: &WorkerRow) -> Result<(), String> {
    if worker.id.is_empty() {
        return Err("the worker has no id: give it one of its own".to_owned());
    }
    let named = [("id", &worker.id), ("name", &worker.name), ("type", &worker.kind)];
    let services = worker.services.iter().map(|service| ("service", service));
    let queues = worker.queues.iter().map(|queue| ("queue", queue));
    for (what, name) in named.into_iter().chain(services).chain(queues) {
        if name.len() > NAME_BYTES {
            return Err(format!("a {what} of the worker is longer than {NAME_BYTES} bytes: shorten it"));
        }
        if name.contains(char::is_control) {
            return Err(format!("a {what} of the worker has control characters: leave them out"));
        }
    }
    for (what, names) in [("services", &worker.services), ("queues", &worker.queues)] {
        if names.len() > NAMES_MAX {
            let n = names.len();
            return Err(format!(
                "the worker has {n} {what}, more than {NAMES_MAX}: register several workers"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
