//! Checks of money: every balance is the sum of its ledger, every account holds the amount of its open charges, and
//! every charge is closed at most once, at the latest when its run or job ends.

use std::collections::BTreeMap;

use windlass_engine::counter::Seq;
use windlass_engine::id::RunId;
use windlass_engine::money::{Amount, Movement, MovementKind, job_of_key};
use windlass_store::StoreError;
use windlass_store::account::{AccountRow, LedgerQuery, LedgerRow};
use windlass_store::run::RunRef;

use super::rows::RESTORE;
use super::{DoctorFinding, DoctorReport, FINDINGS_MAX};
use crate::RuntimeError;
use crate::doctor::Doctor;
use crate::part::RuntimePart;

/// Rows read at once.
const PAGE_SIZE: usize = 1_000;

/// The sums of a ledger so far.
#[derive(Default)]
struct LedgerSums {
    /// The number of the last row.
    seq: Seq,
    balance: i128,
    /// The difference between stored and summed balances since the last reported row.
    off: i128,
    held: i128,
    /// Charges that no row has closed, by their subject.
    open: BTreeMap<String, OpenCharge>,
}

struct OpenCharge {
    run: Option<RunId>,
    held: Amount,
}

impl LedgerSums {
    /// Adds a row; returns its fault, if any.
    fn add(&mut self, row: &LedgerRow) -> Option<String> {
        let (before, wrong) = (self.seq, self.add_movement(row));
        self.seq = row.seq;
        // Missing rows may add up to zero.
        let is_next = before.next() == row.seq;
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
            MovementKind::Deposit => None,
            MovementKind::Charge => {
                let charge = OpenCharge { run: row.posting.run(), held: *held };
                let before = self.open.insert(subject.to_owned(), charge);
                before.map(|_| format!("entry {} charges `{subject}` again", row.seq))
            }
            MovementKind::Settle | MovementKind::Refund => match self.open.remove(subject) {
                Some(charge) if charge.held.checked_neg() == Some(*held) => None,
                Some(_) => Some(format!("entry {} closes another amount than was charged", row.seq)),
                None => Some(format!("entry {} closes `{subject}`, which no open charge is for", row.seq)),
            },
        }
    }
}

impl Doctor {
    pub(super) async fn examine_accounts(&self, found: &mut DoctorReport) -> Result<(), RuntimeError> {
        let mut after = None;
        loop {
            let accounts = self.store().accounts_after(self.project(), after, PAGE_SIZE).await?;
            let Some(last) = accounts.last() else { return Ok(()) };
            after = Some(last.id.clone());
            for account in accounts {
                let id = account.id.clone();
                match self.examine_account(account, found).await {
                    Err(RuntimeError::Store(StoreError::Corrupt(reason))) => {
                        let what = format!("its ledger cannot be read: {reason}");
                        let remedy = Some(RESTORE.to_owned());
                        found.findings.push(DoctorFinding { remedy, ..DoctorFinding::about(id, what) });
                    }
                    examined => examined?,
                }
            }
        }
    }

    async fn examine_account(
        &self,
        account: AccountRow,
        found: &mut DoctorReport,
    ) -> Result<(), RuntimeError> {
        found.n_accounts += 1;
        let sums = self.add_up(&account, found).await?;
        let mut report = |what: String| found.findings.push(DoctorFinding::about(&account.id, what));
        if sums.seq < account.ledger_len() {
            report(format!("its ledger ends with entry {}, there were {}", sums.seq, account.ledger_len()));
        }
        // A difference that its last row already showed was reported there.
        if sums.balance + sums.off != i128::from(account.balance) {
            report(format!("its balance is {}, its ledger adds up to {}", account.balance, sums.balance));
        }
        if sums.held != i128::from(account.held) {
            report(format!("it holds {}, its open charges add up to {}", account.held, sums.held));
        }
        for (subject, charge) in sums.open {
            if found.findings.len() >= FINDINGS_MAX {
                return Ok(());
            }
            if self.is_left_open(&account.id, &subject, &charge).await? {
                let what = format!("`{subject}` has ended, and its charge of {} is open", charge.held);
                found.findings.push(DoctorFinding::about(&account.id, what));
            }
        }
        Ok(())
    }

    /// Adds up the ledger as it was when the account was read, without later rows.
    async fn add_up(
        &self,
        account: &AccountRow,
        found: &mut DoctorReport,
    ) -> Result<LedgerSums, RuntimeError> {
        let (mut sums, mut after, len) = (LedgerSums::default(), Seq::ZERO, account.ledger_len());
        while after < len {
            let query = LedgerQuery {
                account: account.id.clone(),
                after,
                limit: PAGE_SIZE,
                ..LedgerQuery::default()
            };
            let rows = self.store().ledger(self.project(), query).await?;
            let Some(last) = rows.last() else { break };
            after = last.seq;
            for row in rows.iter().filter(|row| row.seq <= len) {
                if let Some(what) = sums.add(row).filter(|_| found.findings.len() < FINDINGS_MAX) {
                    let node = row.posting.node();
                    found.findings.push(DoctorFinding { node, ..DoctorFinding::about(&account.id, what) });
                }
            }
        }
        Ok(sums)
    }

    /// Whether the run or job of a charge has ended without closing it.
    async fn is_left_open(
        &self,
        account: &str,
        subject: &str,
        charge: &OpenCharge,
    ) -> Result<bool, RuntimeError> {
        let is_open = match charge.run {
            Some(run) => {
                let row = self.store().run(self.project(), RunRef::Id(run)).await?;
                row.is_some_and(|row| row.projection.status.is_open())
            }
            None => match job_of_key(&format!("charge:{subject}")) {
                Some(job) => {
                    self.store().job(self.project(), job).await?.is_some_and(|row| row.job.is_open())
                }
                None => false,
            },
        };
        if is_open {
            return Ok(false);
        }
        // It may have ended since the ledger was read, and then it has been closed since.
        for kind in [MovementKind::Settle, MovementKind::Refund] {
            let (account, key) = (account.to_owned(), Some(format!("{}:{subject}", kind.word())));
            let query = LedgerQuery { account, key, ..LedgerQuery::default() };
            if !self.store().ledger(self.project(), query).await?.is_empty() {
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
            seq: Seq(seq),
            posting: Posting { account: "a".to_owned(), movement: movement.clone() },
            balance_after: Amount(*balance_after),
            at: Timestamp(0),
        };
        movements.iter().zip(1..).map(row).collect()
    }

    /// Adds them up, and says all that is wrong.
    fn wrong(movements: &[(Movement, i64)]) -> Vec<String> {
        let mut sums = LedgerSums::default();
        rows(movements).iter().filter_map(|row| sums.add(row)).collect()
    }

    #[test]
    fn missing_rows_are_reported_even_if_they_add_up_to_zero() {
        let (deposit, refund) =
            (Movement::deposit("d", Amount(10)), Movement::refund("charge:x/1", Amount(6)));
        let mut rows =
            rows(&[(deposit, 10), (charge(6), 4), (refund, 10), (Movement::deposit("e", Amount(1)), 11)]);
        rows.drain(1..3);
        let mut sums = LedgerSums::default();
        let wrong: Vec<String> = rows.iter().filter_map(|row| sums.add(row)).collect();
        assert_eq!(wrong, ["its ledger goes from entry 1 to 4"]);
    }

    fn charge(amount: i64) -> Movement {
        Movement::charge("charge:x/1".to_owned(), Amount(amount))
    }

    #[test]
    fn a_ledger_that_adds_up_is_fine() {
        let deposit = (Movement::deposit("d", Amount(10)), 10);
        assert!(wrong(&[deposit.clone(), (charge(6), 4)]).is_empty());
        assert!(
            wrong(&[deposit, (charge(6), 4), (Movement::settle("charge:x/1", Amount(6), Amount(5)), 5)])
                .is_empty()
        );
    }

    #[test]
    fn one_wrong_row_is_told_once() {
        let deposit = |key: &str, amount, after| (Movement::deposit(key, amount), after);
        let amount_is_wrong = [
            deposit("a", Amount(10), 10),
            deposit("b", Amount(4), 15),
            deposit("c", Amount(1), 16),
            (charge(6), 10),
        ];
        let balance_is_wrong = [
            deposit("a", Amount(10), 10),
            deposit("b", Amount(5), 17),
            deposit("c", Amount(1), 16),
            (charge(6), 10),
        ];
        for (rows, entry) in [(amount_is_wrong, "entry 2 "), (balance_is_wrong, "entry 2 ")] {
            let wrong = wrong(&rows);
            assert!(wrong.len() == 1 && wrong[0].contains(entry), "{wrong:?}");
        }
    }

    #[test]
    fn a_wrong_sum_is_reported() {
        let deposit = (Movement::deposit("d", Amount(10)), 10);
        let refund = Movement::refund("charge:x/1", Amount(6));
        for bad in [
            vec![(Movement::deposit("d", Amount(10)), 11)],
            vec![deposit.clone(), (charge(3), 7), (charge(3), 4)],
            vec![deposit.clone(), (refund.clone(), 16)],
            vec![deposit.clone(), (charge(6), 4), (refund.clone(), 10), (refund.clone(), 16)],
            vec![deposit, (charge(7), 3), (refund, 9)],
        ] {
            assert_eq!(wrong(&bad).len(), 1, "{bad:?}");
        }
    }
}
