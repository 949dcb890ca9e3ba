//! A node or branch of a run, with the facts that logs and APIs show of it.

use std::sync::Arc;

use serde_json::Value;

use super::Run;
use super::state::Phase;
use crate::counter::Visit;
use crate::path::NodePath;
use crate::plan::{Call, Node, Plan};

/// A place of a run that it has got to.
#[derive(Debug)]
pub struct NodeView<'p, 's> {
    /// The node; of a branch, its fan.
    pub node: &'p Node,
    /// Which branch of the fan it is.
    pub branch: Option<usize>,
    /// The name of the branch.
    pub name: Option<String>,
    /// The call made here.
    pub call: Option<&'p Call>,
    /// The service or function; a branch that got its name when its fan opened goes by that.
    pub service: Option<String>,
    /// The visit it is in, or was in last; of a branch, its fan's.
    pub visit: Visit,
    pub phase: &'s Phase,
}

impl Run {
    /// The node or branch at `path`; `None` if the run has not reached it.
    pub fn place<'p, 's>(&'s self, plan: &'p Plan, path: &NodePath) -> Option<NodeView<'p, 's>> {
        let spot = self.spot(plan, path)?;
        let name = spot.branch.map(|arm| arm.name.unwrap_or(&arm.branch.name).to_owned());
        Some(NodeView {
            node: spot.node,
            branch: spot.branch.map(|arm| arm.index),
            name,
            call: spot.call(),
            service: spot.service().map(str::to_owned),
            visit: spot.state.visit,
            phase: spot.phase(),
        })
    }

    /// The input of the node or branch in its last visit.
    pub fn node_input(&self, plan: &Plan, path: &NodePath) -> Option<Arc<Value>> {
        self.spot(plan, path).map(|spot| spot.input(self))
    }
}
