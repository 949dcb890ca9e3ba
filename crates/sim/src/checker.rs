//! Checker with its own record of grants, answers, acknowledgements and postings, built only from accepted commits and
//! from the view of workers and clients. It never asks the engine whether the engine is right.
//!
//! An outcome that a client could not learn stays unknown: both possibilities are accepted.

mod jobs;
mod late;
mod money;
mod record;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::event::Event;
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Node, NodeKind, Plan, Strategy};
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_store::outbox::MessageId;

pub use jobs::JobChecker;
pub use late::{LateChecker, SimMoment};
pub use money::MoneyChecker;
use record::RunRecord;

/// An invariant that does not hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its number in the list of invariants.
    pub invariant: &'static str,
    pub message: String,
}

pub type CheckResult = Result<(), Violation>;

pub(crate) fn broken(invariant: &'static str, message: String) -> CheckResult {
    Err(Violation { invariant, message })
}

#[derive(Default)]
pub struct Checker {
    runs: BTreeMap<RunId, RunRecord>,
    /// Acknowledged creates by request id.
    created: BTreeMap<String, RunId>,
    /// Acknowledged signals.
    signals: BTreeSet<(RunId, String)>,
    pub money: MoneyChecker,
    pub jobs: JobChecker,
    pub late: LateChecker,
}

impl Checker {
    /// Records that a client was told that its run exists.
    pub fn acknowledged(&mut self, request: &str, run: RunId) -> CheckResult {
        match self.created.insert(request.to_owned(), run) {
            Some(before) if before != run => {
                broken("I5", format!("request {request} was answered with {before} and with {run}"))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Records that a client was told that its signal was taken.
    pub fn signal_acknowledged(&mut self, run: RunId, id: &str) {
        self.signals.insert((run, id.to_owned()));
    }

    /// Records the node whose result a client reports from now on, or that the report was answered.
    pub fn reporting(&mut self, run: RunId, node: Option<&NodePath>) {
        self.runs.entry(run).or_default().reporting = node.cloned();
    }

    /// Checks an accepted entry; `run` is the state of its writer, `len` the entries that it knew of.
    pub fn committed(&mut self, run: &Run, plan: &Plan, len: Seq, entry: &Entry) -> CheckResult {
        let record = self.runs.entry(run.id).or_default();
        record.entry(run.id, len, entry)?;
        for event in &entry.events {
            record.event(event, entry.at)?;
            fan_order(run, plan, event)?;
        }
        if run.status == windlass_engine::run::state::Status::Running && run.why(plan).is_empty() {
            return broken("I1", format!("{} is open and nothing will ever wake it", run.id));
        }
        if run.length != record.n_events {
            return broken("I14", format!("{}: {} events, {} recorded", run.id, run.length, record.n_events));
        }
        Ok(())
    }

    /// Checks a call that reaches a worker.
    pub fn called(&mut self, plan: &Plan, run: RunId, node: &NodePath, fence: Fence) -> CheckResult {
        let record = self.runs.entry(run).or_default();
        if at_most_once(plan, node) && !record.is_first_call(node) {
            return broken("I8", format!("{run}: `{node}` must be called once at most and was called again"));
        }
        match record.grant(fence) {
            Some(to) if to == node => Ok(()),
            Some(to) => broken("I8", format!("{run}: `{node}` was called under the grant of `{to}`")),
            None => broken("I8", format!("{run}: `{node}` was called, but fence {fence} was never granted")),
        }
    }

    /// Whether the rules allow this answer to be taken, as far as the record knows.
    pub fn is_current(&self, run: RunId, node: &NodePath, fence: Fence) -> bool {
        self.runs.get(&run).is_some_and(|record| record.is_current(node, fence))
    }

    /// Checks the final state, after the last fault has healed and all work has ended.
    pub fn check_settled(
        &self,
        stored: &BTreeMap<RunId, (Run, Vec<Entry>)>,
        undelivered: &[MessageId],
    ) -> CheckResult {
        if let Some(message) = undelivered.first() {
            return broken("I15", format!("{message} was sent and never delivered"));
        }
        for (request, run) in &self.created {
            if !stored.contains_key(run) {
                return broken("I1", format!("{run} was acknowledged for {request} and is gone"));
            }
        }
        for (run, (state, entries)) in stored {
            if !state.status.is_ended() {
                let message = format!("{run} is still {} at the end: {:?}", state.status.word(), state.error);
                return broken("I15", message);
            }
            match self.runs.get(run) {
                Some(record) => record.same_history(*run, entries)?,
                None => return broken("I3", format!("{run} is in the store, but its commit was never seen")),
            }
        }
        for (run, id) in &self.signals {
            let taken = self.runs.get(run).is_some_and(|record| record.signals.contains(id));
            if !taken {
                return broken("I1", format!("{run}: signal {id} was acknowledged and is gone"));
            }
        }
        self.money.check_settled()
    }
}

/// Checks that the output of a fan has the order of its branches, not that of their ends.
fn fan_order(run: &Run, plan: &Plan, event: &Event) -> CheckResult {
    let Event::Done { node, output: None, .. } = event else { return Ok(()) };
    let Some(output) = run.node_output(plan, node) else { return Ok(()) };
    let (Value::Array(items), Some(strategy)) = (&*output, strategy_of(plan, node)) else { return Ok(()) };
    let places = matches!(strategy, Strategy::All | Strategy::Continue | Strategy::CollectErrors);
    let mut last = None;
    for (at, item) in items.iter().enumerate() {
        let Some(index) = branch_of(item, node) else { continue };
        if places && index != at {
            return broken("I9", format!("{}: `{node}` has the result of branch {index} at {at}", run.id));
        }
        if last.is_some_and(|last| last >= index) {
            return broken("I9", format!("{}: `{node}` has branch {index} after {last:?}", run.id));
        }
        last = Some(index);
    }
    Ok(())
}

/// The index of the branch of a tagged result.
fn branch_of(item: &Value, fan: &NodePath) -> Option<usize> {
    let at = item.get("at")?.as_str()?;
    at.strip_prefix(fan.as_str())?.strip_prefix('/')?.parse().ok()
}

/// The strategy of the fan at a path, found in the plan alone.
fn strategy_of(plan: &Plan, path: &NodePath) -> Option<Strategy> {
    match &node_of(plan, path)?.kind {
        NodeKind::Fan(fan) => Some(fan.strategy),
        _ => None,
    }
}

fn at_most_once(plan: &Plan, path: &NodePath) -> bool {
    matches!(node_of(plan, path).map(|node| &node.kind), Some(NodeKind::Call(call)) if call.at_most_once)
}

/// The node at a path, outside of fans.
fn node_of<'p>(plan: &'p Plan, path: &NodePath) -> Option<&'p Node> {
    let mut scope = &plan.root;
    let mut segments = path.segments().peekable();
    loop {
        let (_, node) = scope.node(segments.next()?)?;
        if segments.peek().is_none() {
            return Some(node);
        }
        match &node.kind {
            NodeKind::Sub(sub) => scope = &sub.scope,
            NodeKind::Loop(body) => {
                segments.next();
                scope = &body.body;
            }
            _ => return None,
        }
    }
}

/// Checks a time without any tolerance: a timer that fires before its time is early.
pub(crate) fn early(node: &NodePath, due: Timestamp, at: Timestamp) -> CheckResult {
    if at < due {
        broken("I10", format!("`{node}` was due at {} and went on at {}", due.0, at.0))
    } else {
        Ok(())
    }
}
