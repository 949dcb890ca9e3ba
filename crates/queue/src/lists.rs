//! All lists of queues, or all of services, by name.

use std::collections::HashMap;

use crate::list::{Head, Key, Known, List};

/// Lists that are remembered at least, whether or not there is anything in them.
const EMPTY_LISTS_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Lists {
    named: HashMap<String, List>,
    /// What is known of a list that is not here.
    others: Known,
    n_max: usize,
}

impl Lists {
    /// No lists; whether there is nothing in the store for any of them.
    pub(crate) fn new(others: Known) -> Self {
        Lists { named: HashMap::new(), others, n_max: EMPTY_LISTS_MAX }
    }

    pub(crate) fn named(&self, name: &str) -> Option<&List> {
        self.named.get(name)
    }

    /// How many there are, whether or not there is anything in them.
    pub(crate) fn len(&self) -> usize {
        self.named.len()
    }

    pub(crate) fn named_mut(&mut self, name: &str) -> Option<&mut List> {
        self.named.get_mut(name)
    }

    pub(crate) fn all(&self) -> impl Iterator<Item = (&String, &List)> {
        self.named.iter()
    }

    /// The list of a name, made if need be. Of too many, those that say nothing are forgotten.
    pub(crate) fn of(&mut self, name: &str) -> &mut List {
        if !self.named.contains_key(name) {
            if self.named.len() >= self.n_max {
                let others = self.others;
                self.named.retain(|_, list| !list.says_nothing(others));
                self.n_max = EMPTY_LISTS_MAX.max(self.named.len().saturating_mul(2));
            }
            self.named.insert(name.to_owned(), List::new(self.others));
        }
        self.named.get_mut(name).expect("it was there or was just made")
    }

    /// Whether everything of a name is known.
    pub(crate) fn is_known(&self, name: &str) -> bool {
        self.named.get(name).map_or(self.others == Known::All, List::is_known)
    }

    /// What comes next of a name; `None` = nothing, nor in the store.
    pub(crate) fn head(&self, name: &str) -> Option<Head> {
        match self.named.get(name) {
            Some(list) => list.head(),
            None => List::new(self.others).head(),
        }
    }

    /// Whether the store has to be asked before so many can be handed out, and nobody does.
    pub(crate) fn needs_filling(&self, name: &str, n: usize) -> bool {
        match self.named.get(name) {
            Some(list) => !list.is_filling() && !list.suffices(n),
            None => self.others != Known::All,
        }
    }

    /// From where on the store has to be read for all of these; `None` = from the start.
    pub(crate) fn unknown_from(&self, names: &[String]) -> Option<Option<Key>> {
        let mut from = None;
        for name in names {
            let known = self.named.get(name).and_then(List::unknown_from)?;
            from = Some(from.map_or(known, |from: Key| from.min(known)));
        }
        Some(from)
    }

    /// Somebody begins to read these from the store.
    pub(crate) fn begin_filling(&mut self, names: &[String]) {
        for name in names {
            self.of(name).begin_filling();
        }
    }

    /// Nothing is known any more.
    pub(crate) fn doubt(&mut self) {
        self.others = Known::Nothing;
        self.named.values_mut().for_each(|list| list.cut(Known::Nothing));
    }

    /// The store may have more of every name than is known here.
    pub(crate) fn doubt_rest(&mut self) {
        self.others = Known::Nothing;
        self.named.values_mut().for_each(List::doubt_rest);
    }

    /// Nothing is known any more where there is nothing.
    pub(crate) fn doubt_empty(&mut self) -> Vec<String> {
        let empty = self.named.iter_mut().filter(|(_, list)| list.is_empty() && !list.is_filling());
        empty
            .map(|(name, list)| {
                list.cut(Known::Nothing);
                name.clone()
            })
            .collect()
    }
}
