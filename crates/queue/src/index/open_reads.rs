//! Reads of the store in progress, and the jobs that were removed meanwhile: a read may return older rows of them.

use std::collections::HashMap;

use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;

use crate::dispatcher::DispatchLimits;

/// The assumed bytes of a job before the first read: large, so that the first read is small.
const BYTES_PER_ROW: usize = 128 << 10;
/// Tombstones that are kept during reads: more than are added during one read.
const TOMBSTONES_MAX: usize = 100_000;
/// One read takes at most this part of the memory for ready jobs.
const READ_BYTES_DIVISOR: usize = 4;
/// The smallest read, however large the jobs are: single rows would never catch up.
const READ_ROWS_MIN: usize = 16;

#[derive(Debug)]
pub(super) struct OpenReads {
    n_open: usize,
    /// Reads of lists since the start.
    n_begun: u64,
    /// The mean size in the last read.
    bytes_per_row: usize,
    /// Revisions of jobs that were removed while a read is open.
    tombstones: HashMap<JobId, Revision>,
    /// How often the tombstones exceeded their limit.
    n_tombstones_dropped: u64,
}

impl Default for OpenReads {
    fn default() -> Self {
        OpenReads {
            n_open: 0,
            n_begun: 0,
            bytes_per_row: BYTES_PER_ROW,
            tombstones: HashMap::new(),
            n_tombstones_dropped: 0,
        }
    }
}

impl OpenReads {
    /// Marks the start of `n` reads.
    pub(super) fn open(&mut self, n: usize) {
        self.n_open += n;
    }

    /// The number of a new read of lists.
    pub(super) fn next_number(&mut self) -> u64 {
        self.n_begun += 1;
        self.n_begun
    }

    /// Marks the end of a read.
    pub(super) fn close(&mut self) {
        self.n_open -= 1;
        if self.n_open == 0 {
            self.tombstones.clear();
        }
    }

    /// The number of the last read of lists.
    pub(super) fn n_begun(&self) -> u64 {
        self.n_begun
    }

    /// Rows to read: fewer if jobs are large, and more by the taken jobs, which the read returns again.
    pub(super) fn n_to_read(&self, limits: &DispatchLimits, n_taken: usize) -> usize {
        let n_fitting = limits.bytes / READ_BYTES_DIVISOR / self.bytes_per_row.max(1);
        n_fitting.clamp(READ_ROWS_MIN, limits.read_rows.max(READ_ROWS_MIN)).saturating_add(n_taken)
    }

    /// Records the size of a result.
    pub(super) fn note_size(&mut self, n: usize, bytes: usize) {
        self.bytes_per_row = bytes.checked_div(n).unwrap_or(self.bytes_per_row);
    }

    /// Remembers the revision of a removed job while a read is open.
    pub(super) fn tombstone(&mut self, id: JobId, rev: Revision) {
        if self.n_open > 0 {
            // Reads may overlap forever; the store rejects jobs that are dispatched wrongly.
            if self.tombstones.len() >= TOMBSTONES_MAX {
                self.tombstones.clear();
                self.n_tombstones_dropped += 1;
            }
            self.tombstones.insert(id, rev);
        }
    }

    /// Whether the job was removed with this revision or a newer one.
    pub(super) fn has_tombstone(&self, id: JobId, rev: Revision) -> bool {
        self.tombstones.get(&id).is_some_and(|known| *known >= rev)
    }

    /// How often the tombstones exceeded their limit.
    pub(super) fn n_tombstones_dropped(&self) -> u64 {
        self.n_tombstones_dropped
    }

    /// Whether tombstones exist only while a read is open.
    #[cfg(test)]
    pub(super) fn is_consistent(&self) -> bool {
        self.n_open > 0 || self.tombstones.is_empty()
    }
}
