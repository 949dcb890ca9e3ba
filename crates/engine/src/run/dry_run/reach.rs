//! Nodes of a scope that a round reaches: certainly, or only if the outputs of other nodes lead there.

use std::collections::{BTreeMap, BTreeSet};

use super::DryRunStatus;
use crate::plan::{Join, Node, NodeIx, Scope, When};
use crate::run::apply::reachable;
use crate::run::state::{Phase, ScopeState};

/// From a node of an action scope on. The node itself is among them.
pub(super) fn by_action(scope: &Scope, start: NodeIx) -> BTreeMap<NodeIx, DryRunStatus> {
    let mut statuses: BTreeMap<NodeIx, DryRunStatus> =
        reachable(scope, &BTreeSet::from([start])).into_iter().map(|ix| (ix, DryRunStatus::MayRun)).collect();
    let mut next = Some(start);
    while let Some(ix) =
        next.filter(|ix| statuses.insert(*ix, DryRunStatus::Runs) != Some(DryRunStatus::Runs))
    {
        next = sole_target(&scope.nodes[ix]);
    }
    statuses
}

/// The node that a node of an action scope leads to with every action but `error` and `timeout`.
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
pub(super) fn by_join(scope: &Scope) -> BTreeMap<NodeIx, DryRunStatus> {
    let statuses = (0..scope.nodes.len()).map(|ix| (ix, DryRunStatus::MayRun)).collect();
    let certain = |ix: &NodeIx| scope.nodes[*ix].n_in == 0 || scope.nodes[*ix].join == Join::AnySettled;
    let first = (0..scope.nodes.len()).filter(certain).collect();
    spread(scope, statuses, first)
}

/// A join scope in which a new round has reset the nodes that run again.
pub(super) fn by_join_again(scope: &Scope, state: &ScopeState) -> BTreeMap<NodeIx, DryRunStatus> {
    let mut statuses = BTreeMap::new();
    let mut sure = Vec::new();
    for ix in 0..scope.nodes.len() {
        let Some(n_in) = state.n_in(scope, ix) else { continue };
        let node = state.node(ix);
        let started = state.chosen.as_ref().is_some_and(|chosen| chosen.starts.contains(&ix));
        let status = match node.phase {
            Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => DryRunStatus::Kept,
            Phase::Open(_) => {
                sure.push(ix);
                DryRunStatus::GoesOn
            }
            Phase::Pending if started || n_in == 0 || node.n_in_live > 0 => {
                sure.push(ix);
                DryRunStatus::Runs
            }
            Phase::Pending if scope.nodes[ix].join == Join::AnySettled && !node.blocked => {
                sure.push(ix);
                DryRunStatus::Runs
            }
            Phase::Pending if node.n_in_settled == n_in => DryRunStatus::Skipped,
            Phase::Pending => DryRunStatus::MayRun,
        };
        statuses.insert(ix, status);
    }
    spread(scope, statuses, sure)
}

/// A node is certain to run if an edge without a condition leads to it from one that is.
fn spread(
    scope: &Scope,
    mut statuses: BTreeMap<NodeIx, DryRunStatus>,
    mut sure: Vec<NodeIx>,
) -> BTreeMap<NodeIx, DryRunStatus> {
    for ix in &sure {
        statuses.entry(*ix).and_modify(|status| {
            if *status == DryRunStatus::MayRun {
                *status = DryRunStatus::Runs;
            }
        });
    }
    while let Some(ix) = sure.pop() {
        let always = scope.nodes[ix].out.iter().filter(|edge| matches!(edge.when, When::Always));
        for to in always.filter_map(|edge| edge.to) {
            if let Some(status @ DryRunStatus::MayRun) = statuses.get_mut(&to) {
                *status = DryRunStatus::Runs;
                sure.push(to);
            }
        }
    }
    statuses
}
