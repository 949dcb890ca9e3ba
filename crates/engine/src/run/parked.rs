//! Calls that wait for money, and how much each of them needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::Run;
use crate::path::NodePath;

/// Parked calls by their place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub(crate) struct Parked {
    /// What the account would have to have; nothing for a call that waits for a larger budget.
    needs: BTreeMap<NodePath, Option<i64>>,
    /// The same amounts in order: what the least of them needs is asked after every input.
    #[serde(skip)]
    amounts: BTreeMap<i64, usize>,
}

/// What a snapshot holds: those of earlier releases have no amounts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Needs { needs: BTreeMap<NodePath, Option<i64>> },
    Paths(BTreeSet<NodePath>),
}

impl From<Stored> for Parked {
    fn from(stored: Stored) -> Self {
        let needs = match stored {
            Stored::Needs { needs } => needs,
            // Any money may be enough: they are looked at once too often rather than never.
            Stored::Paths(paths) => paths.into_iter().map(|path| (path, Some(0))).collect(),
        };
        let mut parked = Parked::default();
        for (path, need) in needs {
            parked.put(path, need);
        }
        parked
    }
}

impl Parked {
    pub(crate) fn is_empty(&self) -> bool {
        self.needs.is_empty()
    }

    pub(crate) fn paths(&self) -> impl Iterator<Item = &NodePath> {
        self.needs.keys()
    }

    pub(crate) fn insert(&mut self, path: NodePath, amount: i64, over_budget: bool) {
        self.put(path, (!over_budget).then_some(amount));
    }

    pub(crate) fn remove(&mut self, path: &NodePath) {
        if let Some(Some(amount)) = self.needs.remove(path) {
            self.take(amount);
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Parked::default();
    }

    fn put(&mut self, path: NodePath, need: Option<i64>) {
        if let Some(Some(before)) = self.needs.insert(path, need) {
            self.take(before);
        }
        if let Some(amount) = need {
            *self.amounts.entry(amount).or_default() += 1;
        }
    }

    fn take(&mut self, amount: i64) {
        if let Some(n) = self.amounts.get_mut(&amount) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.amounts.remove(&amount);
            }
        }
    }
}

impl Run {
    /// What its account must have before any of its calls that wait for money can go; `None` = none of them waits.
    pub fn needs(&self) -> Option<i64> {
        self.parked.amounts.keys().next().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(needs: &[(&str, i64, bool)]) -> Parked {
        let mut parked = Parked::default();
        for (path, amount, over_budget) in needs {
            parked.insert(NodePath::from(*path), *amount, *over_budget);
        }
        parked
    }

    fn least(parked: &Parked) -> Option<i64> {
        parked.amounts.keys().next().copied()
    }

    #[test]
    fn the_least_that_would_help_is_known() {
        let mut parked = parked(&[("a", 30, false), ("b", 10, false), ("c", 10, false), ("d", 1, true)]);
        assert_eq!(least(&parked), Some(10));
        parked.remove(&"b".into());
        assert_eq!(least(&parked), Some(10));
        parked.insert("c".into(), 40, false);
        assert_eq!(least(&parked), Some(30));
        for path in ["a", "c", "nobody"] {
            parked.remove(&path.into());
        }
        assert_eq!((least(&parked), parked.is_empty()), (None, false));
    }

    #[test]
    fn snapshots_keep_it_and_older_ones_are_read() {
        let parked = parked(&[("a", 30, false), ("d", 1, true)]);
        let text = serde_json::to_string(&parked).unwrap();
        assert_eq!(text, r#"{"needs":{"a":30,"d":null}}"#);
        assert_eq!(serde_json::from_str::<Parked>(&text).unwrap(), parked);
        let older: Parked = serde_json::from_str(r#"["a","b"]"#).unwrap();
        assert_eq!((older.paths().count(), least(&older)), (2, Some(0)));
    }
}
