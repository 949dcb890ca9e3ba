//! The task that follows one run: it folds new entries of the journal as they become durable, and sends the nodes and
//! attempts that differ from the ones before.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::id::RunId;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;
use windlass_sdk::contract::{AttemptHead, NodeInfo, RunPatch};
use windlass_store::projection::attempts::{AttemptStatus, Attempts, NodeAttempt};
use windlass_store::run::{RunRow, Since};

use super::{EventHub, Topic};
use crate::app::{App, ENTRIES};
use crate::native::{claim_times, reasons};
use crate::problem::ApiResult;
use crate::shape;

/// The pause before changes are sent, so that those that come together are one patch.
const GATHER: Duration = Duration::from_millis(200);
/// The quiet time after which the reasons for waiting are looked up.
const WHY_DELAY: Duration = Duration::from_secs(1);
/// How often the store is read without an event: another server may have written.
const LOOK_INTERVAL: Duration = Duration::from_secs(15);

/// Follows a run until no stream does.
pub(super) async fn follow(
    app: App,
    hub: EventHub,
    run: RunId,
    wake: Arc<Notify>,
    ready: watch::Sender<bool>,
) {
    while !app.closing.is_cancelled() && !hub.release(run) {
        let followed = follow_journal(&app, &hub, run, &wake, &ready).await;
        // A stream that begins to follow now may miss changes until the run is read again.
        ready.send_replace(true);
        let patch = RunPatch { topic: Topic::Run(run).to_string(), reset: true, ..RunPatch::default() };
        hub.send(&app, &Topic::Run(run), "patch", &patch);
        if let Err(error) = followed {
            tracing::warn!(%run, code = error.code().word(), "a run cannot be followed for now");
            tokio::select! {
                () = tokio::time::sleep(LOOK_INTERVAL) => {}
                () = app.closing.cancelled() => return,
            }
        }
    }
}

/// The values of an attempt by which a change is noticed.
type AttemptMark = (AttemptStatus, Option<Timestamp>, Option<Timestamp>, bool);

fn mark(row: &NodeAttempt) -> AttemptMark {
    (row.status, row.finished_at, row.suspended_at, row.worker.is_some())
}

/// A run as streams were told of it last.
struct Told<'p> {
    plan: &'p Plan,
    attempts: Attempts<'p>,
    seq: Seq,
    row: RunRow,
    nodes: BTreeMap<String, NodeInfo>,
    marks: Vec<AttemptMark>,
    claims: HashMap<Fence, Option<Timestamp>>,
}

async fn follow_journal(
    app: &App,
    hub: &EventHub,
    run: RunId,
    wake: &Notify,
    ready: &watch::Sender<bool>,
) -> ApiResult<()> {
    let row = app.row(run).await?;
    let plan = app.runtime.runs().plan(row.origin.version).await?;
    let mut told = Told {
        plan: &plan,
        attempts: Attempts::new(run, &plan),
        seq: Seq::ZERO,
        row,
        nodes: BTreeMap::new(),
        marks: Vec::new(),
        claims: HashMap::new(),
    };
    told.patch(app).await?;
    ready.send_replace(true);
    let topic = Topic::Run(run);
    let mut why_at: Option<Instant> = None;
    loop {
        let quiet = why_at.unwrap_or_else(|| Instant::now() + LOOK_INTERVAL);
        tokio::select! {
            () = wake.notified() => {}
            () = tokio::time::sleep_until(quiet) => {
                if why_at.take().is_some() {
                    let why = reasons(app, &told.row, told.plan, told.attempts.run()).await?;
                    let patch = RunPatch {
                        topic: topic.to_string(),
                        seq: told.seq.0,
                        why: Some(why),
                        ..RunPatch::default()
                    };
                    hub.send(app, &topic, "patch", &patch);
                    continue;
                }
            }
            () = app.closing.cancelled() => return Ok(()),
        }
        if !hub.has(&topic) {
            return Ok(());
        }
        tokio::time::sleep(GATHER).await;
        if let Some(patch) = told.patch(app).await? {
            hub.send(app, &topic, "patch", &patch);
            why_at = Some(Instant::now() + WHY_DELAY);
        }
    }
}

impl Told<'_> {
    /// Reads new entries; returns the differences from the last time, if there are any.
    async fn patch(&mut self, app: &App) -> ApiResult<Option<RunPatch>> {
        let (run, before) = (self.row.id, self.seq);
        loop {
            let part = app.store().journal(app.project(), run, Since::Entry(self.seq), ENTRIES).await?;
            for (seq, entry) in &part.entries {
                self.attempts.follow(entry);
                self.seq = *seq;
            }
            if part.entries.len() < ENTRIES {
                break;
            }
        }
        let is_new = self.seq > before;
        let has_queued = self.attempts.rows().iter().any(|row| row.status == AttemptStatus::Queued);
        if !is_new && !has_queued {
            return Ok(None);
        }
        let round = self.row.projection.round;
        if is_new {
            self.row = app.row(run).await?;
        }
        let attempts = self.changed_attempts(app).await?;
        let (nodes, _) = shape::node_heads(self.plan, self.attempts.run());
        let removed = self.nodes.keys().filter(|path| !nodes.contains_key(*path)).cloned().collect();
        let is_changed = |(path, node): &(&String, &NodeInfo)| self.nodes.get(*path) != Some(*node);
        let node_states: BTreeMap<String, NodeInfo> =
            nodes.iter().filter(is_changed).map(|(path, node)| (path.clone(), node.clone())).collect();
        self.nodes = nodes;
        if !is_new && attempts.is_empty() {
            return Ok(None);
        }
        let label = app.label(self.row.origin.flow, self.row.origin.version).await?;
        Ok(Some(RunPatch {
            topic: Topic::Run(run).to_string(),
            seq: self.seq.0,
            run: Some(shape::live_summary(&self.row, &label, self.attempts.run())),
            node_states,
            removed,
            attempts,
            why: None,
            reset: self.row.projection.round != round,
        }))
    }

    async fn changed_attempts(&mut self, app: &App) -> ApiResult<Vec<AttemptHead>> {
        let rows = self.attempts.rows();
        let is_changed = |(index, row): &(usize, &NodeAttempt)| self.marks.get(*index) != Some(&mark(row));
        let mut changed: Vec<usize> =
            rows.iter().enumerate().filter(is_changed).map(|(index, _)| index).collect();
        let is_queue = |row: &NodeAttempt| row.exec == Some("queue");
        let has_queued = rows.iter().any(|row| row.status == AttemptStatus::Queued);
        if has_queued || changed.iter().any(|index| is_queue(&rows[*index])) {
            let claims = claim_times(app, self.row.id).await?;
            for (index, row) in rows.iter().enumerate() {
                let is_claimed = claims.get(&row.fence) != self.claims.get(&row.fence);
                if is_queue(row) && is_claimed && !changed.contains(&index) {
                    changed.push(index);
                }
            }
            self.claims = claims;
        }
        let heads = changed.iter().map(|index| shape::attempt_head(&rows[*index], &self.claims)).collect();
        self.marks = rows.iter().map(mark).collect();
        Ok(heads)
    }
}
