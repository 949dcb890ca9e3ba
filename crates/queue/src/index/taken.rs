//! Jobs that somebody is being given, while nobody knows whether the claim becomes durable.

use std::sync::Arc;

use windlass_engine::time::Timestamp;
use windlass_store::job::JobRow;

use super::{Index, Place, Slot};
use crate::list::Key;

impl Index {
    /// Makes a ready job a taken one; how large it is.
    pub(super) fn reserve(&mut self, key: Key, now: Timestamp, taken: &mut Vec<Arc<JobRow>>) -> usize {
        let Some(Slot { row, bytes, is_offered, .. }) = self.remove(key.id) else { return 0 };
        taken.push(row.clone());
        self.n_taken += 1;
        self.spend(&row, now);
        self.rows
            .insert(key.id, Slot { row, place: Place::Taken, bytes, since: self.n_readings, is_offered });
        bytes
    }

    /// Whether somebody is being given the job as it is here.
    fn is_taken(&self, row: &JobRow) -> bool {
        let is_same = |slot: &Slot| slot.place == Place::Taken && slot.row.rev == row.rev;
        self.rows.get(&row.id()).is_some_and(is_same)
    }

    /// The claim of this one came to nothing, and others have changed it.
    pub(crate) fn give_up(&mut self, row: &JobRow) {
        if self.is_taken(row) {
            self.remove(row.id());
            self.bury(row.id(), row.rev);
            let freed = self.free(row.id());
            self.stir_freed(freed);
        }
    }

    /// The claims of these came to nothing: they are ready as before.
    pub(crate) fn put_back(&mut self, rows: &[Arc<JobRow>]) {
        for row in rows {
            if self.is_taken(row) {
                let is_offered = self.remove(row.id()).is_some_and(|slot| slot.is_offered);
                let freed = self.free(row.id());
                self.insert_ready(row.clone(), is_offered);
                self.stir_freed(freed);
            }
        }
    }
}
