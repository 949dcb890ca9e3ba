//! One run as the checker knows it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use windlass_engine::event::{Event, Next, Waiting};
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::path::NodePath;
use windlass_engine::retry::FaultKind;
use windlass_engine::run::decide::call::LOSSES_MAX;
use windlass_engine::time::Timestamp;

use super::{Verdict, broken, early};

#[derive(Default)]
pub(super) struct Record {
    /// Every entry as it was stored.
    entries: Vec<Vec<u8>>,
    pub(super) n_events: u64,
    pub(super) signals: BTreeSet<String>,
    /// Every grant there ever was.
    grants: BTreeMap<u64, NodePath>,
    /// The grant that may answer for a place.
    current: BTreeMap<NodePath, u64>,
    visits: BTreeMap<NodePath, u64>,
    /// Places that have a result, by visit and round.
    results: BTreeSet<(NodePath, u64, u32)>,
    /// Places that somebody was asked to work on, by visit and question.
    calls: BTreeSet<(NodePath, u64, u32)>,
    /// How often a call was answered without being over: suspended, or known to have failed.
    questions: BTreeMap<NodePath, u32>,
    losses: BTreeMap<(NodePath, u64), u32>,
    /// When a timer or the next attempt of a place is due.
    due: BTreeMap<NodePath, Timestamp>,
    round: u32,
    ended: bool,
    canceling: bool,
}

impl Record {
    /// Entries come one after the other, each once.
    pub(super) fn entry(&mut self, run: RunId, seq: u64, entry: &Entry) -> Verdict {
        if seq != self.entries.len() as u64 {
            let n = self.entries.len();
            return broken("I3", format!("{run}: entry {seq} was accepted when there were {n}"));
        }
        self.entries.push(entry.encode());
        Ok(())
    }

    pub(super) fn same_history(&self, run: RunId, entries: &[Entry]) -> Verdict {
        let same = entries.len() == self.entries.len()
            && entries.iter().zip(&self.entries).all(|(stored, seen)| stored.encode() == *seen);
        if same {
            Ok(())
        } else {
            broken("I3", format!("{run}: the stored journal is not the one that was written"))
        }
    }

    pub(super) fn grant(&self, fence: u64) -> Option<&NodePath> {
        self.grants.get(&fence)
    }

    /// Whether nobody was asked before in this visit. A call that was answered may be asked again; one whose outcome
    /// is not known may not.
    pub(super) fn is_first_call(&mut self, node: &NodePath) -> bool {
        let visit = self.visits.get(node).copied().unwrap_or(0);
        let asked = self.questions.get(node).copied().unwrap_or(0);
        self.calls.insert((node.clone(), visit, asked))
    }

    pub(super) fn is_current(&self, node: &NodePath, fence: u64) -> bool {
        self.current.get(node) == Some(&fence)
    }

    pub(super) fn event(&mut self, event: &Event, at: Timestamp) -> Verdict {
        self.n_events += 1;
        // The budget of its next round, and the cost of a child that ended late, change nothing about its end.
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
            Event::Waiting { node, wait: Waiting::Timer { until } } => {
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
            | Event::Turned { .. }
            | Event::Waiting { .. }
            | Event::Decided { .. }
            | Event::Paused
            | Event::Resumed
            | Event::Stepped
            | Event::Funded { .. }
            | Event::Billed { .. }
            | Event::Logged { .. } => Ok(()),
        }
    }

    fn ends(&mut self) -> Verdict {
        self.ended = true;
        let open: Vec<_> = self.current.keys().collect();
        if open.is_empty() { Ok(()) } else { broken("I2", format!("ended while {open:?} could answer")) }
    }

    fn deferred(
        &mut self,
        node: &NodePath,
        fence: u64,
        kind: FaultKind,
        until: Timestamp,
        next: Next,
    ) -> Verdict {
        if matches!(kind, FaultKind::Error | FaultKind::NoWorker) {
            *self.questions.entry(node.clone()).or_default() += 1;
        }
        self.answered(node, fence, true)?;
        self.due.insert(node.clone(), until);
        self.counted(node, next)
    }

    fn done(&mut self, node: &NodePath, fence: u64, output: Option<&Value>, at: Timestamp) -> Verdict {
        self.answered(node, fence, true)?;
        tagged(node, fence, output)?;
        if let Some(due) = self.due.remove(node) {
            early(node, due, at)?;
        }
        self.resulted(node)
    }

    fn after_cancel(&self, event: &Event) -> Verdict {
        if self.canceling { broken("I11", format!("after the cancel: {event:?}")) } else { Ok(()) }
    }

    fn granted(&mut self, node: &NodePath, fence: u64, at: Timestamp) -> Verdict {
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

    /// An answer was taken: it must be of the grant that is current.
    fn answered(&mut self, node: &NodePath, fence: u64, over: bool) -> Verdict {
        if fence == 0 {
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

    /// One result per place, visit and round. A branch has the visit of its fan.
    fn resulted(&mut self, node: &NodePath) -> Verdict {
        let own = self.visits.get(node).copied();
        let fan = || node.split_last().and_then(|(fan, _)| self.visits.get(&fan).copied());
        let visit = own.or_else(fan).unwrap_or(0);
        if self.results.insert((node.clone(), visit, self.round)) {
            Ok(())
        } else {
            broken("I3", format!("`{node}` has two results in visit {visit}"))
        }
    }

    fn counted(&mut self, node: &NodePath, next: Next) -> Verdict {
        if next != Next::Lost {
            return Ok(());
        }
        let visit = self.visits.get(node).copied().unwrap_or(0);
        let losses = self.losses.entry((node.clone(), visit)).or_default();
        *losses += 1;
        // Branches share the fan's visit, and a new round may come to the same branch again.
        if *losses >= LOSSES_MAX * (self.round + 1) {
            return broken("I13", format!("`{node}` was given out again after {losses} losses"));
        }
        Ok(())
    }

    fn new_round(&mut self, round: u32) -> Verdict {
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

/// Workers put the place and the fence they were given into their results: a result must be the one that was asked
/// for, under the grant it is taken for.
fn tagged(node: &NodePath, fence: u64, output: Option<&Value>) -> Verdict {
    let Some(output) = output.filter(|_| fence > 0) else { return Ok(()) };
    let Some(at) = output.get("at").and_then(Value::as_str) else { return Ok(()) };
    let of = output.get("fence").and_then(Value::as_u64);
    if at == node.as_str() && of == Some(fence) {
        return Ok(());
    }
    broken("I4", format!("`{node}` fence {fence} took the result of `{at}` fence {of:?}"))
}
