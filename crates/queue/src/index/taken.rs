//! Taken jobs: dispatched, with claims that are not yet durable.

use std::sync::Arc;

use windlass_engine::time::Timestamp;
use windlass_store::job::JobRow;

use super::{IndexedJob, JobIndex, JobPlacement};
use crate::ready_list::ReadyKey;

impl JobIndex {
    /// Moves a ready job to the taken ones. Returns its bytes.
    pub(super) fn reserve(&mut self, key: ReadyKey, now: Timestamp, taken: &mut Vec<Arc<JobRow>>) -> usize {
        let Some(IndexedJob { row, bytes, is_offered, .. }) = self.remove(key.id) else { return 0 };
        taken.push(row.clone());
        self.n_taken += 1;
        self.spend(&row, now);
        self.rows.insert(
            key.id,
            IndexedJob { row, placement: JobPlacement::Taken, bytes, since: self.n_reads_begun, is_offered },
        );
        bytes
    }

    /// Whether this revision of the job is taken.
    fn is_taken(&self, row: &JobRow) -> bool {
        let is_same =
            |indexed: &IndexedJob| indexed.placement == JobPlacement::Taken && indexed.row.rev == row.rev;
        self.rows.get(&row.id()).is_some_and(is_same)
    }

    /// Drops a taken job whose claim failed because another server changed it.
    pub(crate) fn give_up(&mut self, row: &JobRow) {
        if self.is_taken(row) {
            self.remove(row.id());
            self.tombstone(row.id(), row.rev);
            let freed = self.free(row.id());
            self.wake_for_freed(freed);
        }
    }

    /// Makes taken jobs ready again after their claims failed.
    pub(crate) fn put_back(&mut self, rows: &[Arc<JobRow>]) {
        for row in rows {
            if self.is_taken(row) {
                let is_offered = self.remove(row.id()).is_some_and(|indexed| indexed.is_offered);
                let freed = self.free(row.id());
                self.insert_ready(row.clone(), is_offered);
                self.wake_for_freed(freed);
            }
        }
    }
}
