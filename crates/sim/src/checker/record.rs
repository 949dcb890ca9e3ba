//! Record of one run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_engine::counter::{Fence, Seq, Visit};
use windlass_engine::event::{Event, Next, Waiting};
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::path::NodePath;
use windlass_engine::retry::FaultKind;
use windlass_engine::run::decide::call::LOSSES_MAX;
use windlass_engine::time::Timestamp;

use super::{CheckResult, broken, early};

#[derive(Default)]
pub(super) struct RunRecord {
    /// Every entry as it was stored.
    entries: Vec<Vec<u8>>,
    pub(super) n_events: u64,
    pub(super) signals: BTreeSet<String>,
    /// Every grant by fence.
    grants: BTreeMap<Fence, NodePath>,
    /// The fence that may answer for a node.
    current: BTreeMap<NodePath, Fence>,
    visits: BTreeMap<NodePath, Visit>,
    /// Nodes that have a result, by visit and round.
    results: BTreeSet<(NodePath, Visit, u32)>,
    /// Nodes whose call was made, by visit and number of the question.
    calls: BTreeSet<(NodePath, Visit, u32)>,
    /// How often a call was answered without ending: suspended, or failed for certain.
    questions: BTreeMap<NodePath, u32>,
    losses: BTreeMap<(NodePath, Visit), u32>,
    /// When a timer or the next attempt of a node is due.
    due: BTreeMap<NodePath, Timestamp>,
    /// The node whose result a client reports now: the report may end a wait before its time.
    pub(super) reporting: Option<NodePath>,
    round: u32,
    ended: bool,
    canceling: bool,
}

impl RunRecord {
    /// Checks that entries come in order, each once.
    pub(super) fn entry(&mut self, run: RunId, len: Seq, entry: &Entry) -> CheckResult {
        if len.0 != self.entries.len() as u64 {
            let n = self.entries.len();
            return broken("I3", format!("{run}: an entry after {len} was accepted when there were {n}"));
        }
        self.entries.push(entry.encode());
        Ok(())
    }

    pub(super) fn same_history(&self, run: RunId, entries: &[Entry]) -> CheckResult {
        let same = entries.len() == self.entries.len()
            && entries.iter().zip(&self.entries).all(|(stored, seen)| stored.encode() == *seen);
        if same {
            Ok(())
        } else {
            broken("I3", format!("{run}: the stored journal is not the one that was written"))
        }
    }

    pub(super) fn grant(&self, fence: Fence) -> Option<&NodePath> {
        self.grants.get(&fence)
    }

    /// Whether this is the first call of the visit. A call that was answered may be made again; one with an unknown
    /// outcome may not.
    pub(super) fn is_first_call(&mut self, node: &NodePath) -> bool {
        let visit = self.visits.get(node).copied().unwrap_or_default();
        let asked = self.questions.get(node).copied().unwrap_or_default();
        self.calls.insert((node.clone(), visit, asked))
    }

    pub(super) fn is_current(&self, node: &NodePath, fence: Fence) -> bool {
        self.current.get(node) == Some(&fence)
    }

    pub(super) fn event(&mut self, event: &Event, at: Timestamp) -> CheckResult {
        self.n_events += 1;
        // A new budget, and the cost of a child that ended late, do not change the end of a run.
        let may_follow = matches!(
            event,
            Event::Retried { .. } | Event::Rerun { .. } | Event::Funded { .. } | Event::Billed { .. }
        );
        if self.ended && !may_follow {
            return broken("I2", format!("after its end: {event:?}"));
        }
        match event {
            Event::Entered { node, visit, .. } => {
                self.visits.insert(node.clone(), *visit);
                self.after_cancel(event)
            }
            Event::Granted { node, fence, .. } => {
                self.after_cancel(event)?;
                self.granted(node, *fence, at)
            }
            Event::Suspended { node, fence, .. } => {
                *self.questions.entry(node.clone()).or_default() += 1;
                self.answered(node, *fence, false)
            }
            Event::Expiring { node, fence, .. } => self.answered(node, *fence, false),
            Event::Deferred { node, fence, fault, until, next, .. } => {
                self.deferred(node, *fence, fault.kind, *until, *next)
            }
            Event::Done { node, fence, output, .. } => self.done(node, *fence, output.as_deref(), at),
            Event::Failed { node, fence, .. } => {
                self.answered(node, *fence, true)?;
                self.due.remove(node);
                Ok(())
            }
            Event::Dropped { node } => {
                self.current.retain(|place, _| !node.holds(place));
                self.due.retain(|place, _| !node.holds(place));
                Ok(())
            }
            Event::Waiting { node, wait: Waiting::Timer { until, .. } } => {
                self.due.insert(node.clone(), *until);
                Ok(())
            }
            Event::Signaled { id, .. } => {
                let again = id.as_ref().is_some_and(|id| !self.signals.insert(id.clone()));
                if again { broken("I3", format!("signal {id:?} was taken twice")) } else { Ok(()) }
            }
            Event::Canceling { .. } => {
                self.canceling = true;
                Ok(())
            }
            Event::Retried { round } | Event::Rerun { round, .. } => self.new_round(*round),
            Event::Ended { .. } => self.ends(),
            Event::Started(_)
            | Event::Skipped { .. }
            | Event::Judged { .. }
            | Event::Opened { .. }
            | Event::Draining { .. }
            | Event::Turned { .. }
            | Event::Waiting { .. }
            | Event::Decided { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stepped
            | Event::SetBack { .. }
            | Event::Funded { .. }
            | Event::Billed { .. }
            | Event::Logged { .. } => Ok(()),
        }
    }

    fn ends(&mut self) -> CheckResult {
        self.ended = true;
        let open: Vec<_> = self.current.keys().collect();
        if open.is_empty() { Ok(()) } else { broken("I2", format!("ended while {open:?} could answer")) }
    }

    fn deferred(
        &mut self,
        node: &NodePath,
        fence: Fence,
        kind: FaultKind,
        until: Timestamp,
        next: Next,
    ) -> CheckResult {
        if matches!(kind, FaultKind::Error | FaultKind::NoWorker) {
            *self.questions.entry(node.clone()).or_default() += 1;
        }
        self.answered(node, fence, true)?;
        self.due.insert(node.clone(), until);
        self.counted(node, next)
    }

    fn done(&mut self, node: &NodePath, fence: Fence, output: Option<&Value>, at: Timestamp) -> CheckResult {
        self.answered(node, fence, true)?;
        tagged(node, fence, output)?;
        if let Some(due) = self.due.remove(node)
            && self.reporting.as_ref() != Some(node)
        {
            early(node, due, at)?;
        }
        self.resulted(node)
    }

    fn after_cancel(&self, event: &Event) -> CheckResult {
        if self.canceling { broken("I11", format!("after the cancel: {event:?}")) } else { Ok(()) }
    }

    fn granted(&mut self, node: &NodePath, fence: Fence, at: Timestamp) -> CheckResult {
        if self.grants.last_key_value().is_some_and(|(last, _)| *last >= fence) {
            return broken("I4", format!("fence {fence} of `{node}` is not new"));
        }
        self.grants.insert(fence, node.clone());
        self.current.insert(node.clone(), fence);
        match self.due.remove(node) {
            Some(due) => early(node, due, at),
            None => Ok(()),
        }
    }

    /// Checks that a taken answer is of the current grant.
    fn answered(&mut self, node: &NodePath, fence: Fence, over: bool) -> CheckResult {
        if fence == Fence::ZERO {
            self.current.remove(node);
            return Ok(());
        }
        if self.current.get(node) != Some(&fence) {
            let now = self.current.get(node);
            return broken("I4", format!("`{node}` took an answer of fence {fence}, current is {now:?}"));
        }
        if over {
            self.current.remove(node);
        }
        Ok(())
    }

    /// Checks that there is one result for each node, visit and round. A branch has the visit of its fan.
    fn resulted(&mut self, node: &NodePath) -> CheckResult {
        let own = self.visits.get(node).copied();
        let fan = || node.split_last().and_then(|(fan, _)| self.visits.get(&fan).copied());
        let visit = own.or_else(fan).unwrap_or_default();
        if self.results.insert((node.clone(), visit, self.round)) {
            Ok(())
        } else {
            broken("I3", format!("`{node}` has two results in visit {visit}"))
        }
    }

    fn counted(&mut self, node: &NodePath, next: Next) -> CheckResult {
        if next != Next::Lost {
            return Ok(());
        }
        let visit = self.visits.get(node).copied().unwrap_or_default();
        let losses = self.losses.entry((node.clone(), visit)).or_default();
        *losses += 1;
        // Branches share the fan's visit, and a new round may reach the same branch again.
        if *losses >= LOSSES_MAX * (self.round + 1) {
            return broken("I13", format!("`{node}` was given out again after {losses} losses"));
        }
        Ok(())
    }

    fn new_round(&mut self, round: u32) -> CheckResult {
        if !self.ended {
            return broken("I2", format!("round {round} began before the last one ended"));
        }
        self.ended = false;
        self.canceling = false;
        self.round = round;
        self.due.clear();
        Ok(())
    }
}

/// Checks the tag of a result: workers put the node and the fence of their call into it.
fn tagged(node: &NodePath, fence: Fence, output: Option<&Value>) -> CheckResult {
    let Some(output) = output.filter(|_| fence > Fence::ZERO) else { return Ok(()) };
    let Some(at) = output.get("at").and_then(Value::as_str) else { return Ok(()) };
    let of = output.get("fence").and_then(Value::as_u64).map(Fence);
    if at == node.as_str() && of == Some(fence) {
        return Ok(());
    }
    broken("I4", format!("`{node}` fence {fence} took the result of `{at}` fence {of:?}"))
}
