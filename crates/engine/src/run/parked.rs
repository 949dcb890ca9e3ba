//! Calls that wait for money, and how much each of them needs.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::state::Status;
use super::{Run, Todo};
use crate::money::Amount;
use crate::path::NodePath;

/// Parked calls by their place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Stored")]
pub(crate) struct Parked {
    needs: BTreeMap<NodePath, FundsNeed>,
    /// Those that wait for a balance, the smallest amount first: money that comes in is looked at for these.
    #[serde(skip)]
    of_balance: BTreeSet<(Amount, NodePath)>,
    /// Those that wait for a budget.
    #[serde(skip)]
    of_budget: BTreeSet<(Amount, NodePath)>,
    /// Calls that wait to start a child run until another child returns its part of the budget: one goes at a time,
    /// however much is left.
    #[serde(skip)]
    of_reserve: BTreeSet<(Amount, NodePath)>,
}

/// The cause for which a call is parked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FundsNeed {
    pub(crate) amount: Amount,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) over_budget: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) child: bool,
}

impl FundsNeed {
    pub(crate) fn of_balance(amount: Amount) -> Self {
        FundsNeed { amount, over_budget: false, child: false }
    }
}

/// The form in a snapshot: those of earlier versions have no amounts.
#[derive(Deserialize)]
#[serde(untagged)]
enum Stored {
    Needs { needs: BTreeMap<NodePath, FundsNeed> },
    Paths(BTreeSet<NodePath>),
}

impl From<Stored> for Parked {
    fn from(stored: Stored) -> Self {
        let needs = match stored {
            Stored::Needs { needs } => needs,
            // Any money may be enough: they are looked at once too often rather than never.
            Stored::Paths(paths) => {
                paths.into_iter().map(|path| (path, FundsNeed::of_balance(Amount::ZERO))).collect()
            }
        };
        let mut parked = Parked::default();
        for (path, need) in needs {
            parked.insert(path, need);
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

    /// Calls that wait for a budget, of any amount; without those that wait to start a child run.
    pub(crate) fn over_budget(&self) -> impl Iterator<Item = &NodePath> {
        self.of_budget.iter().map(|(_, path)| path)
    }

    pub(crate) fn insert(&mut self, path: NodePath, need: FundsNeed) {
        self.remove(&path);
        self.needs.insert(path.clone(), need);
        self.of(need).insert((need.amount, path));
    }

    pub(crate) fn remove(&mut self, path: &NodePath) {
        if let Some(need) = self.needs.remove(path) {
            self.of(need).remove(&(need.amount, path.clone()));
        }
    }

    pub(crate) fn contains(&self, path: &NodePath) -> bool {
        self.needs.contains_key(path)
    }

    pub(crate) fn clear(&mut self) {
        *self = Parked::default();
    }

    fn of(&mut self, need: FundsNeed) -> &mut BTreeSet<(Amount, NodePath)> {
        match (need.over_budget, need.child) {
            (false, _) => &mut self.of_balance,
            (true, false) => &mut self.of_budget,
            (true, true) => &mut self.of_reserve,
        }
    }
}

/// The calls that this amount bears together, the smallest first: costs the number that go, not that wait.
fn affordable(needs: &BTreeSet<(Amount, NodePath)>, by: Amount) -> impl Iterator<Item = &NodePath> {
    let mut left = by;
    let fits = move |(amount, _): &&(Amount, NodePath)| {
        left = left.saturating_sub(*amount);
        left >= Amount::ZERO
    };
    needs.iter().take_while(fits).map(|(_, path)| path)
}

impl Run {
    /// The balance that the account needs before any call that waits for money can go; `None` = none of them waits, or
    /// money would not let it go. Those that a pause holds back have been told.
    pub fn needs(&self) -> Option<Amount> {
        match self.status {
            Status::Running | Status::Paused => {}
            Status::Pending | Status::Canceling | Status::Completed | Status::Failed | Status::Canceled => {
                return None;
            }
        }
        let mut waiting = self.parked.of_balance.iter().filter(|(_, path)| self.is_untold(path));
        waiting.next().map(|(amount, _)| *amount)
    }

    /// Whether calls that wait for the budget could go, and nothing has looked at them: that must never be.
    pub fn is_overlooked(&self) -> bool {
        let is_open = matches!(self.status, Status::Running | Status::Paused);
        is_open && self.within_budget().iter().chain(self.next_child()).any(|path| self.is_untold(path))
    }

    fn is_untold(&self, path: &NodePath) -> bool {
        !self.agenda.contains(&Todo::Begin(path.clone()))
    }

    /// Parked calls that are to be looked at again now that the account has so much; all of them if that is not known.
    /// While the run is paused, those of before are still on its agenda.
    pub(super) fn funded_by(&self, balance: Option<Amount>) -> Vec<NodePath> {
        let is_new = |path: &&NodePath| self.is_untold(path);
        match balance {
            Some(balance) => affordable(&self.parked.of_balance, balance).filter(is_new).cloned().collect(),
            None => self.parked.paths().filter(is_new).cloned().collect(),
        }
    }

    /// Parked calls that fit into the rest of the budget.
    pub(super) fn within_budget(&self) -> Vec<NodePath> {
        if self.parked.of_budget.is_empty() {
            return Vec::new();
        }
        let fits = |left| affordable(&self.parked.of_budget, left).cloned().collect();
        self.budget_left().map(fits).unwrap_or_default()
    }

    /// The call whose turn it is to start a child run.
    pub(super) fn next_child(&self) -> Option<&NodePath> {
        let (_, path) = self.parked.of_reserve.first()?;
        Some(path).filter(|_| self.reserves.total() <= Amount::ZERO)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parked(needs: &[(&str, i64, bool)]) -> Parked {
        let mut parked = Parked::default();
        for (path, amount, over_budget) in needs {
            let need = FundsNeed { amount: Amount(*amount), over_budget: *over_budget, child: false };
            parked.insert(NodePath::from(*path), need);
        }
        parked
    }

    fn least(parked: &Parked) -> Option<Amount> {
        parked.of_balance.first().map(|(amount, _)| *amount)
    }

    #[test]
    fn the_least_that_would_help_is_known() {
        let mut parked = parked(&[("a", 30, false), ("b", 10, false), ("c", 10, false), ("d", 1, true)]);
        assert_eq!(least(&parked), Some(Amount(10)));
        parked.remove(&"b".into());
        assert_eq!(least(&parked), Some(Amount(10)));
        parked.insert("c".into(), FundsNeed::of_balance(Amount(40)));
        assert_eq!(least(&parked), Some(Amount(30)));
        for path in ["a", "c", "nobody"] {
            parked.remove(&path.into());
        }
        assert_eq!((least(&parked), parked.is_empty()), (None, false));
    }

    #[test]
    fn as_many_go_as_the_money_bears() {
        let parked = parked(&[("a", 30, false), ("b", 10, false), ("c", 20, false), ("d", 1, true)]);
        let go = |by| {
            affordable(&parked.of_balance, Amount(by)).map(NodePath::as_str).collect::<Vec<_>>().concat()
        };
        assert_eq!([9, 10, 29, 30, 60].map(go), ["", "b", "b", "bc", "bca"]);
        assert_eq!((go(i64::MIN), go(i64::MAX)), (String::new(), "bca".to_owned()));
    }

    #[test]
    fn snapshots_keep_it_and_older_ones_are_read() {
        let parked = parked(&[("a", 30, false), ("d", 1, true)]);
        let text = serde_json::to_string(&parked).unwrap();
        assert_eq!(text, r#"{"needs":{"a":{"amount":30},"d":{"amount":1,"over_budget":true}}}"#);
        assert_eq!(serde_json::from_str::<Parked>(&text).unwrap(), parked);
        let older: Parked = serde_json::from_str(r#"["a","b"]"#).unwrap();
        assert_eq!((older.paths().count(), least(&older)), (2, Some(Amount::ZERO)));
    }
}
