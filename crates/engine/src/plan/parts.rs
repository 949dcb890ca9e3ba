//! What a plan is made of, whatever it is inside of.

use std::collections::BTreeSet;

use super::{Body, Branch, Branches, Call, Compute, Exec, Kind, Node, Plan, Post, Scope};

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

impl Plan {
    /// Every flow that a run may call.
    pub fn flows(&self) -> BTreeSet<Called> {
        let mut flows = BTreeSet::new();
        self.each_node(|node| {
            let of_node = match &node.kind {
                Kind::Call(call) => call.called(),
                _ => None,
            };
            flows.extend(of_node);
            flows.extend(branches(node).filter_map(|branch| match &branch.body {
                Body::Call(call) => call.called(),
                Body::Scope(_) => None,
            }));
        });
        flows
    }

    /// Every key of a shared state that a node may write.
    pub(crate) fn writes(&self) -> BTreeSet<String> {
        let mut keys = BTreeSet::new();
        let mut post = |post: &Post| {
            keys.extend(post.output_key.iter().cloned());
            keys.extend(post.output_map.keys().cloned());
        };
        let mut variables = BTreeSet::new();
        self.each_node(|node| {
            post(&node.post);
            branches(node).for_each(|branch| post(&branch.post));
            match &node.kind {
                Kind::Compute(Compute::Set(entries)) => {
                    variables.extend(entries.iter().map(|(key, _)| key.clone()));
                }
                Kind::Compute(Compute::Define { variable } | Compute::Assign { variable }) => {
                    variables.insert(variable.clone());
                }
                _ => {}
            }
        });
        keys.extend(variables);
        keys
    }

    fn each_node<'p>(&'p self, mut look: impl FnMut(&'p Node)) {
        let mut scopes: Vec<&Scope> = vec![&self.root];
        while let Some(scope) = scopes.pop() {
            for node in &scope.nodes {
                look(node);
                match &node.kind {
                    Kind::Sub(sub) => scopes.push(&sub.scope),
                    Kind::Loop(body) => scopes.push(&body.body),
                    Kind::Fan(_) => scopes.extend(branches(node).filter_map(|branch| match &branch.body {
                        Body::Scope(scope) => Some(&**scope),
                        Body::Call(_) => None,
                    })),
                    Kind::Call(_)
                    | Kind::Choice(_)
                    | Kind::Timer(_)
                    | Kind::Wait(_)
                    | Kind::Approval(_)
                    | Kind::Compute(_)
                    | Kind::Pass
                    | Kind::Return => {}
                }
            }
        }
    }
}

/// Every branch that a node may have.
fn branches(node: &Node) -> impl Iterator<Item = &Branch> {
    let (fixed, each, special) = match &node.kind {
        Kind::Fan(fan) => match &fan.branches {
            Branches::Fixed(list) => (list.as_slice(), None, None),
            Branches::Services { each } => (&[][..], Some(each), None),
            Branches::Items { each, special } => (&[][..], Some(each), Some(special.values())),
        },
        _ => (&[][..], None, None),
    };
    fixed.iter().chain(each).chain(special.into_iter().flatten())
}
