//! Where results of nodes go in the shared state of a run. A journal says only what a node put out: what is written of
//! that is in the plan, which those who read the tables do not have.

use windlass_engine::plan::{Body, Branch, Branches, Compute, Kind, Loop, Node, Plan, Post, Scope};
use windlass_engine::reference::Seg;

/// One shared key and whose result it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The places whose results they are; in each of them, turns and branches of any number.
    pub node: Vec<Part>,
    pub key: String,
    /// Where in the result it stands; empty = all of it.
    pub path: Vec<Seg>,
}

/// One segment of a place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    Key(String),
    /// A turn of a loop, or a branch of a fan, whichever.
    Any,
}

impl Part {
    /// The key, where there is only one.
    pub fn key(&self) -> Option<&str> {
        match self {
            Part::Key(key) => Some(key),
            Part::Any => None,
        }
    }
}

/// What the results of nodes write into the shared state of a run, but for those of nodes with others inside: what
/// these put out is not in the journal.
pub fn writes(plan: &Plan) -> Vec<Write> {
    let mut found = Vec::new();
    let mut open: Vec<(Vec<Part>, &Scope)> = vec![(Vec::new(), &plan.root)];
    while let Some((around, scope)) = open.pop() {
        for node in &scope.nodes {
            let here: Vec<Part> = around.iter().cloned().chain([Part::Key(node.key.clone())]).collect();
            match &node.kind {
                Kind::Loop(inner) => open.extend(body(&here, inner)),
                Kind::Fan(fan) => of_branches(&here, &fan.branches, &mut found),
                Kind::Sub(_) => {}
                Kind::Call(_)
                | Kind::Choice(_)
                | Kind::Timer(_)
                | Kind::Wait(_)
                | Kind::Approval(_)
                | Kind::Compute(_)
                | Kind::Pass
                | Kind::Return => of_leaf(&here, node, &mut found),
            }
        }
    }
    found
}

fn body<'p>(here: &[Part], inner: &'p Loop) -> Option<(Vec<Part>, &'p Scope)> {
    let turns = || here.iter().cloned().chain([Part::Any]).collect();
    (!inner.body.owns_shared).then(|| (turns(), &inner.body))
}

fn of_leaf(here: &[Part], node: &Node, found: &mut Vec<Write>) {
    of_post(here, &node.post, found);
    let field = |name: &str| vec![Seg::Key(name.to_owned())];
    let write = |key: &String, path| Write { node: here.to_vec(), key: key.clone(), path };
    let Kind::Compute(compute) = &node.kind else { return };
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
fn of_branches(here: &[Part], branches: &Branches, found: &mut Vec<Write>) {
    let mut of_branch = |at: Part, branch: &Branch| match &branch.body {
        Body::Call(_) => {
            let place: Vec<Part> = here.iter().cloned().chain([at]).collect();
            of_post(&place, &branch.post, found);
        }
        Body::Scope(_) => {}
    };
    match branches {
        Branches::Fixed(list) => {
            list.iter().enumerate().for_each(|(i, branch)| of_branch(Part::Key(i.to_string()), branch));
        }
        Branches::Services { each } => of_branch(Part::Any, each),
        Branches::Items { each, special } => {
            of_branch(Part::Any, each);
            special.iter().for_each(|(i, branch)| of_branch(Part::Key(i.to_string()), branch));
        }
    }
}

fn of_post(here: &[Part], post: &Post, found: &mut Vec<Write>) {
    let mapped = post.output_map.iter().map(|(key, path)| (key, path.clone()));
    let whole = post.output_key.iter().map(|key| (key, Vec::new()));
    found.extend(mapped.chain(whole).map(|(key, path)| Write {
        node: here.to_vec(),
        key: key.clone(),
        path,
    }));
}
