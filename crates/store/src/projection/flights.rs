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
pub(super) struct Flights {
    direct: BTreeMap<NodePath, bool>,
    n_direct: usize,
}

impl Flights {
    /// The calls in flight of a run that was loaded.
    pub(super) fn of(plan: &Plan, run: &Run) -> Self {
        let mut flights = Flights::default();
        for (node, _, exec) in run.open_calls(plan) {
            // A suspended call can be reported, but no worker has it.
            if run.node_status(plan, &node) == Some("running") {
                flights.take_off(&node, is_direct(&exec));
            }
        }
        flights
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
                Effect::Call(order) => {
                    orders.insert(order.fence, is_direct(&order.exec));
                }
                Effect::Cancel { .. }
                | Effect::Move { .. }
                | Effect::Tell { .. }
                | Effect::Bill { .. }
                | Effect::Raise { .. } => {}
            }
        }
        for event in &step.events {
            match event {
                Event::Granted { node, fence, .. } => {
                    self.take_off(node, orders.get(fence).copied().unwrap_or(true));
                }
                Event::Suspended { node, .. }
                | Event::Deferred { node, .. }
                | Event::Done { node, .. }
                | Event::Failed { node, .. } => self.land(node),
                Event::Dropped { node } => self.land_all(node),
                Event::Ended { .. } => *self = Flights::default(),
                Event::Started(_)
                | Event::Entered { .. }
                | Event::Expiring { .. }
                | Event::Skipped { .. }
                | Event::Judged { .. }
                | Event::Opened { .. }
                | Event::Turned { .. }
                | Event::Waiting { .. }
                | Event::Signaled { .. }
                | Event::Decided { .. }
                | Event::Canceling { .. }
                | Event::Paused
                | Event::Resumed
                | Event::Stepped
                | Event::Retried { .. }
                | Event::Rerun { .. }
                | Event::Funded { .. }
                | Event::Billed { .. }
                | Event::Logged { .. } => {}
            }
        }
    }

    fn take_off(&mut self, node: &NodePath, is_direct: bool) {
        let before = self.direct.insert(node.clone(), is_direct);
        self.n_direct = self.n_direct + usize::from(is_direct) - usize::from(before == Some(true));
    }

    fn land(&mut self, node: &NodePath) {
        let before = self.direct.remove(node);
        self.n_direct -= usize::from(before == Some(true));
    }

    /// The path and everything inside it. Inner paths sort together, after `path/`.
    fn land_all(&mut self, node: &NodePath) {
        self.land(node);
        let inside = NodePath::from(format!("{node}/").as_str());
        let range = self.direct.range(inside.clone()..);
        let gone: Vec<NodePath> = range
            .map(|(path, _)| path.clone())
            .take_while(|p| p.as_str().starts_with(inside.as_str()))
            .collect();
        gone.iter().for_each(|path| self.land(path));
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
    fn what_is_dropped_lands_with_everything_inside_and_nothing_beside() {
        let mut flights = Flights::default();
        // `a-b` sorts between `a` and `a/0`.
        for (place, is_direct) in [("a", true), ("a-b", true), ("a/0", false), ("a/1/x", true), ("b", false)]
        {
            flights.take_off(&NodePath::from(place), is_direct);
        }
        flights.land_all(&NodePath::from("a"));
        let left: Vec<&str> = flights.direct.keys().map(NodePath::as_str).collect();
        assert_eq!((left, flights.n_direct()), (vec!["a-b", "b"], 1));
    }

    #[test]
    fn a_call_that_is_given_out_again_is_counted_once() {
        let mut flights = Flights::default();
        let a = NodePath::from("a");
        flights.take_off(&a, true);
        flights.take_off(&a, true);
        assert_eq!((flights.len(), flights.n_direct()), (1, 1));
        flights.land(&a);
        flights.land(&a);
        assert_eq!((flights.len(), flights.n_direct()), (0, 0));
    }
}
