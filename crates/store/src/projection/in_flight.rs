//! Granted calls of a run, and whether a server makes them.

use std::collections::BTreeMap;

use windlass_engine::counter::Fence;
use windlass_engine::effect::Effect;
use windlass_engine::event::Event;
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::run::{Run, RunStep};

/// Calls in flight by place: there is at most one at each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct InFlightCalls {
    direct: BTreeMap<NodePath, bool>,
    n_direct: usize,
}

impl InFlightCalls {
    /// The calls in flight of a run that was loaded.
    pub(super) fn of(plan: &Plan, run: &Run) -> Self {
        let mut calls = InFlightCalls::default();
        for (node, _, exec) in run.open_calls(plan) {
            // A suspended call can be reported, but no worker has it.
            if run.node_status(plan, &node) == Some("running") {
                calls.begin(&node, is_direct(&exec));
            }
        }
        calls
    }

    pub(super) fn len(&self) -> usize {
        self.direct.len()
    }

    /// Calls that a server makes itself and has to watch. Jobs and child runs look after themselves.
    pub(super) fn n_direct(&self) -> usize {
        self.n_direct
    }

    pub(super) fn follow(&mut self, step: &RunStep) {
        let mut orders: BTreeMap<Fence, bool> = BTreeMap::new();
        for effect in &step.effects {
            match effect {
                Effect::Call(spec) => {
                    orders.insert(spec.fence, is_direct(&spec.exec));
                }
                Effect::Cancel { .. }
                | Effect::Withdraw { .. }
                | Effect::Move { .. }
                | Effect::Tell { .. }
                | Effect::Bill { .. }
                | Effect::Raise { .. } => {}
            }
        }
        for event in &step.events {
            match event {
                Event::Granted { node, fence, .. } => {
                    self.begin(node, orders.get(fence).copied().unwrap_or(true));
                }
                Event::Suspended { node, .. }
                | Event::Deferred { node, .. }
                | Event::Done { node, .. }
                | Event::Failed { node, .. } => self.end(node),
                Event::Dropped { node } => self.end_inside(node),
                Event::Ended { .. } => *self = InFlightCalls::default(),
                Event::Started(_)
                | Event::Entered { .. }
                | Event::Expiring { .. }
                | Event::Skipped { .. }
                | Event::Judged { .. }
                | Event::Opened { .. }
                | Event::Draining { .. }
                | Event::Turned { .. }
                | Event::Waiting { .. }
                | Event::Signaled { .. }
                | Event::Decided { .. }
                | Event::Canceling { .. }
                | Event::Paused
                | Event::Resumed
                | Event::Stepped
                | Event::SetBack { .. }
                | Event::Retried { .. }
                | Event::Rerun { .. }
                | Event::Funded { .. }
                | Event::Billed { .. }
                | Event::Logged { .. } => {}
            }
        }
    }

    fn begin(&mut self, node: &NodePath, is_direct: bool) {
        let before = self.direct.insert(node.clone(), is_direct);
        self.n_direct = self.n_direct + usize::from(is_direct) - usize::from(before == Some(true));
    }

    fn end(&mut self, node: &NodePath) {
        let before = self.direct.remove(node);
        self.n_direct -= usize::from(before == Some(true));
    }

    /// The path and everything inside it. Inner paths sort together, after `path/`.
    fn end_inside(&mut self, node: &NodePath) {
        self.end(node);
        let inside = NodePath::from(format!("{node}/").as_str());
        let range = self.direct.range(inside.clone()..);
        let gone: Vec<NodePath> = range
            .map(|(path, _)| path.clone())
            .take_while(|p| p.as_str().starts_with(inside.as_str()))
            .collect();
        gone.iter().for_each(|path| self.end(path));
    }
}

fn is_direct(exec: &Exec) -> bool {
    match exec {
        Exec::Http | Exec::Func { .. } | Exec::Script(_) => true,
        Exec::Queue | Exec::Flow { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dropped_node_ends_the_calls_inside_it_and_no_others() {
        let mut calls = InFlightCalls::default();
        // `a-b` sorts between `a` and `a/0`.
        for (place, is_direct) in [("a", true), ("a-b", true), ("a/0", false), ("a/1/x", true), ("b", false)]
        {
            calls.begin(&NodePath::from(place), is_direct);
        }
        calls.end_inside(&NodePath::from("a"));
        let left: Vec<&str> = calls.direct.keys().map(NodePath::as_str).collect();
        assert_eq!((left, calls.n_direct()), (vec!["a-b", "b"], 1));
    }

    #[test]
    fn a_call_that_is_given_out_again_is_counted_once() {
        let mut calls = InFlightCalls::default();
        let a = NodePath::from("a");
        calls.begin(&a, true);
        calls.begin(&a, true);
        assert_eq!((calls.len(), calls.n_direct()), (1, 1));
        calls.end(&a);
        calls.end(&a);
        assert_eq!((calls.len(), calls.n_direct()), (0, 0));
    }
}
