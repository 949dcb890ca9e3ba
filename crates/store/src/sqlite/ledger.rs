//! The ledger: movements in parts. A part is what one transaction moved on one account, so that a movement costs its
//! bytes and not a row in several trees.

use std::borrow::Cow;
use std::collections::HashMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Deserialize;
use windlass_engine::id::RunId;
use windlass_engine::money::{Kind, Movement};
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, bound, stored};
use super::desk::Hashes;
use super::filing::filed;
use super::slip::{Place, Slip};
use crate::account::{LedgerQuery, LedgerRow, Posting};
use crate::error::StoreError;
use crate::page::{LineOrder, Part as Page};

/// Movements in a part at most: few enough that it is a part of a page, and that few are read for one.
pub(super) const PART_MAX: usize = 32;

const ADD: &str = "INSERT INTO ledger_parts (account, seq, movements) VALUES (?1, ?2, ?3)";
const PART_OF: &str =
    "SELECT seq, movements FROM ledger_parts WHERE account = ?1 AND seq <= ?2 ORDER BY seq DESC LIMIT 1";
const PARTS: &str = "SELECT seq, movements FROM ledger_parts WHERE account = ?1 AND seq >= coalesce(\
     (SELECT max(seq) FROM ledger_parts WHERE account = ?1 AND seq <= ?2), 0) ORDER BY seq";
const PARTS_BACK: &str =
    "SELECT seq, movements FROM ledger_parts WHERE account = ?1 AND seq < ?2 ORDER BY seq DESC";
// What closes a charge of a run stands beside it, so that all that it is charged has to be looked at to know what comes
// next: that is so seldom asked that no movement should pay for an order of them.
macro_rules! of_run {
    ($is:literal, $order:literal) => {
        concat!(
            "SELECT seq FROM (SELECT seq FROM ledger_keys WHERE run = ?4 AND account = ?1 UNION ALL \
             SELECT closed_by FROM ledger_keys WHERE run = ?4 AND account = ?1 AND closed_by IS NOT NULL) \
             WHERE seq ",
            $is,
            " ?2 ORDER BY seq ",
            $order,
            " LIMIT ?3"
        )
    };
}
const OF_RUN: &str = of_run!(">", "ASC");
const OF_RUN_BACK: &str = of_run!("<", "DESC");
const NUMBER: &str = "SELECT no, filed FROM accounts WHERE id = ?1";
const FILED_TO: &str = "UPDATE accounts SET filed = max(filed, ?2) WHERE no = ?1";

/// A movement as a part has it: key, amount, held, borne by the platform, balance after it, moment.
#[derive(Deserialize)]
struct Line<'l>(#[serde(borrow)] Cow<'l, str>, i64, i64, i64, i64, i64);

/// Movements in a row, as they are written.
#[derive(Debug, Clone)]
struct Part {
    /// The number of the first.
    seq: u64,
    len: usize,
    /// JSON, without the bracket that closes it.
    text: Vec<u8>,
}

impl Part {
    fn new(seq: u64) -> Self {
        Part { seq, len: 0, text: Vec::new() }
    }

    fn add(&mut self, slip: &Slip, balance_after: i64, at: Timestamp) {
        self.text.push(if self.len == 0 { b'[' } else { b',' });
        self.text.extend_from_slice(&slip.line);
        for number in [balance_after, at.0] {
            self.text.push(b',');
            serde_json::to_writer(&mut self.text, &number).expect("memory takes it");
        }
        self.text.push(b']');
        self.len += 1;
    }

    fn closed(mut self) -> String {
        self.text.push(b']');
        String::from_utf8(self.text).expect("JSON is UTF-8")
    }
}

/// What is moved on an account and not written yet.
#[derive(Debug, Default)]
pub(super) struct Fresh(Vec<Part>);

impl Fresh {
    /// Adds a movement under the next number.
    pub(super) fn add(&mut self, seq: u64, slip: &Slip, balance_after: i64, at: Timestamp) {
        if self.0.last().is_none_or(|part| part.len >= PART_MAX) {
            self.0.push(Part::new(seq));
        }
        if let Some(part) = self.0.last_mut() {
            part.add(slip, balance_after, at);
        }
    }

    /// Writes all of it to the ledger of the account with this number.
    pub(super) fn write(&mut self, db: &Connection, no: i64) -> Result<(), StoreError> {
        for part in self.0.drain(..) {
            db.prepare_cached(ADD)?.execute(params![no, stored(part.seq), part.closed()])?;
        }
        Ok(())
    }

    fn movement(&self, seq: u64) -> Result<Option<Movement>, StoreError> {
        let Some(part) = self.0.iter().rev().find(|part| part.seq <= seq) else { return Ok(None) };
        let rows = read_part("", part.seq, &part.clone().closed())?;
        Ok(rows.into_iter().find(|row| row.seq == seq).map(|row| row.posting.movement))
    }
}

/// Adds to `known` the movements that decide about this one: the very same, and those of the charge that it closes.
pub(super) fn find(
    db: &Connection,
    no: i64,
    fresh: &Fresh,
    movement: &Movement,
    known: &mut Vec<Movement>,
) -> Result<(), StoreError> {
    let Some((made, closed_by)) = filed(db, no, &movement.key)? else { return Ok(()) };
    let closed_by = match movement.kind {
        Kind::Charge | Kind::Deposit => None,
        Kind::Settle | Kind::Refund => closed_by,
    };
    for seq in [Some(made), closed_by].into_iter().flatten() {
        let found = match fresh.movement(seq)? {
            Some(found) => found,
            None => row_at(db, no, "", seq)?.posting.movement,
        };
        known.push(found);
    }
    Ok(())
}

/// The movements of a part, with their numbers.
pub(super) fn read_part(account: &str, first: u64, text: &str) -> Result<Vec<LedgerRow>, StoreError> {
    let unreadable =
        |what: String| StoreError::Corrupt(format!("ledger of `{account}` from {first} on: {what}"));
    let lines: Vec<Line<'_>> = serde_json::from_str(text).map_err(|error| unreadable(error.to_string()))?;
    let row = |(line, seq): (Line<'_>, u64)| {
        let Line(key, amount, held, borne_by_platform, balance_after, at) = line;
        let kind = Kind::of_key(&key).ok_or_else(|| unreadable(format!("`{key}` is no key")))?;
        let movement = Movement { kind, amount, key: key.into_owned(), held, borne_by_platform };
        let posting = Posting { account: account.to_owned(), movement };
        Ok(LedgerRow { seq, posting, balance_after, at: Timestamp(at) })
    };
    lines.into_iter().zip(first..).map(row).collect()
}

fn part(row: &Row<'_>) -> rusqlite::Result<(u64, String)> {
    let mut columns = Columns::of(row);
    Ok((columns.number()?, columns.value()?))
}

/// The movement with this number, which is there.
fn row_at(db: &Connection, no: i64, account: &str, seq: u64) -> Result<LedgerRow, StoreError> {
    rows_at(db, no, account, &[seq])?
        .pop()
        .ok_or_else(|| StoreError::Corrupt(format!("number {seq} of a ledger is not there")))
}

/// The movements with these numbers, in their order; neighbours are often in one part.
fn rows_at(db: &Connection, no: i64, account: &str, seqs: &[u64]) -> Result<Vec<LedgerRow>, StoreError> {
    let (mut found, mut at_hand): (Vec<LedgerRow>, Vec<LedgerRow>) =
        (Vec::with_capacity(seqs.len()), Vec::new());
    for seq in seqs {
        if at_hand.binary_search_by_key(seq, |row| row.seq).is_err() {
            let parts = db.prepare_cached(PART_OF)?.query_row(params![no, stored(*seq)], part).optional()?;
            let Some((first, text)) = parts else { continue };
            at_hand = read_part(account, first, &text)?;
        }
        found.extend(at_hand.iter().find(|row| row.seq == *seq).cloned());
    }
    Ok(found)
}

/// A charge that nothing has closed: what it has taken, and its number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Charge {
    pub(super) held: i64,
    pub(super) seq: u64,
}

/// Such charges, by what they are for.
pub(super) type Charges = HashMap<String, Charge, Hashes>;

/// The charges of an account that are not filed: those that nothing has closed, after the last movement that is.
pub(super) fn unfiled(db: &Connection, no: i64, filed: u64) -> Result<Charges, StoreError> {
    let mut charges = Charges::default();
    let mut statement = db.prepare_cached(PARTS)?;
    for found in statement.query_map(params![no, bound(filed)], part)? {
        let (first, text) = found?;
        for row in read_part("", first, &text)?.into_iter().filter(|row| row.seq > filed) {
            let (movement, seq) = (row.posting.movement, row.seq);
            match movement.kind {
                Kind::Charge => {
                    charges.insert(movement.subject().to_owned(), Charge { held: movement.held, seq });
                }
                Kind::Settle | Kind::Refund => {
                    charges.remove(movement.subject());
                }
                Kind::Deposit => {}
            }
        }
    }
    Ok(charges)
}

/// The number by which the ledger knows an account, and that of the last movement up to which everything is filed.
pub(super) fn number(db: &Connection, account: &str) -> Result<Option<(i64, u64)>, StoreError> {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok((columns.value()?, columns.number()?))
    };
    Ok(db.prepare_cached(NUMBER)?.query_row([account], read).optional()?)
}

/// Says that everything is filed up to this number.
pub(super) fn set_filed(db: &Connection, no: i64, filed: u64) -> Result<(), StoreError> {
    db.prepare_cached(FILED_TO)?.execute(params![no, stored(filed)])?;
    Ok(())
}

/// The numbers of what was made under a key, and of what closed it.
fn of_key(db: &Connection, no: i64, to: u64, key: &str) -> Result<Vec<u64>, StoreError> {
    if let Some((made, closed_by)) = filed(db, no, key)? {
        return Ok([Some(made), closed_by].into_iter().flatten().collect());
    }
    let open = match key.split_once(':') {
        Some((kind, subject)) if kind == Kind::Charge.word() => unfiled(db, no, to)?.remove(subject),
        Some(_) | None => None,
    };
    Ok(open.map(|charge| charge.seq).into_iter().collect())
}

/// The numbers of what was charged to a run, and of what closed it, past `after` and in this order.
fn of_run(
    db: &Connection,
    (no, to): (i64, u64),
    run: RunId,
    (order, after): (LineOrder, u64),
    limit: usize,
) -> Result<Vec<u64>, StoreError> {
    let (sql, is_past): (_, fn(u64, u64) -> bool) = match order {
        LineOrder::Oldest => (OF_RUN, |seq, after| seq > after),
        LineOrder::Newest => (OF_RUN_BACK, |seq, after| seq < after),
    };
    let open = unfiled(db, no, to)?.into_iter();
    let open = open
        .filter(|(subject, charge)| is_past(charge.seq, after) && Place::of_charge(subject).run == Some(run));
    let mut seqs: Vec<u64> = open.map(|(_, charge)| charge.seq).collect();
    let mut statement = db.prepare_cached(sql)?;
    let read = |row: &Row<'_>| Columns::of(row).number();
    for seq in statement.query_map(params![no, bound(after), bound(limit), run.key()], read)? {
        seqs.push(seq?);
    }
    seqs.sort_unstable();
    if order == LineOrder::Newest {
        seqs.reverse();
    }
    seqs.truncate(limit);
    Ok(seqs)
}

/// What happened to an account, or to a run of it, or under one key.
pub(super) fn ledger(db: &Connection, query: &LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
    let account = &query.account;
    let Some((no, to)) = number(db, account)? else { return Ok(Vec::new()) };
    if let Some(key) = &query.key {
        let mut rows = rows_at(db, no, account, &of_key(db, no, to, key)?)?;
        rows.retain(|row| {
            row.posting.movement.key == *key && query.run.is_none_or(|run| row.posting.run() == Some(run))
        });
        return Ok(rows);
    }
    let limit = Page { limit: query.limit, ..Page::default() }.size();
    let (parts, after) = match query.order {
        LineOrder::Oldest => (PARTS, query.after),
        LineOrder::Newest if query.after == 0 => (PARTS_BACK, u64::MAX),
        LineOrder::Newest => (PARTS_BACK, query.after),
    };
    if let Some(run) = query.run {
        let seqs = of_run(db, (no, to), run, (query.order, after), limit)?;
        return rows_at(db, no, account, &seqs);
    }
    let mut statement = db.prepare_cached(parts)?;
    let mut read = statement.query_map(params![no, bound(after)], part)?;
    let mut rows = Vec::new();
    while rows.len() < limit
        && let Some((first, text)) = read.next().transpose()?
    {
        let part = read_part(account, first, &text)?;
        match query.order {
            LineOrder::Oldest => rows.extend(part.into_iter().filter(|row| row.seq > after)),
            LineOrder::Newest => rows.extend(part.into_iter().rev().filter(|row| row.seq < after)),
        }
    }
    rows.truncate(limit);
    Ok(rows)
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[ADD, PART_OF, PARTS, PARTS_BACK, OF_RUN, OF_RUN_BACK, NUMBER, FILED_TO];
