//! Lines of the audit.

use rusqlite::{Connection, Row, params};
use windlass_engine::project::Project;

use super::column::SqliteColumns;
use crate::audit::{AuditQuery, AuditRow};
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::LineOrder;

const NOTE: &str = "INSERT INTO audit (project, seq, at, who, what, subject, detail) \
     VALUES (?6, (SELECT coalesce(max(seq), 0) + 1 FROM audit WHERE project = ?6), ?1, ?2, ?3, ?4, ?5)";

macro_rules! audit {
    ($edge:literal) => {
        concat!(
            "SELECT seq, at, who, what, subject, detail FROM audit WHERE project = ?6 AND (?3 IS NULL OR who = ?3) \
             AND (?4 IS NULL OR what = ?4) AND (?5 IS NULL OR subject = ?5) AND ",
            $edge,
            " LIMIT ?2"
        )
    };
}

const AUDIT: &str = audit!("seq > ?1 ORDER BY seq");
const AUDIT_BACK: &str = audit!("seq < ?1 ORDER BY seq DESC");

/// Adds a line to the audit.
pub(super) fn note(db: &Connection, project: &Project, row: &AuditRow) -> Result<(), StoreError> {
    let AuditRow { at, who, what, subject, detail } = row;
    db.prepare_cached(NOTE)?.execute(params![at.0, who, what, subject, json(detail), project.as_str()])?;
    Ok(())
}

pub(super) fn audit(
    db: &Connection,
    project: &Project,
    query: &AuditQuery,
) -> Result<Vec<(u64, AuditRow)>, StoreError> {
    let read = |row: &Row<'_>| decode::audit(&mut SqliteColumns::of(row));
    let mut statement = db.prepare_cached(match query.order {
        LineOrder::Oldest => AUDIT,
        LineOrder::Newest => AUDIT_BACK,
    })?;
    let AuditQuery { who, what, subject, .. } = query;
    let (edge, size) = (bound(query.edge()), bound(query.size()));
    let rows = statement.query_map(params![edge, size, who, what, subject, project.as_str()], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NOTE, AUDIT, AUDIT_BACK];
