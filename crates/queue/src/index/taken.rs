//! Taken jobs: dispatched, with claims that are not yet durable.

use std::sync::Arc;

use windlass_engine::time::Timestamp;
use windlass_store::job::JobRow;

use super::JobIndex;
use super::indexed_jobs::{IndexedJob, JobPlacement};
use crate::ready_list::ReadyKey;

impl JobIndex {
    /// Moves a ready job to the taken ones. Returns its bytes.
    pub(super) fn reserve(&mut self, key: ReadyKey, now: Timestamp, taken: &mut Vec<Arc<JobRow>>) -> usize {
        let Some(indexed) = self.remove(key.id) else { return 0 };
        let bytes = indexed.bytes;
        taken.push(indexed.row.clone());
        self.lists.limiters_mut().spend(&indexed.row, now);
        let since = self.reads.n_begun();
        self.jobs.insert(IndexedJob { placement: JobPlacement::Taken, since, ..indexed });
        bytes
    }

    /// Drops a taken job whose claim failed because another server changed it.
    pub(crate) fn give_up(&mut self, row: &JobRow) {
        if self.jobs.is_taken(row) {
            self.remove(row.id());
            self.reads.tombstone(row.id(), row.rev);
            let freed = self.lists.limiters_mut().free(row.id());
            self.wake_for_freed(freed);
        }
    }

    /// Makes taken jobs ready again after their claims failed.
    pub(crate) fn put_back(&mut self, rows: &[Arc<JobRow>]) {
        for row in rows {
            if self.jobs.is_taken(row) {
                let is_offered = self.remove(row.id()).is_some_and(|indexed| indexed.is_offered);
                let freed = self.lists.limiters_mut().free(row.id());
                self.insert_ready(row.clone(), is_offered);
                self.wake_for_freed(freed);
            }
        }
    }
}
