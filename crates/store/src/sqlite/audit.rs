//! Lines of the audit.

use rusqlite::types::Value;
use rusqlite::{Connection, Row, params, params_from_iter};
use windlass_engine::counter::Seq;
use windlass_engine::project::Project;

use super::column::SqliteColumns;
use super::list::ListConditions;
use super::readers::ReadConnection;
use crate::audit::{AuditQuery, AuditRow};
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::LineOrder;
use crate::table;

const NOTE: &str = "INSERT INTO audit (project, seq, at, who, what, subject, detail) \
     VALUES (?6, (SELECT coalesce(max(seq), 0) + 1 FROM audit WHERE project = ?6), ?1, ?2, ?3, ?4, ?5)";

/// Adds a line to the audit.
pub(super) fn note(db: &Connection, project: &Project, row: &AuditRow) -> Result<(), StoreError> {
    let AuditRow { at, who, what, subject, detail } = row;
    db.prepare_cached(NOTE)?.execute(params![at.0, who, what, subject, json(detail), project.as_str()])?;
    Ok(())
}

pub(super) fn audit(
    db: &ReadConnection,
    project: &Project,
    query: &AuditQuery,
) -> Result<Vec<(Seq, AuditRow)>, StoreError> {
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
    let select = format!("SELECT seq, at, who, what, subject, detail FROM audit{index}");
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
pub(super) const ALL: &[&str] = &[NOTE];
