//! What the writer knows of accounts without asking: how they stand, and which of their charges are open.
//!
//! Nearly every movement closes a charge that was made a moment ago. What accounts come to is written once, at the end
//! of the transaction, however many movements it makes; until then, how an account stands is asked here and not in SQL.

use std::cell::RefCell;
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, params};
use windlass_engine::money::{Account, Kind, Movement};

use super::account::{ACCOUNT, read};
use super::column::stored;
use crate::account::{AccountRow, Posting};
use crate::error::{Refusal, StoreError};

/// Accounts that are known at most, some 200 bytes each; when there are more, it starts over.
const ACCOUNTS_MAX: usize = 4_096;
/// Open charges that are known at most, of all accounts, some 200 bytes each; when there are more, it starts over.
const CHARGES_MAX: usize = 16_384;

const MOVE: &str = "UPDATE accounts SET balance = ?2, held = ?3, revision = ?4 WHERE id = ?1";

#[derive(Debug)]
struct Purse {
    row: AccountRow,
    /// The table does not have it yet.
    is_moved: bool,
    /// Charges that nothing has closed, by what they are for; not all of them.
    open: HashMap<String, Movement>,
}

#[derive(Debug, Default)]
pub(super) struct Purses {
    known: RefCell<HashMap<String, Purse>>,
}

impl Purses {
    /// How an account stands.
    pub(super) fn row(&self, db: &Connection, id: &str) -> Result<AccountRow, StoreError> {
        if let Some(purse) = self.known.borrow().get(id) {
            return Ok(purse.row.clone());
        }
        let row = db.prepare_cached(ACCOUNT)?.query_row([id], read).optional()?;
        let row = row.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()))?;
        let purse = Purse { row: row.clone(), is_moved: false, open: HashMap::new() };
        self.known.borrow_mut().insert(id.to_owned(), purse);
        Ok(row)
    }

    /// The charge that a movement closes, if it is known to be open.
    pub(super) fn open_charge(&self, id: &str, closing: &Movement) -> Option<Movement> {
        match closing.kind {
            Kind::Settle | Kind::Refund => {
                self.known.borrow().get(id)?.open.get(subject(&closing.key)).cloned()
            }
            Kind::Charge | Kind::Deposit => None,
        }
    }

    /// Notes what was written to the ledger of an account, and how it stands from now on.
    pub(super) fn note(&self, id: &str, account: Account, revision: u64, rows: &[(Posting, i64)]) {
        let mut known = self.known.borrow_mut();
        let Some(purse) = known.get_mut(id) else { return };
        let Account { balance, held } = account;
        (purse.row.balance, purse.row.held, purse.row.revision) = (balance, held, revision);
        purse.is_moved = true;
        for (Posting { movement, .. }, _) in rows {
            match movement.kind {
                Kind::Charge => {
                    purse.open.insert(subject(&movement.key).to_owned(), movement.clone());
                }
                Kind::Settle | Kind::Refund => {
                    purse.open.remove(subject(&movement.key));
                }
                Kind::Deposit => {}
            }
        }
    }

    /// Writes what accounts came to in this transaction.
    pub(super) fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let mut known = self.known.borrow_mut();
        for purse in known.values_mut().filter(|purse| purse.is_moved) {
            let AccountRow { id, balance, held, revision, .. } = &purse.row;
            db.prepare_cached(MOVE)?.execute(params![id, balance, held, stored(*revision)])?;
            purse.is_moved = false;
        }
        let n_open: usize = known.values().map(|purse| purse.open.len()).sum();
        if known.len() > ACCOUNTS_MAX || n_open > CHARGES_MAX {
            known.clear();
        }
        Ok(())
    }

    /// The transaction came to nothing.
    pub(super) fn forget(&self) {
        self.known.borrow_mut().clear();
    }
}

/// A key without its kind: a charge and what closes it have it in common.
fn subject(key: &str) -> &str {
    key.split_once(':').map_or(key, |(_, subject)| subject)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[MOVE];

#[cfg(test)]
mod tests {
    use windlass_engine::money::LedgerFault;
    use windlass_engine::time::Timestamp;

    use super::*;
    use crate::sqlite::account;
    use crate::sqlite::desk::Desk;
    use crate::sqlite::schema;

    const NOW: Timestamp = Timestamp(1);

    /// A desk with one account that has 100.
    fn desk() -> Desk {
        let mut db = Connection::open_in_memory().unwrap();
        schema::migrate(&mut db).unwrap();
        let desk = Desk::new(db).unwrap();
        account::open(&desk, "a", "", NOW).unwrap();
        post(&desk, Movement::deposit("first", 100)).unwrap();
        desk.purses().write(&desk).unwrap();
        desk
    }

    fn post(desk: &Desk, movement: Movement) -> Result<(), StoreError> {
        let posting = Posting { account: "a".to_owned(), movement, run: None, node: None };
        for (id, posted) in account::check(desk, &[posting])? {
            account::write(desk, &id, &posted, NOW)?;
        }
        Ok(())
    }

    fn charge() -> Movement {
        Movement::charge("charge:x".to_owned(), 60)
    }

    fn known(desk: &Desk) -> (i64, i64) {
        let row = desk.purses().row(desk, "a").unwrap();
        (row.balance, row.held)
    }

    fn written(desk: &Desk) -> (i64, i64) {
        let row =
            desk.query_row("SELECT balance, held FROM accounts", [], |row| Ok((row.get(0)?, row.get(1)?)));
        row.unwrap()
    }

    #[test]
    fn what_an_account_comes_to_is_known_at_once_and_written_at_the_end() {
        let desk = desk();
        post(&desk, charge()).unwrap();
        post(&desk, Movement::settle("charge:x", 60, 20)).unwrap();
        assert_eq!((known(&desk), written(&desk)), ((80, 0), (100, 0)));
        desk.purses().write(&desk).unwrap();
        assert_eq!(written(&desk), (80, 0));
    }

    #[test]
    fn what_came_to_nothing_is_forgotten() {
        let desk = desk();
        desk.execute_batch("BEGIN").unwrap();
        post(&desk, charge()).unwrap();
        desk.execute_batch("ROLLBACK").unwrap();
        desk.forget();
        assert_eq!(known(&desk), (100, 0));
        let refused = post(&desk, Movement::refund("charge:x", 60)).unwrap_err();
        assert!(
            matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::NoCharge { .. }))),
            "{refused}"
        );
    }

    #[test]
    fn a_charge_is_closed_once_whether_or_not_it_is_known() {
        for is_known in [true, false] {
            let desk = desk();
            post(&desk, charge()).unwrap();
            desk.purses().write(&desk).unwrap();
            if !is_known {
                desk.forget();
            }
            post(&desk, Movement::settle("charge:x", 60, 60)).unwrap();
            // The very same again is no news; anything else is refused.
            post(&desk, Movement::settle("charge:x", 60, 60)).unwrap();
            let refused = post(&desk, Movement::refund("charge:x", 60)).unwrap_err();
            let closed = matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { .. })));
            assert!(closed, "{refused}");
            assert_eq!(known(&desk), (40, 0));
        }
    }
}
