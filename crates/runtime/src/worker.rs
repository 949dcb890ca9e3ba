//! Workers: who is there, who lives, who gets the next call.
//!
//! The store remembers workers for everybody; this server keeps those that live in memory, because every call asks.
//! What workers say goes to the store first. What they said to other servers is read from there now and then.

mod desk;
mod place;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, OnceCell, watch};
use windlass_engine::limits::NAME_BYTES;
use windlass_engine::time::Timestamp;
use windlass_store::record::Record;
use windlass_store::worker::{WorkerBeat, WorkerQuery, WorkerRow};
use windlass_store::{Refusal, StoreError};

use crate::call::address::Policy;
use crate::{Runtime, RuntimeError, Settings};

pub(crate) use desk::{Chosen, Nobody};
use desk::{Desk, Limits};
pub(crate) use place::Place;

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
    /// What it says of itself cannot be taken.
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

/// The workers that this server knows, and what it has them do.
#[derive(Debug)]
pub(crate) struct Registry {
    loaded: OnceCell<()>,
    desk: Mutex<Desk>,
    /// Held by whoever reads all workers or drains one, so that what was read before does not undo what was written
    /// meanwhile.
    reading: tokio::sync::Mutex<()>,
    /// Somebody is to go: whoever waits for work asks whether it is meant.
    drained: watch::Sender<()>,
    /// Somebody has registered with another server, or something was set there.
    pub(crate) look: Notify,
}

impl Registry {
    /// Knows nobody yet: the store is read when somebody is first asked for.
    pub(crate) fn new(settings: &Settings) -> Self {
        let limits = Limits {
            service_calls: settings.service_calls_max,
            worker_calls: settings.worker_calls_max,
            ttl_ms: ttl_ms(settings),
            n_servers: 1,
        };
        Registry {
            loaded: OnceCell::new(),
            desk: Mutex::new(Desk::new(limits)),
            reading: tokio::sync::Mutex::new(()),
            drained: watch::Sender::new(()),
            look: Notify::new(),
        }
    }

    /// Hears of workers that are to go, or to stay after all.
    pub(crate) fn drained(&self) -> watch::Receiver<()> {
        self.drained.subscribe()
    }

    /// So many servers call the same workers.
    pub(crate) fn shared_by(&self, n_servers: usize) {
        self.desk().shared_by(n_servers);
    }

    /// Everything under the lock is whole between two statements that can panic: there are none.
    fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Runtime {
    /// Registers a worker, or again.
    pub async fn register(&self, worker: WorkerRow) -> Result<(), RegisterError> {
        check_names(&worker).map_err(RegisterError::Invalid)?;
        self.check_address(&worker.kind, &worker.url).await?;
        let now = self.clock().now();
        // A worker from the future would live until then.
        let worker = WorkerRow {
            registered_at: worker.registered_at.min(now),
            beat_at: worker.beat_at.min(now),
            ..worker
        };
        self.load_workers().await?;
        if !self.registry().desk().has_room(&worker.id, now) {
            return Err(RuntimeError::Busy { retry_after: RETRY_AFTER }.into());
        }
        self.store().save(Record::Worker(worker.clone())).await?;
        self.relay_beat(&worker.id);
        self.registry().desk().put(worker, now);
        Ok(())
    }

    /// A sign of life; `false` = nobody of that id is registered.
    pub async fn beat(&self, beat: WorkerBeat) -> Result<bool, RegisterError> {
        let Some(known) = self.worker(&beat.id).await? else { return Ok(false) };
        let now = self.clock().now();
        // A sign of life without an address is not a worker that has none any more.
        let url = beat.url.filter(|url| !url.is_empty() && *url != known.url);
        if let Some(url) = &url {
            self.check_address(&known.kind, url).await?;
        }
        let beat = WorkerBeat { url, at: beat.at.min(now), ..beat };
        match self.store().save(Record::WorkerBeat(beat.clone())).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::UnknownWorker(_))) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.relay_beat(&beat.id);
        let mut desk = self.registry().desk();
        if !desk.beat(&beat, now) {
            // It registered with another server, or was forgotten as dead.
            desk.put(known, now);
            desk.beat(&beat, now);
        }
        Ok(true)
    }

    /// Gives a worker no more work, so that it goes when it is done with what it has; or gives it work again. Registering
    /// again does so too. `false` = nobody of that id is registered.
    pub async fn drain_worker(&self, id: &str, is_draining: bool) -> Result<bool, RuntimeError> {
        let _nobody_reads = self.registry().reading.lock().await;
        match self.store().save(Record::WorkerDrain { id: id.to_owned(), is_draining }).await {
            Ok(()) => {}
            Err(StoreError::Refused(Refusal::UnknownWorker(_))) => return Ok(false),
            Err(error) => return Err(error.into()),
        }
        self.registry().desk().drain(id, is_draining, self.clock().now());
        self.registry().drained.send_replace(());
        Ok(true)
    }

    /// Whether a worker is to go, as far as this server knows.
    pub fn is_worker_draining(&self, id: &str) -> bool {
        self.registry().desk().worker(id).is_some_and(|row| row.is_draining)
    }

    /// Workers that match, dead or alive, by id.
    pub async fn workers(&self, query: WorkerQuery) -> Result<Vec<WorkerRow>, RuntimeError> {
        Ok(self.store().workers(query).await?)
    }

    /// The least loaded live worker of a service.
    pub async fn allocate(&self, service: &str) -> Result<Option<WorkerRow>, RuntimeError> {
        self.load_workers().await?;
        Ok(self.registry().desk().allocate(service, self.clock().now()))
    }

    /// Learns from the store what workers said to other servers, and forgets those that are dead.
    pub(crate) async fn refresh_workers(&self) {
        if let Err(error) = self.read_workers().await {
            tracing::warn!(%error, "workers could not be read, will try again");
            self.registry().desk().tidy(self.clock().now());
        }
    }

    async fn read_workers(&self) -> Result<(), RuntimeError> {
        let reading = self.registry().reading.lock().await;
        let now = self.clock().now();
        let alive_since = Timestamp(now.0.saturating_sub_unsigned(ttl_ms(self.settings())));
        let query = WorkerQuery { alive_since: Some(alive_since), ..WorkerQuery::default() };
        let rows = self.store().workers(query).await?;
        let n_alive = rows.len();
        let mut desk = self.registry().desk();
        let is_told = |row: &WorkerRow, desk: &Desk| {
            desk.worker(&row.id).is_some_and(|known| known.is_draining != row.is_draining)
        };
        // Another server may have told one to go, or to stay after all.
        if rows.iter().any(|row| is_told(row, &desk)) {
            self.registry().drained.send_replace(());
        }
        let n_known = rows.into_iter().map(|row| desk.put(row, now)).filter(|known| *known).count();
        desk.tidy(now);
        drop(desk);
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
        self.registry().loaded.get_or_try_init(load).await.copied()
    }

    /// While no server was there, no worker could say that it lives: each has the time for it from the start of this
    /// one. Until then it is not called, since it may be dead, but it is waited for.
    async fn expect_workers(&self) -> Result<(), RuntimeError> {
        let until = self.life_row().row.started_at.after(ttl_ms(self.settings()));
        if self.clock().now() < until {
            let rows = self.store().workers(WorkerQuery::default()).await?;
            self.registry().desk().expect(&rows, until);
        }
        Ok(())
    }

    async fn worker(&self, id: &str) -> Result<Option<WorkerRow>, RuntimeError> {
        let known = self.registry().desk().worker(id).cloned();
        if known.is_some() {
            return Ok(known);
        }
        let query = WorkerQuery { id: Some(id.to_owned()), ..WorkerQuery::default() };
        Ok(self.store().workers(query).await?.pop())
    }

    /// Whether a worker of this kind may have this address: one that is never called may have any.
    async fn check_address(&self, kind: &str, url: &str) -> Result<(), RegisterError> {
        if url.is_empty() || !desk::is_called(kind) {
            return Ok(());
        }
        Policy::of(self.settings()).check(url).await.map_err(RegisterError::Address)
    }
}

fn ttl_ms(settings: &Settings) -> u64 {
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
