//! Jobs of runs among those of a list, by class: what the lower classes get of the turns of the higher ones.

use std::collections::{BTreeMap, BTreeSet};

use windlass_engine::share::Share;

use crate::list::Key;

/// Hand-outs before the store is asked again whether it has some of lower classes: as many as it takes to hand out what
/// is read at once of one class.
pub(crate) const ASK_EVERY: u32 = 256;

/// The priority of the lowest class of runs, and that of the highest; the others are between them.
pub const LOWEST: i32 = -2;
pub const HIGHEST: i32 = 2;
/// Jobs that are read at once of each lower class.
pub(crate) const READ: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Runs {
    classes: BTreeMap<i32, BTreeSet<Key>>,
    share: Share<i32>,
    n_before_asking: u32,
}

impl Runs {
    pub(crate) fn insert(&mut self, key: Key) {
        if key.is_run {
            self.classes.entry(key.priority()).or_default().insert(key);
        }
    }

    pub(crate) fn remove(&mut self, key: Key) {
        let Some(class) = self.classes.get_mut(&key.priority()).filter(|_| key.is_run) else { return };
        class.remove(&key);
        if class.is_empty() {
            self.classes.remove(&key.priority());
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.classes.values().map(BTreeSet::len).sum()
    }

    /// All of them, in order.
    pub(crate) fn keys(&self) -> impl Iterator<Item = Key> {
        self.classes.values().rev().flatten().copied()
    }

    pub(crate) fn first(&self) -> Option<Key> {
        self.classes.last_key_value()?.1.first().copied()
    }

    pub(crate) fn last(&self) -> Option<Key> {
        self.classes.first_key_value()?.1.last().copied()
    }

    /// The last before a job.
    pub(crate) fn last_before(&self, key: Key) -> Option<Key> {
        let mut classes = self.classes.range(key.priority()..).map(|(_, class)| class);
        classes.find_map(|class| class.range(..key).next_back()).copied()
    }

    /// The first of the next class below a priority.
    pub(crate) fn below(&self, priority: i32) -> Option<Key> {
        let (_, class) = self.classes.range(..priority).next_back()?;
        class.first().copied()
    }

    /// If there are only so many of the class of this job: the first of them.
    pub(crate) fn few(&self, key: Key, n: usize) -> Option<Key> {
        let class = self.classes.get(&key.priority()).filter(|class| key.is_run && class.len() <= n)?;
        class.first().copied()
    }

    /// If the turn of this job is kept for a lower class: below which priorities to look, one after the other.
    pub(crate) fn kept(&self, top: Key) -> Option<[i32; 2]> {
        // What plain jobs are promised is their order: no turn of theirs is anybody else's.
        (top.is_run && self.share.is_kept()).then(|| self.share.below(top.priority()))
    }

    /// The turn of a job went to this one.
    pub(crate) fn gave(&mut self, top: Key, given: Key) {
        if !top.is_run {
            return;
        }
        if given.is_run {
            self.share.gave(top.priority(), given.priority());
        } else {
            self.share.gave_elsewhere();
        }
        self.n_before_asking = self.n_before_asking.saturating_sub(1);
    }

    /// Whether it is time to ask the store for lower classes, when not all of the list is known and this job is next.
    pub(crate) fn asks(&self, top: Key) -> bool {
        top.is_run && self.n_before_asking == 0
    }

    /// The store is being asked.
    pub(crate) fn asked(&mut self) {
        self.n_before_asking = ASK_EVERY;
    }
}
