//! The letters that a request is about, a part at a time.

use std::collections::{HashSet, VecDeque};

use windlass_engine::id::JobId;
use windlass_store::StoreError;
use windlass_store::job::{JobQuery, JobRow};
use windlass_store::page::{Cursor, Order, Part};

use super::{LETTERS_MAX, Letters, Moved, PART_MAX};
use crate::job::many::each;
use crate::{Runtime, RuntimeError};

/// Rows that are read at once.
const AT_ONCE: usize = 32;

/// What is left of what was asked for.
pub(super) struct Pick {
    queue: String,
    left: Left,
}

enum Left {
    /// So many, of a group or of all, from this place on.
    Oldest {
        fingerprint: Option<String>,
        n: usize,
        from: Option<Cursor>,
    },
    Ids(VecDeque<JobId>),
}

impl Pick {
    pub(super) fn new(queue: String, letters: Letters) -> Self {
        let oldest =
            |fingerprint, max: usize| Left::Oldest { fingerprint, n: max.min(LETTERS_MAX), from: None };
        let left = match letters {
            Letters::Oldest(max) => oldest(None, max),
            Letters::Group { fingerprint, max } => oldest(Some(fingerprint), max),
            Letters::Ids(ids) => {
                // One that is named twice is meant once.
                let mut seen = HashSet::new();
                let ids = ids.into_iter().take(LETTERS_MAX).filter(|id| seen.insert(*id));
                Left::Ids(ids.collect())
            }
        };
        Pick { queue, left }
    }

    /// A part was moved by the same request before: there is so much less to do.
    pub(super) fn pass_over(&mut self) {
        match &mut self.left {
            Left::Oldest { n, .. } => *n = n.saturating_sub(PART_MAX),
            Left::Ids(ids) => drop(ids.drain(..PART_MAX.min(ids.len()))),
        }
    }

    /// The next ones; `None` = there are no more. Ids that are not of this queue are refused.
    pub(super) async fn next(
        &mut self,
        runtime: &Runtime,
        so_far: &mut Moved,
    ) -> Result<Option<Vec<JobRow>>, RuntimeError> {
        match &mut self.left {
            Left::Oldest { n: 0, .. } => Ok(None),
            Left::Oldest { fingerprint, n, from } => {
                let limit = PART_MAX.min(*n);
                let part = Part { order: Order::Oldest, cursor: from.take(), limit, ..Part::default() };
                let query = JobQuery {
                    queue: Some(self.queue.clone()),
                    fingerprint: fingerprint.clone(),
                    is_dead_letter: Some(true),
                    part,
                    ..JobQuery::default()
                };
                let page = runtime.store().jobs(query).await?;
                *n = if page.next.is_some() { n.saturating_sub(limit) } else { 0 };
                *from = page.next;
                Ok(Some(page.items))
            }
            Left::Ids(ids) if ids.is_empty() => Ok(None),
            Left::Ids(ids) => {
                let some = ids.drain(..PART_MAX.min(ids.len())).collect();
                let mut rows = Vec::new();
                for (id, row) in stored(runtime, some).await? {
                    match row.filter(|row| row.job.spec.queue == self.queue) {
                        Some(row) => rows.push(row),
                        None => so_far.refused.push((id, None)),
                    }
                }
                Ok(Some(rows))
            }
        }
    }
}

/// These jobs as they are stored now, in order.
pub(super) async fn stored(
    runtime: &Runtime,
    ids: Vec<JobId>,
) -> Result<Vec<(JobId, Option<JobRow>)>, RuntimeError> {
    let read = |id| {
        let runtime = runtime.clone();
        async move { runtime.store().job(id).await.map(|row| (id, row)) }
    };
    let rows: Vec<Option<Result<_, StoreError>>> = each(ids, AT_ONCE, read).await;
    rows.into_iter().map(|row| Ok(row.ok_or(RuntimeError::Broken)??)).collect()
}
