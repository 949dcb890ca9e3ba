//! The tree of child runs that `windlass run show` prints.

use anyhow::Result;
use windlass_sdk::contract::{RunDetail, RunSummary, RunsQuery};

use super::render::mark;
use crate::output::Printer;
use crate::session::Session;

/// Child runs that the tree shows; `run list --parent` lists all.
const SHOWN_MAX: usize = 100;
/// The depth of the tree at most.
const DEPTH_MAX: usize = 32;

/// A line for every child run, each below its parent, oldest first.
pub(super) async fn tree(run: &RunDetail, session: &Session) -> Result<String> {
    let has_children = run.more_nodes || run.node_states.values().any(|node| node.child.is_some());
    if !has_children {
        return Ok(String::new());
    }
    let mut text = "children:\n".to_owned();
    let mut n_shown = 0;
    let mut open = below(&run.summary.id, 1, session).await?;
    let mut more = false;
    while let Some((depth, child)) = open.pop() {
        if n_shown == SHOWN_MAX {
            more = true;
            break;
        }
        text += &line(&child, depth, &session.out);
        n_shown += 1;
        if depth < DEPTH_MAX {
            open.extend(below(&child.id, depth + 1, session).await?);
        }
    }
    if n_shown == 0 {
        return Ok(String::new());
    }
    if more {
        text += &format!("  … and more: windlass run list --parent {}\n", run.summary.id);
    }
    Ok(text)
}

/// The children of a run, the oldest last: the walk pops from the end.
async fn below(run: &str, depth: usize, session: &Session) -> Result<Vec<(usize, RunSummary)>> {
    let query =
        RunsQuery { parent: Some(run.to_owned()), limit: Some(SHOWN_MAX + 1), ..RunsQuery::default() };
    let page = session.client.runs().list(&query).await?;
    Ok(page.items.into_iter().map(|child| (depth, child)).collect())
}

fn line(child: &RunSummary, depth: usize, out: &Printer) -> String {
    let word = child.status.word();
    let node = child.parent.as_ref().map(|parent| parent.node.as_str()).unwrap_or_default();
    let cost = if child.cost.actual > 0 { format!("  cost {}", child.cost.actual) } else { String::new() };
    format!(
        "{}{} {node} → {} v{} · {} · {}{cost}\n",
        "  ".repeat(depth),
        out.painted(mark(word), word),
        child.flow,
        child.version,
        child.id,
        out.painted(word, word),
    )
}
