//! Lines of the audit of one project.

use windlass_engine::project::Project;

use crate::audit::{AuditContent, AuditEntry, AuditHead, AuditQuery, AuditRow};
use crate::error::StoreError;
use crate::page::LineOrder;

#[derive(Debug, Default)]
pub(super) struct AuditTable(Vec<AuditEntry>);

impl AuditTable {
    pub(super) fn note(&mut self, project: &Project, row: AuditRow) {
        let AuditHead { seq, hash } = self.last().next(&AuditContent::of(project, &row));
        self.0.push(AuditEntry { seq, row, hash });
    }

    fn last(&self) -> AuditHead {
        self.0.last().map_or(AuditHead::EMPTY, |line| AuditHead { seq: line.seq, hash: line.hash })
    }

    pub(super) fn audit_head(&self) -> Result<AuditHead, StoreError> {
        Ok(self.last())
    }

    pub(super) fn audit(&self, query: AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        let is_asked = |asked: &Option<String>, of: &str| asked.as_deref().is_none_or(|asked| asked == of);
        let asked = |AuditEntry { row, .. }: &&AuditEntry| {
            is_asked(&query.who, &row.who)
                && is_asked(&query.what, &row.what)
                && is_asked(&query.subject, &row.subject)
        };
        let (lines, edge) = (self.0.iter().filter(asked), query.edge());
        Ok(match query.order {
            LineOrder::Oldest => lines.filter(|line| line.seq > edge).take(query.size()).cloned().collect(),
            LineOrder::Newest => {
                lines.rev().filter(|line| line.seq < edge).take(query.size()).cloned().collect()
            }
        })
    }
}
