//! Lines of the audit.

use tokio_postgres::Row;
use windlass_engine::counter::Seq;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, text, unnest};
use super::link::{BoundStatement, Link};
#[cfg(test)]
use super::list;
use super::list::{Conditions, FilterValue};
use crate::audit::{AuditQuery, AuditRow};
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::LineOrder;
use crate::table;

// The number goes on only while the writer locks the last one: so lines appear in the order of their numbers.
const NOTE: &str = "WITH tail AS (INSERT INTO audit_tail (project, seq) VALUES ($6, cardinality($1::bigint[])) \
     ON CONFLICT (project) DO UPDATE SET seq = audit_tail.seq + excluded.seq \
     RETURNING seq - cardinality($1::bigint[]) AS seq) \
     INSERT INTO audit (project, seq, at, who, what, subject, detail) \
     SELECT $6, tail.seq + new.place, new.at, new.who, new.what, new.subject, new.detail FROM tail, \
     UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY \
     AS new (at, who, what, subject, detail, place)";

/// Adds lines to the audit.
pub(super) fn note<'c>(rows: &[&'c AuditRow]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [
        row.at.0,
        text(&row.who),
        text(&row.what),
        text(&row.subject),
        json(&row.detail),
    ]);
    BoundStatement::new(NOTE, cells)
}

pub(super) async fn audit(
    db: &Link,
    project: &Project,
    query: &AuditQuery,
) -> Result<Vec<(Seq, AuditRow)>, StoreError> {
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
    let select = "SELECT seq, at, who, what, subject, detail FROM audit";
    (format!("{select}{given} ORDER BY seq {direction} LIMIT {size}"), conditions)
}

/// The query plan of a list.
#[cfg(test)]
pub(super) async fn list_plan(db: &Link, query: &AuditQuery) -> String {
    let (sql, conditions) = statement(&Project::DEFAULT, query);
    list::explain(db, &sql, &conditions.binds()).await
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NOTE];
