//! Queue depths: counted as jobs are written, so that no query has to count jobs.
//!
//! The changes of a transaction are added up in memory and written once, at its end, to the shard of the writer:
//! many jobs of one queue cost one row, and two writers to one queue do not wait for one another.

use std::collections::BTreeMap;

use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, cells, text, unnest};
use super::link::{BoundStatement, Link};
use crate::column::{Columns, bound};
use crate::error::StoreError;
use crate::job::JobStatus;
use crate::page::NameRange;
use crate::queue::QueueDepth;

const ADD: &str = "INSERT INTO queue_depths (project, queue, shard, pending, queued, running, suspended, retrying, dead) \
     SELECT * FROM UNNEST($1::text[], $2::text[], $3::bigint[], $4::bigint[], $5::bigint[], $6::bigint[], $7::bigint[], \
     $8::bigint[], $9::bigint[]) ON CONFLICT (project, queue, shard) DO UPDATE SET \
     pending = queue_depths.pending + excluded.pending, queued = queue_depths.queued + excluded.queued, \
     running = queue_depths.running + excluded.running, suspended = queue_depths.suspended + excluded.suspended, \
     retrying = queue_depths.retrying + excluded.retrying, dead = queue_depths.dead + excluded.dead";
/// The first moment at which a job of a queue was due: of each of its priorities, in the order in which they are handed
/// out. An index by that moment alone would be taken for the order of priorities while the database has not counted.
macro_rules! first_due {
    ($which:literal) => {
        concat!(
            "(WITH RECURSIVE level (priority) AS ((SELECT priority FROM jobs WHERE jobs.project = $1 AND jobs.queue = queue_depths.queue \
             AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY priority DESC LIMIT 1) UNION ALL SELECT next.priority FROM level, LATERAL ( \
             SELECT priority FROM jobs WHERE jobs.project = $1 AND jobs.queue = queue_depths.queue AND priority < level.priority \
             AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY priority DESC LIMIT 1) AS next) SELECT min(first.due_at) FROM level, LATERAL ( \
             SELECT due_at FROM jobs WHERE jobs.project = $1 AND jobs.queue = queue_depths.queue AND priority = level.priority \
             AND due_at IS NOT NULL AND ",
            $which,
            " ORDER BY due_at LIMIT 1) AS first)"
        )
    };
}

// The shards of an empty queue add up to zero: it is not listed.
macro_rules! depths {
    ($names:literal) => {
        concat!(
            "SELECT queue, sum(pending)::bigint, sum(queued)::bigint, sum(running)::bigint, sum(suspended)::bigint, \
             sum(retrying)::bigint, sum(dead)::bigint, least(",
            first_due!("limit_key = ''"),
            ", ",
            first_due!("limit_key <> ''"),
            ") FROM queue_depths WHERE queue_depths.project = $1 AND ",
            $names,
            " GROUP BY queue HAVING sum(pending) <> 0 OR sum(queued) <> 0 OR sum(running) <> 0 OR sum(suspended) <> 0 \
             OR sum(retrying) <> 0 OR sum(dead) <> 0 ORDER BY queue LIMIT $3"
        )
    };
}

const DEPTHS: &str = depths!("queue_depths.queue > $2");
const DEPTH_OF: &str = depths!("queue_depths.queue = $2");
// Rows that add up to zero can be deleted together, even while other shards change.
const HOLD: &str =
    "SELECT project, queue, shard FROM queue_depths ORDER BY project, queue, shard FOR UPDATE SKIP LOCKED";
const FORGET: &str = "DELETE FROM queue_depths USING UNNEST($1::text[], $2::text[], $3::bigint[]) \
     AS held (project, queue, shard) WHERE queue_depths.project = held.project AND queue_depths.queue = held.queue \
     AND queue_depths.shard = held.shard AND (queue_depths.project, queue_depths.queue) IN ( \
     SELECT its.project, its.queue FROM queue_depths AS its \
     JOIN UNNEST($1::text[], $2::text[], $3::bigint[]) AS held (project, queue, shard) \
     ON its.project = held.project AND its.queue = held.queue AND its.shard = held.shard \
     GROUP BY its.project, its.queue HAVING sum(pending) = 0 AND sum(queued) = 0 AND sum(running) = 0 AND sum(suspended) = 0 AND sum(retrying) = 0 AND sum(dead) = 0)";

/// The statuses that are counted, in the order of the columns; dead letters come after them.
const STATUSES: [JobStatus; 5] =
    [JobStatus::Pending, JobStatus::Queued, JobStatus::Running, JobStatus::Suspended, JobStatus::Retrying];
const DEAD: usize = STATUSES.len();

/// Where a job is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DepthKey(usize);

impl DepthKey {
    /// The place of a job; `None` if it has ended and is no dead letter.
    pub(super) fn of(status: JobStatus, is_dead_letter: bool) -> Option<DepthKey> {
        let open = STATUSES.iter().position(|counted| *counted == status);
        open.or_else(|| is_dead_letter.then_some(DEAD)).map(DepthKey)
    }
}

/// The changes of a transaction.
#[derive(Debug, Default)]
pub(super) struct Depths(BTreeMap<(Project, String), [i64; DEAD + 1]>);

impl Depths {
    /// A job has gone from one place to another.
    pub(super) fn note(
        &mut self,
        project: &Project,
        queue: &str,
        before: Option<DepthKey>,
        after: Option<DepthKey>,
    ) {
        if before == after {
            return;
        }
        let counts = self.0.entry((project.clone(), queue.to_owned())).or_insert([0; DEAD + 1]);
        for (place, change) in [(before, -1), (after, 1)] {
            if let Some(DepthKey(at)) = place {
                counts[at] += change;
            }
        }
    }

    /// Writes the changes, if there are any.
    pub(super) fn write(&self, shard: i64) -> Option<BoundStatement<'_>> {
        let rows: Vec<_> = self.0.iter().filter(|(_, counts)| **counts != [0; DEAD + 1]).collect();
        if rows.is_empty() {
            return None;
        }
        let cells = unnest!(rows, |((project, queue), counts)| [
            project.as_str(),
            text(queue),
            shard,
            counts[0],
            counts[1],
            counts[2],
            counts[3],
            counts[4],
            counts[DEAD],
        ]);
        Some(BoundStatement::new(ADD, cells))
    }
}

/// Adds the depths to the known queues. Costs the number of queues and their priorities, not of
/// jobs.
pub(super) async fn read(
    db: &Link,
    project: &Project,
    names: &NameRange,
    now: Timestamp,
    depths: &mut BTreeMap<String, QueueDepth>,
) -> Result<(), StoreError> {
    let sql = if names.is_one() { DEPTH_OF } else { DEPTHS };
    let range = cells![project.as_str(), text(names.bound_name()), bound(names.limit())];
    for row in &db.ask(sql, &range).await? {
        let mut columns = PostgresColumns::of(row);
        let queue = columns.text()?;
        let mut counts = [0u64; DEAD + 1];
        for count in &mut counts {
            *count = u64::try_from(columns.value::<i64>()?).unwrap_or(0);
        }
        let depth = depths.entry(queue).or_default();
        let open = STATUSES.into_iter().zip(counts).filter(|(_, n)| *n > 0);
        (depth.open, depth.n_dead_letters) = (open.collect(), counts[DEAD]);
        depth.oldest_due_at = columns.time_or_none()?.filter(|due| *due <= now);
    }
    Ok(())
}

/// Forgets queues that have nothing in them.
pub(super) async fn forget(db: &Link) -> Result<(), StoreError> {
    let rows = db.ask(HOLD, &[]).await?;
    let held = rows.iter().map(|row| {
        let mut columns = PostgresColumns::of(row);
        Ok::<_, StoreError>((columns.value::<String>()?, columns.value::<String>()?, columns.value::<i64>()?))
    });
    let held = held.collect::<Result<Vec<_>, _>>()?;
    if !held.is_empty() {
        let rows = unnest!(held, |(project, queue, shard)| [project.as_str(), queue.as_str(), *shard]);
        db.execute(FORGET, &rows).await?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ADD, DEPTHS, DEPTH_OF, HOLD, FORGET];
