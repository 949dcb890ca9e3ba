//! The audit: one row per change that was asked for, with the caller and the answer; the check of its hash chain.

use serde_json::Value;
use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::id::CommandId;
use windlass_store::audit::{AuditContent, AuditEntry, AuditHead, AuditQuery, AuditRow};
use windlass_store::commit::Commit;
use windlass_store::page::PAGE_MAX;

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

/// The result of a check of the whole audit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditCheck {
    /// The head that the store kept when the check began.
    pub head: AuditHead,
    /// The last of the lines from the first that are as they were written.
    pub intact: Seq,
    /// Why the line after it is not.
    pub broken: Option<&'static str>,
}

/// The last checked line, and the heads that it is compared with.
struct ChainCheck<'a> {
    last: AuditHead,
    head: AuditHead,
    kept: &'a [AuditHead],
}

impl ChainCheck<'_> {
    /// Adds the next line, or returns why it cannot be the next one.
    fn add(&mut self, content: &AuditContent, line: &AuditEntry) -> Result<(), &'static str> {
        let next = self.last.next(content);
        if line.seq != next.seq {
            return Err("the line is missing");
        }
        if line.hash != next.hash {
            return Err("the line is not as it was written, or the one before it was replaced");
        }
        if self.kept.iter().chain([&self.head]).any(|kept| kept.seq == next.seq && kept.hash != next.hash) {
            return Err("the line was replaced: its hash is not the one that was kept");
        }
        self.last = next;
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.last.seq >= self.head.seq
    }

    /// The result once all lines are read.
    fn ended(&self) -> AuditCheck {
        let is_cut = !self.is_over() || self.kept.iter().any(|kept| kept.seq > self.last.seq);
        let broken = is_cut.then_some("the line is missing, and all after it");
        AuditCheck { head: self.head, intact: self.last.seq, broken }
    }
}

impl AuditCheck {
    /// Checks that all lines of the audit are as they were written. `kept` are heads that the caller kept elsewhere.
    pub async fn of(runtime: &Runtime, kept: &[AuditHead]) -> Result<AuditCheck, RuntimeError> {
        let (project, store) = (runtime.project(), runtime.store());
        // Lines that are added meanwhile are not checked.
        let head = store.audit_head(project).await?;
        let mut check = ChainCheck { last: AuditHead::EMPTY, head, kept };
        while !check.is_over() {
            let query = AuditQuery { after: check.last.seq, limit: PAGE_MAX, ..AuditQuery::default() };
            let lines = store.audit(project, query).await?;
            if lines.is_empty() {
                break;
            }
            for line in lines.iter().take_while(|line| line.seq <= head.seq) {
                if let Err(reason) = check.add(&AuditContent::of(project, &line.row), line) {
                    return Ok(AuditCheck { broken: Some(reason), ..check.ended() });
                }
            }
            if lines.iter().any(|line| line.seq > head.seq) {
                break;
            }
        }
        Ok(check.ended())
    }
}

impl AuditNote {
    /// Adds the line to the audit; it is durable when this returns. A draining server takes it too, because the change
    /// that it describes has happened.
    pub async fn write(self, runtime: &Runtime) -> Result<(), RuntimeError> {
        let now = runtime.clock().now();
        let AuditNote { who, what, subject, detail } = self;
        let row = AuditRow { at: now, who, what, subject, detail };
        let commit = Commit {
            audit: vec![row],
            ..Commit::new(runtime.project(), CommandId::new(Uuid::now_v7()), now)
        };
        let writer = runtime.clone();
        // On a task of its own: the handler may be dropped, and no caller repeats this write.
        Ok(runtime.to_the_end(async move { writer.ctx().commit_looked_up(commit).await }).await??)
    }
}
