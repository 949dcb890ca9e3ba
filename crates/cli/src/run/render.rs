//! The text of a run for people: a heading, and a line for every node.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use windlass_sdk::contract::{NodeInfo, RunCost, RunDetail};

use crate::output::Printer;
use crate::session::{cut, in_words, now_ms};

/// Nodes above which `run watch` hides completed, skipped and pending ones.
pub(super) const SHOW_ALL_MAX: usize = 20;
/// Characters of a value that a line shows.
const VALUE_CHARS: usize = 80;
/// Characters of a node's title that a line shows.
const TITLE_CHARS: usize = 40;

pub(super) fn run_text(run: &RunDetail, out: &Printer) -> String {
    let mut text = format!("{}\n", heading(run, out));
    text += &nodes_text(&run.node_states, run.more_nodes, run.summary.round, out);
    if let Some(error) = &run.summary.error {
        let node = error.node.as_ref().map(|node| format!("{node}: ")).unwrap_or_default();
        text += &format!("error: {node}{} ({})\n", error.message, error.kind);
    }
    text += &cost_text(&run.summary.cost);
    match &run.result {
        Some(result) => text += &format!("result: {result}\n"),
        None => text += &values_text("shared", &run.shared),
    }
    text
}

fn cost_text(cost: &RunCost) -> String {
    if cost.estimated == 0 && cost.actual == 0 {
        return String::new();
    }
    let own = cost.own.map(|own| format!(", {} of it itself", own.actual)).unwrap_or_default();
    format!("cost: {} of an estimated {}{own}\n", cost.actual, cost.estimated)
}

pub(super) fn heading(run: &RunDetail, out: &Printer) -> String {
    let summary = &run.summary;
    let word = summary.status.word();
    let took = summary.ended_at.map_or_else(now_ms, |at| at.0).saturating_sub(summary.created_at.0);
    let mut text = format!(
        "{} {} v{} · {} · {} {}",
        out.painted(mark(word), word),
        summary.flow,
        summary.version,
        summary.id,
        out.painted(word, word),
        in_words(took)
    );
    if summary.round > 1 {
        text += &format!(" · round {}", summary.round);
    }
    if let Some(account) = &summary.account {
        text += &format!(" · account {account}");
    }
    if summary.cost.estimated > 0 {
        text += &format!(" · {} paid of {}", summary.cost.actual, summary.cost.estimated);
    }
    text
}

/// A line for every node; a node that was last entered in an earlier round than `round` names that.
pub(super) fn nodes_text(
    nodes: &BTreeMap<String, NodeInfo>,
    more: bool,
    round: u32,
    out: &Printer,
) -> String {
    let mut lines: Vec<String> =
        in_order(nodes).iter().map(|(path, node)| node_line(path, node, round, out)).collect();
    if more {
        lines.push("  … and more branches".to_owned());
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Nodes by the time of their start; nodes that did not start come last.
pub(super) fn in_order(nodes: &BTreeMap<String, NodeInfo>) -> Vec<(&String, &NodeInfo)> {
    let mut nodes: Vec<(&String, &NodeInfo)> = nodes.iter().collect();
    let begun = |path: &str| -> i64 {
        // Nodes inside a node stand below it, whenever they started.
        let outer = path.split('/').next().unwrap_or(path);
        let at = nodes_at(&nodes, outer);
        at.unwrap_or(i64::MAX)
    };
    let keys: BTreeMap<String, i64> = nodes.iter().map(|(path, _)| ((*path).clone(), begun(path))).collect();
    nodes.sort_by_key(|(path, node)| {
        let outer = path.split('/').next().unwrap_or(path).to_owned();
        let own = node.started_at.map_or(i64::MAX, |at| at.0);
        (keys.get(*path).copied(), outer, path.contains('/'), own, (*path).clone())
    });
    nodes
}

fn nodes_at(nodes: &[(&String, &NodeInfo)], path: &str) -> Option<i64> {
    nodes.iter().find(|(other, _)| *other == path).and_then(|(_, node)| node.started_at).map(|at| at.0)
}

pub(super) fn node_line(path: &str, node: &NodeInfo, round: u32, out: &Printer) -> String {
    let depth = path.matches('/').count();
    let name = path.rsplit('/').next().unwrap_or(path);
    let took = match (node.started_at, node.finished_at) {
        (Some(from), Some(to)) => in_words(to.0.saturating_sub(from.0)),
        (Some(from), None) => in_words(now_ms().saturating_sub(from.0)),
        (None, _) => String::new(),
    };
    let name = match node.title.as_deref().filter(|title| *title != name) {
        // A branch has its name as title; its number says where it is.
        Some(title) => format!("{name} {}", cut(title, TITLE_CHARS)),
        None => name.to_owned(),
    };
    let mut text = format!(
        "  {}{} {name:<18} {took:>8}  {}",
        "  ".repeat(depth),
        out.painted(mark(&node.status), &node.status),
        out.painted(&node.status, &node.status),
    );
    if let Some(earlier) = node.round.filter(|of_node| *of_node < round) {
        text += &format!(" in round {earlier}");
    }
    if let Some(action) = &node.action {
        text += &format!("  → {action}");
    }
    if node.attempts > 1 {
        text += &format!("  attempt {}", node.attempts);
    }
    if let Some(branches) = &node.branches {
        let settled = branches.total.saturating_sub(branches.open.saturating_add(branches.waiting));
        text += &format!("  {settled}/{}", branches.total);
    }
    if let Some(error) = &node.error {
        text += &format!("  {}", cut(&error.message, VALUE_CHARS));
    }
    text
}

pub(super) fn values_text(name: &str, values: &Map<String, Value>) -> String {
    if values.is_empty() {
        return String::new();
    }
    let line =
        |(key, value): (&String, &Value)| format!("  {key} = {}\n", cut(&value.to_string(), VALUE_CHARS));
    format!("{name}:\n{}", values.iter().map(line).collect::<String>())
}

/// One symbol for every status; the word stands beside it.
pub(super) fn mark(status: &str) -> &'static str {
    match status {
        "completed" => "✓",
        "failed" => "✗",
        "running" | "queued" | "retrying" => "▶",
        "waiting" | "suspended" | "paused" | "parked" => "⏸",
        "skipped" => "»",
        "canceled" | "canceling" => "⊘",
        "pending" => "○",
        _ => "?",
    }
}
