//! The audit: who asked for which change, and what came of it.

use serde_json::Value;
use uuid::Uuid;
use windlass_engine::id::CommandId;
use windlass_store::commit::Commit;
use windlass_store::record::AuditRow;

use crate::{Runtime, RuntimeError};

/// A line to be added to the audit.
#[derive(Debug, Clone, PartialEq)]
pub struct Line {
    pub who: String,
    /// What was asked for: `run.cancel`.
    pub what: String,
    /// What it was asked of.
    pub subject: String,
    pub detail: Value,
}

impl Runtime {
    /// Adds a line to the audit; it is durable when this ends. A server that drains takes it too: what it is about has
    /// happened.
    pub async fn note(&self, line: Line) -> Result<(), RuntimeError> {
        let now = self.clock().now();
        let Line { who, what, subject, detail } = line;
        let row = AuditRow { at: now, who, what, subject, detail };
        let commit = Commit { audit: vec![row], ..Commit::new(CommandId::new(Uuid::now_v7()), now) };
        let runtime = self.clone();
        // To its end, whoever goes away meanwhile: nobody asks for it again.
        Ok(self.to_the_end(async move { runtime.commit_looked_up(commit).await }).await??)
    }
}
