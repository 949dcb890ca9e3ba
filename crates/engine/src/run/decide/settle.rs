//! Consequences of settled nodes: conditional edges, iterations of loops, ends of scopes, failures on their way up.

use serde_json::Value;

use super::node::weigh_templates;
use super::{Decider, warning};
use crate::counter::Fence;
use crate::event::{Ending, Event, Level, Next, RunFault};
use crate::id::mix;
use crate::path::NodePath;
use crate::plan::{NodeKind, Strategy, SubFailure, When};
use crate::retry::{Fault, FaultKind};
use crate::run::draining::OpenInside;
use crate::run::state::{FanState, Nest, Phase, ScopeState};
use crate::run::view::NodeRef;
use crate::weight::weigh;

impl Decider<'_> {
    /// Which of a settled node's conditional edges are dead.
    pub(super) fn judge(&self, path: &NodePath) -> Vec<Event> {
        let spot = self.spot(path);
        let view = spot.view(self.run, &spot.state.input);
        let nodes = &spot.level.scope.nodes;
        let (mut events, mut dead) = (Vec::new(), Vec::new());
        for edge in &spot.node.out {
            let Some(to) = edge.to.map(|ix| &nodes[ix].key) else { continue };
            let live = match &edge.when {
                When::Always => true,
                When::Action(action) => spot.state.action.as_deref() == Some(action),
                When::If(condition) => match condition.holds(&view, &self.given.meter) {
                    Ok(true) => true,
                    Ok(false) => {
                        let message =
                            format!("the edge to `{to}` is not taken: {}", condition.explain(&view));
                        events.push(Event::Logged { level: Level::Info, node: Some(path.clone()), message });
                        false
                    }
                    Err(reason) => {
                        events.push(warning(path, format!("the edge to `{to}` is dead: {reason}")));
                        false
                    }
                },
            };
            if !live {
                dead.push(to.clone());
            }
        }
        events.push(Event::Judged { node: path.clone(), dead });
        events
    }

    /// The open turn of a loop ended.
    pub(super) fn turn(&self, path: &NodePath) -> Vec<Event> {
        let spot = self.spot(path);
        let (NodeKind::Loop(plan), Some(Nest::Loop(turns))) = (&spot.node.kind, spot.state.nest.as_deref())
        else {
            return Vec::new();
        };
        let chain =
            self.run.root.chain(&self.plan.root, &path.at(turns.index)).expect("the open turn is there");
        let view = crate::run::facts::View {
            run: self.run,
            chain: &chain,
            own_params: None,
            params: spot.scope_params(),
            input: &spot.state.input,
            result: None,
        };
        let templates = plan.outputs.iter().map(|(_, template)| template);
        match weigh_templates(templates, &view) {
            Ok(bytes) if self.given.meter.spend_bytes(bytes).is_err() => return Vec::new(),
            Ok(_) => {}
            Err(excess) => return vec![spot.excessive(path, Fence::ZERO, "a turn's output", excess, None)],
        }
        let outputs: Vec<Value> = plan.outputs.iter().map(|(_, template)| template.resolve(&view)).collect();
        if let Some(excess) = outputs.iter().find_map(|output| weigh(output).err()) {
            return vec![spot.excessive(path, Fence::ZERO, "a turn's output", excess, None)];
        }
        vec![Event::Turned { node: path.clone(), index: turns.index, outputs }]
    }

    /// Everything inside `path` is over, or `return` ended it: it ends well.
    pub(super) fn finish(&self, path: &NodePath) -> Vec<Event> {
        let mut events = self.drop_inside(path);
        if path.is_root() {
            let result = self.run.root.result.clone();
            events.push(Event::Ended { status: Ending::Completed, error: None, result });
            return events;
        }
        let spot = self.spot(path);
        if self.given.meter.spend(n_inside(spot.state.nest.as_deref())).is_err() {
            return Vec::new();
        }
        if let (None, NodeKind::Fan(fan), Some(Nest::Fan(arms))) =
            (&spot.branch, &spot.node.kind, spot.state.nest.as_deref())
            && arms.n_failed > 0
            && arms.strategy(fan) == Strategy::All
        {
            events.push(spot.failed(path, Fence::ZERO, fan_fault(arms), None));
            return events;
        }
        let action = match (&spot.branch, spot.state.nest.as_deref()) {
            (None, Some(Nest::Scope(inner))) => spot.sub_action(inner),
            (None, _) if spot.node.post.action_static.is_none() && spot.node.post.action_key.is_none() => {
                None
            }
            (None, _) => spot.action(&crate::run::apply::collected(&spot)),
            (Some(_), _) => None,
        };
        let node = path.clone();
        events.push(Event::Done { node, fence: Fence(0), output: None, action, actual: None, worker: None });
        events
    }

    /// Something inside `path` failed and nothing there caught it.
    pub(super) fn collapse(&self, path: &NodePath) -> Vec<Event> {
        if let Some(events) = self.drain(path) {
            return events;
        }
        let mut events = self.drop_inside(path);
        if path.is_root() {
            let error = self.run.root.fault.clone().map(|(node, fault)| RunFault { node, fault });
            events.push(Event::Ended { status: Ending::Failed, error, result: None });
            return events;
        }
        // The turn of a loop fails its loop.
        let path = self.run.root.loop_of_turn(&self.plan.root, path).unwrap_or_else(|| path.clone());
        let spot = self.spot(&path);
        let last = match (&spot.branch, &spot.node.kind, spot.state.nest.as_deref()) {
            (Some(arm), _, _) => {
                let fault = arm.slot.scope.as_deref().and_then(|scope| scope.fault.clone());
                spot.failed(&path, Fence::ZERO, uncaught(fault), None)
            }
            (None, NodeKind::Sub(sub), Some(Nest::Scope(inner))) => {
                self.sub_failed(&spot, &path, inner, &sub.on_failure)
            }
            (None, _, Some(Nest::Fan(arms))) => spot.failed(&path, Fence::ZERO, fan_fault(arms), None),
            (None, _, Some(Nest::Loop(turns))) => {
                let fault = turns.turns.last().and_then(|turn| turn.fault.clone());
                spot.failed(&path, Fence::ZERO, uncaught(fault), None)
            }
            (None, _, _) => spot.failed(&path, Fence::ZERO, uncaught(None), None),
        };
        events.push(last);
        events
    }

    /// The beginning of a drain, if calls in hand have to end before the place fails: everything else is canceled.
    fn drain(&self, path: &NodePath) -> Option<Vec<Event>> {
        if self.run.draining.contains_key(path) || !self.run.drains(self.plan, path) {
            return None;
        }
        let OpenInside { idle, has_call_in_hand } = self.run.open_inside(self.plan, path);
        let draining = has_call_in_hand.then(|| Event::Draining { node: path.clone() })?;
        Some(idle.into_iter().map(|node| Event::Dropped { node }).chain([draining]).collect())
    }

    fn sub_failed(
        &self,
        spot: &NodeRef<'_, '_>,
        path: &NodePath,
        inner: &ScopeState,
        on: &SubFailure,
    ) -> Event {
        let fault = uncaught(inner.fault.clone());
        let restart = match on {
            SubFailure::Ignore => {
                let node = path.clone();
                let action = spot.sub_action(inner);
                return Event::Done {
                    node,
                    fence: Fence(0),
                    output: None,
                    action,
                    actual: None,
                    worker: None,
                };
            }
            SubFailure::Fail => None,
            SubFailure::Restart(policy) => {
                let may_restart = spot.state.restarts < policy.max && !self.run.is_draining(path);
                (may_restart && fault.kind != FaultKind::Limit).then_some(policy)
            }
        };
        match restart {
            None => spot.failed(path, Fence::ZERO, fault, None),
            Some(policy) => {
                let seed = mix(self.run.id.uuid().as_u64_pair().1 ^ spot.state.visit.0);
                let until = self.given.now.after(policy.delay_ms_after(spot.state.restarts + 1, seed));
                let (node, next) = (path.clone(), Next::Restart);
                Event::Deferred { node, fence: Fence(0), fault, until, next, worker: None }
            }
        }
    }

    /// Cancels the open nodes inside a path, outermost nodes only: each takes its inside along.
    pub(super) fn drop_inside(&self, path: &NodePath) -> Vec<Event> {
        if let Some(chain) = self.run.root.chain(&self.plan.root, path) {
            let level = chain.last().expect("a chain has a last level");
            return open_nodes(level.scope, level.state, path);
        }
        let Some(spot) = self.run.spot(self.plan, path) else { return Vec::new() };
        match spot.state.nest.as_deref() {
            Some(Nest::Fan(arms)) => {
                let open = arms.slots.iter().enumerate().filter(|(_, slot)| slot.phase.is_open());
                open.map(|(at, _)| Event::Dropped { node: path.at(at) }).collect()
            }
            Some(Nest::Loop(turns)) if turns.index < turns.turns.len() => {
                self.drop_inside(&path.at(turns.index))
            }
            Some(Nest::Loop(_) | Nest::Scope(_)) | None => Vec::new(),
        }
    }
}

fn open_nodes(scope: &crate::plan::Scope, state: &ScopeState, path: &NodePath) -> Vec<Event> {
    let open = state.nodes.iter().filter(|(_, node)| node.phase.is_open());
    open.map(|(ix, _)| Event::Dropped { node: path.child(&scope.nodes[*ix].key) }).collect()
}

/// The branches or turns whose results are put together at the end of a node.
fn n_inside(nest: Option<&Nest>) -> usize {
    match nest {
        Some(Nest::Fan(arms)) => arms.slots.len(),
        Some(Nest::Loop(turns)) => turns.outputs.len(),
        Some(Nest::Scope(_)) | None => 0,
    }
}

fn uncaught(fault: Option<(NodePath, Fault)>) -> Fault {
    fault.map_or_else(
        || Fault::new(FaultKind::Error, "failed").permanent(),
        |(node, fault)| Fault::new(fault.kind, format!("`{node}` failed: {}", fault.message)).permanent(),
    )
}

fn fan_fault(arms: &FanState) -> Fault {
    let first = arms.slots.iter().enumerate().find(|(_, slot)| slot.phase == Phase::Failed);
    match first.and_then(|(at, slot)| Some((at, slot.fault.as_deref()?))) {
        Some((at, fault)) => {
            Fault::new(fault.kind, format!("branch {at} failed: {}", fault.message)).permanent()
        }
        None => Fault::new(FaultKind::Error, "a branch failed").permanent(),
    }
}
