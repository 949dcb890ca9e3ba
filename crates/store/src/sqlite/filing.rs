//! Where a movement is found by what it is for: a tree of its own, in the order in which runs begin. A charge can be
//! made once, and knows what closed it.
//!
//! What a transaction files is written at its end, several rows by one statement, which costs less than each by its own.

use std::borrow::Cow;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::money::{Kind, Movement, place_of_key};

use super::column::{Columns, Id, Key, stored};
use crate::error::StoreError;

/// Rows of one statement.
const AT_ONCE: usize = 8;

macro_rules! file {
    ($($rows:literal),*) => {
        concat!("INSERT INTO ledger_keys (run, subject, account, seq) VALUES ", $($rows),*)
    };
}
// A row as it is, and what closes it: to write it whole costs less than to find it and change it.
macro_rules! close_known {
    ($($rows:literal),*) => {
        concat!("REPLACE INTO ledger_keys (run, subject, account, seq, closed_by) VALUES ", $($rows),*)
    };
}

const FILE: &str = file!("(?, ?, ?, ?)");
#[rustfmt::skip]
const FILE_ALL: &str = file!(
    "(?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), ",
    "(?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?), (?, ?, ?, ?)"
);
const CLOSE_KNOWN: &str = close_known!("(?, ?, ?, ?, ?)");
#[rustfmt::skip]
const CLOSE_KNOWN_ALL: &str = close_known!(
    "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), ",
    "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)"
);
const CLOSE: &str = "UPDATE ledger_keys SET closed_by = ?4 WHERE run = ?1 AND subject = ?2 AND account = ?3";
const FILED: &str = "SELECT seq, closed_by FROM ledger_keys WHERE run = ?1 AND subject = ?2 AND account = ?3";

/// Where it is filed what a movement is for: a charge and what closes it in the same place.
#[derive(Debug)]
struct Place<'k> {
    run: Option<Key>,
    subject: Cow<'k, str>,
}

impl<'k> Place<'k> {
    fn of(key: &'k str) -> Self {
        if let Some((run, place)) = place_of_key(key) {
            return Place { run: Some(run.key()), subject: place.into() };
        }
        let subject = match (Kind::of_key(key), key.split_once(':')) {
            (Some(Kind::Settle | Kind::Refund), Some((_, subject))) => {
                format!("{}:{subject}", Kind::Charge.word()).into()
            }
            (Some(Kind::Charge | Kind::Deposit | Kind::Settle | Kind::Refund) | None, _) => key.into(),
        };
        Place { run: None, subject }
    }

    fn owned(self) -> Place<'static> {
        Place { run: self.run, subject: self.subject.into_owned().into() }
    }

    /// The run as it is stored.
    fn run(&self) -> &[u8] {
        self.run.as_ref().map_or(&[], |run| run.as_slice())
    }
}

/// The numbers of what was made for this, and of what closed it.
pub(super) fn filed(db: &Connection, no: i64, key: &str) -> Result<Option<(u64, Option<u64>)>, StoreError> {
    let place = Place::of(key);
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.number()?, columns.number_or_none()?))
    };
    Ok(db.prepare_cached(FILED)?.query_row(params![place.run(), place.subject, no], read).optional()?)
}

/// A row that is to be written.
#[derive(Debug)]
struct Filing {
    place: Place<'static>,
    /// The number of the account.
    no: i64,
    seq: i64,
    closed_by: Option<i64>,
}

/// What is to be filed.
#[derive(Debug, Default)]
pub(super) struct Filings {
    made: Vec<Filing>,
    closed: Vec<Filing>,
}

impl Filings {
    /// Files a new movement under what it is for; `charged` is the number of the open charge that it closes, if that
    /// is known.
    pub(super) fn add(
        &mut self,
        db: &Connection,
        no: i64,
        seq: u64,
        movement: &Movement,
        charged: Option<u64>,
    ) -> Result<(), StoreError> {
        let (place, seq) = (Place::of(&movement.key), stored(seq));
        match (movement.kind, charged) {
            (Kind::Charge | Kind::Deposit, _) => {
                self.made.push(Filing { place: place.owned(), no, seq, closed_by: None });
            }
            (Kind::Settle | Kind::Refund, Some(charged)) => {
                let (place, charged) = (place.owned(), stored(charged));
                self.closed.push(Filing { place, no, seq: charged, closed_by: Some(seq) });
            }
            (Kind::Settle | Kind::Refund, None) => {
                self.write(db)?;
                let close = params![place.run(), place.subject, no, seq];
                if db.prepare_cached(CLOSE)?.execute(close)? == 0 {
                    let key = &movement.key;
                    return Err(StoreError::Corrupt(format!("what `{key}` closes is not filed")));
                }
            }
        }
        Ok(())
    }

    /// Writes all of it. What was made comes first: some of it may be closed already.
    pub(super) fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        write(db, &self.made, [FILE, FILE_ALL])?;
        write(db, &self.closed, [CLOSE_KNOWN, CLOSE_KNOWN_ALL])?;
        self.clear();
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.made.clear();
        self.closed.clear();
    }
}

/// Writes rows, by the statement for one and by that for many.
fn write(db: &Connection, rows: &[Filing], [one, all]: [&str; 2]) -> Result<(), StoreError> {
    let (whole, rest) = rows.as_chunks::<AT_ONCE>();
    let rest = rest.iter().map(std::slice::from_ref);
    for (sql, rows) in whole.iter().map(|rows| (all, rows.as_slice())).chain(rest.map(|row| (one, row))) {
        let mut statement = db.prepare_cached(sql)?;
        let mut at = 0;
        for Filing { place, no, seq, closed_by } in rows {
            statement.raw_bind_parameter(at + 1, place.run())?;
            statement.raw_bind_parameter(at + 2, &place.subject)?;
            statement.raw_bind_parameter(at + 3, no)?;
            statement.raw_bind_parameter(at + 4, seq)?;
            at += 4;
            if let Some(closed_by) = closed_by {
                statement.raw_bind_parameter(at + 1, closed_by)?;
                at += 1;
            }
        }
        statement.raw_execute()?;
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FILE, FILE_ALL, CLOSE_KNOWN, CLOSE_KNOWN_ALL, CLOSE, FILED];
