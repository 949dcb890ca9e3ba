//! The audit: one row per change that was asked for, with the caller and the answer.

use serde_json::Value;
use uuid::Uuid;
use windlass_engine::id::CommandId;
use windlass_store::audit::AuditRow;
use windlass_store::commit::Commit;

use crate::part::RuntimePart;
use crate::{Runtime, RuntimeError};

/// A line to be added to the audit.
#[derive(Debug, Clone, PartialEq)]
pub struct AuditNote {
    pub who: String,
    /// The action: `run.cancel`.
    pub what: String,
    /// The id or name of the thing that it changes.
    pub subject: String,
    pub detail: Value,
}

impl Runtime {
    /// Adds a line to the audit; it is durable when this returns. A draining server takes it too, because the change
    /// that it describes has happened.
    pub async fn note(&self, line: AuditNote) -> Result<(), RuntimeError> {
        let now = self.clock().now();
        let AuditNote { who, what, subject, detail } = line;
        let row = AuditRow { at: now, who, what, subject, detail };
        let commit =
            Commit { audit: vec![row], ..Commit::new(self.project(), CommandId::new(Uuid::now_v7()), now) };
        let runtime = self.clone();
        // On a task of its own: the handler may be dropped, and no caller repeats this write.
        Ok(self.to_the_end(async move { runtime.ctx().commit_looked_up(commit).await }).await??)
    }
}
