//! What happened to a run.

use serde_json::Value;
use windlass_engine::journal::Entry;
use windlass_sdk::types::{Attempt, JournalEntry};
use windlass_store::project::attempts::{NodeAttempt, Part};

use super::node::shape_fault;
use super::time;

pub(crate) fn attempt(row: &NodeAttempt) -> Attempt {
    Attempt {
        fence: Some(row.fence).filter(|fence| *fence > 0),
        node: row.node.to_string(),
        visit: row.visit,
        attempt: row.attempt,
        status: row.status.word().to_owned(),
        branch: match &row.part {
            Part::Outermost => None,
            Part::Branch { name, .. } => Some(name.clone()),
            Part::Item { index } => Some(index.to_string()),
            Part::Inner { key } => Some(key.clone()),
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

pub(crate) fn entry(seq: u64, entry: &Entry) -> JournalEntry {
    let shape = |event| serde_json::to_value(event).unwrap_or(Value::Null);
    JournalEntry {
        seq,
        at: time(entry.at),
        command: entry.command.to_string(),
        events: entry.events.iter().map(shape).collect(),
    }
}
