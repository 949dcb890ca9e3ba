//! The book that the writer has open: the sheet it writes on, and what is on those that the index does not know yet.
//!
//! The index and the files are written for many sheets at once. What they do not have is known here, and is read from
//! the sheets when nothing is known: after a start, and when a transaction came to nothing.

use std::collections::{HashMap, VecDeque};

use rusqlite::Connection;
use windlass_engine::money::{Kind, Movement};
use windlass_engine::time::Timestamp;

use super::desk::Hashes;
use super::filing::{self, Filing, Name};
use super::sheet::{self, Entry, Line, SHEET_MAX, Text};
use super::slip::{Place, Slip};
use crate::error::StoreError;

/// Movements that the index does not know, at most, when a transaction ends: whoever reads a ledger looks through them.
const UNINDEXED_MAX: usize = 2_048;
/// So many are left when the others are put into the index: most charges are closed before so much else has happened.
const UNINDEXED_LEFT: usize = 1_024;
/// Charges and deposits that are known at most, some 150 bytes each; when there are more, those that are filed are
/// forgotten.
const MADE_MAX: usize = 16_384;

/// A charge or a deposit.
#[derive(Debug, Clone, Copy)]
pub(super) struct Made {
    pub(super) filing: Filing,
    /// What a charge has taken; nothing for a deposit.
    held: Option<i64>,
    is_filed: bool,
}

impl Made {
    /// What a charge has taken that nothing has closed.
    pub(super) fn open(&self) -> Option<i64> {
        self.held.filter(|_| self.filing.closed_by.is_none())
    }
}

/// What is on a sheet.
#[derive(Debug)]
struct Sheet {
    no: u64,
    n_lines: usize,
    /// The first movement of each account.
    entries: Vec<Entry>,
    made: Vec<Name>,
}

#[derive(Debug)]
pub(super) struct Book {
    /// Those that the index does not know, the oldest first.
    sheets: VecDeque<Sheet>,
    n_lines: usize,
    /// Of the last of them, if it is not written.
    text: Text,
    next: u64,
    /// What is on these sheets, and charges of others that nothing has closed; not all of those.
    made: HashMap<Name, Made, Hashes>,
}

impl Book {
    /// The book as the tables have it.
    pub(super) fn read(db: &Connection) -> Result<Self, StoreError> {
        let mut book = Book {
            sheets: VecDeque::new(),
            n_lines: 0,
            text: Text::default(),
            next: sheet::last(db)?.saturating_add(1),
            made: HashMap::default(),
        };
        for (no, text) in sheet::unindexed(db)? {
            book.begin(no);
            for Line(account, seq, key, _, held, ..) in sheet::lines(&text)? {
                let kind = Kind::of_key(&key);
                let kind = kind.ok_or_else(|| StoreError::Corrupt(format!("ledger: `{key}` is no key")))?;
                let name = Name { place: Place::of(&key), no: account };
                book.note(name, kind, held, seq);
            }
        }
        Ok(book)
    }

    /// What is known of a charge or a deposit, without asking the tables.
    pub(super) fn made(&self, name: &Name) -> Option<&Made> {
        self.made.get(name)
    }

    /// Enters a movement: the account's number, and its own.
    pub(super) fn enter(
        &mut self,
        db: &Connection,
        (no, seq): (i64, u64),
        (slip, balance_after): (&Slip, i64),
        at: Timestamp,
    ) -> Result<(), StoreError> {
        if self.text.is_empty() || self.sheets.back().is_none_or(|sheet| sheet.n_lines >= SHEET_MAX) {
            self.flush(db)?;
            self.begin(self.next);
            self.next = self.next.saturating_add(1);
        }
        self.text.add((no, seq), slip, balance_after, at);
        let Movement { kind, held, key, .. } = slip.movement();
        let name = Name { place: slip.place.clone(), no };
        match self.note(name, *kind, *held, seq) {
            Some(filed) if !filing::close(db, &filed, seq)? => {
                Err(StoreError::Corrupt(format!("what `{key}` closes is not filed")))
            }
            Some(_) | None => Ok(()),
        }
    }

    fn begin(&mut self, no: u64) {
        self.sheets.push_back(Sheet { no, n_lines: 0, entries: Vec::new(), made: Vec::new() });
    }

    /// Notes what is on the last sheet. Names what it closes, if that is not on these sheets.
    fn note(&mut self, name: Name, kind: Kind, held: i64, seq: u64) -> Option<Name> {
        let sheet = self.sheets.back_mut()?;
        self.n_lines += 1;
        sheet.n_lines += 1;
        if sheet.entries.iter().all(|entry| entry.no != name.no) {
            sheet.entries.push(Entry { no: name.no, seq, sheet: sheet.no });
        }
        match kind {
            Kind::Charge | Kind::Deposit => {
                let held = Some(held).filter(|_| kind == Kind::Charge);
                let made = Made { filing: Filing { seq, closed_by: None }, held, is_filed: false };
                sheet.made.push(name.clone());
                self.made.insert(name, made);
                None
            }
            Kind::Settle | Kind::Refund => match self.made.get_mut(&name) {
                Some(made) if !made.is_filed => {
                    made.filing.closed_by = Some(seq);
                    None
                }
                Some(_) => self.made.remove_entry(&name).map(|(name, _)| name),
                None => Some(name),
            },
        }
    }

    /// Writes what the tables do not have, so that it is found there.
    pub(super) fn flush(&mut self, db: &Connection) -> Result<(), StoreError> {
        match self.sheets.back() {
            Some(sheet) if !self.text.is_empty() => self.text.write(db, sheet.no),
            Some(_) | None => Ok(()),
        }
    }

    /// Ends a transaction.
    pub(super) fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        self.flush(db)?;
        if self.n_lines > UNINDEXED_MAX {
            self.index(db, UNINDEXED_LEFT)?;
        }
        if self.made.len() > MADE_MAX {
            self.made.retain(|_, made| !made.is_filed);
        }
        Ok(())
    }

    /// Puts the oldest sheets into the index, and files what is on them, until so many movements are left.
    pub(super) fn index(&mut self, db: &Connection, left: usize) -> Result<(), StoreError> {
        let (mut entries, mut rows, mut to) = (Vec::new(), Vec::new(), None);
        while self.n_lines > left
            && let Some(sheet) = self.sheets.pop_front()
        {
            self.n_lines -= sheet.n_lines;
            to = Some(sheet.no);
            entries.extend(sheet.entries);
            rows.extend(sheet.made.into_iter().filter_map(|name| self.file(name)));
        }
        let Some(to) = to else { return Ok(()) };
        filing::file(db, rows)?;
        sheet::index(db, entries, to)
    }

    /// What is to be filed under a name. Only an open charge is still of interest afterwards.
    fn file(&mut self, name: Name) -> Option<(Name, Filing)> {
        let made = self.made.get_mut(&name)?;
        let filing = made.filing;
        match made.open() {
            Some(_) => made.is_filed = true,
            None => drop(self.made.remove(&name)),
        }
        Some((name, filing))
    }
}
