//! Ready jobs of one queue or one service in dispatch order, and the range of the list that is known to be complete.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::job::{JobRow, ReadyCursor, due_at};

use crate::run_jobs::RunJobs;

/// The sort key of a ready job: higher priority first, then earlier due time, then smaller id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReadyKey {
    urgency: Reverse<i32>,
    due: Timestamp,
    pub(crate) id: JobId,
    /// Whether a run created the job. It does not change the order.
    pub(crate) is_run: bool,
}

impl ReadyKey {
    pub(crate) fn of(row: &JobRow) -> Self {
        let job = &row.job;
        ReadyKey {
            urgency: Reverse(job.spec.priority),
            due: due_at(job).unwrap_or(job.updated_at),
            id: job.id,
            is_run: job.spec.run.is_some(),
        }
    }

    pub(crate) fn priority(self) -> i32 {
        self.urgency.0
    }

    /// The same position in the form of the store.
    pub(crate) fn position(self) -> ReadyCursor {
        ReadyCursor { priority: self.urgency.0, due_at: self.due, id: self.id }
    }

    pub(crate) fn due(self) -> Timestamp {
        self.due
    }

    /// The position before all jobs of a priority, which may differ from the priority of this job.
    pub(crate) fn start_of(self, priority: i32) -> ReadyCursor {
        ReadyCursor { priority, due_at: Timestamp(i64::MIN), id: self.id }
    }

    pub(crate) fn urgency(self) -> Reverse<i32> {
        self.urgency
    }
}

/// A position before, at, or after a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ListPosition {
    pub(crate) urgency: Reverse<i32>,
    within: PositionInPriority,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum PositionInPriority {
    Start,
    /// At the job, or right after it if `true`.
    Near(Timestamp, JobId, bool),
    End,
}

impl ListPosition {
    /// Right before a job.
    pub(crate) fn at(key: ReadyKey) -> Self {
        ListPosition { urgency: key.urgency, within: PositionInPriority::Near(key.due, key.id, false) }
    }

    /// Right after a job.
    pub(crate) fn after(key: ReadyKey) -> Self {
        ListPosition { urgency: key.urgency, within: PositionInPriority::Near(key.due, key.id, true) }
    }

    /// Before all jobs of a priority.
    pub(crate) fn start_of(priority: i32) -> Self {
        ListPosition { urgency: Reverse(priority), within: PositionInPriority::Start }
    }

    /// After all jobs of a priority.
    pub(crate) fn end_of(priority: i32) -> Self {
        ListPosition { urgency: Reverse(priority), within: PositionInPriority::End }
    }
}

impl ListPosition {
    /// The job at this position, if there is one.
    pub(crate) fn job(self) -> Option<ReadyKey> {
        match self.within {
            PositionInPriority::Near(due, id, false) => {
                Some(ReadyKey { urgency: self.urgency, due, id, is_run: false })
            }
            PositionInPriority::Near(_, _, true) | PositionInPriority::Start | PositionInPriority::End => {
                None
            }
        }
    }
}

/// The range of the list in which every ready job of the store is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum KnownRange {
    #[default]
    Nothing,
    /// All jobs before this position.
    Before(ListPosition),
    All,
}

impl KnownRange {
    pub(crate) fn covers(self, key: ReadyKey) -> bool {
        match self {
            KnownRange::Nothing => false,
            KnownRange::Before(end) => ListPosition::at(key) < end,
            KnownRange::All => true,
        }
    }
}

/// The first element of a list. A read of the store sorts before the jobs that it may precede.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ListHead {
    AskStore,
    AskStoreAt(ListPosition),
    Job(ReadyKey),
}

impl ListHead {
    fn position(&self) -> (Option<ListPosition>, bool) {
        match self {
            ListHead::AskStore => (None, false),
            ListHead::AskStoreAt(mark) => (Some(*mark), false),
            ListHead::Job(key) => (Some(ListPosition::at(*key)), true),
        }
    }
}

impl Ord for ListHead {
    fn cmp(&self, other: &Self) -> Ordering {
        self.position().cmp(&other.position())
    }
}

impl PartialOrd for ListHead {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The ready jobs of one queue or one service.
#[derive(Debug, Default)]
pub(crate) struct ReadyList {
    /// Jobs that no run created.
    plain: BTreeSet<ReadyKey>,
    known: KnownRange,
    /// During a read of the store: the range in which the result will still be complete.
    open_read: Option<KnownRange>,
    /// Whether jobs of this server's share were dispatched since the last read, and the time of that read.
    pub(crate) gave_own_jobs: bool,
    pub(crate) read_at: Timestamp,
    /// How many more reads may cover only this server's share, because its share alone fills a read.
    pub(crate) n_own_reads: u8,
    pub(crate) runs: RunJobs,
}

impl ReadyList {
    /// An empty list that is complete in this range.
    pub(crate) fn new(known: KnownRange) -> Self {
        ReadyList { known, ..ReadyList::default() }
    }

    /// Whether dropping the list costs at most one more read of the store, given the known range of lists that are not
    /// kept.
    pub(crate) fn is_redundant(&self, others: KnownRange) -> bool {
        self.is_empty() && !self.is_being_read() && others <= self.known
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.plain.len() + self.runs.len()
    }

    pub(crate) fn is_being_read(&self) -> bool {
        self.open_read.is_some()
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known == KnownRange::All
    }

    /// The position from which the store must be read; `None` = from the start.
    pub(crate) fn unknown_from(&self) -> Option<ReadyKey> {
        match self.known {
            KnownRange::Before(mark) => mark.job(),
            KnownRange::Nothing | KnownRange::All => None,
        }
    }

    pub(crate) fn insert(&mut self, key: ReadyKey) {
        if key.is_run {
            self.runs.insert(key);
        } else {
            self.plain.insert(key);
        }
    }

    pub(crate) fn remove(&mut self, key: ReadyKey) {
        if key.is_run {
            self.runs.remove(key);
        } else {
            self.plain.remove(&key);
        }
    }

    /// All jobs, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ReadyKey> {
        let (mut plain, mut runs) = (self.plain.iter().copied().peekable(), self.runs.keys().peekable());
        std::iter::from_fn(move || match (plain.peek(), runs.peek()) {
            (Some(one), Some(other)) if one < other => plain.next(),
            (_, Some(_)) => runs.next(),
            (_, None) => plain.next(),
        })
    }

    fn first(&self) -> Option<ReadyKey> {
        self.plain.first().copied().into_iter().chain(self.runs.first()).min()
    }

    /// The first plain job, if the store has none before it.
    pub(crate) fn first_plain(&self) -> Option<ReadyKey> {
        self.plain.first().copied().filter(|key| self.known.covers(*key))
    }

    /// The jobs that can be dispatched before the store must be read, in order.
    pub(crate) fn known_keys(&self) -> impl Iterator<Item = ReadyKey> {
        self.keys().take_while(|key| self.known.covers(*key))
    }

    /// The first element; `None` if neither the list nor the store has a job.
    pub(crate) fn head(&self) -> Option<ListHead> {
        match (self.first(), self.known) {
            (Some(key), known) if known.covers(key) => Some(ListHead::Job(key)),
            (_, KnownRange::Before(end)) => Some(ListHead::AskStoreAt(end)),
            (_, KnownRange::Nothing) => Some(ListHead::AskStore),
            (_, KnownRange::All) => None,
        }
    }

    pub(crate) fn last(&self) -> Option<ReadyKey> {
        self.plain.last().copied().max(self.runs.last())
    }

    fn last_before(&self, key: ReadyKey) -> Option<ReadyKey> {
        self.plain.range(..key).next_back().copied().max(self.runs.last_before(key))
    }

    /// The last job that may be evicted when `n_reserved` jobs of each class of runs are kept.
    pub(crate) fn spare(&self, n_reserved: usize) -> Option<ReadyKey> {
        let mut last = self.last();
        while let Some(first) = last.and_then(|last| self.runs.few(last, n_reserved)) {
            last = self.last_before(first);
        }
        last
    }

    /// All evictable jobs after the first `n`, when `n_reserved` jobs of each class of runs are kept.
    pub(crate) fn spares(&self, n: usize, n_reserved: usize) -> impl Iterator<Item = ReadyKey> {
        let mut n_of_class = BTreeMap::<i32, usize>::new();
        let mut is_kept = move |key: ReadyKey| {
            let of_class = n_of_class.entry(key.priority()).or_default();
            *of_class += usize::from(key.is_run);
            key.is_run && *of_class <= n_reserved
        };
        let keys = self.keys().map(move |key| (key, is_kept(key)));
        // Skipped jobs count for their classes too, so they are skipped after counting.
        keys.skip(n).filter(|(_, is_kept)| !is_kept).map(|(key, _)| key)
    }

    /// Whether `n` jobs can be taken before the store must be read.
    pub(crate) fn suffices(&self, n: usize) -> bool {
        let nth = || self.keys().nth(n.saturating_sub(1));
        self.is_known() || nth().is_some_and(|key| self.known.covers(key))
    }

    /// Shortens the known range.
    pub(crate) fn cut(&mut self, known: KnownRange) {
        self.known = self.known.min(known);
        self.open_read = self.open_read.map(|open_read| open_read.min(known));
    }

    /// The store may have jobs behind the known ones: it is read after all known jobs were dispatched.
    pub(crate) fn invalidate_rest(&mut self) {
        self.cut(
            self.last().map_or(KnownRange::Nothing, |last| KnownRange::Before(ListPosition::after(last))),
        );
    }

    /// Marks the start of a read of the store.
    pub(crate) fn begin_read(&mut self) {
        self.open_read = Some(KnownRange::All);
    }

    /// Marks the end of a read with its range; `None` if the read failed.
    pub(crate) fn end_read(&mut self, read: Option<KnownRange>) {
        let still = self.open_read.take().unwrap_or_default();
        if let Some(read) = read {
            self.known = self.known.max(read.min(still));
        }
    }
}
