//! Signs of life, and what is done about servers that give none.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::id::{RunId, ServerId};
use windlass_engine::input::{Input, Outcome};
use windlass_engine::plan::Exec;
use windlass_engine::recovery::{self, BEAT_MS, DEAD_MS, Recovery};
use windlass_engine::time::Timestamp;
use windlass_store::record::Record;
use windlass_store::run::Owner;
use windlass_store::server::ServerRow;
use windlass_store::{Store, StoreError};

use crate::mailbox::Letter;
use crate::{Runtime, RuntimeError};

/// Runs of dead servers that are looked at at once.
const AT_ONCE: usize = 500;
/// How long a run is left alone after its driver died: the next one may die of the same.
const REVIVE: Duration = Duration::from_secs(5);

/// This server among others.
pub(crate) struct Life {
    pub(crate) row: ServerRow,
    last_beat: AtomicI64,
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
        loop {
            let rows = store.servers().await?;
            let epoch = rows.iter().map(|row| row.owner.epoch).max().unwrap_or(0) + 1;
            let before = rows.iter().max_by_key(|row| row.owner.epoch).filter(|_| is_alone);
            let server = before.map_or_else(|| ServerId::new(Uuid::now_v7()), |row| row.owner.server);
            let row = ServerRow {
                owner: Owner { server, epoch },
                name: name.to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
                started_at: now,
                beat_at: now,
            };
            match store.save(Record::Server(row.clone())).await {
                Ok(()) => return Ok(Life { row, last_beat: AtomicI64::new(now.0) }),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// When it was last able to say that it lives.
    pub(crate) fn last_beat(&self) -> Timestamp {
        Timestamp(self.last_beat.load(Ordering::Relaxed))
    }
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
        let mut after = None;
        loop {
            let orphans = self.store().orphans(self.clock().now(), DEAD_MS, after, AT_ONCE).await?;
            let alive = self.lives_alive().await?;
            for row in &orphans {
                self.report_lost(row.id, &alive).await;
            }
            match orphans.last() {
                Some(row) if orphans.len() == AT_ONCE => after = Some(row.id),
                Some(_) | None => break,
            }
        }
        // Whoever writes to a run owns it, and with it the calls of those before: a run in memory may have some.
        if !self.is_alone() {
            let alive = self.lives_alive().await?;
            for run in self.mailboxes().runs() {
                self.report_lost(run, &alive).await;
            }
        }
        self.fund_all().await
    }

    async fn lives_alive(&self) -> Result<BTreeSet<u64>, StoreError> {
        let now = self.clock().now();
        let rows = self.store().servers().await?;
        let alive = rows.iter().filter(|row| !recovery::is_dead(row.beat_at, now));
        Ok(alive.map(|row| row.owner.epoch).collect())
    }

    /// A run that cannot be read keeps no other from being recovered.
    async fn report_lost(&self, run: RunId, alive: &BTreeSet<u64>) {
        let hot = match self.load(run).await {
            Ok(Some(hot)) => hot,
            Ok(None) => return,
            Err(error) => return tracing::error!(%run, %error, "a run cannot be read, so its calls are left"),
        };
        let makers = hot.run.granted_calls(&hot.plan).into_iter().map(|(.., by)| by);
        let dead = makers.filter(|by| !alive.contains(by)).collect();
        for Recovery::ReportLost { node, fence } in recovery::plan(&hot.run, &hot.plan, &dead) {
            let input = Input::CallEnded { node, fence, outcome: Outcome::ServerLost, worker: None };
            self.post(run, Letter::of(input));
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
