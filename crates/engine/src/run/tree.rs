//! The tree of scopes: from a path to a node, branch or scope, to be read or to be changed. Paths are relative to the
//! scope that is asked, which for a run is the root.

#![deny(
    clippy::expect_used,
    clippy::panic,
    clippy::unreachable,
    clippy::unwrap_used,
    reason = "applying an event cannot fail"
)]

use super::state::{Activity, FanState, Nest, NodeState, Phase, ScopeState, Slot, Work};
use super::view::{AddedParams, BranchRef, NodeRef, ScopeLevel};
use crate::counter::Fence;
use crate::path::NodePath;
use crate::plan::{Body, NodeKind, Scope};
use crate::retry::Fault;
use crate::time::Timestamp;

/// A node or one branch of a fan, to be changed.
pub(super) enum NodeMut<'s> {
    Node(&'s mut NodeState),
    Branch(&'s mut Slot),
}

impl<'s> NodeMut<'s> {
    pub(super) fn into_phase(self) -> &'s mut Phase {
        match self {
            NodeMut::Node(node) => &mut node.phase,
            NodeMut::Branch(slot) => &mut slot.phase,
        }
    }

    /// When time has to be looked at for it.
    pub(super) fn into_wake(self) -> &'s mut Option<Timestamp> {
        match self {
            NodeMut::Node(node) => &mut node.wake,
            NodeMut::Branch(slot) => &mut slot.wake,
        }
    }

    /// Keeps the number and the fence of the last grant.
    pub(super) fn note_grant(&mut self, attempt: u32, fence: Fence) {
        match self {
            NodeMut::Node(node) => (node.attempts, node.fence) = (attempt, fence),
            NodeMut::Branch(slot) => (slot.attempts, slot.fence) = (attempt, fence),
        }
    }

    /// Keeps the last failure where people look for it, also when another attempt follows.
    pub(super) fn note_fault(&mut self, fault: &Fault) {
        match self {
            NodeMut::Node(node) => node.fault = Some(fault.clone()),
            NodeMut::Branch(slot) => slot.fault = Some(Box::new(fault.clone())),
        }
    }
}

impl ScopeState {
    /// The node or branch at `path`, if the run has got that far into the scopes around it.
    pub(crate) fn spot<'p, 's>(&'s self, scope: &'p Scope, path: &NodePath) -> Option<NodeRef<'p, 's>> {
        let mut chain = vec![ScopeLevel { scope, state: self, overrides: None, added: None }];
        let mut segments = path.segments().peekable();
        let mut in_fan = false;
        loop {
            let level = *chain.last()?;
            let (ix, node) = level.scope.node(segments.next()?)?;
            let state = level.state.node(ix);
            if segments.peek().is_none() {
                return Some(NodeRef { chain, level, ix, node, state, branch: None, in_fan, signals: None });
            }
            match (&node.kind, state.nest.as_deref()) {
                (NodeKind::Sub(sub), Some(Nest::Scope(inner))) => {
                    chain.push(ScopeLevel {
                        scope: &sub.scope,
                        state: inner,
                        overrides: Some(&sub.overrides),
                        added: Some(AddedParams::of(&level, node, None)),
                    });
                }
                (NodeKind::Loop(body), Some(Nest::Loop(turns))) => {
                    let turn = turns.turns.get(index(segments.next()?)?)?;
                    chain.push(ScopeLevel { scope: &body.body, state: turn, overrides: None, added: None });
                }
                (NodeKind::Fan(fan), Some(Nest::Fan(arms))) => {
                    in_fan = true;
                    let at = index(segments.next()?)?;
                    let slot = arms.slots.get(at)?;
                    let branch = fan.branch(at)?;
                    if segments.peek().is_none() {
                        let name = arms.names.get(at).map(String::as_str);
                        let arm = BranchRef { index: at, branch, slot, name };
                        return Some(NodeRef {
                            chain,
                            level,
                            ix,
                            node,
                            state,
                            branch: Some(arm),
                            in_fan,
                            signals: None,
                        });
                    }
                    let (Body::Scope(scope), Some(inner)) = (&branch.body, slot.scope.as_deref()) else {
                        return None;
                    };
                    let added = Some(AddedParams::of(&level, node, Some(branch)));
                    chain.push(ScopeLevel { scope, state: inner, overrides: None, added });
                }
                _ => return None,
            }
        }
    }

    /// The scope at `path` (a subflow node, a branch, a turn; the root) and those around it.
    pub(crate) fn chain<'p, 's>(
        &'s self,
        scope: &'p Scope,
        path: &NodePath,
    ) -> Option<Vec<ScopeLevel<'p, 's>>> {
        if path.is_root() {
            return Some(vec![ScopeLevel { scope, state: self, overrides: None, added: None }]);
        }
        // A turn of a loop is no node: its last segment is an index.
        if let Some((outer, last)) = path.split_last()
            && let Some(spot) = self.spot(scope, &outer)
            && let (NodeKind::Loop(body), Some(Nest::Loop(turns))) =
                (&spot.node.kind, spot.state.nest.as_deref())
            && spot.branch.is_none()
        {
            let turn = turns.turns.get(index(last)?)?;
            let mut chain = spot.chain;
            chain.push(ScopeLevel { scope: &body.body, state: turn, overrides: None, added: None });
            return Some(chain);
        }
        let spot = self.spot(scope, path)?;
        let added = Some(spot.added());
        let level = match (&spot.branch, &spot.node.kind, spot.state.nest.as_deref()) {
            (None, NodeKind::Sub(sub), Some(Nest::Scope(inner))) => {
                ScopeLevel { scope: &sub.scope, state: inner, overrides: Some(&sub.overrides), added }
            }
            (Some(arm), _, _) => match (&arm.branch.body, arm.slot.scope.as_deref()) {
                (Body::Scope(scope), Some(inner)) => {
                    ScopeLevel { scope, state: inner, overrides: None, added }
                }
                _ => return None,
            },
            _ => return None,
        };
        let mut chain = spot.chain;
        chain.push(level);
        Some(chain)
    }

    /// The scope at `path`, to be changed.
    pub(crate) fn scope_mut<'p>(
        &mut self,
        mut scope: &'p Scope,
        path: &NodePath,
    ) -> Option<(&'p Scope, &mut ScopeState)> {
        let mut state = self;
        let mut segments = path.segments();
        while let Some(key) = segments.next() {
            let (ix, node) = scope.node(key)?;
            let nest = state.nodes.get_mut(&ix)?.nest.as_deref_mut()?;
            (scope, state) = match (&node.kind, nest) {
                (NodeKind::Sub(sub), Nest::Scope(inner)) => (&sub.scope, inner),
                (NodeKind::Loop(body), Nest::Loop(turns)) => {
                    (&body.body, turns.turns.get_mut(index(segments.next()?)?)?)
                }
                (NodeKind::Fan(fan), Nest::Fan(arms)) => {
                    let at = index(segments.next()?)?;
                    let Body::Scope(scope) = &fan.branch(at)?.body else { return None };
                    (&**scope, arms.slots.get_mut(at)?.scope.as_deref_mut()?)
                }
                _ => return None,
            };
        }
        Some((scope, state))
    }

    /// The node at `path`; a node that was never touched becomes pending.
    pub(super) fn node_mut(&mut self, scope: &Scope, path: &NodePath) -> Option<&mut NodeState> {
        let (scope_path, key) = path.split_last()?;
        let (scope, state) = self.scope_mut(scope, &scope_path)?;
        let (ix, _) = scope.node(key)?;
        Some(state.nodes.entry(ix).or_default())
    }

    pub(super) fn fan_mut(&mut self, scope: &Scope, path: &NodePath) -> Option<&mut FanState> {
        match self.node_mut(scope, path)?.nest.as_deref_mut()? {
            Nest::Fan(arms) => Some(arms),
            Nest::Scope(_) | Nest::Loop(_) => None,
        }
    }

    /// The branch at `path`, when the path leads to a branch.
    pub(super) fn slot_mut(&mut self, scope: &Scope, path: &NodePath) -> Option<&mut Slot> {
        let (fan, index) = path.split_last()?;
        let index: usize = index.parse().ok()?;
        self.fan_mut(scope, &fan)?.slots.get_mut(index)
    }

    /// The node or branch at `path`.
    pub(super) fn spot_mut(&mut self, scope: &Scope, path: &NodePath) -> Option<NodeMut<'_>> {
        if self.spot(scope, path)?.branch.is_some() {
            return self.slot_mut(scope, path).map(NodeMut::Branch);
        }
        self.node_mut(scope, path).map(NodeMut::Node)
    }

    /// The call that is open at `path`.
    pub(super) fn work_mut(&mut self, scope: &Scope, path: &NodePath) -> Option<&mut Work> {
        match self.spot_mut(scope, path)?.into_phase() {
            Phase::Open(Activity::Call(work)) => Some(work),
            Phase::Open(_)
            | Phase::Pending
            | Phase::Done
            | Phase::Failed
            | Phase::Skipped
            | Phase::Canceled => None,
        }
    }

    /// The loop whose turn this path is.
    pub(super) fn loop_of_turn(&self, scope: &Scope, path: &NodePath) -> Option<NodePath> {
        let (outer, _) = path.split_last()?;
        let spot = self.spot(scope, &outer)?;
        (spot.branch.is_none() && matches!(spot.node.kind, NodeKind::Loop(_))).then_some(outer)
    }

    /// The nearest scope around a node that has its own shared state: the flow it belongs to.
    pub(super) fn flow_of(&self, scope: &Scope, path: &NodePath) -> NodePath {
        let outside = |path: &NodePath| path.split_last().map_or_else(NodePath::root, |(scope, _)| scope);
        // A branch stands in the scope of its fan.
        let is_branch = self.spot(scope, path).is_some_and(|spot| spot.branch.is_some());
        let mut flow = if is_branch { outside(&outside(path)) } else { outside(path) };
        while let Some(of) = self.loop_of_turn(scope, &flow) {
            flow = outside(&of);
        }
        flow
    }
}

/// The index a segment spells, in the one way it is spelled: `03` and `+3` are no other names of `3`.
fn index(segment: &str) -> Option<usize> {
    let is_plain =
        segment.bytes().all(|b| b.is_ascii_digit()) && (segment == "0" || !segment.starts_with('0'));
    is_plain.then(|| segment.parse().ok()).flatten()
}
