//! A node or branch as decisions see it: its definition, its state, its parameters and its input.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::Run;
use super::facts::View;
use super::state::{Activity, NodeState, Phase, ScopeState, Shared, Slot};
use crate::counter::Visit;
use crate::event::ServiceTerms;
use crate::params::Params;
use crate::path::NodePath;
use crate::plan::{
    Body, Branch, Branches, Call, Compute, Exec, Fan, Node, NodeIx, NodeKind, Plan, Priority, Scope,
};

/// One scope on the way to a node, with its state.
#[derive(Clone, Copy)]
pub(crate) struct ScopeLevel<'p, 's> {
    pub(crate) scope: &'p Scope,
    pub(crate) state: &'s ScopeState,
    /// Parameters for single nodes in it, which win over the nodes' own.
    pub(super) overrides: Option<&'p BTreeMap<String, Params>>,
    /// Parameters of the node or branch that the scope belongs to.
    pub(super) added: Option<AddedParams<'p>>,
}

/// Literal parameters that a node or branch adds to those of its scope.
#[derive(Clone, Copy)]
pub(crate) struct AddedParams<'p> {
    /// Those of `subflow_execs`.
    special: Option<&'p Params>,
    branch: Option<&'p Params>,
    own: &'p Params,
}

impl<'p> AddedParams<'p> {
    pub(super) fn of(level: &ScopeLevel<'p, '_>, node: &'p Node, branch: Option<&'p Branch>) -> Self {
        let own = match &node.kind {
            NodeKind::Call(call) => &call.params,
            _ => &node.params,
        };
        let special = level.overrides.and_then(|overrides| overrides.get(&node.key));
        AddedParams { special, branch: branch.map(|branch| &branch.params), own }
    }

    /// Together with the parameters of the scope, which win at the root only.
    fn laid_over(self, is_root: bool, scope: Params) -> Params {
        let given = [self.special, self.branch, Some(self.own)].into_iter().flatten();
        if is_root {
            given.fold(scope, Params::over)
        } else {
            given.fold(Params::default(), Params::over).over(&scope)
        }
    }
}

/// A node of a run, or one branch of a fan.
pub(crate) struct NodeRef<'p, 's> {
    /// Outermost first; the last one holds the node.
    pub(crate) chain: Vec<ScopeLevel<'p, 's>>,
    /// The scope that holds the node.
    pub(crate) level: ScopeLevel<'p, 's>,
    pub(crate) ix: NodeIx,
    pub(crate) node: &'p Node,
    pub(crate) state: &'s NodeState,
    pub(crate) branch: Option<BranchRef<'p, 's>>,
    /// Whether a fan is around it (or it is a fan's branch).
    pub(crate) in_fan: bool,
    /// Received signals, which are visible in every scope.
    pub(crate) signals: Option<&'s Shared>,
}

/// One branch of a fan.
#[derive(Clone, Copy)]
pub(crate) struct BranchRef<'p, 's> {
    pub(crate) index: usize,
    pub(crate) branch: &'p Branch,
    pub(crate) slot: &'s Slot,
    pub(crate) name: Option<&'s str>,
}

impl Run {
    /// The node or branch at `path`, if the run has got that far into the scopes around it.
    pub(crate) fn spot<'p, 's>(&'s self, plan: &'p Plan, path: &NodePath) -> Option<NodeRef<'p, 's>> {
        let spot = self.root.spot(&plan.root, path)?;
        Some(NodeRef { signals: Some(&self.signals), ..spot })
    }

    /// The word for the phase of a node or branch; `None` where the run has no such path.
    pub fn node_status(&self, plan: &Plan, path: &NodePath) -> Option<&'static str> {
        self.spot(plan, path).map(|spot| spot.phase().word())
    }

    /// The round of a visit: the last one that began before it.
    pub fn round_of_visit(&self, visit: Visit) -> u32 {
        let n_before = self.visits_before_rounds.partition_point(|visits| *visits < visit);
        u32::try_from(1 + n_before).unwrap_or(u32::MAX)
    }

    /// The output of a node or branch in its last visit.
    pub fn node_output(&self, plan: &Plan, path: &NodePath) -> Option<Arc<Value>> {
        let spot = self.spot(plan, path)?;
        match &spot.branch {
            Some(arm) => arm.slot.output.clone(),
            None => spot.state.output.clone(),
        }
    }
}

impl Fan {
    /// The phase of branch `at`.
    pub fn branch(&self, at: usize) -> Option<&Branch> {
        match &self.branches {
            Branches::Fixed(list) => list.get(at),
            Branches::Services { each } => Some(each),
            Branches::Items { each, special } => Some(special.get(&at).unwrap_or(each)),
        }
    }
}

impl<'p, 's> NodeRef<'p, 's> {
    /// The call made here, if it is one.
    pub(crate) fn call(&self) -> Option<&'p Call> {
        match (&self.branch, &self.node.kind) {
            (Some(arm), _) => match &arm.branch.body {
                Body::Call(call) => Some(call),
                Body::Scope(_) => None,
            },
            (None, NodeKind::Call(call)) => Some(call),
            (None, _) => None,
        }
    }

    /// The service called here; of a branch that got its name when the fan opened, that name.
    pub(crate) fn service(&self) -> Option<&str> {
        let call = self.call()?;
        Some(self.branch.and_then(|arm| arm.name).unwrap_or(&call.service))
    }

    /// The settings that the run carries for the service called here. A flow is no service, whatever its name.
    pub(crate) fn service_terms(&self, run: &Run) -> ServiceTerms {
        let is_flow = self.call().is_some_and(|call| matches!(call.exec, Exec::Flow { .. }));
        let service = self.service().filter(|_| !is_flow);
        service.and_then(|name| run.start.services.get(name)).copied().unwrap_or_default()
    }

    /// The time limit over all attempts of the call made here; 0 = none. A limit of the node, of either kind, takes the
    /// place of the service's.
    pub(crate) fn total_timeout_ms(&self, run: &Run) -> u64 {
        match self.call() {
            Some(call) if call.total_timeout_ms > 0 || call.timeout_ms > 0 => call.total_timeout_ms,
            Some(_) => self.service_terms(run).timeout_ms.unwrap_or(0),
            None => 0,
        }
    }

    /// The class of the call made here: the node's own, or else the service's, or else the run's.
    pub(crate) fn priority(&self, run: &Run, plan: &Plan) -> Priority {
        let own = self.call().and_then(|call| call.priority);
        own.or_else(|| self.service_terms(run).priority).unwrap_or_else(|| run.priority(plan))
    }

    pub(crate) fn phase(&self) -> &'s Phase {
        match &self.branch {
            Some(arm) => &arm.slot.phase,
            None => &self.state.phase,
        }
    }

    /// Whether it is a node that was entered and has not done anything yet.
    pub(crate) fn was_entered(&self) -> bool {
        self.branch.is_none() && *self.phase() == Phase::Open(Activity::Beginning)
    }

    /// The input of the node or branch: the fan's input, or its item, for a branch without its own.
    pub(crate) fn input(&self, run: &Run) -> Arc<Value> {
        let Some(arm) = &self.branch else { return self.state.input.clone() };
        if let Some(given) = &arm.slot.input {
            return given.clone();
        }
        let own = self.branch_base(arm);
        match super::decide::prepare(&arm.branch.prep, &self.view(run, &own)) {
            Some(prepared) => Arc::new(prepared),
            None => own,
        }
    }

    fn branch_base(&self, arm: &BranchRef<'p, 's>) -> Arc<Value> {
        match &self.node.kind {
            NodeKind::Fan(fan) if matches!(fan.branches, Branches::Items { .. }) => {
                let item = self.state.input.as_array().and_then(|items| items.get(arm.index));
                Arc::new(item.cloned().unwrap_or(Value::Null))
            }
            _ => self.state.input.clone(),
        }
    }

    /// Parameters that the node or branch adds to those of its scope.
    pub(super) fn added(&self) -> AddedParams<'p> {
        AddedParams::of(&self.level, self.node, self.branch.map(|arm| arm.branch))
    }

    /// Whether the output of the node or branch is written into shared.
    pub(crate) fn writes_shared(&self) -> bool {
        let post = self.branch.map_or(&self.node.post, |arm| &arm.branch.post);
        let variables = matches!(
            self.node.kind,
            NodeKind::Compute(Compute::Set(_) | Compute::Define { .. } | Compute::Assign { .. })
        );
        post.output_key.is_some() || !post.output_map.is_empty() || variables
    }

    /// Parameters in force in the scope around the node.
    pub(crate) fn scope_params(&self) -> Params {
        let [root, inner @ ..] = &self.chain[..] else { return Params::default() };
        let mut params = root.state.params.clone();
        for (depth, level) in (1..).zip(inner) {
            if let Some(added) = level.added {
                params = added.laid_over(depth == 1, params);
            }
        }
        params
    }

    /// Parameters in force here. At the root the run's win over the node's; inside a subflow the node's win over
    /// params from outside, and `subflow_execs` over both.
    pub(crate) fn params(&self) -> Params {
        self.added().laid_over(self.chain.len() == 1, self.scope_params())
    }

    /// Facts as the node sees them, with `input` as its input.
    pub(crate) fn view<'v>(&'v self, run: &'v Run, input: &'v Value) -> View<'v> {
        View { run, chain: &self.chain, params: self.params(), own_params: None, input, result: None }
    }
}
