//! The dead letters that a request selects, read a part at a time.

use std::collections::{HashSet, VecDeque};

use windlass_engine::id::JobId;
use windlass_store::StoreError;
use windlass_store::job::{JobQuery, JobRow};
use windlass_store::page::{Cursor, Order, Part};

use super::{DEAD_LETTERS_MAX, DeadLetterSelector, MovedDeadLetters, PART_MAX};
use crate::RuntimeError;
use crate::bounded::map_concurrent;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

/// Rows that are read at once.
const READ_CONCURRENCY: usize = 32;

/// The dead letters that are still to be moved.
pub(super) struct DeadLetterPicker {
    queue: String,
    left: RemainingDeadLetters,
}

enum RemainingDeadLetters {
    /// So many, of a group or of all, from this place on.
    Oldest {
        fingerprint: Option<String>,
        n: usize,
        from: Option<Cursor>,
    },
    Ids(VecDeque<JobId>),
}

impl DeadLetterPicker {
    pub(super) fn new(queue: String, letters: DeadLetterSelector) -> Self {
        let oldest = |fingerprint, max: usize| RemainingDeadLetters::Oldest {
            fingerprint,
            n: max.min(DEAD_LETTERS_MAX),
            from: None,
        };
        let left = match letters {
            DeadLetterSelector::Oldest(max) => oldest(None, max),
            DeadLetterSelector::Group { fingerprint, max } => oldest(Some(fingerprint), max),
            DeadLetterSelector::Ids(ids) => {
                // One that is named twice is meant once.
                let mut seen = HashSet::new();
                let ids = ids.into_iter().take(DEAD_LETTERS_MAX).filter(|id| seen.insert(*id));
                RemainingDeadLetters::Ids(ids.collect())
            }
        };
        DeadLetterPicker { queue, left }
    }

    /// A part was moved by the same request before: there is so much less to do.
    pub(super) fn pass_over(&mut self) {
        match &mut self.left {
            RemainingDeadLetters::Oldest { n, .. } => *n = n.saturating_sub(PART_MAX),
            RemainingDeadLetters::Ids(ids) => drop(ids.drain(..PART_MAX.min(ids.len()))),
        }
    }

    /// The next ones; `None` = there are no more. Ids that are not of this queue are refused.
    pub(super) async fn next(
        &mut self,
        jobs: &Jobs,
        so_far: &mut MovedDeadLetters,
    ) -> Result<Option<Vec<JobRow>>, RuntimeError> {
        match &mut self.left {
            RemainingDeadLetters::Oldest { n: 0, .. } => Ok(None),
            RemainingDeadLetters::Oldest { fingerprint, n, from } => {
                let limit = PART_MAX.min(*n);
                let part = Part { order: Order::Oldest, cursor: from.take(), limit, ..Part::default() };
                let query = JobQuery {
                    queue: Some(self.queue.clone()),
                    fingerprint: fingerprint.clone(),
                    is_dead_letter: Some(true),
                    part,
                    ..JobQuery::default()
                };
                let page = jobs.store().jobs(jobs.project(), query).await?;
                *n = if page.next.is_some() { n.saturating_sub(limit) } else { 0 };
                *from = page.next;
                Ok(Some(page.items))
            }
            RemainingDeadLetters::Ids(ids) if ids.is_empty() => Ok(None),
            RemainingDeadLetters::Ids(ids) => {
                let some = ids.drain(..PART_MAX.min(ids.len())).collect();
                let mut rows = Vec::new();
                for (id, row) in stored(jobs, some).await? {
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
    jobs: &Jobs,
    ids: Vec<JobId>,
) -> Result<Vec<(JobId, Option<JobRow>)>, RuntimeError> {
    let read = |id| {
        let jobs = jobs.clone();
        async move { jobs.store().job(jobs.project(), id).await.map(|row| (id, row)) }
    };
    let rows: Vec<Option<Result<_, StoreError>>> = map_concurrent(ids, READ_CONCURRENCY, read).await;
    rows.into_iter().map(|row| Ok(row.ok_or(RuntimeError::Broken)??)).collect()
}
