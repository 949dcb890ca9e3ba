//! Whether money is where it must be: every account has what its ledger adds up to, holds what its open charges took,
//! and every charge is closed at most once, and is closed when what it was for has ended.

use std::collections::BTreeMap;

use windlass_engine::id::RunId;
use windlass_engine::money::{Kind, Movement, job_of_key};
use windlass_store::account::{AccountRow, LedgerQuery, LedgerRow};
use windlass_store::run::RunRef;

use super::{Examination, FINDINGS, Finding};
use crate::{Runtime, RuntimeError};

/// Rows read at once.
const AT_ONCE: usize = 1_000;

/// What a ledger adds up to so far.
#[derive(Default)]
struct Sums {
    /// The number of the last row.
    seq: u64,
    balance: i128,
    /// How far the balances that the rows say are off since the last wrong one, which was told.
    off: i128,
    held: i128,
    /// Charges that nothing has closed, by what they are for.
    open: BTreeMap<String, Charge>,
}

struct Charge {
    run: Option<RunId>,
    held: i64,
}

impl Sums {
    /// Adds a row; says what is wrong about it.
    fn add(&mut self, row: &LedgerRow) -> Option<String> {
        let (before, wrong) = (self.seq, self.add_movement(row));
        self.seq = row.seq;
        // What is missing may add up to nothing.
        let is_next = before.checked_add(1) == Some(row.seq);
        if is_next { wrong } else { Some(format!("its ledger goes from entry {before} to {}", row.seq)) }
    }

    fn add_movement(&mut self, row: &LedgerRow) -> Option<String> {
        let Movement { kind, amount, key, held, borne_by_platform: _ } = &row.posting.movement;
        self.balance += i128::from(*amount);
        self.held += i128::from(*held);
        let off = i128::from(row.balance_after) - self.balance;
        let was_off = std::mem::replace(&mut self.off, off);
        if off != 0 && off != was_off {
            return Some(format!(
                "after entry {} its balance is said to be {}, its ledger adds up to {}",
                row.seq, row.balance_after, self.balance
            ));
        }
        let subject = key.split_once(':').map_or(key.as_str(), |(_, subject)| subject);
        match kind {
            Kind::Deposit => None,
            Kind::Charge => {
                let charge = Charge { run: row.posting.run(), held: *held };
                let before = self.open.insert(subject.to_owned(), charge);
                before.map(|_| format!("entry {} charges `{subject}` again", row.seq))
            }
            Kind::Settle | Kind::Refund => match self.open.remove(subject) {
                Some(charge) if charge.held.checked_neg() == Some(*held) => None,
                Some(_) => Some(format!("entry {} closes another amount than was charged", row.seq)),
                None => Some(format!("entry {} closes `{subject}`, which no open charge is for", row.seq)),
            },
        }
    }
}

impl Runtime {
    pub(super) async fn examine_accounts(&self, found: &mut Examination) -> Result<(), RuntimeError> {
        let mut after = None;
        loop {
            let accounts = self.store().accounts_after(after, AT_ONCE).await?;
            let Some(last) = accounts.last() else { return Ok(()) };
            after = Some(last.id.clone());
            for account in accounts {
                self.examine_account(account, found).await?;
            }
        }
    }

    async fn examine_account(
        &self,
        account: AccountRow,
        found: &mut Examination,
    ) -> Result<(), RuntimeError> {
        found.n_accounts += 1;
        let sums = self.add_up(&account, found).await?;
        let mut told = |what: String| {
            let (subject, node) = (account.id.clone(), None);
            found.findings.push(Finding { subject, node, what, repaired: false });
        };
        if sums.seq < account.revision {
            told(format!("its ledger ends with entry {}, there were {}", sums.seq, account.revision));
        }
        // One that is off as its last row is was told of then.
        if sums.balance + sums.off != i128::from(account.balance) {
            told(format!("its balance is {}, its ledger adds up to {}", account.balance, sums.balance));
        }
        if sums.held != i128::from(account.held) {
            told(format!("it holds {}, its open charges add up to {}", account.held, sums.held));
        }
        for (subject, charge) in sums.open {
            if found.findings.len() >= FINDINGS {
                return Ok(());
            }
            if self.is_left_open(&account.id, &subject, &charge).await? {
                found.findings.push(Finding {
                    subject: account.id.clone(),
                    node: None,
                    what: format!("`{subject}` has ended, and its charge of {} is open", charge.held),
                    repaired: false,
                });
            }
        }
        Ok(())
    }

    /// Adds up the ledger as it was when the account was read: what is written meanwhile is left out.
    async fn add_up(&self, account: &AccountRow, found: &mut Examination) -> Result<Sums, RuntimeError> {
        let (mut sums, mut after) = (Sums::default(), 0);
        while after < account.revision {
            let query =
                LedgerQuery { account: account.id.clone(), after, limit: AT_ONCE, ..LedgerQuery::default() };
            let rows = self.store().ledger(query).await?;
            let Some(last) = rows.last() else { break };
            after = last.seq;
            for row in rows.iter().filter(|row| row.seq <= account.revision) {
                if let Some(what) = sums.add(row).filter(|_| found.findings.len() < FINDINGS) {
                    let (subject, node) = (account.id.clone(), row.posting.node());
                    found.findings.push(Finding { subject, node, what, repaired: false });
                }
            }
        }
        Ok(sums)
    }

    /// Whether what a charge is for has ended without closing it.
    async fn is_left_open(
        &self,
        account: &str,
        subject: &str,
        charge: &Charge,
    ) -> Result<bool, RuntimeError> {
        let is_open = match charge.run {
            Some(run) => {
                let row = self.store().run(RunRef::Id(run)).await?;
                row.is_some_and(|row| row.standing.status.is_open())
            }
            None => match job_of_key(&format!("charge:{subject}")) {
                Some(job) => self.store().job(job).await?.is_some_and(|row| row.job.is_open()),
                None => false,
            },
        };
        if is_open {
            return Ok(false);
        }
        // It may have ended since the ledger was read, and then it has been closed since.
        for kind in [Kind::Settle, Kind::Refund] {
            let (account, key) = (account.to_owned(), Some(format!("{}:{subject}", kind.word())));
            let query = LedgerQuery { account, key, ..LedgerQuery::default() };
            if !self.store().ledger(query).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use windlass_engine::time::Timestamp;
    use windlass_store::account::Posting;

    use super::*;

    /// The ledger of these movements, with these balances after them.
    fn rows(movements: &[(Movement, i64)]) -> Vec<LedgerRow> {
        let row = |((movement, balance_after), seq): (&(Movement, i64), u64)| LedgerRow {
            seq,
            posting: Posting { account: "a".to_owned(), movement: movement.clone() },
            balance_after: *balance_after,
            at: Timestamp(0),
        };
        movements.iter().zip(1..).map(row).collect()
    }

    /// Adds them up, and says all that is wrong.
    fn wrong(movements: &[(Movement, i64)]) -> Vec<String> {
        let mut sums = Sums::default();
        rows(movements).iter().filter_map(|row| sums.add(row)).collect()
    }

    #[test]
    fn what_is_missing_is_told_even_if_it_adds_up_to_nothing() {
        let (deposit, refund) = (Movement::deposit("d", 10), Movement::refund("charge:x/1", 6));
        let mut rows = rows(&[(deposit, 10), (charge(6), 4), (refund, 10), (Movement::deposit("e", 1), 11)]);
        rows.drain(1..3);
        let mut sums = Sums::default();
        let wrong: Vec<String> = rows.iter().filter_map(|row| sums.add(row)).collect();
        assert_eq!(wrong, ["its ledger goes from entry 1 to 4"]);
    }

    fn charge(amount: i64) -> Movement {
        Movement::charge("charge:x/1".to_owned(), amount)
    }

    #[test]
    fn a_ledger_that_adds_up_is_fine() {
        let deposit = (Movement::deposit("d", 10), 10);
        assert!(wrong(&[deposit.clone(), (charge(6), 4)]).is_empty());
        assert!(wrong(&[deposit, (charge(6), 4), (Movement::settle("charge:x/1", 6, 5), 5)]).is_empty());
    }

    #[test]
    fn one_wrong_row_is_told_once() {
        let deposit = |key: &str, amount, after| (Movement::deposit(key, amount), after);
        let amount_is_wrong =
            [deposit("a", 10, 10), deposit("b", 4, 15), deposit("c", 1, 16), (charge(6), 10)];
        let balance_is_wrong =
            [deposit("a", 10, 10), deposit("b", 5, 17), deposit("c", 1, 16), (charge(6), 10)];
        for (rows, entry) in [(amount_is_wrong, "entry 2 "), (balance_is_wrong, "entry 2 ")] {
            let wrong = wrong(&rows);
            assert!(wrong.len() == 1 && wrong[0].contains(entry), "{wrong:?}");
        }
    }

    #[test]
    fn what_does_not_add_up_is_told() {
        let deposit = (Movement::deposit("d", 10), 10);
        let refund = Movement::refund("charge:x/1", 6);
        for bad in [
            vec![(Movement::deposit("d", 10), 11)],
            vec![deposit.clone(), (charge(3), 7), (charge(3), 4)],
            vec![deposit.clone(), (refund.clone(), 16)],
            vec![deposit.clone(), (charge(6), 4), (refund.clone(), 10), (refund.clone(), 16)],
            vec![deposit, (charge(7), 3), (refund, 9)],
        ] {
            assert_eq!(wrong(&bad).len(), 1, "{bad:?}");
        }
    }
}
