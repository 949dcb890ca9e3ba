//! Sums of all accepted postings.

use std::collections::BTreeMap;

use windlass_engine::id::RunId;
use windlass_engine::money::{Movement, MovementKind};

use super::{CheckResult, broken};

#[derive(Default)]
pub struct MoneyChecker {
    balances: BTreeMap<String, i64>,
    /// Charges, with the posting that closed them.
    charges: BTreeMap<String, (i64, Option<MovementKind>)>,
    /// The amount that each run took from its account and did not return.
    spent: BTreeMap<String, i64>,
}

impl MoneyChecker {
    /// Checks a posting.
    pub fn posted(&mut self, account: &str, movement: &Movement) -> CheckResult {
        let balance = self.balances.entry(account.to_owned()).or_default();
        *balance += movement.amount.0;
        if *balance < 0 {
            return broken("I7", format!("account {account} is at {balance} after {}", movement.key));
        }
        // The keys of settlements and refunds end in the key of their charge.
        let charge =
            |key: &str| key.split_once(':').map_or_else(|| key.to_owned(), |(_, rest)| rest.to_owned());
        if movement.kind != MovementKind::Deposit
            && let Some((run, _)) = movement.key.rsplit(':').next().and_then(|key| key.split_once('/'))
        {
            *self.spent.entry(run.to_owned()).or_default() -= movement.amount.0;
        }
        match movement.kind {
            MovementKind::Deposit => Ok(()),
            MovementKind::Charge => {
                let key = charge(&movement.key);
                match self.charges.insert(key.clone(), (-movement.amount.0, None)) {
                    Some(_) => broken("I7", format!("{key} was charged twice")),
                    None => Ok(()),
                }
            }
            MovementKind::Settle | MovementKind::Refund => {
                self.closed(account, movement, &charge(&movement.key))
            }
        }
    }

    /// Checks a posting that may be a repetition: each change of a job repeats its postings, and the store takes them
    /// once.
    pub fn posted_again(&mut self, account: &str, movement: &Movement) -> CheckResult {
        let subject = movement.key.split_once(':').map_or(movement.key.as_str(), |(_, subject)| subject);
        match (movement.kind, self.charges.get(subject)) {
            (MovementKind::Charge, Some((charged, _))) if *charged == -movement.amount.0 => Ok(()),
            (kind @ (MovementKind::Settle | MovementKind::Refund), Some((_, Some(by)))) if *by == kind => {
                Ok(())
            }
            _ => self.posted(account, movement),
        }
    }

    fn closed(&mut self, account: &str, movement: &Movement, key: &str) -> CheckResult {
        let key = key.strip_prefix("charge:").unwrap_or(key);
        match self.charges.get_mut(key) {
            None => broken(
                "I7",
                format!("{} of {key} on {account}, which was never charged", movement.kind.word()),
            ),
            Some((_, Some(before))) => {
                broken("I7", format!("{key} had a {} and gets a {}", before.word(), movement.kind.word()))
            }
            Some((charged, open)) => {
                if movement.amount.0 > *charged {
                    return broken("I7", format!("{key}: {} back of {charged}", movement.amount));
                }
                *open = Some(movement.kind);
                Ok(())
            }
        }
    }

    /// Checks that every charge is settled or refunded after every run has ended.
    pub(super) fn check_settled(&self) -> CheckResult {
        match self.charges.iter().find(|(_, (_, closed))| closed.is_none()) {
            Some((key, (amount, _))) => broken("I7", format!("{key}: {amount} was charged and never closed")),
            None => Ok(()),
        }
    }

    /// Checks that the cost of each run is the amount that it and its children spent, after every run has ended and
    /// every message was delivered. `runs` has the parent and the stated cost of each run.
    pub fn rolled_up(&self, runs: &BTreeMap<RunId, (Option<RunId>, i64)>) -> CheckResult {
        let mut counted: BTreeMap<RunId, i64> = BTreeMap::new();
        for run in runs.keys() {
            let own = self.spent.get(&run.to_string()).copied().unwrap_or(0);
            let mut at = Some(*run);
            while let Some(bears) = at {
                *counted.entry(bears).or_default() += own;
                at = runs.get(&bears).and_then(|(parent, _)| *parent);
            }
        }
        for (run, (_, reply)) in runs {
            let counted = counted.get(run).copied().unwrap_or(0);
            if counted != *reply {
                return broken(
                    "I7",
                    format!("{run} says it cost {reply}, with its children it spent {counted}"),
                );
            }
        }
        Ok(())
    }

    /// Checks that the stored balance is the sum of the postings.
    pub fn agrees(&self, account: &str, balance: i64) -> CheckResult {
        let counted = self.balances.get(account).copied().unwrap_or(0);
        if counted == balance {
            return Ok(());
        }
        broken("I7", format!("account {account} holds {balance}, its postings add up to {counted}"))
    }
}
