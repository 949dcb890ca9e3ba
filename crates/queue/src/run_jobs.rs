//! Jobs of runs in a ready list, by priority class, with the fair share that lower classes get.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::share::Share;

use crate::ready_list::ReadyKey;

/// Dispatched jobs between two reads of lower classes from the store: four times the size of such a read.
pub(crate) const CLASS_READ_INTERVAL: u32 = 256;

/// The priorities of the lowest and the highest class of runs.
pub const LOWEST: i32 = -2;
pub const HIGHEST: i32 = 2;
/// Jobs in one read of a lower class.
pub(crate) const CLASS_READ_SIZE: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct RunJobs {
    classes: BTreeMap<i32, BTreeSet<ReadyKey>>,
    share: Share<i32>,
    n_before_class_read: u32,
}

impl RunJobs {
    pub(crate) fn insert(&mut self, key: ReadyKey) {
        if key.is_run {
            self.classes.entry(key.priority()).or_default().insert(key);
        }
    }

    pub(crate) fn remove(&mut self, key: ReadyKey) {
        let Some(class) = self.classes.get_mut(&key.priority()).filter(|_| key.is_run) else { return };
        class.remove(&key);
        if class.is_empty() {
            self.classes.remove(&key.priority());
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.classes.values().map(BTreeSet::len).sum()
    }

    /// All jobs, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = ReadyKey> {
        self.classes.values().rev().flatten().copied()
    }

    pub(crate) fn first(&self) -> Option<ReadyKey> {
        self.classes.last_key_value()?.1.first().copied()
    }

    pub(crate) fn last(&self) -> Option<ReadyKey> {
        self.classes.first_key_value()?.1.last().copied()
    }

    /// The last job before this one.
    pub(crate) fn last_before(&self, key: ReadyKey) -> Option<ReadyKey> {
        let mut classes = self.classes.range(key.priority()..).map(|(_, class)| class);
        classes.find_map(|class| class.range(..key).next_back()).copied()
    }

    /// The first job of the next class below a priority.
    pub(crate) fn below(&self, priority: i32) -> Option<ReadyKey> {
        let (_, class) = self.classes.range(..priority).next_back()?;
        class.first().copied()
    }

    /// The first job of this job's class, if the class has at most `n` jobs.
    pub(crate) fn few(&self, key: ReadyKey, n: usize) -> Option<ReadyKey> {
        let class = self.classes.get(&key.priority()).filter(|class| key.is_run && class.len() <= n)?;
        class.first().copied()
    }

    /// If the fair share gives this job's turn to a lower class: the two priorities below which to search, in order.
    pub(crate) fn reserved_below(&self, top: ReadyKey) -> Option<[i32; 2]> {
        // Plain jobs keep their order, so they give no turn away.
        (top.is_run && self.share.is_kept()).then(|| self.share.below(top.priority()))
    }

    /// Records that `given` was dispatched in the turn of `top`.
    pub(crate) fn record_turn(&mut self, top: ReadyKey, given: ReadyKey) {
        if !top.is_run {
            return;
        }
        if given.is_run {
            self.share.gave(top.priority(), given.priority());
        } else {
            self.share.note_grant_by_other();
        }
        self.n_before_class_read = self.n_before_class_read.saturating_sub(1);
    }

    /// Whether lower classes must be read from the store, when the list is not complete and this job is next.
    pub(crate) fn needs_class_read(&self, top: ReadyKey) -> bool {
        top.is_run && self.n_before_class_read == 0
    }

    /// Marks the start of a read of lower classes.
    pub(crate) fn class_read_begun(&mut self) {
        self.n_before_class_read = CLASS_READ_INTERVAL;
    }
}
