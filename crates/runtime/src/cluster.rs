//! Servers on one store: the epoch and heartbeat of this server, the other live servers, hints about their commits, and
//! recovery of the calls of dead ones. A server that cannot write its heartbeat starts no calls, because others may
//! take it for dead.

mod hint;
mod peers;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use uuid::Uuid;
use windlass_engine::counter::Epoch;
use windlass_engine::id::{RunId, ServerId};
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::recovery::{self, BEAT_MS, DEAD_MS, Recovery};
use windlass_engine::time::Timestamp;
use windlass_store::run::{Owner, RunRow};
use windlass_store::server::ServerRow;
use windlass_store::{Store, StoreError};

use crate::RuntimeError;
use crate::ctx::sync_clock;
use crate::part::{RuntimePart, part};
use crate::runs::mailbox::Envelope;

use peers::Peers;

/// Runs of dead servers in one read.
const BATCH_MAX: usize = 500;
/// How long a server tries to deregister.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(1);
/// Range of epochs from which servers that start at the same moment choose at random, so that they soon differ.
const EPOCH_SPREAD: u128 = 1_024;

/// The epoch of a server that only reads: no registered server reaches it.
const UNREGISTERED: Epoch = Epoch(u64::MAX);

/// The live servers, and the latest known epoch.
struct LiveServers {
    alive: BTreeSet<Epoch>,
    latest: Epoch,
}

impl LiveServers {
    /// Whether this one is dead. One that has begun since is not.
    fn is_dead_epoch(&self, epoch: Epoch) -> bool {
        epoch <= self.latest && !self.alive.contains(&epoch)
    }
}

/// This server among others.
pub(crate) struct Membership {
    row: ServerRow,
    last_beat: AtomicI64,
    /// The same moment on the monotonic clock.
    beaten: Mutex<Instant>,
    /// A server died: its calls may be in runs that other servers have written to since.
    to_sweep: AtomicBool,
}

impl Membership {
    /// Registers this server under a new epoch, higher than all before it. A server that does not share its store
    /// continues under the id of the one before, so it owns the open calls of that one at once.
    pub(crate) async fn begin(
        store: &dyn Store,
        name: &str,
        worker_ttl_ms: u64,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let is_shared = store.is_shared();
        let mut server = ServerId::new(Uuid::now_v7());
        let mut spread = 0;
        loop {
            let rows = store.servers().await?;
            let latest = rows.iter().map(|row| row.owner.epoch).max().unwrap_or_default();
            if !is_shared && let Some(before) = rows.iter().max_by_key(|row| row.owner.epoch) {
                server = before.owner.server;
            }
            let epoch = Epoch(latest.next().0.saturating_add(spread));
            let row = ServerRow {
                owner: Owner { server, epoch },
                name: name.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at: now,
                beat_at: now,
                worker_ttl_ms,
            };
            match store.save_server(row.clone()).await {
                Ok(()) if !is_shared || is_only(&store.servers().await?, row.owner) => {
                    return Ok(Membership {
                        row,
                        last_beat: AtomicI64::new(now.0),
                        beaten: Mutex::new(Instant::now()),
                        to_sweep: AtomicBool::new(true),
                    });
                }
                // Another one that starts at the same moment has the same number.
                Ok(()) => spread = u64::try_from(Uuid::now_v7().as_u128() % EPOCH_SPREAD).unwrap_or(0),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The membership of a server that only reads and never registers.
    pub(crate) fn none(now: Timestamp) -> Self {
        let owner = Owner { server: ServerId::new(Uuid::nil()), epoch: UNREGISTERED };
        let (name, version) = (String::new(), String::new());
        let row = ServerRow { owner, name, version, started_at: now, beat_at: now, worker_ttl_ms: 0 };
        let (last_beat, beaten) = (AtomicI64::new(now.0), Mutex::new(Instant::now()));
        Membership { row, last_beat, beaten, to_sweep: AtomicBool::new(false) }
    }

    /// The row that this server registered.
    pub(crate) fn row(&self) -> &ServerRow {
        &self.row
    }

    /// The time of its last successful heartbeat.
    fn last_beat(&self) -> Timestamp {
        Timestamp(self.last_beat.load(Ordering::Relaxed))
    }

    /// The same on the monotonic clock.
    fn beaten(&self) -> Instant {
        *self.beaten.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store took a heartbeat.
    fn note_beat(&self, now: Timestamp) {
        self.last_beat.store(now.0, Ordering::Relaxed);
        *self.beaten.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }
}

/// Whether no other server has this epoch.
fn is_only(rows: &[ServerRow], owner: Owner) -> bool {
    rows.iter().all(|row| row.owner.server == owner.server || row.owner.epoch != owner.epoch)
}

/// The state of `Cluster`.
pub(crate) struct ClusterState {
    membership: Membership,
    peers: Peers,
}

impl ClusterState {
    pub(crate) fn new(membership: Membership) -> Self {
        ClusterState { peers: Peers::new(membership.row.owner.epoch), membership }
    }
}

part! {
    /// The owner of this server's place among others: heartbeat, peers, hints and recovery.
    pub Cluster, cluster: ClusterState
}

impl Cluster {
    /// Whether this server registered; one that only examines a store did not.
    pub(crate) fn is_member(&self) -> bool {
        self.epoch() != UNREGISTERED
    }

    /// How long ago the store last took a heartbeat.
    pub(crate) fn since_last_beat(&self) -> Duration {
        self.state().membership.beaten().elapsed()
    }

    /// How long this server leaves work to the servers before it.
    pub(crate) fn delay_ms(&self, id: Uuid) -> u64 {
        self.state().peers.delay_ms(id)
    }

    /// Whether this server may make calls: one that could not write its heartbeat for a while makes none, unless no
    /// other server could take it for dead.
    pub(crate) fn may_call(&self) -> bool {
        !self.is_shared() || recovery::may_call(self.state().membership.last_beat(), self.clock().now())
    }

    /// Sends the heartbeat, and takes over from servers that are dead.
    pub(crate) async fn heartbeat_loop(self) {
        let mut beat = tokio::time::interval(Duration::from_millis(BEAT_MS));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = beat.tick() => {}
                () = self.stopped() => return,
            }
            if let Err(error) = sync_clock(self.clock(), self.store()).await {
                tracing::debug!(%error, "the time of the store could not be read");
            }
            self.clock().log_skew();
            let now = self.clock().now();
            let row = ServerRow { beat_at: now, ..self.state().membership.row.clone() };
            match self.store().save_server(row).await {
                Ok(()) => self.state().membership.note_beat(now),
                Err(StoreError::Conflict { .. }) => {
                    tracing::error!("another server has this id now: this one stops");
                    self.ctx().shutdown.cancel();
                    return;
                }
                Err(error) => tracing::warn!(%error, "the heartbeat could not be written"),
            }
            if self.is_shared()
                && let Err(error) = self.recover().await
            {
                tracing::warn!(%error, "runs of dead servers could not be recovered; it is retried");
            }
        }
    }

    /// Reports the calls of dead servers as lost, and wakes runs that wait for money.
    pub(crate) async fn recover(&self) -> Result<(), RuntimeError> {
        if self.is_shared() {
            let LiveServers { alive, .. } = self.live_servers().await?;
            if self.state().peers.set(alive) {
                self.state().membership.to_sweep.store(true, Ordering::Relaxed);
                self.take_over().await;
            }
            let (at, of) = self.state().peers.place();
            self.jobs().set_server_share(at, of);
            self.store().shared_by(of);
            self.workers().set_servers(of);
        }
        self.report_all_lost(DEAD_MS, |_| true).await?;
        // The last writer of a run owns it, together with the calls of earlier owners, which may have died since.
        let membership = &self.state().membership;
        if self.is_shared() && membership.to_sweep.swap(false, Ordering::Relaxed) {
            let own = Some(self.owner());
            let swept = self.report_all_lost(0, |row| row.projection.owner == own).await;
            membership.to_sweep.fetch_or(swept.is_err(), Ordering::Relaxed);
            swept?;
        }
        self.money().wake_all_waiters().await
    }

    /// A server died: everything that only it knew is read from the store.
    async fn take_over(&self) {
        self.runs().poll_due_soon();
        self.jobs().take_over();
        self.refresh_everything().await;
    }

    /// Reports the calls of dead servers in runs of an owner without a heartbeat for so long.
    async fn report_all_lost(
        &self,
        silent_ms: u64,
        concerns: impl Fn(&RunRow) -> bool,
    ) -> Result<(), RuntimeError> {
        let mut after = None;
        loop {
            let orphans = self.store().orphans(self.clock().now(), silent_ms, after, BATCH_MAX).await?;
            if orphans.is_empty() {
                return Ok(());
            }
            let servers = self.live_servers().await?;
            for row in orphans.iter().filter(|row| concerns(row)) {
                self.report_lost(row.id, &servers).await;
            }
            match orphans.last() {
                Some(row) if orphans.len() == BATCH_MAX => after = Some(row.id),
                Some(_) | None => return Ok(()),
            }
        }
    }

    async fn live_servers(&self) -> Result<LiveServers, StoreError> {
        let rows = self.store().servers().await?;
        // A server that was ahead for a moment stays so; all servers of a store go by one time.
        rows.iter().for_each(|row| self.clock().not_before(row.beat_at));
        let now = self.clock().now();
        let alive = rows.iter().filter(|row| !recovery::is_dead(row.beat_at, now));
        Ok(LiveServers {
            alive: alive.map(|row| row.owner.epoch).collect(),
            latest: rows.iter().map(|row| row.owner.epoch).max().unwrap_or_default(),
        })
    }

    /// A run that cannot be read keeps no other from being recovered.
    async fn report_lost(&self, run: RunId, servers: &LiveServers) {
        let cached = match self.runs().load(run).await {
            Ok(Some(cached)) => cached,
            Ok(None) => return,
            Err(error) if self.runs().is_set_aside(run, &error) => return,
            Err(error) => return tracing::error!(%run, %error, "a run cannot be read, so its calls are left"),
        };
        let makers = cached.run.granted_calls(&cached.plan).into_iter().map(|(.., by)| by);
        let dead = makers.filter(|by| servers.is_dead_epoch(*by)).collect();
        for Recovery::ReportLost { node, fence } in recovery::plan(&cached.run, &cached.plan, &dead) {
            let input = Input::CallEnded { node, fence, outcome: CallOutcome::ServerLost, worker: None };
            self.runs().send(run, Envelope::of(input));
        }
    }

    /// Marks this server as gone, so that others need not wait until it counts as dead.
    pub(crate) async fn deregister(&self) {
        let row = ServerRow { beat_at: Timestamp(0), ..self.state().membership.row.clone() };
        let said = tokio::time::timeout(DEREGISTER_TIMEOUT, self.store().save_server(row)).await;
        if !matches!(said, Ok(Ok(()))) {
            tracing::debug!("the server could not deregister; others notice when it counts as dead");
        }
    }
}
