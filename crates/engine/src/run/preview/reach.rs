//! Which nodes of a scope a round gets to: surely, or only if what comes out leads there.

use std::collections::{BTreeMap, BTreeSet};

use super::Fate;
use crate::plan::{Node, NodeIx, Scope, When};
use crate::run::apply::reachable;
use crate::run::state::{Phase, ScopeState};

/// From a node of an action scope on. The node itself is among them.
pub(super) fn by_action(scope: &Scope, start: NodeIx) -> BTreeMap<NodeIx, Fate> {
    let mut fates: BTreeMap<NodeIx, Fate> =
        reachable(scope, &BTreeSet::from([start])).into_iter().map(|ix| (ix, Fate::MayRun)).collect();
    let mut next = Some(start);
    while let Some(ix) = next.filter(|ix| fates.insert(*ix, Fate::Runs) != Some(Fate::Runs)) {
        next = sole_target(&scope.nodes[ix]);
    }
    fates
}

/// Where a node of an action scope leads, whatever it says; failures aside.
fn sole_target(node: &Node) -> Option<NodeIx> {
    let mut target = None;
    let mut has_default = false;
    for edge in &node.out {
        let When::Action(action) = &edge.when else { continue };
        match action.as_str() {
            "error" | "timeout" => continue,
            word => has_default |= word == "default",
        }
        if target.is_some_and(|target| target != edge.to) {
            return None;
        }
        target = Some(edge.to);
    }
    target.flatten().filter(|_| has_default)
}

/// A join scope from its beginning.
pub(super) fn by_join(scope: &Scope) -> BTreeMap<NodeIx, Fate> {
    let fates = (0..scope.nodes.len()).map(|ix| (ix, Fate::MayRun)).collect();
    let first = (0..scope.nodes.len()).filter(|ix| scope.nodes[*ix].n_in == 0).collect();
    spread(scope, fates, first)
}

/// A join scope in which a round has reset what is to run.
pub(super) fn by_join_again(scope: &Scope, state: &ScopeState) -> BTreeMap<NodeIx, Fate> {
    let mut fates = BTreeMap::new();
    let mut sure = Vec::new();
    for ix in 0..scope.nodes.len() {
        let Some(n_in) = state.n_in(scope, ix) else { continue };
        let node = state.node(ix);
        let started = state.chosen.as_ref().is_some_and(|chosen| chosen.starts.contains(&ix));
        let fate = match node.phase {
            Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => Fate::Kept,
            Phase::Open(_) => {
                sure.push(ix);
                Fate::GoesOn
            }
            Phase::Pending if started || n_in == 0 || node.n_in_live > 0 => {
                sure.push(ix);
                Fate::Runs
            }
            Phase::Pending if node.n_in_settled == n_in => Fate::Skipped,
            Phase::Pending => Fate::MayRun,
        };
        fates.insert(ix, fate);
    }
    spread(scope, fates, sure)
}

/// What a sure node leads to without a condition is sure.
fn spread(scope: &Scope, mut fates: BTreeMap<NodeIx, Fate>, mut sure: Vec<NodeIx>) -> BTreeMap<NodeIx, Fate> {
    for ix in &sure {
        fates.entry(*ix).and_modify(|fate| {
            if *fate == Fate::MayRun {
                *fate = Fate::Runs;
            }
        });
    }
    while let Some(ix) = sure.pop() {
        let always = scope.nodes[ix].out.iter().filter(|edge| matches!(edge.when, When::Always));
        for to in always.filter_map(|edge| edge.to) {
            if let Some(fate @ Fate::MayRun) = fates.get_mut(&to) {
                *fate = Fate::Runs;
                sure.push(to);
            }
        }
    }
    fates
}
