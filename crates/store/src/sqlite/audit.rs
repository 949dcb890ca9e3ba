//! Lines of the audit.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, params, params_from_iter};
use windlass_engine::project::Project;

use super::column::SqliteColumns;
use super::list::ListConditions;
use super::readers::ReadConnection;
use crate::audit::{AuditContent, AuditEntry, AuditHead, AuditQuery, AuditRow};
use crate::column::{bound, json, stored};
use crate::decode;
use crate::error::StoreError;
use crate::page::LineOrder;
use crate::table;

const HEAD: &str = "SELECT seq, hash FROM audit_heads WHERE project = ?1";
const NOTE: &str = "INSERT INTO audit (project, seq, at, who, what, subject, detail, hash) \
     VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
const SET_HEAD: &str = "INSERT INTO audit_heads (project, seq, hash) VALUES (?1, ?2, ?3) \
     ON CONFLICT (project) DO UPDATE SET seq = excluded.seq, hash = excluded.hash";

/// Adds a line to the audit.
pub(super) fn note(db: &Connection, project: &Project, row: &AuditRow) -> Result<(), StoreError> {
    let AuditHead { seq, hash } = head(db, project)?.next(&AuditContent::of(project, row));
    let (project, seq, hash) = (project.as_str(), stored(seq), hash.bytes());
    let AuditRow { at, who, what, subject, detail } = row;
    let line = params![project, seq, at.0, who, what, subject, json(detail), hash];
    db.prepare_cached(NOTE)?.execute(line)?;
    db.prepare_cached(SET_HEAD)?.execute(params![project, seq, hash])?;
    Ok(())
}

/// The last line of the audit.
pub(super) fn head(db: &Connection, project: &Project) -> Result<AuditHead, StoreError> {
    let read = |row: &Row<'_>| decode::audit_head(&mut SqliteColumns::of(row));
    let head = db.prepare_cached(HEAD)?.query_row([project.as_str()], read).optional()?;
    Ok(head.unwrap_or(AuditHead::EMPTY))
}

pub(super) fn audit(
    db: &ReadConnection,
    project: &Project,
    query: &AuditQuery,
) -> Result<Vec<AuditEntry>, StoreError> {
    let read = |row: &Row<'_>| decode::audit(&mut SqliteColumns::of(row));
    let (sql, values) = statement(project, query);
    db.rows(&table::AUDIT, &sql, params_from_iter(&values), read)
}

fn statement(project: &Project, query: &AuditQuery) -> (String, Vec<Value>) {
    let (edge, direction) = match query.order {
        LineOrder::Oldest => ("seq > ?", "ASC"),
        LineOrder::Newest => ("seq < ?", "DESC"),
    };
    let mut conditions = ListConditions::of(project);
    conditions.equal("who", query.who.clone());
    conditions.equal("what", query.what.clone());
    conditions.equal("subject", query.subject.clone());
    conditions.add(edge, [bound(query.edge().0).into()]);
    // The index is named because SQLite would otherwise walk through all lines by primary key.
    let index = match query {
        AuditQuery { subject: Some(_), .. } => " INDEXED BY audit_by_subject",
        AuditQuery { who: Some(_), .. } => " INDEXED BY audit_by_who",
        AuditQuery { what: Some(_), .. } => " INDEXED BY audit_by_what",
        AuditQuery { subject: None, who: None, what: None, .. } => "",
    };
    let select = format!("SELECT seq, at, who, what, subject, detail, hash FROM audit{index}");
    let (select, mut values) = conditions.selection(&select);
    values.push(bound(query.size()).into());
    (format!("{select} ORDER BY seq {direction} LIMIT ?"), values)
}

/// The statement of a list, for its query plan.
#[cfg(test)]
pub(super) fn list_sql(query: &AuditQuery) -> String {
    statement(&Project::DEFAULT, query).0
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[HEAD, NOTE, SET_HEAD];
