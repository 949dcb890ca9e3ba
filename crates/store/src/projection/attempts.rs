//! From a journal to the attempts that people look at: the call, its worker, and its outcome.
//!
//! A call has one row for every grant. A node that makes no call (a choice, a timer, a wait, an approval, a
//! container) has one for every visit, a branch that is a flow one for every time it is opened. Nothing here is
//! stored: the rows are folded from the journal on request, in time that grows with the journal alone.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;
use windlass_engine::counter::{Fence, Visit};
use windlass_engine::event::{Ending, Event, Waiting};
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Branches, Exec, NodeKind, Plan, Routing};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::run::{NodeView, Run};
use windlass_engine::time::Timestamp;

/// One attempt at a node or at a branch of a fan.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeAttempt {
    /// The number of the event that began it, from 1: with the run, its name.
    pub event: u64,
    /// The grant of its call; 0 = no call was made.
    pub fence: Fence,
    pub node: NodePath,
    pub part: AttemptPart,
    pub visit: Visit,
    /// Which attempt of the visit it is, from 1.
    pub attempt: u32,
    pub status: AttemptStatus,
    /// The type, kind or operator of the node as its definition spells it; of a branch, its fan's.
    pub kind: String,
    /// The executor of the call: `http`, `queue`, `local_func`, `local_script` or `flow`; `None` = no call is made here.
    pub exec: Option<&'static str>,
    /// The function of this process that is called.
    pub function: Option<String>,
    pub service: Option<String>,
    pub input: Arc<Value>,
    /// Its output; the memo of a suspended call.
    pub output: Option<Arc<Value>>,
    pub fault: Option<Fault>,
    /// The action it ended with, or the edge that caught its failure; `None` = the default one.
    pub action: Option<String>,
    pub worker: Option<String>,
    pub started_at: Timestamp,
    /// When it was suspended: no worker has it since.
    pub suspended_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
}

/// The relation of an attempt to its neighbours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AttemptPart {
    /// A node of the outermost scope.
    Outermost,
    /// A given branch of a fan.
    Branch { index: usize, name: String },
    /// The branch of one item.
    Item { index: usize },
    /// A node inside a subflow, a loop or a branch.
    Inner { key: String },
}

/// How far an attempt has got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AttemptStatus {
    /// A job waits for a worker, or has one: the journal cannot tell.
    Queued,
    Running,
    /// A timer, a signal or a decision is waited for.
    Waiting,
    /// The call answered that it is not finished. With a later attempt at the same place, it was asked again there.
    Suspended,
    Ok,
    Error,
    Canceled,
}

impl AttemptStatus {
    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            AttemptStatus::Queued => "queued",
            AttemptStatus::Running => "running",
            AttemptStatus::Waiting => "waiting",
            AttemptStatus::Suspended => "suspended",
            AttemptStatus::Ok => "ok",
            AttemptStatus::Error => "error",
            AttemptStatus::Canceled => "canceled",
        }
    }

    /// Whether something may still come of it, unless a later attempt took its place.
    pub fn is_open(self) -> bool {
        match self {
            AttemptStatus::Queued
            | AttemptStatus::Running
            | AttemptStatus::Waiting
            | AttemptStatus::Suspended => true,
            AttemptStatus::Ok | AttemptStatus::Error | AttemptStatus::Canceled => false,
        }
    }
}

/// The attempts of a run, oldest first, from its whole journal.
pub fn attempts<'e>(
    run: RunId,
    plan: &Plan,
    journal: impl IntoIterator<Item = &'e Entry>,
) -> Vec<NodeAttempt> {
    let mut attempts = Attempts::new(run, plan);
    journal.into_iter().for_each(|entry| attempts.follow(entry));
    attempts.into_rows()
}

/// The fold, for readers that read a journal in parts.
#[derive(Debug)]
pub struct Attempts<'p> {
    plan: &'p Plan,
    run: Run,
    rows: Vec<NodeAttempt>,
    /// The newest row of every place.
    newest: BTreeMap<NodePath, usize>,
    /// Those of them that something may still come of.
    open: BTreeMap<NodePath, usize>,
    /// The node of the outermost scope that was entered last.
    entered: Option<NodePath>,
    cancel: Option<String>,
    n_events: u64,
    now: Timestamp,
}

/// The outcome of an attempt.
#[derive(Default)]
struct AttemptEnd {
    output: Option<Arc<Value>>,
    fault: Option<Fault>,
    action: Option<String>,
    worker: Option<String>,
}

impl<'p> Attempts<'p> {
    /// The attempts of a run that nothing has happened to.
    pub fn new(run: RunId, plan: &'p Plan) -> Self {
        Attempts {
            plan,
            run: Run::new(run),
            rows: Vec::new(),
            newest: BTreeMap::new(),
            open: BTreeMap::new(),
            entered: None,
            cancel: None,
            n_events: 0,
            now: Timestamp(0),
        }
    }

    /// Takes the next entry of the journal.
    pub fn follow(&mut self, entry: &Entry) {
        self.now = entry.at;
        for event in &entry.events {
            self.n_events += 1;
            self.run.apply(self.plan, event, entry.at);
            self.see(event);
        }
    }

    /// The run as it is after the entries so far.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// The rows so far, oldest first.
    pub fn rows(&self) -> &[NodeAttempt] {
        &self.rows
    }

    /// The rows, oldest first.
    pub fn into_rows(self) -> Vec<NodeAttempt> {
        self.rows
    }

    fn see(&mut self, event: &Event) {
        match event {
            Event::Entered { node, .. } => self.entered(node),
            Event::Granted { node, fence, attempt, .. } => {
                if let Some(row) = self.begin(node) {
                    (row.fence, row.attempt) = (*fence, *attempt);
                }
            }
            Event::Opened { node, .. } => {
                if !self.open.contains_key(node) {
                    self.begin_again(node, 1);
                }
                // Only a branch goes on where it was left when it is opened.
                if self.run.place(self.plan, node).is_some_and(|place| place.branch.is_some()) {
                    self.reopened(node);
                }
            }
            Event::Waiting { node, wait } => match wait {
                Waiting::Timer { .. } | Waiting::Signal { .. } | Waiting::Approval { .. } => {
                    self.mark(node, AttemptStatus::Waiting);
                }
                // The call was not granted yet.
                Waiting::Balance { .. } | Waiting::Budget { .. } => {}
            },
            Event::Suspended { node, memo, worker, .. } => {
                let (output, worker) = (Some(memo.clone()), worker.clone());
                self.end(
                    node,
                    AttemptStatus::Suspended,
                    AttemptEnd { output, worker, ..AttemptEnd::default() },
                );
            }
            Event::Deferred { node, fault, worker, .. } => {
                let (fault, worker) = (Some(fault.clone()), worker.clone());
                self.end(node, AttemptStatus::Error, AttemptEnd { fault, worker, ..AttemptEnd::default() });
            }
            Event::Done { node, output, action, worker, .. } => {
                let output = output.clone().or_else(|| self.run.node_output(self.plan, node));
                let end = AttemptEnd { output, action: action.clone(), worker: worker.clone(), fault: None };
                self.end(node, AttemptStatus::Ok, end);
            }
            Event::Failed { node, fault, route, worker, .. } => {
                let (fault, action, worker) = (Some(fault.clone()), route.clone(), worker.clone());
                let output = self.run.node_output(self.plan, node);
                let output = output.filter(|_| self.open.contains_key(node));
                self.end(node, AttemptStatus::Error, AttemptEnd { output, fault, action, worker });
            }
            Event::Dropped { node } => self.drop_inside(node),
            Event::Retried { .. } | Event::Rerun { .. } => self.reopened(&NodePath::root()),
            Event::Canceling { reason, .. } => self.cancel = reason.clone(),
            Event::Ended { status, .. } => match status {
                Ending::Canceled => self.cancelled(),
                Ending::Completed | Ending::Failed => {}
            },
            Event::Started(_)
            | Event::Expiring { .. }
            | Event::Skipped { .. }
            | Event::Judged { .. }
            | Event::Turned { .. }
            | Event::Draining { .. }
            | Event::Signaled { .. }
            | Event::Decided { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stepped
            | Event::SetBack { .. }
            | Event::Funded { .. }
            | Event::Billed { .. }
            | Event::Logged { .. } => {}
        }
    }

    fn entered(&mut self, node: &NodePath) {
        if super::is_outermost(node) {
            self.entered = Some(node.clone());
        }
        let is_call = self.run.place(self.plan, node).is_some_and(|place| place.call.is_some());
        if !is_call {
            self.begin(node);
        }
    }

    /// A new row for this place.
    fn begin(&mut self, node: &NodePath) -> Option<&mut NodeAttempt> {
        let place = self.run.place(self.plan, node)?;
        let exec = place.call.map(|call| &call.exec);
        let row = NodeAttempt {
            event: self.n_events,
            fence: Fence(0),
            node: node.clone(),
            part: part(node, &place),
            visit: place.visit,
            attempt: 1,
            status: if exec == Some(&Exec::Queue) { AttemptStatus::Queued } else { AttemptStatus::Running },
            kind: place.node.label.clone(),
            exec: exec.map(exec_word),
            function: exec.and_then(|exec| function(exec, place.name.as_deref())),
            service: place.service,
            input: self.run.node_input(self.plan, node).unwrap_or_default(),
            output: None,
            fault: None,
            action: None,
            worker: None,
            started_at: self.now,
            suspended_at: None,
            finished_at: None,
        };
        self.newest.insert(node.clone(), self.rows.len());
        self.open.insert(node.clone(), self.rows.len());
        self.rows.push(row);
        self.rows.last_mut()
    }

    /// A new row for this place, numbered `step` after the one before it in the same visit.
    fn begin_again(&mut self, node: &NodePath, step: u32) {
        let before = self.newest.get(node).map(|at| (self.rows[*at].visit, self.rows[*at].attempt));
        let Some(row) = self.begin(node) else { return };
        if let Some((_, attempt)) = before.filter(|(visit, _)| *visit == row.visit) {
            row.attempt = attempt.saturating_add(step);
        }
    }

    fn mark(&mut self, node: &NodePath, status: AttemptStatus) {
        if let Some(at) = self.open.get(node) {
            self.rows[*at].status = status;
        }
    }

    /// Ends the open attempt at this place. Where there is none, something ended without having been attempted: its
    /// input was too large, the account could not pay, its time ran out between two attempts.
    fn end(&mut self, node: &NodePath, status: AttemptStatus, end: AttemptEnd) {
        if !self.open.contains_key(node) {
            self.begin_again(node, 0);
        }
        let Some(at) = self.open.get(node).copied() else { return };
        if !status.is_open() {
            self.open.remove(node);
        }
        let now = self.now;
        let row = &mut self.rows[at];
        row.status = status;
        row.finished_at = Some(now);
        row.suspended_at = (status == AttemptStatus::Suspended).then_some(now).or(row.suspended_at);
        row.output = end.output;
        row.fault = end.fault;
        row.action = end.action;
        row.worker = end.worker.or_else(|| row.worker.take());
    }

    /// Everything open at this place and inside it is canceled.
    fn drop_inside(&mut self, node: &NodePath) {
        for (path, at) in inside(&self.open, node) {
            self.open.remove(&path);
            self.rows[at].status = AttemptStatus::Canceled;
            self.rows[at].finished_at = Some(self.now);
        }
    }

    /// Containers that were over and have been taken up again: they are not entered, they just go on.
    fn reopened(&mut self, node: &NodePath) {
        for (path, at) in inside(&self.newest, node) {
            if self.open.contains_key(&path) || self.rows[at].exec.is_some() {
                continue;
            }
            let place = self.run.place(self.plan, &path);
            if place.is_some_and(|place| place.phase.is_open() && place.visit != self.rows[at].visit) {
                self.begin(&path);
            }
        }
    }

    /// A canceled run ends with an attempt that says so, also when nothing was open.
    fn cancelled(&mut self) {
        if self.rows.last().is_some_and(|row| row.status == AttemptStatus::Canceled) {
            return;
        }
        let root = &self.plan.root;
        let first = match root.routing {
            Routing::Action { start } => root.nodes.get(start),
            Routing::Join { .. } => root.nodes.first(),
        };
        let node = self.entered.clone().or_else(|| first.map(|node| NodePath::from(node.key.as_str())));
        let (now, reason) = (self.now, self.cancel.take());
        let Some(row) = node.and_then(|node| self.begin(&node)) else { return };
        let message = reason.unwrap_or_else(|| "the run was cancelled".to_owned());
        row.status = AttemptStatus::Canceled;
        row.fault = Some(Fault::new(FaultKind::Canceled, message).permanent());
        row.finished_at = Some(now);
        let node = row.node.clone();
        self.open.remove(&node);
    }
}

/// The rows of this place and of all inside it.
fn inside(rows: &BTreeMap<NodePath, usize>, node: &NodePath) -> Vec<(NodePath, usize)> {
    // Inner paths sort together, after `path/`.
    let prefix = if node.is_root() { String::new() } else { format!("{node}/") };
    let range = rows.range(NodePath::from(prefix.as_str())..);
    let inner = range.take_while(|(path, _)| path.as_str().starts_with(&prefix));
    let own = rows.get_key_value(node);
    own.into_iter().chain(inner).map(|(path, at)| (path.clone(), *at)).collect()
}

fn part(path: &NodePath, place: &NodeView<'_, '_>) -> AttemptPart {
    let Some(index) = place.branch else {
        return match path.split_last() {
            Some((outer, key)) if !outer.is_root() => AttemptPart::Inner { key: key.to_owned() },
            Some(_) | None => AttemptPart::Outermost,
        };
    };
    match &place.node.kind {
        NodeKind::Fan(fan) if matches!(fan.branches, Branches::Items { .. }) => AttemptPart::Item { index },
        _ => AttemptPart::Branch { index, name: place.name.clone().unwrap_or_default() },
    }
}

/// The name of a function; one of a branch that the run named goes by the name of the branch.
fn function(exec: &Exec, branch: Option<&str>) -> Option<String> {
    match exec {
        Exec::Func { name } if name.is_empty() => branch.map(str::to_owned),
        Exec::Func { name } => Some(name.clone()),
        Exec::Http | Exec::Queue | Exec::Script(_) | Exec::Flow { .. } => None,
    }
}

/// The word for who performs a call, as definitions spell it.
pub fn exec_word(exec: &Exec) -> &'static str {
    match exec {
        Exec::Http => "http",
        Exec::Queue => "queue",
        Exec::Func { .. } => "local_func",
        Exec::Script(_) => "local_script",
        Exec::Flow { .. } => "flow",
    }
}

#[cfg(test)]
mod tests;
