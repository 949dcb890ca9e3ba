//! The nodes, calls and services of a plan, in all its scopes.

use std::collections::BTreeSet;

use super::{Body, Branch, Branches, Call, Exec, Node, NodeKind, Plan, Scope};

/// A flow that is called: by name or id, and in which version; `None` = the latest at that time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Called {
    pub flow: String,
    pub version: Option<u32>,
}

impl Call {
    /// The flow that makes it, if one does.
    pub fn called(&self) -> Option<Called> {
        match &self.exec {
            Exec::Flow { flow, version } => Some(Called { flow: flow.clone(), version: *version }),
            Exec::Http | Exec::Queue | Exec::Func { .. } | Exec::Script(_) => None,
        }
    }
}

impl Node {
    /// Every branch that it may have.
    fn branches(&self) -> impl Iterator<Item = &Branch> {
        let (fixed, each, special) = match &self.kind {
            NodeKind::Fan(fan) => match &fan.branches {
                Branches::Fixed(list) => (list.as_slice(), None, None),
                Branches::Services { each } => (&[][..], Some(each), None),
                Branches::Items { each, special } => (&[][..], Some(each), Some(special.values())),
            },
            _ => (&[][..], None, None),
        };
        fixed.iter().chain(each).chain(special.into_iter().flatten())
    }

    /// Every call that it may make, but for those of nodes inside.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        let own = match &self.kind {
            NodeKind::Call(call) => Some(&**call),
            _ => None,
        };
        let of_branches = self.branches().filter_map(|branch| match &branch.body {
            Body::Call(call) => Some(&**call),
            Body::Scope(_) => None,
        });
        own.into_iter().chain(of_branches)
    }

    /// Every scope inside.
    fn scopes(&self) -> impl Iterator<Item = &Scope> {
        let own = match &self.kind {
            NodeKind::Sub(sub) => Some(&sub.scope),
            NodeKind::Loop(body) => Some(&body.body),
            _ => None,
        };
        let of_branches = self.branches().filter_map(|branch| match &branch.body {
            Body::Scope(scope) => Some(&**scope),
            Body::Call(_) => None,
        });
        own.into_iter().chain(of_branches)
    }
}

impl Plan {
    /// Every node, in no order.
    pub fn nodes(&self) -> impl Iterator<Item = &Node> {
        let (mut scopes, mut here) = (vec![&self.root], [].iter());
        std::iter::from_fn(move || {
            loop {
                if let Some(node) = here.next() {
                    scopes.extend(Node::scopes(node));
                    return Some(node);
                }
                here = scopes.pop()?.nodes.iter();
            }
        })
    }

    /// Whether a run may run scripts: at a node, or in a branch of one.
    pub fn has_scripts(&self) -> bool {
        self.nodes().flat_map(Node::calls).any(|call| matches!(call.exec, Exec::Script(_)))
    }

    /// Every service that a run may call; `None` when some are named only while it runs.
    pub fn services(&self) -> Option<BTreeSet<&str>> {
        let is_named_later = |node: &Node| match &node.kind {
            NodeKind::Fan(fan) => matches!(fan.branches, Branches::Services { .. }),
            _ => false,
        };
        let services = || self.nodes().flat_map(Node::calls).map(|call| call.service.as_str()).collect();
        (!self.nodes().any(is_named_later)).then(services)
    }
}
