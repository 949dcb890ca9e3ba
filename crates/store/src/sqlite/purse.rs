//! What the writer knows of accounts without asking: how they stand, and what runs that began here were charged for.
//!
//! What accounts come to is written once, at the end of the transaction, however many movements it makes; until then,
//! how an account stands is asked here and not in SQL.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;
use windlass_engine::money::{Account, Kind, Movement};
use windlass_engine::time::Timestamp;

use super::account::read_columns;
use super::book::Book;
use super::column::{Columns, stored};
use super::desk::{Desk, Hashes};
use super::filing::{self, Filing, Name};
use super::ledger::Ledger;
use super::slip::Slip;
use crate::account::AccountRow;
use crate::error::{Refusal, StoreError};

/// Accounts that are known at most, some 200 bytes each; when there are more, it starts over.
const ACCOUNTS_MAX: usize = 4_096;
/// Charges of runs that began here that are known at most, of all accounts; when there are more, it starts over.
const BEGUN_MAX: usize = 65_536;

const ACCOUNT: &str = "SELECT no, id, name, balance, held, revision, created_at FROM accounts WHERE id = ?1";
const MOVE: &str = "UPDATE accounts SET balance = ?2, held = ?3, revision = ?4 WHERE no = ?1";

/// An account as the writer knows it.
#[derive(Debug)]
pub(super) struct Purse {
    no: i64,
    pub(super) row: AccountRow,
    is_moved: bool,
    /// Runs that began while this was known, with all that they were charged for: its hash, so that what is not among
    /// them was never charged, and what is may have been.
    begun: HashMap<RunId, HashSet<u64, Hashes>, Hashes>,
}

impl Purse {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = Columns::of(row);
        let (no, row) = (columns.value()?, read_columns(&mut columns)?);
        Ok(Purse { no, row, is_moved: false, begun: HashMap::default() })
    }

    /// The movements that decide about these.
    pub(super) fn known(
        &self,
        desk: &Desk,
        slips: &[&Slip],
        new_run: Option<RunId>,
    ) -> Result<Vec<Movement>, StoreError> {
        let mut known = Vec::new();
        for slip in slips {
            if !slip.place.run.is_some_and(|run| new_run == Some(run) || self.is_new(run, slip)) {
                desk.purses().find(desk, self.no, slip, &mut known)?;
            }
        }
        Ok(known)
    }

    /// Whether it is known that nothing was charged for this.
    fn is_new(&self, run: RunId, slip: &Slip) -> bool {
        let charged = self.begun.get(&run).filter(|_| slip.movement().kind == Kind::Charge);
        charged.is_some_and(|charged| !charged.contains(&slip.mark))
    }

    /// Remembers a charge of a run that began here, or begins with it; how many more there are.
    fn note(&mut self, charge: &Slip, new_run: Option<RunId>) -> usize {
        let Some(run) = charge.place.run else { return 0 };
        let charged = match new_run == Some(run) {
            true => Some(self.begun.entry(run).or_default()),
            false => self.begun.get_mut(&run),
        };
        charged.map_or(0, |charged| usize::from(charged.insert(charge.mark)))
    }

    fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        let AccountRow { balance, held, revision, .. } = &self.row;
        db.prepare_cached(MOVE)?.execute(params![self.no, balance, held, stored(*revision)])?;
        self.is_moved = false;
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Purses {
    inside: RefCell<Inside>,
    /// Nothing until it was read.
    book: RefCell<Option<Book>>,
}

#[derive(Debug, Default)]
struct Inside {
    known: HashMap<String, Purse, Hashes>,
    /// Those that the tables do not have as they are.
    moved: Vec<String>,
    /// Charges of runs that began here.
    n_begun: usize,
}

impl Purses {
    /// Looks at an account as it stands.
    pub(super) fn look<T>(
        &self,
        db: &Connection,
        id: &str,
        look: impl FnOnce(&Purse) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Some(purse) = self.inside.borrow().known.get(id) {
            return look(purse);
        }
        let purse = db.prepare_cached(ACCOUNT)?.query_row([id], Purse::of).optional()?;
        let purse = purse.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()))?;
        let found = look(&purse);
        self.inside.borrow_mut().known.insert(id.to_owned(), purse);
        found
    }

    /// Adds to `known` the movements that decide about this one: the very same, and those of the charge that it closes.
    fn find(
        &self,
        db: &Connection,
        no: i64,
        slip: &Slip,
        known: &mut Vec<Movement>,
    ) -> Result<(), StoreError> {
        let (name, movement) = (Name { place: slip.place.clone(), no }, slip.movement());
        self.book(db, |book| {
            let made = book.made(&name);
            // What a charge is that nothing has closed can be told without reading it.
            if let Some(held) = made.and_then(|made| made.open()) {
                known.push(movement.closes(held));
                return Ok(());
            }
            let (filing, is_indexed) = match made {
                Some(made) => (Some(made.filing), false),
                None => (filing::filed(db, &name)?, true),
            };
            let Some(Filing { seq, closed_by }) = filing else { return Ok(()) };
            let closed_by = match movement.kind {
                Kind::Charge | Kind::Deposit => None,
                Kind::Settle | Kind::Refund => closed_by,
            };
            // What is not in the index may be on the sheet that is being written.
            if !is_indexed || closed_by.is_some() {
                book.flush(db)?;
            }
            let rows =
                Ledger::of(db, slip.account(), no).at(&Vec::from_iter([seq].into_iter().chain(closed_by)))?;
            known.extend(rows.into_iter().map(|row| row.posting.movement));
            Ok(())
        })
    }

    /// Makes movements on an account that was looked at in this transaction: how it stands afterwards, and each with
    /// the balance after it.
    pub(super) fn make(
        &self,
        db: &Connection,
        id: &str,
        account: Account,
        rows: &[(&Slip, i64)],
        new_run: Option<RunId>,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        let inside = &mut *self.inside.borrow_mut();
        let purse = inside.known.get_mut(id);
        let purse = purse.ok_or_else(|| StoreError::Corrupt(format!("account `{id}` was not looked at")))?;
        for row in rows {
            purse.row.revision = purse.row.revision.saturating_add(1);
            self.book(db, |book| book.enter(db, (purse.no, purse.row.revision), *row, at))?;
            if row.0.movement().kind == Kind::Charge {
                inside.n_begun += purse.note(row.0, new_run);
            }
        }
        (purse.row.balance, purse.row.held) = (account.balance, account.held);
        if !std::mem::replace(&mut purse.is_moved, true) {
            inside.moved.push(id.to_owned());
        }
        Ok(())
    }

    /// Does something with the book, which is read if it is not open.
    fn book<T>(
        &self,
        db: &Connection,
        work: impl FnOnce(&mut Book) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let mut book = self.book.borrow_mut();
        match &mut *book {
            Some(book) => work(book),
            None => work(book.insert(Book::read(db)?)),
        }
    }

    /// Writes what accounts came to in this transaction.
    pub(super) fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let inside = &mut *self.inside.borrow_mut();
        for id in inside.moved.drain(..) {
            if let Some(purse) = inside.known.get_mut(&id) {
                purse.write(db)?;
            }
        }
        if let Some(book) = &mut *self.book.borrow_mut() {
            book.write(db)?;
        }
        if inside.known.len() > ACCOUNTS_MAX {
            *inside = Inside::default();
        }
        if inside.n_begun > BEGUN_MAX {
            inside.known.values_mut().for_each(|purse| purse.begun.clear());
            inside.n_begun = 0;
        }
        Ok(())
    }

    /// The transaction came to nothing.
    pub(super) fn forget(&self) {
        *self.inside.borrow_mut() = Inside::default();
        *self.book.borrow_mut() = None;
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ACCOUNT, MOVE];

#[cfg(test)]
mod tests;
