//! The ready jobs of one queue or one service, in order, and how far the list can be relied on.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::job::{JobRow, ReadyPlace, due_at};

use crate::runs::Runs;

/// The place of a job among others: higher priority first, then the earlier due, then the smaller id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    urgency: Reverse<i32>,
    due: Timestamp,
    pub(crate) id: JobId,
    /// Whether it is the job of a run. Says nothing about its place.
    pub(crate) is_run: bool,
}

impl Key {
    pub(crate) fn of(row: &JobRow) -> Self {
        let job = &row.job;
        Key {
            urgency: Reverse(job.spec.priority),
            due: due_at(job).unwrap_or(job.updated_at),
            id: job.id,
            is_run: job.spec.run.is_some(),
        }
    }

    pub(crate) fn priority(self) -> i32 {
        self.urgency.0
    }

    /// The same place as the store names it.
    pub(crate) fn place(self) -> ReadyPlace {
        ReadyPlace { priority: self.urgency.0, due_at: self.due, id: self.id }
    }

    pub(crate) fn due(self) -> Timestamp {
        self.due
    }

    /// Before all jobs of a priority, whichever this one has.
    pub(crate) fn start_of(self, priority: i32) -> ReadyPlace {
        ReadyPlace { priority, due_at: Timestamp(i64::MIN), id: self.id }
    }

    pub(crate) fn urgency(self) -> Reverse<i32> {
        self.urgency
    }
}

/// A place between jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Mark {
    pub(crate) urgency: Reverse<i32>,
    within: Within,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Within {
    Start,
    /// At the job, or right after it.
    Near(Timestamp, JobId, bool),
    End,
}

impl Mark {
    /// Right before a job.
    pub(crate) fn at(key: Key) -> Self {
        Mark { urgency: key.urgency, within: Within::Near(key.due, key.id, false) }
    }

    /// Right after a job.
    pub(crate) fn after(key: Key) -> Self {
        Mark { urgency: key.urgency, within: Within::Near(key.due, key.id, true) }
    }

    /// Before all jobs of a priority.
    pub(crate) fn start_of(priority: i32) -> Self {
        Mark { urgency: Reverse(priority), within: Within::Start }
    }

    /// After all jobs of a priority.
    pub(crate) fn end_of(priority: i32) -> Self {
        Mark { urgency: Reverse(priority), within: Within::End }
    }
}

impl Mark {
    /// The job that the place is at, if it is at one.
    pub(crate) fn job(self) -> Option<Key> {
        match self.within {
            Within::Near(due, id, false) => Some(Key { urgency: self.urgency, due, id, is_run: false }),
            Within::Near(_, _, true) | Within::Start | Within::End => None,
        }
    }
}

/// How much of what is ready in the store is known here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum Known {
    #[default]
    Nothing,
    /// Everything that comes before this.
    Before(Mark),
    All,
}

impl Known {
    pub(crate) fn covers(self, key: Key) -> bool {
        match self {
            Known::Nothing => false,
            Known::Before(end) => Mark::at(key) < end,
            Known::All => true,
        }
    }
}

/// What comes next in a list. In order: what must be asked of the store comes before the jobs that it may precede.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Head {
    AskStore,
    AskStoreAt(Mark),
    Job(Key),
}

impl Head {
    fn place(&self) -> (Option<Mark>, bool) {
        match self {
            Head::AskStore => (None, false),
            Head::AskStoreAt(mark) => (Some(*mark), false),
            Head::Job(key) => (Some(Mark::at(*key)), true),
        }
    }
}

impl Ord for Head {
    fn cmp(&self, other: &Self) -> Ordering {
        self.place().cmp(&other.place())
    }
}

impl PartialOrd for Head {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// The ready jobs of one queue or one service.
#[derive(Debug, Default)]
pub(crate) struct List {
    /// Those that are not of runs.
    plain: BTreeSet<Key>,
    known: Known,
    /// While somebody reads it from the store: how much of what they read will still be known.
    filling: Option<Known>,
    /// Whether jobs of the own share were handed out since it was read, and when the store was last asked.
    pub(crate) has_given: bool,
    pub(crate) asked_at: Timestamp,
    /// How many more readings may be of the own portion alone, because there is more than enough of it.
    pub(crate) n_own_readings: u8,
    pub(crate) runs: Runs,
}

impl List {
    /// A list without jobs, of which so much is known.
    pub(crate) fn new(known: Known) -> Self {
        List { known, ..List::default() }
    }

    /// Whether forgetting it changes nothing but that the store may be asked once more, given what is known of lists
    /// that are not there.
    pub(crate) fn says_nothing(&self, others: Known) -> bool {
        self.is_empty() && !self.is_filling() && others <= self.known
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }

    pub(crate) fn len(&self) -> usize {
        self.plain.len() + self.runs.len()
    }

    pub(crate) fn is_filling(&self) -> bool {
        self.filling.is_some()
    }

    pub(crate) fn is_known(&self) -> bool {
        self.known == Known::All
    }

    /// From where on the store has to be read; `None` = from the start.
    pub(crate) fn unknown_from(&self) -> Option<Key> {
        match self.known {
            Known::Before(mark) => mark.job(),
            Known::Nothing | Known::All => None,
        }
    }

    pub(crate) fn insert(&mut self, key: Key) {
        if key.is_run {
            self.runs.insert(key);
        } else {
            self.plain.insert(key);
        }
    }

    pub(crate) fn remove(&mut self, key: Key) {
        if key.is_run {
            self.runs.remove(key);
        } else {
            self.plain.remove(&key);
        }
    }

    /// All of its jobs, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        let (mut plain, mut runs) = (self.plain.iter().copied().peekable(), self.runs.keys().peekable());
        std::iter::from_fn(move || match (plain.peek(), runs.peek()) {
            (Some(one), Some(other)) if one < other => plain.next(),
            (_, Some(_)) => runs.next(),
            (_, None) => plain.next(),
        })
    }

    fn first(&self) -> Option<Key> {
        self.plain.first().copied().into_iter().chain(self.runs.first()).min()
    }

    /// The first that is not of a run, if none in the store comes before it.
    pub(crate) fn first_plain(&self) -> Option<Key> {
        self.plain.first().copied().filter(|key| self.known.covers(*key))
    }

    /// Those of its jobs that can be handed out before the store is asked, in order.
    pub(crate) fn known_keys(&self) -> impl Iterator<Item = Key> {
        self.keys().take_while(|key| self.known.covers(*key))
    }

    /// What comes next; `None` = nothing, nor in the store.
    pub(crate) fn head(&self) -> Option<Head> {
        match (self.first(), self.known) {
            (Some(key), known) if known.covers(key) => Some(Head::Job(key)),
            (_, Known::Before(end)) => Some(Head::AskStoreAt(end)),
            (_, Known::Nothing) => Some(Head::AskStore),
            (_, Known::All) => None,
        }
    }

    pub(crate) fn last(&self) -> Option<Key> {
        self.plain.last().copied().max(self.runs.last())
    }

    fn last_before(&self, key: Key) -> Option<Key> {
        self.plain.range(..key).next_back().copied().max(self.runs.last_before(key))
    }

    /// The last that can be spared, when so many of each class of runs are kept for their share.
    pub(crate) fn spare(&self, n_kept: usize) -> Option<Key> {
        let mut last = self.last();
        while let Some(first) = last.and_then(|last| self.runs.few(last, n_kept)) {
            last = self.last_before(first);
        }
        last
    }

    /// All after the first so many, when so many of each class of runs are kept for their share.
    pub(crate) fn spares(&self, n: usize, n_kept: usize) -> impl Iterator<Item = Key> {
        let mut n_of_class = BTreeMap::<i32, usize>::new();
        let mut is_kept = move |key: Key| {
            let of_class = n_of_class.entry(key.priority()).or_default();
            *of_class += usize::from(key.is_run);
            key.is_run && *of_class <= n_kept
        };
        let keys = self.keys().map(move |key| (key, is_kept(key)));
        // Those that are passed over count for their classes too: they are skipped after they were counted.
        keys.skip(n).filter(|(_, is_kept)| !is_kept).map(|(key, _)| key)
    }

    /// Whether so many can be taken from it before the store must be asked.
    pub(crate) fn suffices(&self, n: usize) -> bool {
        let nth = || self.keys().nth(n.saturating_sub(1));
        self.is_known() || nth().is_some_and(|key| self.known.covers(key))
    }

    /// From this job on, the store may have more.
    pub(crate) fn cut(&mut self, known: Known) {
        self.known = self.known.min(known);
        self.filling = self.filling.map(|filling| filling.min(known));
    }

    /// The store may have more than is known here: it is asked when all of that is handed out.
    pub(crate) fn doubt_rest(&mut self) {
        self.cut(self.last().map_or(Known::Nothing, |last| Known::Before(Mark::after(last))));
    }

    /// Somebody begins to read it from the store.
    pub(crate) fn begin_filling(&mut self) {
        self.filling = Some(Known::All);
    }

    /// So much was read; nothing if that came to nothing.
    pub(crate) fn end_filling(&mut self, read: Option<Known>) {
        let still = self.filling.take().unwrap_or_default();
        if let Some(read) = read {
            self.known = self.known.max(read.min(still));
        }
    }
}
