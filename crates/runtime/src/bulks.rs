//! Bulk actions: one input for many runs. The runs are chosen and stored when the action is requested; a loop submits the
//! inputs and stores the progress, and another server or the next start goes on after a crash.
//!
//! The progress is stored after each batch, so the inputs of one batch may be submitted twice. A run that is in a later
//! round than it was when it was chosen is not retried or rerun again, and signals carry the id of the bulk action.

mod target;

use std::collections::{BTreeMap, HashSet};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::{BulkId, RunId};
use windlass_engine::recovery::DEAD_MS;
use windlass_store::bulk::{BULK_PART, BulkFailure, BulkRow, BulkSpec, BulkState, BulkStatus, BulkTarget};
use windlass_store::page::{Order, PAGE_MAX, Part};
use windlass_store::run::{RunRef, RunRow, RunStatus};

use crate::RuntimeError;
use crate::part::{RuntimePart, part};
use crate::runs::RunSelection;

pub use target::BulkInput;
use target::Outcome;

/// Runs of one bulk action.
pub const TARGETS_MAX: usize = 100_000;
/// Inputs that are submitted at once.
const BATCH: usize = 16;
/// Open bulk actions that are worked on at once.
const OPEN_MAX: usize = 16;
/// How often the store is read for open bulk actions: those of a server that died, and those that another server took.
const LOOK_INTERVAL: Duration = Duration::from_secs(10);
/// The delay before the store is asked again after it failed.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Failures that are read for one answer.
pub const FAILURES_MAX: usize = 1_000;
/// Bulk actions whose progress a watcher may be behind.
const BEHIND_MAX: usize = 256;

/// The state of `Bulks`.
#[derive(Debug)]
pub(crate) struct BulksState {
    wake: Notify,
    /// Bulk actions that this server works on.
    in_hand: Mutex<HashSet<BulkId>>,
    changes: broadcast::Sender<BulkId>,
}

impl Default for BulksState {
    fn default() -> Self {
        BulksState {
            wake: Notify::new(),
            in_hand: Mutex::default(),
            changes: broadcast::channel(BEHIND_MAX).0,
        }
    }
}

part! {
    /// The owner of bulk actions.
    pub Bulks, bulks: BulksState
}

/// Runs that were chosen for a bulk action.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BulkChoice {
    pub targets: Vec<BulkTarget>,
    pub by_status: BTreeMap<RunStatus, u64>,
    /// More runs match than one bulk action may have.
    pub is_more: bool,
}

impl BulkChoice {
    fn add(&mut self, row: &RunRow) {
        *self.by_status.entry(row.projection.status).or_default() += 1;
        self.targets.push(BulkTarget { run: row.id, round: row.projection.round });
    }
}

impl Bulks {
    /// The selected runs, oldest first.
    pub async fn choose(&self, selection: &RunSelection) -> Result<BulkChoice, RuntimeError> {
        let (mut choice, mut cursor) = (BulkChoice::default(), None);
        loop {
            let part = Part { order: Order::Oldest, cursor, limit: PAGE_MAX, ..Part::default() };
            let page = self.runs().finder().selected(selection, part).await?;
            for row in &page.items {
                if choice.targets.len() == TARGETS_MAX {
                    choice.is_more = true;
                    return Ok(choice);
                }
                choice.add(row);
            }
            cursor = page.next;
            if cursor.is_none() {
                return Ok(choice);
            }
        }
    }

    /// The runs with these ids; the first unknown id otherwise.
    pub async fn choose_ids(&self, ids: &[RunId]) -> Result<Result<BulkChoice, RunId>, RuntimeError> {
        let mut choice = BulkChoice::default();
        let mut seen = HashSet::new();
        for id in ids {
            if !seen.insert(*id) {
                continue;
            }
            let Some(row) = self.store().run(self.project(), RunRef::Id(*id)).await? else {
                return Ok(Err(*id));
            };
            choice.add(&row);
        }
        Ok(Ok(choice))
    }

    /// Stores a bulk action and begins it.
    pub async fn create(&self, spec: BulkSpec, targets: Vec<BulkTarget>) -> Result<BulkRow, RuntimeError> {
        if self.is_draining() {
            return Err(RuntimeError::Draining);
        }
        let now = self.clock().now();
        let state = BulkState {
            spec,
            status: BulkStatus::Running,
            matched: targets.len() as u64,
            done: 0,
            succeeded: 0,
            failed: 0,
            owner: None,
            created_at: now,
            updated_at: now,
        };
        let id = BulkId::new(Uuid::now_v7());
        let row = BulkRow { project: self.project().clone(), id, rev: Revision(1), state, ended_at: None };
        let parts = targets.chunks(BULK_PART).map(<[BulkTarget]>::to_vec).collect();
        self.store().create_bulk(self.project(), row.clone(), parts).await?;
        self.state().wake.notify_one();
        Ok(row)
    }

    /// One bulk action.
    pub async fn show(&self, id: BulkId) -> Result<Option<BulkRow>, RuntimeError> {
        Ok(self.store().bulk(self.project(), id).await?)
    }

    /// Bulk actions, newest first, before this one.
    pub async fn list(&self, before: Option<BulkId>, limit: usize) -> Result<Vec<BulkRow>, RuntimeError> {
        Ok(self.store().bulks(self.project(), before, limit).await?)
    }

    /// The first failures of a bulk action.
    pub async fn failures(&self, id: BulkId) -> Result<Vec<BulkFailure>, RuntimeError> {
        Ok(self.store().bulk_failures(self.project(), id, FAILURES_MAX).await?)
    }

    /// Ends a bulk action: no further run takes it. One that has ended stays as it is.
    pub async fn cancel(&self, id: BulkId) -> Result<Option<BulkRow>, RuntimeError> {
        loop {
            let Some(row) = self.show(id).await? else { return Ok(None) };
            if row.ended_at.is_some() {
                return Ok(Some(row));
            }
            let now = self.clock().now();
            let state = BulkState { status: BulkStatus::Canceled, updated_at: now, ..row.state.clone() };
            let canceled = BulkRow { state, ended_at: Some(now), ..row };
            match self.store().save_bulk(self.project(), canceled, Vec::new()).await {
                Ok(()) => self.tell(id),
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The bulk actions whose progress is stored from now on.
    pub fn changes(&self) -> broadcast::Receiver<BulkId> {
        self.state().changes.subscribe()
    }

    fn tell(&self, id: BulkId) {
        // An empty list of watchers is no error.
        drop(self.state().changes.send(id));
    }

    /// Works on open bulk actions until the server stops.
    pub(crate) async fn work_loop(self) {
        loop {
            if let Err(error) = self.begin_open().await {
                tracing::warn!(%error, "open bulk actions could not be read; it is retried");
            }
            tokio::select! {
                () = self.state().wake.notified() => {}
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = self.stopped() => return,
            }
        }
    }

    /// Begins to work on open bulk actions that no live server works on.
    async fn begin_open(&self) -> Result<(), RuntimeError> {
        let rows = self.store().open_bulks(OPEN_MAX).await?;
        if rows.is_empty() {
            return Ok(());
        }
        let (servers, now) = (self.store().servers().await?, self.clock().now());
        for row in rows.into_iter().filter(|row| row.project == *self.project()) {
            let is_taken = row.state.owner.is_some_and(|owner| {
                owner != self.owner()
                    && servers.iter().any(|server| server.owner == owner && server.is_alive(now, DEAD_MS))
            });
            if is_taken || !self.in_hand().insert(row.id) {
                continue;
            }
            let bulks = self.clone();
            self.tasks().spawn(async move {
                let id = row.id;
                tokio::select! {
                    () = bulks.clone().work(row) => {}
                    () = bulks.stopped() => {}
                }
                bulks.in_hand().remove(&id);
            });
        }
        Ok(())
    }

    fn in_hand(&self) -> std::sync::MutexGuard<'_, HashSet<BulkId>> {
        self.state().in_hand.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works on a bulk action until it has ended, or another server has it.
    async fn work(self, mut row: BulkRow) {
        let input = match BulkInput::of(&row.state.spec) {
            Ok(input) => input,
            Err(reason) => {
                tracing::error!(bulk = %row.id, reason, "a stored bulk action cannot be read: it is canceled");
                drop(self.cancel(row.id).await);
                return;
            }
        };
        row.state.owner = Some(self.owner());
        loop {
            match self.advance(&mut row, &input).await {
                Ok(true) => {}
                Ok(false) => return,
                Err(RuntimeError::Store(error)) if error.is_conflict() => match self.show(row.id).await {
                    // It was canceled, or another server took it over.
                    Ok(Some(found))
                        if found.ended_at.is_some() || found.state.owner != Some(self.owner()) =>
                    {
                        return;
                    }
                    Ok(Some(found)) => row = found,
                    Ok(None) => return,
                    Err(_) => tokio::time::sleep(RETRY_DELAY).await,
                },
                Err(RuntimeError::Draining) => return,
                Err(error) => {
                    tracing::warn!(bulk = %row.id, %error, "a bulk action could not go on; it is retried");
                    tokio::time::sleep(RETRY_DELAY).await;
                }
            }
        }
    }

    /// Submits the next batch and stores the progress; `false` = that was the last one.
    async fn advance(&self, row: &mut BulkRow, input: &BulkInput) -> Result<bool, RuntimeError> {
        let done = usize::try_from(row.state.done).unwrap_or(usize::MAX);
        let part = self.store().bulk_targets(self.project(), row.id, done / BULK_PART).await?;
        let batch = part.get(done % BULK_PART..).unwrap_or_default();
        if batch.is_empty() {
            let now = self.clock().now();
            (row.state.status, row.state.updated_at) = (BulkStatus::Completed, now);
            row.ended_at = Some(now);
            self.save(row, Vec::new()).await?;
            return Ok(false);
        }
        for targets in batch.chunks(BATCH) {
            let asked: Vec<_> = targets
                .iter()
                .map(|target| {
                    let (bulks, id, target, input) = (self.clone(), row.id, *target, input.clone());
                    self.tasks().spawn(async move { bulks.submit(id, target, input).await })
                })
                .collect();
            let mut failures = Vec::new();
            for (target, outcome) in targets.iter().zip(asked) {
                let outcome = outcome.await.map_err(|_| RuntimeError::Broken)??;
                match outcome {
                    Outcome::Done => row.state.succeeded += 1,
                    Outcome::Failed { code, message } => {
                        row.state.failed += 1;
                        failures.push(BulkFailure { no: row.state.done, run: target.run, code, message });
                    }
                }
                row.state.done += 1;
            }
            row.state.updated_at = self.clock().now();
            self.save(row, failures).await?;
        }
        Ok(true)
    }

    async fn save(&self, row: &mut BulkRow, failures: Vec<BulkFailure>) -> Result<(), RuntimeError> {
        self.store().save_bulk(self.project(), row.clone(), failures).await?;
        row.rev = row.rev.next();
        self.tell(row.id);
        Ok(())
    }
}
