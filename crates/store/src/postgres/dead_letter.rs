//! Dead letters by cause.

use windlass_engine::job::State;
use windlass_engine::project::Project;

use super::column::{PostgresColumns, cells, text};
use super::link::Link;
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::{DeadLetterGroup, GROUPS_MAX};
use crate::table;

// A dead letter is not written again while it is one: its last change is its death. For a group the query reads only an index
// and one row.
const GROUPS: &str = "SELECT counted.fingerprint, n, first_at, last_at, latest.id, latest.state FROM ( \
     SELECT fingerprint, count(*) AS n, min(updated_at) AS first_at, max(updated_at) AS last_at FROM jobs \
     WHERE project = $3 AND queue = $1 AND is_dead_letter AND fingerprint IS NOT NULL GROUP BY fingerprint \
     ORDER BY n DESC, last_at DESC, fingerprint LIMIT $2) AS counted, LATERAL ( \
     SELECT id, state FROM jobs WHERE project = $3 AND queue = $1 AND fingerprint = counted.fingerprint AND is_dead_letter \
     ORDER BY updated_at DESC, id DESC LIMIT 1) AS latest ORDER BY n DESC, last_at DESC, counted.fingerprint";

pub(super) async fn groups(
    db: &Link,
    project: &Project,
    queue: &str,
) -> Result<Vec<DeadLetterGroup>, StoreError> {
    let cells = cells![text(queue), bound(GROUPS_MAX), project.as_str()];
    let rows = db.ask(GROUPS, &cells).await?;
    db.decoded(&table::JOBS, &rows, |row| {
        let mut columns = PostgresColumns::of(row);
        let (fingerprint, n) = (columns.text()?, columns.number()?);
        let (first_at, last_at, latest) = (columns.time()?, columns.time()?, columns.id()?);
        let State::Failed { reason, .. } = columns.json()? else {
            return Err(columns.unreadable(&"a dead letter has not failed"));
        };
        Ok(DeadLetterGroup { fingerprint, n, reason, latest, first_at, last_at })
    })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[GROUPS];
