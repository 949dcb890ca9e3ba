//! Attempts and journal entries of a run.

use serde_json::Value;
use windlass_engine::counter::Seq;
use windlass_engine::journal::Entry;
use windlass_sdk::contract::{JournalEntry, NodeAttemptInfo};
use windlass_store::projection::attempts::{AttemptPart, NodeAttempt};

use super::node::shape_fault;
use super::time;

pub(crate) fn attempt(row: &NodeAttempt) -> NodeAttemptInfo {
    NodeAttemptInfo {
        fence: Some(row.fence.0).filter(|fence| *fence > 0),
        node: row.node.to_string(),
        visit: row.visit.0,
        attempt: row.attempt,
        status: row.status.word().to_owned(),
        branch: match &row.part {
            AttemptPart::Outermost => None,
            AttemptPart::Branch { name, .. } => Some(name.clone()),
            AttemptPart::Item { index } => Some(index.to_string()),
            AttemptPart::Inner { key } => Some(key.clone()),
        },
        kind: row.kind.clone(),
        service: row.service.clone(),
        input: (*row.input).clone(),
        output: row.output.as_deref().cloned(),
        error: row.fault.as_ref().map(|fault| shape_fault(fault, None)),
        action: row.action.clone(),
        worker: row.worker.clone(),
        started_at: time(row.started_at),
        finished_at: row.finished_at.map(time),
    }
}

pub(crate) fn entry(seq: Seq, entry: &Entry) -> JournalEntry {
    let shape = |event| serde_json::to_value(event).unwrap_or(Value::Null);
    JournalEntry {
        seq: seq.0,
        at: time(entry.at),
        command: entry.command.to_string(),
        events: entry.events.iter().map(shape).collect(),
    }
}
