//! Lines of the audit.

use tokio_postgres::Row;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, cells, text, unnest};
use super::link::{BoundStatement, Link};
use crate::audit::{AuditQuery, AuditRow};
use crate::column::{bound, json};
use crate::decode;
use crate::error::StoreError;
use crate::page::LineOrder;

// The number goes on only while the writer locks the last one: so lines appear in the order of their numbers.
const NOTE: &str = "WITH tail AS (INSERT INTO audit_tail (project, seq) VALUES ($6, cardinality($1::bigint[])) \
     ON CONFLICT (project) DO UPDATE SET seq = audit_tail.seq + excluded.seq \
     RETURNING seq - cardinality($1::bigint[]) AS seq) \
     INSERT INTO audit (project, seq, at, who, what, subject, detail) \
     SELECT $6, tail.seq + new.place, new.at, new.who, new.what, new.subject, new.detail FROM tail, \
     UNNEST($1::bigint[], $2::text[], $3::text[], $4::text[], $5::text[]) WITH ORDINALITY \
     AS new (at, who, what, subject, detail, place)";

macro_rules! audit {
    ($edge:literal) => {
        concat!(
            "SELECT seq, at, who, what, subject, detail FROM audit WHERE project = $6 AND ($3::text IS NULL OR who = $3) \
             AND ($4::text IS NULL OR what = $4) AND ($5::text IS NULL OR subject = $5) AND ",
            $edge,
            " LIMIT $2"
        )
    };
}

const AUDIT: &str = audit!("seq > $1 ORDER BY seq");
const AUDIT_BACK: &str = audit!("seq < $1 ORDER BY seq DESC");

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
) -> Result<Vec<(u64, AuditRow)>, StoreError> {
    let read = |row: &Row| decode::audit(&mut PostgresColumns::of(row));
    let sql = match query.order {
        LineOrder::Oldest => AUDIT,
        LineOrder::Newest => AUDIT_BACK,
    };
    let [who, what, subject] =
        [&query.who, &query.what, &query.subject].map(|asked| asked.as_deref().map(text));
    let project = project.as_str();
    let cells = cells![bound(query.edge()), bound(query.size()), who, what, subject, project];
    db.ask(sql, &cells).await?.iter().map(read).collect()
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[NOTE, AUDIT, AUDIT_BACK];
