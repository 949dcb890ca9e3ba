//! Signs of life, and what is done about servers that give none.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::id::{RunId, ServerId};
use windlass_engine::input::{Input, Outcome};
use windlass_engine::plan::Exec;
use windlass_engine::recovery::{self, BEAT_MS, DEAD_MS, Recovery};
use windlass_engine::time::Timestamp;
use windlass_store::record::Record;
use windlass_store::run::{Owner, RunRow};
use windlass_store::server::ServerRow;
use windlass_store::{Store, StoreError};

use crate::mailbox::Letter;
use crate::{Runtime, RuntimeError};

/// Runs of dead servers that are looked at at once.
const AT_ONCE: usize = 500;
/// How long a run is left alone after its driver died: the next one may die of the same.
const REVIVE: Duration = Duration::from_secs(5);
/// How long the last word of a server may take.
const FAREWELL: Duration = Duration::from_secs(1);
/// Numbers of lives that servers which start at the same moment choose from, so that they soon find different ones.
const NUMBERS: u128 = 1_024;

/// The number of whoever only looks: no server gets so far.
const NOBODY: u64 = u64::MAX;

/// Who lives, and the latest who is known to have begun.
struct Lives {
    alive: BTreeSet<u64>,
    latest: u64,
}

impl Lives {
    /// Whether this one is dead. One that has begun since is not.
    fn is_over(&self, life: u64) -> bool {
        life <= self.latest && !self.alive.contains(&life)
    }
}

/// This server among others.
pub(crate) struct Life {
    pub(crate) row: ServerRow,
    last_beat: AtomicI64,
    /// Somebody has died: their calls may be in runs that others have written to since.
    to_sweep: AtomicBool,
}

impl Life {
    /// Begins a new life: its number is higher than all before it. A server that has the store for itself goes on
    /// as the one that was there before, so that what that one left is its own at once.
    pub(crate) async fn begin(
        store: &dyn Store,
        name: &str,
        is_alone: bool,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let mut server = ServerId::new(Uuid::now_v7());
        let mut spread = 0;
        loop {
            let rows = store.servers().await?;
            let latest = rows.iter().map(|row| row.owner.epoch).max().unwrap_or(0);
            if is_alone && let Some(before) = rows.iter().max_by_key(|row| row.owner.epoch) {
                server = before.owner.server;
            }
            let epoch = latest.saturating_add(1).saturating_add(spread);
            let row = ServerRow {
                owner: Owner { server, epoch },
                name: name.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at: now,
                beat_at: now,
            };
            match store.save(Record::Server(row.clone())).await {
                Ok(()) if is_alone || is_only(&store.servers().await?, row.owner) => {
                    return Ok(Life {
                        row,
                        last_beat: AtomicI64::new(now.0),
                        to_sweep: AtomicBool::new(true),
                    });
                }
                // Another one that starts at the same moment has the same number.
                Ok(()) => spread = u64::try_from(Uuid::now_v7().as_u128() % NUMBERS).unwrap_or(0),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// No life at all, for whoever only looks.
    pub(crate) fn of_nobody(now: Timestamp) -> Self {
        let owner = Owner { server: ServerId::new(Uuid::nil()), epoch: NOBODY };
        let (name, version) = (String::new(), String::new());
        let row = ServerRow { owner, name, version, started_at: now, beat_at: now };
        Life { row, last_beat: AtomicI64::new(now.0), to_sweep: AtomicBool::new(false) }
    }

    /// Whether it is a life.
    pub(crate) fn is_somebody(&self) -> bool {
        self.row.owner.epoch != NOBODY
    }

    /// When it was last able to say that it lives.
    pub(crate) fn last_beat(&self) -> Timestamp {
        Timestamp(self.last_beat.load(Ordering::Relaxed))
    }
}

/// Whether nobody else has the number of this life.
fn is_only(rows: &[ServerRow], owner: Owner) -> bool {
    rows.iter().all(|row| row.owner.server == owner.server || row.owner.epoch != owner.epoch)
}

impl Runtime {
    /// Whether this server may make calls: one that could not say that it lives for a while makes none, unless
    /// there is nobody who could take it for dead.
    pub(crate) fn may_call(&self) -> bool {
        self.is_alone() || recovery::may_call(self.life_row().last_beat(), self.clock().now())
    }

    /// Says that this server lives, and takes over from those that do not.
    pub(crate) async fn stay_alive(self) {
        let mut beat = tokio::time::interval(Duration::from_millis(BEAT_MS));
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                _ = beat.tick() => {}
                () = self.stopped() => return,
            }
            if let Err(error) = self.agree_on_time().await {
                tracing::debug!(%error, "the store did not say what time it is");
            }
            let now = self.clock().now();
            let row = ServerRow { beat_at: now, ..self.life_row().row.clone() };
            match self.store().save(Record::Server(row)).await {
                Ok(()) => self.life_row().last_beat.store(now.0, Ordering::Relaxed),
                Err(StoreError::Conflict { .. }) => {
                    tracing::error!("another server goes by this id now: this one stops");
                    self.stop();
                    return;
                }
                Err(error) => tracing::warn!(%error, "the store did not take a sign of life"),
            }
            if !self.is_alone()
                && let Err(error) = self.recover().await
            {
                tracing::warn!(%error, "runs of dead servers could not be looked at");
            }
        }
    }

    /// Gives the calls of dead servers to somebody else, and follows up what came back to accounts meanwhile.
    pub(crate) async fn recover(&self) -> Result<(), RuntimeError> {
        if !self.is_alone() {
            let Lives { alive, .. } = self.lives().await?;
            if self.peers().set(alive) {
                self.life_row().to_sweep.store(true, Ordering::Relaxed);
                self.take_over().await;
            }
            let (at, of) = self.peers().place();
            self.jobs().dispatch.share(at, of);
            self.store().shared_by(of);
            self.registry().shared_by(of);
        }
        self.report_all_lost(DEAD_MS, |_| true).await?;
        // Whoever writes to a run owns it, and with it the calls of those before: they may have died since.
        let life = self.life_row();
        if !self.is_alone() && life.to_sweep.swap(false, Ordering::Relaxed) {
            let own = Some(self.owner());
            let swept = self.report_all_lost(0, |row| row.standing.owner == own).await;
            life.to_sweep.fetch_or(swept.is_err(), Ordering::Relaxed);
            swept?;
        }
        self.fund_all().await
    }

    /// Somebody is gone, and everything that only they knew of is looked for in the store.
    async fn take_over(&self) {
        self.timers().look.notify_one();
        self.jobs().sweep_now();
        if let Some(relay) = &self.jobs().relay {
            relay.want_everything();
        }
        self.look_everywhere().await;
    }

    /// Reports the calls of dead servers in runs whose owner has been silent for so long.
    async fn report_all_lost(
        &self,
        silent_ms: u64,
        concerns: impl Fn(&RunRow) -> bool,
    ) -> Result<(), RuntimeError> {
        let mut after = None;
        loop {
            let orphans = self.store().orphans(self.clock().now(), silent_ms, after, AT_ONCE).await?;
            if orphans.is_empty() {
                return Ok(());
            }
            let lives = self.lives().await?;
            for row in orphans.iter().filter(|row| concerns(row)) {
                self.report_lost(row.id, &lives).await;
            }
            match orphans.last() {
                Some(row) if orphans.len() == AT_ONCE => after = Some(row.id),
                Some(_) | None => return Ok(()),
            }
        }
    }

    async fn lives(&self) -> Result<Lives, StoreError> {
        let now = self.clock().now();
        let rows = self.store().servers().await?;
        let alive = rows.iter().filter(|row| !recovery::is_dead(row.beat_at, now));
        Ok(Lives {
            alive: alive.map(|row| row.owner.epoch).collect(),
            latest: rows.iter().map(|row| row.owner.epoch).max().unwrap_or(0),
        })
    }

    /// A run that cannot be read keeps no other from being recovered.
    async fn report_lost(&self, run: RunId, lives: &Lives) {
        let hot = match self.load(run).await {
            Ok(Some(hot)) => hot,
            Ok(None) => return,
            Err(error) => return tracing::error!(%run, %error, "a run cannot be read, so its calls are left"),
        };
        let makers = hot.run.granted_calls(&hot.plan).into_iter().map(|(.., by)| by);
        let dead = makers.filter(|by| lives.is_over(*by)).collect();
        for Recovery::ReportLost { node, fence } in recovery::plan(&hot.run, &hot.plan, &dead) {
            let input = Input::CallEnded { node, fence, outcome: Outcome::ServerLost, worker: None };
            self.post(run, Letter::of(input));
        }
    }

    /// Says that this server is gone, so that nobody has to wait until it counts as dead.
    pub(crate) async fn say_farewell(&self) {
        let row = ServerRow { beat_at: Timestamp(0), ..self.life_row().row.clone() };
        let said = tokio::time::timeout(FAREWELL, self.store().save(Record::Server(row))).await;
        if !matches!(said, Ok(Ok(()))) {
            tracing::debug!("nobody heard that this server is gone; others notice later");
        }
    }

    /// Takes up a run again whose driver died: what was on its way to it is lost, so its calls count as lost too.
    pub(crate) async fn revive(self, run: RunId) {
        tokio::select! {
            () = tokio::time::sleep(REVIVE) => {}
            () = self.stopped() => return,
        }
        let Ok(Some(hot)) = self.load(run).await else { return };
        self.timers().set(run, hot.run.wake_at(), self.clock().now());
        let calls = hot.run.granted_calls(&hot.plan).into_iter();
        let ours = calls.filter(|(_, fence, exec, by)| {
            let is_direct = !matches!(exec, Exec::Queue | Exec::Flow { .. });
            is_direct && *by == self.life() && !self.calls().holds(run, *fence)
        });
        for (node, fence, ..) in ours {
            let outcome = Outcome::ServerLost;
            self.post(run, Letter::of(Input::CallEnded { node, fence, outcome, worker: None }));
        }
    }
}
