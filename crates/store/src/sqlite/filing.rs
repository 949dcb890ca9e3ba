//! Where a movement is found by what it is for: a tree of its own, in the order in which runs begin. A charge can be
//! made once, and knows what closed it.
//!
//! What a transaction files is written at its end, several rows by one statement, which costs less than each by its own.
//! A charge is filed when it is closed, or when it has been open for a while: until then it is among the last movements
//! of its account, and found there.

use std::ops::Range;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;

use super::column::{Columns, Id, Key, stored};
use super::slip::{Place, Slip};
use crate::error::StoreError;

/// Rows of one statement.
const AT_ONCE: usize = 8;

macro_rules! file {
    ($($rows:literal),*) => {
        concat!("INSERT INTO ledger_keys (run, subject, account, seq) VALUES ", $($rows),*)
    };
}
// A charge, and what closes it: to write the row whole costs less than to find it and change it.
macro_rules! file_closed {
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
const FILE_CLOSED: &str = file_closed!("(?, ?, ?, ?, ?)");
#[rustfmt::skip]
const FILE_CLOSED_ALL: &str = file_closed!(
    "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), ",
    "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)"
);
const CLOSE: &str = "UPDATE ledger_keys SET closed_by = ?4 WHERE run = ?1 AND subject = ?2 AND account = ?3";
const FILED: &str = "SELECT seq, closed_by FROM ledger_keys WHERE run = ?1 AND subject = ?2 AND account = ?3";

/// The numbers of what was made for this, and of what closed it.
pub(super) fn filed(db: &Connection, no: i64, key: &str) -> Result<Option<(u64, Option<u64>)>, StoreError> {
    let Place { run, subject } = Place::of(key);
    let run = run.map(Id::key);
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.number()?, columns.number_or_none()?))
    };
    Ok(db.prepare_cached(FILED)?.query_row(params![stored_run(&run), subject, no], read).optional()?)
}

/// The run of a place as it is stored.
fn stored_run(run: &Option<Key>) -> &[u8] {
    run.as_ref().map_or(&[], |run| run.as_slice())
}

/// A row that is to be written.
#[derive(Debug)]
struct Filing {
    run: Option<RunId>,
    /// Where its subject is in the text of all.
    subject: Range<usize>,
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
    /// The subjects of all, one after the other.
    subjects: String,
}

impl Filings {
    /// Files a movement under what it is for.
    pub(super) fn make(&mut self, no: i64, seq: u64, place: &Place) {
        let made = self.filing(no, seq, place, None);
        self.made.push(made);
    }

    /// Files a charge and what closes it: whether or not it is filed already, it is closed from now on.
    pub(super) fn make_closed(&mut self, no: i64, seq: u64, place: &Place, closed_by: u64) {
        let closed = self.filing(no, seq, place, Some(stored(closed_by)));
        self.closed.push(closed);
    }

    /// Closes a charge that is filed.
    pub(super) fn close(
        &mut self,
        db: &Connection,
        no: i64,
        slip: &Slip,
        seq: u64,
    ) -> Result<(), StoreError> {
        self.write(db)?;
        let (run, subject) = (slip.place.run.map(Id::key), &slip.place.subject);
        let close = params![stored_run(&run), subject, no, stored(seq)];
        if db.prepare_cached(CLOSE)?.execute(close)? == 0 {
            let key = &slip.movement().key;
            return Err(StoreError::Corrupt(format!("what `{key}` closes is not filed")));
        }
        Ok(())
    }

    fn filing(&mut self, no: i64, seq: u64, place: &Place, closed_by: Option<i64>) -> Filing {
        let begin = self.subjects.len();
        self.subjects.push_str(&place.subject);
        Filing { run: place.run, subject: begin..self.subjects.len(), no, seq: stored(seq), closed_by }
    }

    /// Writes all of it. What was made comes first: some of it may be closed already.
    pub(super) fn write(&mut self, db: &Connection) -> Result<(), StoreError> {
        write(db, &self.subjects, &self.made, [FILE, FILE_ALL])?;
        write(db, &self.subjects, &self.closed, [FILE_CLOSED, FILE_CLOSED_ALL])?;
        self.clear();
        Ok(())
    }

    pub(super) fn clear(&mut self) {
        self.made.clear();
        self.closed.clear();
        self.subjects.clear();
    }
}

/// Writes rows, by the statement for one and by that for many.
fn write(db: &Connection, subjects: &str, rows: &[Filing], [one, all]: [&str; 2]) -> Result<(), StoreError> {
    let (whole, rest) = rows.as_chunks::<AT_ONCE>();
    let rest = rest.iter().map(std::slice::from_ref);
    for (sql, rows) in whole.iter().map(|rows| (all, rows.as_slice())).chain(rest.map(|row| (one, row))) {
        let mut statement = db.prepare_cached(sql)?;
        let mut at = 0;
        for Filing { run, subject, no, seq, closed_by } in rows {
            statement.raw_bind_parameter(at + 1, stored_run(&run.map(Id::key)))?;
            statement.raw_bind_parameter(at + 2, &subjects[subject.clone()])?;
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
pub(super) const ALL: &[&str] = &[FILE, FILE_ALL, FILE_CLOSED, FILE_CLOSED_ALL, CLOSE, FILED];
