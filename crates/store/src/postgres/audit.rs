//! Lines of the audit.

use tokio_postgres::Row;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, cells, text, unnest};
use super::link::{BoundStatement, Link};
#[cfg(test)]
use super::list;
use super::list::{Conditions, FilterValue};
use crate::audit::{AuditContent, AuditEntry, AuditHead, AuditQuery, AuditRow};
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::LineOrder;
use crate::table;

const HEAD: &str = "SELECT seq, hash FROM audit_heads WHERE project = $1";
// The function locks the head of the project, so lines appear in the order of their numbers.
const NOTE: &str =
    "SELECT note_audit($7, $1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[], $6::bytea[])";

/// Adds lines to the audit.
pub(super) fn note<'c>(project: &'c Project, rows: &[&'c AuditRow]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [
        row.at.0,
        text(&row.who),
        text(&row.what),
        text(&row.subject),
        json(&row.detail),
        AuditContent::of(project, row).bytes().to_vec(),
    ]);
    BoundStatement::new(NOTE, cells).in_project(project)
}

/// The last line of the audit.
pub(super) async fn head(db: &Link, project: &Project) -> Result<AuditHead, StoreError> {
    let row = db.ask_one(HEAD, &cells![project.as_str()]).await?;
    row.map_or(Ok(AuditHead::EMPTY), |row| decode::audit_head(&mut PostgresColumns::of(&row)))
}

pub(super) async fn audit(
    db: &Link,
    project: &Project,
    query: &AuditQuery,
) -> Result<Vec<AuditEntry>, StoreError> {
    let read = |row: &Row| decode::audit(&mut PostgresColumns::of(row));
    let (sql, conditions) = statement(project, query);
    db.decoded(&table::AUDIT, &db.ask_once(&sql, &conditions.binds()).await?, read)
}

fn statement(project: &Project, query: &AuditQuery) -> (String, Conditions) {
    let (edge, direction) = match query.order {
        LineOrder::Oldest => ("seq > ?", "ASC"),
        LineOrder::Newest => ("seq < ?", "DESC"),
    };
    let mut conditions = Conditions::of(project);
    conditions.equal("who", query.who.clone().map(FilterValue::Text));
    conditions.equal("what", query.what.clone().map(FilterValue::Text));
    conditions.equal("subject", query.subject.clone().map(FilterValue::Text));
    conditions.add(edge, [FilterValue::Number(bound(query.edge().0))]);
    let (given, size) = (conditions.given(&[]), query.size());
    let select = "SELECT seq, at, who, what, subject, detail, hash FROM audit";
    (format!("{select}{given} ORDER BY seq {direction} LIMIT {size}"), conditions)
}

/// The query plan of a list.
#[cfg(test)]
pub(super) async fn list_plan(db: &Link, query: &AuditQuery) -> String {
    let (sql, conditions) = statement(&Project::DEFAULT, query);
    list::explain(db, &sql, &conditions.binds()).await
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[HEAD, NOTE];
