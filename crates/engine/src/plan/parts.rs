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

impl Node {
    /// Every branch that it may have.
    fn branches(&self) -> impl Iterator<Item = &Branch> {
        let (fixed, each, special) = match &self.kind {
            Kind::Fan(fan) => match &fan.branches {
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
            Kind::Call(call) => Some(&**call),
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
            Kind::Sub(sub) => Some(&sub.scope),
            Kind::Loop(body) => Some(&body.body),
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

    /// Every service that a run may call; `None` when some are named only while it runs.
    pub fn services(&self) -> Option<BTreeSet<&str>> {
        let is_named_later = |node: &Node| match &node.kind {
            Kind::Fan(fan) => matches!(fan.branches, Branches::Services { .. }),
            _ => false,
        };
        let services = || self.nodes().flat_map(Node::calls).map(|call| call.service.as_str()).collect();
        (!self.nodes().any(is_named_later)).then(services)
    }

    /// Every flow that a run may call.
    pub fn flows(&self) -> BTreeSet<Called> {
        self.nodes().flat_map(Node::calls).filter_map(Call::called).collect()
    }

    /// Every key that a node may write, into whichever shared state.
    pub(crate) fn writes(&self) -> BTreeSet<&str> {
        self.nodes().flat_map(written).collect()
    }
}

fn written(node: &Node) -> impl Iterator<Item = &str> {
    let posts = std::iter::once(&node.post).chain(node.branches().map(|branch| &branch.post));
    let (set, variable) = match &node.kind {
        Kind::Compute(Compute::Set(entries)) => (entries.as_slice(), None),
        Kind::Compute(Compute::Define { variable } | Compute::Assign { variable }) => {
            (&[][..], Some(variable))
        }
        _ => (&[][..], None),
    };
    posts.flat_map(keys).chain(set.iter().map(|(key, _)| key)).chain(variable).map(String::as_str)
}

fn keys(post: &Post) -> impl Iterator<Item = &String> {
    post.output_key.iter().chain(post.output_map.keys())
}
