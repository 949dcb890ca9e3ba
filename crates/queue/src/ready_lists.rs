//! The ready lists of all queues, or of all services, by name.

use std::collections::HashMap;

use crate::ready_list::{KnownRange, ListHead, ReadyKey, ReadyList};

/// Lists that are kept at least, even if they are empty.
const EMPTY_LISTS_MAX: usize = 10_000;

/// The position from which the store must be read for several lists, earlier positions first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum ReadFrom {
    /// The start of the lists.
    Start,
    /// This job, the first one that is unknown.
    Job(ReadyKey),
    /// No position, because there is no list.
    #[default]
    Nowhere,
}

#[derive(Debug)]
pub(crate) struct ReadyLists {
    named: HashMap<String, ReadyList>,
    /// The known range of lists that are not kept.
    others: KnownRange,
    n_max: usize,
}

impl ReadyLists {
    /// No lists. `others` is `All` if the store has no ready jobs.
    pub(crate) fn new(others: KnownRange) -> Self {
        ReadyLists { named: HashMap::new(), others, n_max: EMPTY_LISTS_MAX }
    }

    pub(crate) fn named(&self, name: &str) -> Option<&ReadyList> {
        self.named.get(name)
    }

    /// The number of lists, empty ones included.
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    pub(crate) fn named_mut(&mut self, name: &str) -> Option<&mut ReadyList> {
        self.named.get_mut(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &ReadyList)> {
        self.named.iter()
    }

    /// The list of a name, created if absent. Beyond the limit, redundant lists are dropped.
    pub(crate) fn of(&mut self, name: &str) -> &mut ReadyList {
        if !self.named.contains_key(name) {
            if self.named.len() >= self.n_max {
                let others = self.others;
                self.named.retain(|_, list| !list.is_redundant(others));
                self.n_max = EMPTY_LISTS_MAX.max(self.named.len().saturating_mul(2));
            }
            self.named.insert(name.to_owned(), ReadyList::new(self.others));
        }
        self.named.get_mut(name).expect("it was there or was just made")
    }

    /// Whether every ready job of this name is known.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.named.get(name).map_or(self.others == KnownRange::All, ReadyList::is_known)
    }

    /// The first element of a list; `None` if neither the list nor the store has a job.
    pub(crate) fn head(&self, name: &str) -> Option<ListHead> {
        match self.named.get(name) {
            Some(list) => list.head(),
            None => ReadyList::new(self.others).head(),
        }
    }

    /// Whether the store must be read before `n` jobs can be dispatched, and no read is open.
    pub(crate) fn needs_read(&self, name: &str, n: usize) -> bool {
        match self.named.get(name) {
            Some(list) => !list.is_being_read() && !list.suffices(n),
            None => self.others != KnownRange::All,
        }
    }

    /// The position from which the store must be read for all of these.
    pub(crate) fn unknown_from(&self, names: &[String]) -> ReadFrom {
        let of = |name: &String| self.named.get(name).and_then(ReadyList::unknown_from);
        names.iter().map(|name| of(name).map_or(ReadFrom::Start, ReadFrom::Job)).min().unwrap_or_default()
    }

    /// Marks the start of a read of these lists.
    pub(crate) fn begin_read(&mut self, names: &[String]) {
        for name in names {
            self.of(name).begin_read();
        }
    }

    /// Forgets the known range of every list.
    pub(crate) fn invalidate(&mut self) {
        self.others = KnownRange::Nothing;
        self.named.values_mut().for_each(|list| list.cut(KnownRange::Nothing));
    }

    /// The store may have more jobs of every name than are known here.
    pub(crate) fn invalidate_rest(&mut self) {
        self.others = KnownRange::Nothing;
        self.named.values_mut().for_each(ReadyList::invalidate_rest);
    }

    /// Forgets the known range of empty lists, and returns their names.
    pub(crate) fn invalidate_empty(&mut self) -> Vec<String> {
        let empty = self.named.iter_mut().filter(|(_, list)| list.is_empty() && !list.is_being_read());
        empty
            .map(|(name, list)| {
                list.cut(KnownRange::Nothing);
                name.clone()
            })
            .collect()
    }
}
