//! The rows of known jobs with their placements, and their counts and bytes by placement.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::limits;
use windlass_engine::weight::{Excess, weigh};
use windlass_store::job::JobRow;

use crate::dispatcher::DispatchLimits;

/// The approximate bytes of a job without its payload.
const ROW_BYTES: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct IndexedJobs {
    rows: HashMap<JobId, IndexedJob>,
    ready: IndexedSize,
    held: IndexedSize,
    n_taken: usize,
    /// Ready jobs of runs by priority.
    n_runs_ready: BTreeMap<i32, usize>,
}

/// A known job. It changes its placement only by being removed and inserted again.
#[derive(Debug)]
pub(super) struct IndexedJob {
    pub(super) row: Arc<JobRow>,
    pub(super) placement: JobPlacement,
    pub(super) bytes: usize,
    /// The number of reads that had begun when it got its placement.
    pub(super) since: u64,
    /// Whether a local commit wrote it, rather than a read of the store.
    pub(super) is_offered: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum JobPlacement {
    Ready,
    Taken,
    Held,
}

/// A number of jobs and their bytes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct IndexedSize {
    pub(super) n: usize,
    pub(super) bytes: usize,
}

impl IndexedSize {
    fn add(&mut self, bytes: usize) {
        self.n += 1;
        self.bytes += bytes;
    }

    fn subtract(&mut self, bytes: usize) {
        self.n -= 1;
        self.bytes -= bytes;
    }

    pub(super) fn is_full(self, limits: &DispatchLimits) -> bool {
        self.n >= limits.rows || self.bytes >= limits.bytes
    }
}

impl IndexedJobs {
    pub(super) fn job(&self, id: JobId) -> Option<&IndexedJob> {
        self.rows.get(&id)
    }

    /// The job, if it is ready.
    pub(super) fn ready_job(&self, id: JobId) -> Option<&IndexedJob> {
        self.rows.get(&id).filter(|indexed| indexed.placement == JobPlacement::Ready)
    }

    /// Whether this revision of the job is taken.
    pub(super) fn is_taken(&self, row: &JobRow) -> bool {
        let is_same =
            |indexed: &IndexedJob| indexed.placement == JobPlacement::Taken && indexed.row.rev == row.rev;
        self.rows.get(&row.id()).is_some_and(is_same)
    }

    /// Whether this revision of the job, or a newer one, is known.
    pub(super) fn knows(&self, id: JobId, rev: Revision) -> bool {
        self.rows.get(&id).is_some_and(|indexed| indexed.row.rev >= rev)
    }

    pub(super) fn ready_ids(&self) -> Vec<JobId> {
        let ready = self.rows.iter().filter(|(_, indexed)| indexed.placement == JobPlacement::Ready);
        ready.map(|(id, _)| *id).collect()
    }

    /// The taken jobs of a queue.
    pub(super) fn taken_of(&self, queue: &str) -> impl Iterator<Item = &Arc<JobRow>> {
        let taken = self.rows.values().filter(|indexed| indexed.placement == JobPlacement::Taken);
        taken.map(|indexed| &indexed.row).filter(move |row| row.job.spec.queue == queue)
    }

    /// The size of all ready jobs.
    pub(super) fn ready(&self) -> IndexedSize {
        self.ready
    }

    /// The size of all held jobs.
    pub(super) fn held(&self) -> IndexedSize {
        self.held
    }

    pub(super) fn n_taken(&self) -> usize {
        self.n_taken
    }

    /// Whether a job of a run with a lower priority is ready.
    pub(super) fn has_runs_below(&self, priority: i32) -> bool {
        self.n_runs_ready.range(..priority).next().is_some()
    }

    /// Adds a job that is not known.
    pub(super) fn insert(&mut self, indexed: IndexedJob) {
        match indexed.placement {
            JobPlacement::Ready => {
                self.ready.add(indexed.bytes);
                let spec = &indexed.row.job.spec;
                if spec.run.is_some() {
                    *self.n_runs_ready.entry(spec.priority).or_default() += 1;
                }
            }
            JobPlacement::Taken => self.n_taken += 1,
            JobPlacement::Held => self.held.add(indexed.bytes),
        }
        self.rows.insert(indexed.row.id(), indexed);
    }

    pub(super) fn remove(&mut self, id: JobId) -> Option<IndexedJob> {
        let indexed = self.rows.remove(&id)?;
        match indexed.placement {
            JobPlacement::Ready => {
                self.ready.subtract(indexed.bytes);
                let spec = &indexed.row.job.spec;
                if spec.run.is_some() {
                    self.uncount_run(spec.priority);
                }
            }
            JobPlacement::Taken => self.n_taken -= 1,
            JobPlacement::Held => self.held.subtract(indexed.bytes),
        }
        Some(indexed)
    }

    fn uncount_run(&mut self, priority: i32) {
        let Some(n) = self.n_runs_ready.get_mut(&priority) else { return };
        *n -= 1;
        if *n == 0 {
            self.n_runs_ready.remove(&priority);
        }
    }

    #[cfg(test)]
    pub(super) fn all(&self) -> impl Iterator<Item = &IndexedJob> {
        self.rows.values()
    }

    /// Whether the counts agree with the rows.
    #[cfg(test)]
    pub(super) fn is_consistent(&self) -> bool {
        let count = |place| self.all().filter(|indexed| indexed.placement == place).count();
        let mut n_runs_ready = BTreeMap::new();
        for indexed in self.all().filter(|indexed| indexed.placement == JobPlacement::Ready) {
            if indexed.row.job.spec.run.is_some() {
                *n_runs_ready.entry(indexed.row.job.spec.priority).or_default() += 1;
            }
        }
        count(JobPlacement::Ready) == self.ready.n
            && count(JobPlacement::Held) == self.held.n
            && count(JobPlacement::Taken) == self.n_taken
            && n_runs_ready == self.n_runs_ready
    }
}

/// The approximate bytes of a job.
pub(super) fn weight_of(row: &JobRow) -> usize {
    // A value that is too deep to weigh counts as the largest possible one.
    let bytes = |weight: Result<usize, Excess>| weight.unwrap_or(limits::SHARED_BYTES);
    let job = &row.job;
    ROW_BYTES + bytes(job.spec.payload.weigh()) + job.memo.as_ref().map_or(0, |memo| bytes(weigh(memo)))
}
