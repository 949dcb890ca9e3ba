//! Sheets of the ledger: what transactions moved, of all accounts, one movement after the other, so that a movement
//! costs its bytes and not a place in a tree. An index, written for many sheets at once, says which of them have
//! movements of an account; the last sheets are not in it yet and are looked through.

use std::borrow::Cow;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use windlass_engine::time::Timestamp;

use super::column::{Columns, bound, json, stored};
use super::slip::Slip;
use crate::error::StoreError;

/// Movements on a sheet at most: few enough that little is read in vain when one of them is looked for.
pub(super) const SHEET_MAX: usize = 32;
/// Sheets that one row of the index names at most.
const ENTRIES_MAX: usize = 64;

const ADD: &str = "INSERT INTO ledger_sheets (no, movements) VALUES (?1, ?2)";
const SHEET: &str = "SELECT movements FROM ledger_sheets WHERE no = ?1";
const UNINDEXED: &str = "SELECT no, movements FROM ledger_sheets \
     WHERE no > (SELECT sheet FROM ledger_indexed) ORDER BY no";
const LAST: &str = "SELECT max((SELECT coalesce(max(no), 0) FROM ledger_sheets), sheet) FROM ledger_indexed";
const INDEX: &str = "INSERT INTO ledger_index (account, seq, sheets) VALUES (?1, ?2, ?3)";
const INDEXED: &str = "UPDATE ledger_indexed SET sheet = ?1";
const ENTRIES_AT: &str =
    "SELECT sheets FROM ledger_index WHERE account = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1";
const ENTRIES: &str = "SELECT sheets FROM ledger_index WHERE account = ?1 AND seq >= coalesce(\
     (SELECT max(seq) FROM ledger_index WHERE account = ?1 AND seq <= ?2), 0) ORDER BY seq";
const ENTRIES_BACK: &str =
    "SELECT sheets FROM ledger_index WHERE account = ?1 AND seq < ?2 ORDER BY seq DESC";

/// A movement as a sheet has it: account, number, key, amount, held, borne by the platform, balance after it, moment.
#[derive(Deserialize)]
pub(super) struct Line<'l>(
    pub(super) i64,
    pub(super) u64,
    #[serde(borrow)] pub(super) Cow<'l, str>,
    pub(super) i64,
    pub(super) i64,
    pub(super) i64,
    pub(super) i64,
    pub(super) i64,
);

/// The lines of a sheet.
pub(super) fn lines(text: &str) -> Result<Vec<Line<'_>>, StoreError> {
    serde_json::from_str(text).map_err(|error| StoreError::Corrupt(format!("a sheet of the ledger: {error}")))
}

/// The text of a sheet that is being written: JSON, without the bracket that closes it.
#[derive(Debug, Default)]
pub(super) struct Text(Vec<u8>);

impl Text {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn add(&mut self, (no, seq): (i64, u64), slip: &Slip, balance_after: i64, at: Timestamp) {
        self.0.extend_from_slice(if self.0.is_empty() { b"[[" } else { b",[" });
        self.number(no);
        self.0.push(b',');
        self.number(stored(seq));
        self.0.extend_from_slice(&slip.line);
        for number in [balance_after, at.0] {
            self.0.push(b',');
            self.number(number);
        }
        self.0.push(b']');
    }

    fn number(&mut self, number: i64) {
        serde_json::to_writer(&mut self.0, &number).expect("memory takes it");
    }

    /// Writes the sheet with this number, and begins anew.
    pub(super) fn write(&mut self, db: &Connection, sheet: u64) -> Result<(), StoreError> {
        self.0.push(b']');
        let text = str::from_utf8(&self.0).expect("JSON is UTF-8");
        db.prepare_cached(ADD)?.execute(params![stored(sheet), text])?;
        self.0.clear();
        Ok(())
    }
}

/// From which number on the movements of an account are on which sheet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Entry {
    pub(super) no: i64,
    pub(super) seq: u64,
    pub(super) sheet: u64,
}

/// Puts sheets up to this one into the index.
pub(super) fn index(db: &Connection, mut entries: Vec<Entry>, to: u64) -> Result<(), StoreError> {
    entries.sort_unstable();
    for of_account in entries.chunk_by(|one, next| one.no == next.no) {
        for entries in of_account.chunks(ENTRIES_MAX) {
            let sheets: Vec<_> = entries.iter().map(|entry| (entry.seq, entry.sheet)).collect();
            db.prepare_cached(INDEX)?.execute(params![
                entries[0].no,
                stored(entries[0].seq),
                json(&sheets)
            ])?;
        }
    }
    db.prepare_cached(INDEXED)?.execute([stored(to)])?;
    Ok(())
}

/// The number of the last sheet.
pub(super) fn last(db: &Connection) -> Result<u64, StoreError> {
    Ok(db.prepare_cached(LAST)?.query_row([], |row| Columns::of(row).number())?)
}

/// The sheets that the index does not know, with their numbers.
pub(super) fn unindexed(db: &Connection) -> Result<Vec<(u64, String)>, StoreError> {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.number()?, columns.value()?))
    };
    Ok(db.prepare_cached(UNINDEXED)?.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn sheet(db: &Connection, no: u64) -> Result<String, StoreError> {
    let text = db.prepare_cached(SHEET)?.query_row([stored(no)], |row| row.get(0)).optional()?;
    text.ok_or_else(|| StoreError::Corrupt(format!("sheet {no} of the ledger is not there")))
}

/// Numbers from which on movements of an account are on a sheet, and the sheets.
pub(super) type Entries = Vec<(u64, u64)>;

fn entries(row: &Row<'_>) -> rusqlite::Result<Entries> {
    Columns::of(row).json()
}

/// The sheet that has this movement of an account, if the index knows it or one before it.
pub(super) fn sheet_of(db: &Connection, no: i64, seq: u64) -> Result<Option<u64>, StoreError> {
    let found = db.prepare_cached(ENTRIES_AT)?.query_row(params![no, bound(seq)], entries).optional()?;
    let before = |entries: Entries| entries.into_iter().rev().find(|(from, _)| *from <= seq);
    Ok(found.and_then(before).map(|(_, sheet)| sheet))
}

/// Tells of the sheets of an account that may have movements after this one, in order, until there have been enough.
pub(super) fn each_after(
    db: &Connection,
    no: i64,
    after: u64,
    mut tell: impl FnMut(u64) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let next = after.saturating_add(1);
    let mut statement = db.prepare_cached(ENTRIES)?;
    for found in statement.query_map(params![no, bound(next)], entries)? {
        let found = found?;
        let first = found.partition_point(|(from, _)| *from <= next).saturating_sub(1);
        for (_, sheet) in &found[first..] {
            if tell(*sheet)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

/// The same of those before this one, from the last on.
pub(super) fn each_before(
    db: &Connection,
    no: i64,
    before: u64,
    mut tell: impl FnMut(u64) -> Result<bool, StoreError>,
) -> Result<(), StoreError> {
    let mut statement = db.prepare_cached(ENTRIES_BACK)?;
    for found in statement.query_map(params![no, bound(before)], entries)? {
        for (_, sheet) in found?.iter().rev().filter(|(from, _)| *from < before) {
            if tell(*sheet)? {
                return Ok(());
            }
        }
    }
    Ok(())
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[ADD, SHEET, UNINDEXED, LAST, INDEX, INDEXED, ENTRIES_AT, ENTRIES, ENTRIES_BACK];
