//! Money as the checker counts it: every posting the store accepted, added up again.

use std::collections::BTreeMap;

use windlass_engine::id::RunId;
use windlass_engine::money::{Kind, Movement};

use super::{Verdict, broken};

#[derive(Default)]
pub struct Money {
    balances: BTreeMap<String, i64>,
    /// Charges, with what closed them.
    charges: BTreeMap<String, (i64, Option<Kind>)>,
    /// What each run took out of its account and did not give back.
    spent: BTreeMap<String, i64>,
}

impl Money {
    /// The store posted a movement.
    pub fn posted(&mut self, account: &str, movement: &Movement) -> Verdict {
        let balance = self.balances.entry(account.to_owned()).or_default();
        *balance += movement.amount;
        if *balance < 0 {
            return broken("I7", format!("account {account} is at {balance} after {}", movement.key));
        }
        // Settle and refund keys end in the key of their charge.
        let charge =
            |key: &str| key.split_once(':').map_or_else(|| key.to_owned(), |(_, rest)| rest.to_owned());
        if movement.kind != Kind::Deposit
            && let Some((run, _)) = movement.key.rsplit(':').next().and_then(|key| key.split_once('/'))
        {
            *self.spent.entry(run.to_owned()).or_default() -= movement.amount;
        }
        match movement.kind {
            Kind::Deposit => Ok(()),
            Kind::Charge => {
                let key = charge(&movement.key);
                match self.charges.insert(key.clone(), (-movement.amount, None)) {
                    Some(_) => broken("I7", format!("{key} was charged twice")),
                    None => Ok(()),
                }
            }
            Kind::Settle | Kind::Refund => self.closed(account, movement, &charge(&movement.key)),
        }
    }

    /// The same of a movement that may have been posted before: of a job, what it implies is said at every change,
    /// and the store takes it once.
    pub fn posted_or_told_again(&mut self, account: &str, movement: &Movement) -> Verdict {
        let subject = movement.key.split_once(':').map_or(movement.key.as_str(), |(_, subject)| subject);
        match (movement.kind, self.charges.get(subject)) {
            (Kind::Charge, Some((charged, _))) if *charged == -movement.amount => Ok(()),
            (kind @ (Kind::Settle | Kind::Refund), Some((_, Some(by)))) if *by == kind => Ok(()),
            _ => self.posted(account, movement),
        }
    }

    fn closed(&mut self, account: &str, movement: &Movement, key: &str) -> Verdict {
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
                if movement.amount > *charged {
                    return broken("I7", format!("{key}: {} back of {charged}", movement.amount));
                }
                *open = Some(movement.kind);
                Ok(())
            }
        }
    }

    /// When every run has ended, every charge is settled or refunded.
    pub(super) fn at_rest(&self) -> Verdict {
        match self.charges.iter().find(|(_, (_, closed))| closed.is_none()) {
            Some((key, (amount, _))) => broken("I7", format!("{key}: {amount} was charged and never closed")),
            None => Ok(()),
        }
    }

    /// When every run has ended and every message was delivered, a run says that it cost what it and its children
    /// spent. `runs` = each run with its parent, if it has one, and what it says.
    pub fn rolled_up(&self, runs: &BTreeMap<RunId, (Option<RunId>, i64)>) -> Verdict {
        let mut counted: BTreeMap<RunId, i64> = BTreeMap::new();
        for run in runs.keys() {
            let own = self.spent.get(&run.to_string()).copied().unwrap_or(0);
            let mut at = Some(*run);
            while let Some(bears) = at {
                *counted.entry(bears).or_default() += own;
                at = runs.get(&bears).and_then(|(parent, _)| *parent);
            }
        }
        for (run, (_, said)) in runs {
            let counted = counted.get(run).copied().unwrap_or(0);
            if counted != *said {
                return broken(
                    "I7",
                    format!("{run} says it cost {said}, with its children it spent {counted}"),
                );
            }
        }
        Ok(())
    }

    /// What the store says must be what was counted.
    pub fn agrees(&self, account: &str, balance: i64) -> Verdict {
        let counted = self.balances.get(account).copied().unwrap_or(0);
        if counted == balance {
            return Ok(());
        }
        broken("I7", format!("account {account} holds {balance}, its postings add up to {counted}"))
    }
}
