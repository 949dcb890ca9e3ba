//! Nodes of a plan by their path in a run.

use super::{Body, Node, NodeKind, Plan};
use crate::path::NodePath;

/// A node of a plan, and the turns of the loops around it.
#[derive(Debug, Clone)]
pub struct NodePosition<'p> {
    pub node: &'p Node,
    /// Outermost first.
    pub turns: Vec<usize>,
}

impl Plan {
    /// The node at a path of a run, or the fan of which the path is a branch; `None` = the plan has none there.
    pub fn position(&self, path: &NodePath) -> Option<NodePosition<'_>> {
        let (mut scope, mut turns) = (Some(&self.root), Vec::new());
        let mut segments = path.segments();
        let mut found = None;
        while let Some(segment) = segments.next() {
            let (_, node) = scope?.node(segment)?;
            scope = match &node.kind {
                NodeKind::Sub(sub) => Some(&sub.scope),
                NodeKind::Loop(body) => {
                    turns.extend(segments.next().and_then(|turn| turn.parse::<usize>().ok()));
                    Some(&body.body)
                }
                NodeKind::Fan(fan) => {
                    let index = segments.next().and_then(|index| index.parse().ok());
                    index.and_then(|index| fan.branch(index)).and_then(|branch| match &branch.body {
                        Body::Scope(scope) => Some(&**scope),
                        Body::Call(_) => None,
                    })
                }
                NodeKind::Call(_)
                | NodeKind::Choice(_)
                | NodeKind::Timer(_)
                | NodeKind::Wait(_)
                | NodeKind::Approval(_)
                | NodeKind::Compute(_)
                | NodeKind::Pass
                | NodeKind::Return => None,
            };
            found = Some(node);
        }
        found.map(|node| NodePosition { node, turns })
    }
}

impl NodePosition<'_> {
    /// The positional id, which is unique in the run: `{parallel}_b{branch}_s{step}_i{turn}`; steps form only.
    pub fn task_id(&self) -> Option<String> {
        let mut id = self.node.task_id.clone()?;
        for turn in &self.turns {
            id.push_str(&format!("_i{turn}"));
        }
        Some(id)
    }
}
