//! Writes of results into the shared state of a run. A journal has only the output of a node: the written parts
//! follow from the plan, which readers of the tables do not have.

use windlass_engine::plan::{Body, Branch, Branches, Compute, Loop, Node, NodeKind, Plan, Post, Scope};
use windlass_engine::reference::Seg;

/// One shared key and whose result it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The places whose results they are; in each of them, turns and branches of any number.
    pub node: Vec<PathPart>,
    pub key: String,
    /// Where in the result it stands; empty = all of it.
    pub path: Vec<Seg>,
}

/// One segment of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathPart {
    Key(String),
    /// A turn of a loop, or a branch of a fan, whichever.
    Any,
}

impl PathPart {
    /// The key, where there is only one.
    pub fn key(&self) -> Option<&str> {
        match self {
            PathPart::Key(key) => Some(key),
            PathPart::Any => None,
        }
    }
}

/// Writes of all results into the shared state of a run, except those of containers: their
/// outputs are not in the journal.
pub fn writes(plan: &Plan) -> Vec<Write> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<PathPart>, &Scope)> = vec![(Vec::new(), &plan.root)];
    while let Some((around, scope)) = open.pop() {
        for node in &scope.nodes {
            let here: Vec<PathPart> =
                around.iter().cloned().chain([PathPart::Key(node.key.clone())]).collect();
            match &node.kind {
                NodeKind::Loop(inner) => open.extend(body(&here, inner)),
                NodeKind::Fan(fan) => of_branches(&here, &fan.branches, &mut found),
                NodeKind::Sub(_) => {}
                NodeKind::Call(_)
                | NodeKind::Choice(_)
                | NodeKind::Timer(_)
                | NodeKind::Wait(_)
                | NodeKind::Approval(_)
                | NodeKind::Compute(_)
                | NodeKind::Pass
                | NodeKind::Return => of_leaf(&here, node, &mut found),
            }
        }
    }
    found
}

fn body<'p>(here: &[PathPart], inner: &'p Loop) -> Option<(Vec<PathPart>, &'p Scope)> {
    let turns = || here.iter().cloned().chain([PathPart::Any]).collect();
    (!inner.body.owns_shared).then(|| (turns(), &inner.body))
}

fn of_leaf(here: &[PathPart], node: &Node, found: &mut Vec<Write>) {
    of_post(here, &node.post, found);
    let field = |name: &str| vec![Seg::Key(name.to_owned())];
    let write = |key: &String, path| Write { node: here.to_vec(), key: key.clone(), path };
    let NodeKind::Compute(compute) = &node.kind else { return };
    match compute {
        Compute::Set(values) => found.extend(values.iter().map(|(name, _)| write(name, field(name)))),
        Compute::Define { variable } | Compute::Assign { variable } => {
            found.push(write(variable, field("value")));
        }
        Compute::Test(_)
        | Compute::TextJoin
        | Compute::TextSplit
        | Compute::JsonGet
        | Compute::JsonSet
        | Compute::TimeNow
        | Compute::Outputs(_) => {}
    }
}

/// Branches that are single calls; those that are flows have a shared state of their own.
fn of_branches(here: &[PathPart], branches: &Branches, found: &mut Vec<Write>) {
    let mut of_branch = |at: PathPart, branch: &Branch| match &branch.body {
        Body::Call(_) => {
            let place: Vec<PathPart> = here.iter().cloned().chain([at]).collect();
            of_post(&place, &branch.post, found);
        }
        Body::Scope(_) => {}
    };
    match branches {
        Branches::Fixed(list) => {
            list.iter().enumerate().for_each(|(i, branch)| of_branch(PathPart::Key(i.to_string()), branch));
        }
        Branches::Services { each } => of_branch(PathPart::Any, each),
        Branches::Items { each, special } => {
            of_branch(PathPart::Any, each);
            special.iter().for_each(|(i, branch)| of_branch(PathPart::Key(i.to_string()), branch));
        }
    }
}

fn of_post(here: &[PathPart], post: &Post, found: &mut Vec<Write>) {
    let mapped = post.output_map.iter().map(|(key, path)| (key, path.clone()));
    let whole = post.output_key.iter().map(|key| (key, Vec::new()));
    found.extend(mapped.chain(whole).map(|(key, path)| Write {
        node: here.to_vec(),
        key: key.clone(),
        path,
    }));
}
