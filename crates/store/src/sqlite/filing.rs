//! Where a movement is found by what it is for: a tree of its own, in the order in which runs begin. A charge can be
//! made once, and knows what closed it.
//!
//! Charges are filed when their sheet is put into the index, many at once and in order, which costs less than each by
//! itself; most of them are closed by then. Until then they are on the last sheets, and found there.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;

use super::column::{Columns, Id, Key, stored};
use super::slip::Place;
use crate::error::StoreError;

/// Rows of one statement.
const AT_ONCE: usize = 8;

macro_rules! file {
    ($($rows:literal),*) => {
        concat!("INSERT INTO ledger_keys (run, subject, account, seq, closed_by) VALUES ", $($rows),*)
    };
}

const FILE: &str = file!("(?, ?, ?, ?, ?)");
#[rustfmt::skip]
const FILE_ALL: &str = file!(
    "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), ",
    "(?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?), (?, ?, ?, ?, ?)"
);
const CLOSE: &str = "UPDATE ledger_keys SET closed_by = ?4 WHERE run = ?1 AND subject = ?2 AND account = ?3";
const FILED: &str = "SELECT seq, closed_by FROM ledger_keys WHERE run = ?1 AND subject = ?2 AND account = ?3";
const OF_RUN: &str = "SELECT seq, closed_by FROM ledger_keys WHERE run = ?1 AND account = ?2";

/// What a charge or a deposit is filed under: what it is for, and the number of its account.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) place: Place,
    pub(super) no: i64,
}

impl Name {
    /// The run as it is stored.
    fn run(&self) -> Option<Key> {
        self.place.run.map(Id::key)
    }
}

/// What is filed: its number, and that of what closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Filing {
    pub(super) seq: u64,
    pub(super) closed_by: Option<u64>,
}

fn read(row: &Row<'_>) -> rusqlite::Result<Filing> {
    let mut columns = Columns::of(row);
    Ok(Filing { seq: columns.number()?, closed_by: columns.number_or_none()? })
}

/// What is filed under a name.
pub(super) fn filed(db: &Connection, name: &Name) -> Result<Option<Filing>, StoreError> {
    let run = name.run();
    let row = params![stored_run(&run), &*name.place.subject, name.no];
    Ok(db.prepare_cached(FILED)?.query_row(row, read).optional()?)
}

/// What of an account is filed for a run, in no order.
pub(super) fn filed_of_run(db: &Connection, no: i64, run: RunId) -> Result<Vec<Filing>, StoreError> {
    let mut statement = db.prepare_cached(OF_RUN)?;
    let rows = statement.query_map(params![run.key(), no], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn stored_run(run: &Option<Key>) -> &[u8] {
    run.as_ref().map_or(&[], |run| run.as_slice())
}

/// Files all of these: those of a run, which are neighbours in the tree, one after the other.
pub(super) fn file(db: &Connection, mut rows: Vec<(Name, Filing)>) -> Result<(), StoreError> {
    rows.sort_by_key(|(name, _)| name.place.run);
    let (whole, rest) = rows.as_chunks::<AT_ONCE>();
    let (whole, rest) = (whole.iter().map(|rows| (FILE_ALL, rows.as_slice())), rest.chunks(1));
    for (sql, rows) in whole.chain(rest.map(|row| (FILE, row))) {
        let mut statement = db.prepare_cached(sql)?;
        for ((name, filing), at) in rows.iter().zip((0..).step_by(5)) {
            statement.raw_bind_parameter(at + 1, stored_run(&name.run()))?;
            statement.raw_bind_parameter(at + 2, &*name.place.subject)?;
            statement.raw_bind_parameter(at + 3, name.no)?;
            statement.raw_bind_parameter(at + 4, stored(filing.seq))?;
            statement.raw_bind_parameter(at + 5, filing.closed_by.map(stored))?;
        }
        statement.raw_execute()?;
    }
    Ok(())
}

/// Closes a charge that is filed; whether there is one.
pub(super) fn close(db: &Connection, name: &Name, closed_by: u64) -> Result<bool, StoreError> {
    let run = name.run();
    let row = params![stored_run(&run), &*name.place.subject, name.no, stored(closed_by)];
    Ok(db.prepare_cached(CLOSE)?.execute(row)? > 0)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[FILE, FILE_ALL, CLOSE, FILED, OF_RUN];
