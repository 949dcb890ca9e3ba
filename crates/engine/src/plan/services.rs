//! Which services a plan can call.

use std::collections::BTreeSet;

use super::{Body, Branch, Branches, Kind, Plan, Scope};

impl Plan {
    /// Every service that a run may call; `None` when some are named only while it runs.
    pub fn services(&self) -> Option<BTreeSet<&str>> {
        let mut found = BTreeSet::new();
        of_scope(&self.root, &mut found).then_some(found)
    }
}

/// Adds the services of a scope and of all inside, to the depth that plans are bounded by; `false` = not all are known.
fn of_scope<'a>(scope: &'a Scope, found: &mut BTreeSet<&'a str>) -> bool {
    scope.nodes.iter().all(|node| match &node.kind {
        Kind::Call(call) => {
            found.insert(&call.service);
            true
        }
        Kind::Fan(fan) => match &fan.branches {
            Branches::Fixed(branches) => branches.iter().all(|branch| of_branch(branch, found)),
            Branches::Services { .. } => false,
            Branches::Items { each, special } => {
                of_branch(each, found) && special.values().all(|branch| of_branch(branch, found))
            }
        },
        Kind::Sub(sub) => of_scope(&sub.scope, found),
        Kind::Loop(body) => of_scope(&body.body, found),
        Kind::Choice(_)
        | Kind::Timer(_)
        | Kind::Wait(_)
        | Kind::Approval(_)
        | Kind::Compute(_)
        | Kind::Pass
        | Kind::Return => true,
    })
}

fn of_branch<'a>(branch: &'a Branch, found: &mut BTreeSet<&'a str>) -> bool {
    match &branch.body {
        Body::Call(call) => {
            found.insert(&call.service);
            true
        }
        Body::Scope(scope) => of_scope(scope, found),
    }
}
