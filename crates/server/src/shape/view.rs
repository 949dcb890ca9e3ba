//! The page of a run, and the beginnings of long values.

use std::collections::HashMap;

use serde::Serialize;
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::layout::Direction;
use windlass_engine::plan::Plan;
use windlass_engine::run::Run as EngineRun;
use windlass_engine::time::Timestamp;
use windlass_sdk::contract::{AttemptHead, RunPage, RunSummary, ValueHead};
use windlass_store::projection::attempts::{AttemptPart, AttemptStatus, NodeAttempt};
use windlass_store::run::RunRow;

use super::graph::flow_graph;
use super::node::{node_heads, shape_fault};
use super::run::{exec_mode, priority_word, shared, summary, whole_cost};
use super::time;
use crate::app::VersionLabel;

/// Bytes of a value that is shown whole.
const HEAD_BYTES: usize = 2_048;

/// A value, or its beginning.
fn head(value: &impl Serialize) -> ValueHead {
    let text = serde_json::to_string(value).unwrap_or_default();
    let bytes = text.len();
    if bytes <= HEAD_BYTES {
        return ValueHead { bytes, value: serde_json::from_str(&text).ok(), head: None };
    }
    let end = (0..=HEAD_BYTES).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    ValueHead { bytes, value: None, head: Some(text[..end].to_owned()) }
}

/// An attempt with the beginnings of its values. Jobs were claimed at these times.
pub(crate) fn attempt_head(row: &NodeAttempt, claims: &HashMap<Fence, Option<Timestamp>>) -> AttemptHead {
    let is_queued = row.exec == Some("queue");
    // A job that is gone was claimed, or nothing would have come of it.
    let claimed_at = match claims.get(&row.fence) {
        Some(claimed_at) => *claimed_at,
        None => (!row.status.is_open()).then_some(row.started_at),
    };
    let status = match row.status {
        AttemptStatus::Queued if claimed_at.is_some() => AttemptStatus::Running,
        status => status,
    };
    AttemptHead {
        fence: Some(row.fence.0).filter(|fence| *fence > 0),
        node: row.node.to_string(),
        visit: row.visit.0,
        attempt: row.attempt,
        status: status.word().to_owned(),
        branch: match &row.part {
            AttemptPart::Outermost => None,
            AttemptPart::Branch { name, .. } => Some(name.clone()),
            AttemptPart::Item { index } => Some(index.to_string()),
            AttemptPart::Inner { key } => Some(key.clone()),
        },
        kind: row.kind.clone(),
        service: row.service.clone(),
        input: head(&*row.input),
        output: row.output.as_deref().map(head),
        error: row.fault.as_ref().map(|fault| shape_fault(fault, None)),
        action: row.action.clone(),
        worker: row.worker.clone(),
        queued_at: time(row.started_at),
        started_at: if is_queued { claimed_at.map(time) } else { Some(time(row.started_at)) },
        finished_at: row.finished_at.map(time),
    }
}

/// A run as it is listed, with its whole cost.
pub(crate) fn live_summary(row: &RunRow, label: &VersionLabel, state: &EngineRun) -> RunSummary {
    RunSummary { cost: whole_cost(state), ..summary(row, label) }
}

/// The page of a run, without attempts, reasons and children.
pub(crate) fn run_page(
    row: &RunRow,
    label: &VersionLabel,
    plan: &Plan,
    state: &EngineRun,
    seq: Seq,
) -> RunPage {
    let (node_states, more_nodes) = node_heads(plan, state);
    RunPage {
        seq: seq.0,
        run: live_summary(row, label, state),
        exec_mode: exec_mode(state.start.exec_mode),
        start_node_ids: state.start.start_node_ids.clone(),
        priority: priority_word(state.priority(plan)),
        manual: state.start.manual,
        budget: state.budget.map(|budget| budget.0),
        params: head(&state.start.params.to_map()),
        shared: head(&shared(state)),
        result: state.result.as_deref().map(head),
        node_states,
        more_nodes,
        graph: flow_graph(plan, Direction::LeftRight),
        attempts: Vec::new(),
        more_attempts: false,
        why: Vec::new(),
        children: Vec::new(),
        more_children: false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_long_value_is_shown_by_its_beginning() {
        let short = head(&json!({"a": 1}));
        assert_eq!((short.bytes, short.value, short.head), (7, Some(json!({"a": 1})), None));
        let long = head(&Value::String("é".repeat(3_000)));
        assert_eq!((long.bytes, long.value), (6_002, None));
        let text = long.head.unwrap();
        assert!(
            text.len() <= HEAD_BYTES && text.len() > HEAD_BYTES - 4 && text.starts_with("\"éé"),
            "{text}"
        );
    }
}
