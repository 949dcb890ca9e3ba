//! The path of a node without the numbers of branches and iterations: statistics count all of them together.

use super::{Body, Branches, NodeKind, Plan, Scope};
use crate::path::NodePath;

/// Stands for the number of a branch or an iteration.
const ANY: &str = "*";

impl Plan {
    /// The path with `*` for the numbers of branches and turns: `loop/2/3-1` is `loop/*/3-1`. A path that is none of
    /// this plan stays as it is from where nothing is known of it.
    pub fn pattern(&self, path: &NodePath) -> String {
        let (mut pattern, mut scope) = (String::with_capacity(path.as_str().len()), Some(&self.root));
        let mut segments = path.segments();
        while let Some(segment) = segments.next() {
            push(&mut pattern, segment);
            let Some((_, node)) = scope.and_then(|scope| scope.node(segment)) else {
                scope = None;
                continue;
            };
            scope = match &node.kind {
                NodeKind::Sub(sub) => Some(&sub.scope),
                NodeKind::Loop(body) => segments.next().and_then(|_| any(&mut pattern, Some(&body.body))),
                NodeKind::Fan(fan) => segments
                    .next()
                    .and_then(|index| any(&mut pattern, branch(&fan.branches, index.parse().ok()))),
                NodeKind::Call(_)
                | NodeKind::Choice(_)
                | NodeKind::Timer(_)
                | NodeKind::Wait(_)
                | NodeKind::Approval(_)
                | NodeKind::Compute(_)
                | NodeKind::Pass
                | NodeKind::Return => None,
            };
        }
        pattern
    }
}

fn push(pattern: &mut String, segment: &str) {
    if !pattern.is_empty() {
        pattern.push('/');
    }
    pattern.push_str(segment);
}

fn any<'p>(pattern: &mut String, scope: Option<&'p Scope>) -> Option<&'p Scope> {
    push(pattern, ANY);
    scope
}

fn branch(branches: &Branches, index: Option<usize>) -> Option<&Scope> {
    let branch = match branches {
        Branches::Fixed(given) => given.get(index?)?,
        Branches::Services { each } => each,
        Branches::Items { each, special } => special.get(&index?).unwrap_or(each),
    };
    match &branch.body {
        Body::Scope(scope) => Some(scope),
        Body::Call(_) => None,
    }
}
