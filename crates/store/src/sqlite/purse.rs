//! What the writer knows of accounts without asking: how they stand, and which of their charges are open.
//!
//! Nearly every movement closes a charge that was made a moment ago. What accounts come to is written once, at the end
//! of the transaction, however many movements it makes; until then, how an account stands is asked here and not in SQL.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;
use windlass_engine::money::{Account, Kind, Movement};
use windlass_engine::time::Timestamp;

use super::account::read_columns;
use super::column::{Columns, stored};
use super::desk::{Desk, Hashes};
use super::filing::Filings;
use super::ledger::{self, Charge, Charges, Fresh};
use super::slip::{Place, Slip};
use crate::account::AccountRow;
use crate::error::{Refusal, StoreError};

/// Accounts that are known at most, some 200 bytes each; when there are more, it starts over.
const ACCOUNTS_MAX: usize = 4_096;
/// Open charges that are known at most, of all accounts, some 100 bytes each; when there are more, it starts over.
const CHARGES_MAX: usize = 16_384;
/// Movements of an account after the last that is filed, at most, when a transaction ends: they are read when the
/// account is looked at for the first time, and when somebody asks for a movement by its key or its run.
const UNFILED_MAX: u64 = 512;
/// So many of them are left when the others are filed: most charges are closed before so much else has happened.
const UNFILED_LEFT: u64 = 256;
/// Charges of runs that began here that are known at most, of all accounts; when there are more, it starts over.
const BEGUN_MAX: usize = 65_536;

const ACCOUNT: &str =
    "SELECT no, filed, id, name, balance, held, revision, created_at FROM accounts WHERE id = ?1";
const MOVE: &str = "UPDATE accounts SET balance = ?2, held = ?3, revision = ?4, filed = ?5 WHERE no = ?1";

/// An account as the writer knows it.
#[derive(Debug)]
pub(super) struct Purse {
    no: i64,
    pub(super) row: AccountRow,
    /// What the tables do not have yet.
    fresh: Fresh,
    is_moved: bool,
    /// Up to this number, everything is filed.
    filed: u64,
    /// Charges after it that nothing has closed, by what they are for.
    unfiled: Charges,
    /// Others that nothing has closed; not all of them.
    open: Charges,
    /// Runs that began while this was known, with all that they were charged for: its hash, so that what is not among
    /// them was never charged, and what is may have been.
    begun: HashMap<RunId, HashSet<u64, Hashes>, Hashes>,
}

/// How much more is known.
#[derive(Default, Clone, Copy)]
struct More {
    n_open: isize,
    n_begun: usize,
}

impl Purse {
    fn of(row: &Row<'_>) -> rusqlite::Result<Self> {
        let mut columns = Columns::of(row);
        let (no, filed, row) = (columns.value()?, columns.number()?, read_columns(&mut columns)?);
        Ok(Purse {
            no,
            row,
            filed,
            unfiled: Charges::default(),
            fresh: Fresh::default(),
            is_moved: false,
            open: Charges::default(),
            begun: HashMap::default(),
        })
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
            if slip.place.run.is_some_and(|run| new_run == Some(run) || self.is_new(run, slip)) {
                continue;
            }
            // A charge that is known to be open has been closed by nobody.
            match self.open_charge(slip.movement()) {
                Some(open) => known.push(slip.movement().closes(open.held)),
                None => {
                    desk.purses().file(desk)?;
                    ledger::find(desk, self.no, &self.fresh, slip.movement(), &mut known)?;
                }
            }
        }
        Ok(known)
    }

    /// Whether it is known that nothing was charged for this.
    fn is_new(&self, run: RunId, slip: &Slip) -> bool {
        let charged = self.begun.get(&run).filter(|_| slip.movement().kind == Kind::Charge);
        charged.is_some_and(|charged| !charged.contains(&slip.mark))
    }

    /// The charge that a movement makes again or closes, if it is known to be open.
    fn open_charge(&self, movement: &Movement) -> Option<Charge> {
        let subject = match movement.kind {
            Kind::Charge | Kind::Settle | Kind::Refund => movement.subject(),
            Kind::Deposit => return None,
        };
        self.unfiled.get(subject).or_else(|| self.open.get(subject)).copied()
    }

    /// Makes one movement, of a run that begins with it or not.
    fn add(
        &mut self,
        db: &Connection,
        filings: &mut Filings,
        (slip, balance_after): (&Slip, i64),
        new_run: Option<RunId>,
        at: Timestamp,
    ) -> Result<More, StoreError> {
        let movement = slip.movement();
        let seq = self.row.revision.saturating_add(1);
        self.row.revision = seq;
        self.fresh.add(seq, slip, balance_after, at);
        Ok(match movement.kind {
            Kind::Charge => {
                let charge = Charge { held: movement.held, seq };
                self.unfiled.insert(movement.subject().to_owned(), charge);
                More { n_open: 1, n_begun: self.note(slip, new_run) }
            }
            Kind::Settle | Kind::Refund => {
                let subject = movement.subject();
                match self.unfiled.remove(subject).or_else(|| self.open.remove(subject)) {
                    Some(charge) => {
                        filings.make_closed(self.no, charge.seq, &slip.place, seq);
                        More { n_open: -1, n_begun: 0 }
                    }
                    None => {
                        filings.close(db, self.no, slip, seq)?;
                        More::default()
                    }
                }
            }
            Kind::Deposit => {
                filings.make(self.no, seq, &slip.place);
                More::default()
            }
        })
    }

    /// Files the charges that have been open for long, so that few movements have to be read to find the others.
    fn file(&mut self, filings: &mut Filings) {
        let last = self.row.revision;
        if self.unfiled.is_empty() {
            self.filed = last;
        }
        if last - self.filed <= UNFILED_MAX {
            return;
        }
        self.filed = last - UNFILED_LEFT;
        for (subject, charge) in self.unfiled.extract_if(|_, charge| charge.seq <= self.filed) {
            filings.make(self.no, charge.seq, &Place::of_charge(&subject));
            self.open.insert(subject, charge);
        }
    }

    /// Remembers a charge of a run that began here; how many more there are.
    fn note(&mut self, charge: &Slip, new_run: Option<RunId>) -> usize {
        let Some(run) = charge.place.run else { return 0 };
        let charged = match new_run == Some(run) {
            true => Some(self.begun.entry(run).or_default()),
            false => self.begun.get_mut(&run),
        };
        charged.map_or(0, |charged| usize::from(charged.insert(charge.mark)))
    }

    fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.fresh.write(db, self.no)?;
        let AccountRow { balance, held, revision, .. } = &self.row;
        db.prepare_cached(MOVE)?.execute(params![
            self.no,
            balance,
            held,
            stored(*revision),
            stored(self.filed)
        ])?;
        self.is_moved = false;
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(super) struct Purses {
    inside: RefCell<Inside>,
    /// What the tables do not have yet, of all accounts.
    filings: RefCell<Filings>,
}

#[derive(Debug, Default)]
struct Inside {
    known: HashMap<String, Purse, Hashes>,
    /// Those that the tables do not have as they are.
    moved: Vec<String>,
    /// Open charges that are known, of all accounts.
    n_open: usize,
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
        let mut purse = purse.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()))?;
        purse.unfiled = ledger::unfiled(db, purse.no, purse.filed)?;
        let found = look(&purse);
        let inside = &mut *self.inside.borrow_mut();
        inside.n_open += purse.unfiled.len();
        inside.known.insert(id.to_owned(), purse);
        found
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
        let (inside, filings) = (&mut *self.inside.borrow_mut(), &mut *self.filings.borrow_mut());
        let purse = inside.known.get_mut(id);
        let purse = purse.ok_or_else(|| StoreError::Corrupt(format!("account `{id}` was not looked at")))?;
        for row in rows {
            let more = purse.add(db, filings, *row, new_run, at)?;
            inside.n_open = inside.n_open.saturating_add_signed(more.n_open);
            inside.n_begun += more.n_begun;
        }
        (purse.row.balance, purse.row.held) = (account.balance, account.held);
        if !std::mem::replace(&mut purse.is_moved, true) {
            inside.moved.push(id.to_owned());
        }
        Ok(())
    }

    /// Files what was moved in this transaction, so that it is found.
    fn file(&self, db: &Connection) -> Result<(), StoreError> {
        self.filings.borrow_mut().write(db)
    }

    /// Writes what accounts came to in this transaction.
    pub(super) fn write(&self, db: &Connection) -> Result<(), StoreError> {
        let inside = &mut *self.inside.borrow_mut();
        for id in inside.moved.drain(..) {
            if let Some(purse) = inside.known.get_mut(&id) {
                purse.file(&mut self.filings.borrow_mut());
                purse.write(db)?;
            }
        }
        self.file(db)?;
        if inside.known.len() > ACCOUNTS_MAX || inside.n_open > CHARGES_MAX {
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
        self.filings.borrow_mut().clear();
    }
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ACCOUNT, MOVE];

#[cfg(test)]
mod tests;
