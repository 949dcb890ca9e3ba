//! Accounts, their ledger, and prices.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::money::{Account, Movement};
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, bound, json, stored};
use super::desk::Desk;
use super::guard;
use crate::account::{self, AccountRow, InNeed, LedgerOrder, LedgerQuery, LedgerRow, Posting, PriceRow};
use crate::commit::Unmoved;
use crate::error::{Refusal, StoreError, Subject};
use crate::page::Part;

macro_rules! accounts {
    ($where:literal) => {
        concat!("SELECT id, name, balance, held, revision, created_at FROM accounts ", $where)
    };
}
macro_rules! ledger {
    ($rest:literal) => {
        concat!(
            "SELECT kind, amount, key, held, borne_by_platform, seq, account, run, node, balance_after, at \
             FROM ledger ",
            $rest
        )
    };
}

pub(super) const ACCOUNT: &str = accounts!("WHERE id = ?1");
const ACCOUNTS: &str = accounts!("ORDER BY id");
const ACCOUNTS_AFTER: &str = accounts!("WHERE id > ?1 ORDER BY id LIMIT ?2");
const ACCOUNTS_IN_NEED: &str = accounts!(
    "WHERE id IN (SELECT account FROM runs INDEXED BY runs_in_need WHERE needs IS NOT NULL) ORDER BY id"
);
const ACCOUNT_IN_NEED: &str = accounts!(
    "WHERE id = ?1 AND EXISTS (SELECT 1 FROM runs INDEXED BY runs_in_need WHERE needs IS NOT NULL AND account = ?1)"
);
// The index is named because the order looks cheaper elsewhere, and costs all runs there are.
const IN_NEED: &str = "SELECT id, needs FROM runs INDEXED BY runs_in_need \
     WHERE needs IS NOT NULL AND account = ?1 AND needs <= ?2 ORDER BY no LIMIT ?3";
const KNOWN: &str = ledger!("WHERE account = ?1 AND key = ?2");
const LEDGER: &str = ledger!("WHERE account = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3");
const LEDGER_BACK: &str = ledger!("WHERE account = ?1 AND seq < ?2 ORDER BY seq DESC LIMIT ?3");
// The index is named because the primary key looks as good, and walks through the whole ledger.
const LEDGER_OF_RUN: &str =
    ledger!("INDEXED BY ledger_by_run WHERE account = ?1 AND run = ?4 AND seq > ?2 ORDER BY seq LIMIT ?3");
const LEDGER_OF_RUN_BACK: &str = ledger!(
    "INDEXED BY ledger_by_run WHERE account = ?1 AND run = ?4 AND seq < ?2 ORDER BY seq DESC LIMIT ?3"
);
const OPEN: &str = "INSERT INTO accounts (id, name, balance, held, revision, created_at) \
     VALUES (?1, ?2, 0, 0, 0, ?3) ON CONFLICT (id) DO NOTHING";
const POST: &str = "INSERT INTO ledger (account, seq, kind, amount, key, held, borne_by_platform, run, node, \
     balance_after, at) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)";
const SET_PRICE: &str = "INSERT OR REPLACE INTO prices (service, price, updated_at) VALUES (?1, ?2, ?3)";
const FORGET_PRICE: &str = "DELETE FROM prices WHERE service = ?1";
const PRICES: &str = "SELECT service, price, updated_at FROM prices ORDER BY service";

/// What posting to one account leads to.
pub(super) struct Posted {
    pub(super) account: Account,
    revision: u64,
    rows: Vec<(Posting, i64)>,
}

/// Whether nobody has moved the account since it was looked at.
pub(super) fn check_unmoved(desk: &Desk, unmoved: &Unmoved) -> Result<(), StoreError> {
    let Unmoved { account, revision } = unmoved;
    let found = desk.purses().row(desk, account)?.revision;
    guard(|| Subject::Account(account.clone()), *revision, found)
}

/// What the postings lead to, by account.
pub(super) fn check(desk: &Desk, postings: &[Posting]) -> Result<BTreeMap<String, Posted>, StoreError> {
    let mut by_account: BTreeMap<&str, Vec<&Posting>> = BTreeMap::new();
    for posting in postings {
        by_account.entry(&posting.account).or_default().push(posting);
    }
    let mut posted = BTreeMap::new();
    for (id, postings) in by_account {
        let row = desk.purses().row(desk, id)?;
        let (account, rows) = account::post(&row, known(desk, id, &postings)?, &postings)?;
        posted.insert(id.to_owned(), Posted { account, revision: row.revision, rows });
    }
    Ok(posted)
}

/// The rows of the ledger that decide about these movements.
fn known(desk: &Desk, id: &str, postings: &[&Posting]) -> Result<BTreeMap<String, Movement>, StoreError> {
    let mut known = BTreeMap::new();
    for Posting { movement, .. } in postings {
        // A charge that is known to be open has been closed by nobody.
        if let Some(charge) = desk.purses().open_charge(id, movement) {
            known.insert(charge.key.clone(), charge);
            continue;
        }
        for key in account::related_keys(movement) {
            let found = desk.prepare_cached(KNOWN)?.query_row([id, &key], read_movement);
            known.extend(found.optional()?.map(|movement| (key, movement)));
        }
    }
    Ok(known)
}

pub(super) fn write(desk: &Desk, id: &str, posted: &Posted, at: Timestamp) -> Result<(), StoreError> {
    let mut seq = posted.revision;
    for (posting, balance_after) in &posted.rows {
        seq = seq.saturating_add(1);
        let Posting { account, movement, run, node } = posting;
        let Movement { kind, amount, key, held, borne_by_platform } = movement;
        let (run, node) = (run.map(Id::key), node.as_ref().map(|node| node.as_str()));
        let (seq, kind) = (stored(seq), kind.word());
        let row =
            params![account, seq, kind, amount, key, held, borne_by_platform, run, node, balance_after, at.0];
        desk.prepare_cached(POST)?.execute(row)?;
    }
    desk.purses().note(id, posted.account, seq, &posted.rows);
    Ok(())
}

/// Opens an account; one that is there has to have the name.
pub(super) fn open(db: &Connection, id: &str, name: &str, now: Timestamp) -> Result<(), StoreError> {
    if db.prepare_cached(OPEN)?.execute(params![id, name, now.0])? == 0 {
        let taken = required(db, id)?.name;
        if taken != name {
            return Err(Refusal::AccountTaken { id: id.to_owned(), name: taken }.into());
        }
    }
    Ok(())
}

/// Accounts after this one; no id comes before the empty one, and none is empty.
pub(super) fn accounts_after(
    db: &Connection,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<AccountRow>, StoreError> {
    let mut statement = db.prepare_cached(ACCOUNTS_AFTER)?;
    let rows = statement.query_map(params![after.unwrap_or_default(), bound(limit)], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

/// Accounts with runs that wait for money; all, or this one if it has any.
pub(super) fn accounts_in_need(db: &Connection, id: Option<&str>) -> Result<Vec<AccountRow>, StoreError> {
    let rows: rusqlite::Result<_> = match id {
        Some(id) => db.prepare_cached(ACCOUNT_IN_NEED)?.query_map([id], read)?.collect(),
        None => db.prepare_cached(ACCOUNTS_IN_NEED)?.query_map([], read)?.collect(),
    };
    Ok(rows?)
}

/// Runs of an account that could go with so much money.
pub(super) fn in_need(
    db: &Connection,
    account: &str,
    within: i64,
    limit: usize,
) -> Result<Vec<InNeed>, StoreError> {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok(InNeed { run: columns.id()?, needs: columns.value()? })
    };
    let mut statement = db.prepare_cached(IN_NEED)?;
    let rows = statement.query_map(params![account, within, bound(limit)], read)?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn required(db: &Connection, id: &str) -> Result<AccountRow, StoreError> {
    let row = db.prepare_cached(ACCOUNT)?.query_row([id], read).optional()?;
    row.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()).into())
}

pub(super) fn accounts(db: &Connection, id: Option<&str>) -> Result<Vec<AccountRow>, StoreError> {
    let rows = match id {
        Some(id) => db.prepare_cached(ACCOUNT)?.query_map([id], read)?.collect(),
        None => db.prepare_cached(ACCOUNTS)?.query_map([], read)?.collect::<rusqlite::Result<_>>(),
    };
    Ok(rows?)
}

pub(super) fn ledger(db: &Connection, query: &LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
    let size = bound(Part { limit: query.limit, ..Part::default() }.size());
    let account = &query.account;
    if let Some(key) = &query.key {
        let found = db.prepare_cached(KNOWN)?.query_row([account, key], read_ledger).optional()?;
        return Ok(found
            .into_iter()
            .filter(|row| query.run.is_none() || query.run == row.posting.run)
            .collect());
    }
    let (all, of_run, after) = match query.order {
        LedgerOrder::Oldest => (LEDGER, LEDGER_OF_RUN, query.after),
        LedgerOrder::Newest if query.after == 0 => (LEDGER_BACK, LEDGER_OF_RUN_BACK, u64::MAX),
        LedgerOrder::Newest => (LEDGER_BACK, LEDGER_OF_RUN_BACK, query.after),
    };
    let after = bound(after);
    let rows = match query.run {
        Some(run) => {
            let mut statement = db.prepare_cached(of_run)?;
            statement.query_map(params![account, after, size, run.key()], read_ledger)?.collect()
        }
        None => {
            let mut statement = db.prepare_cached(all)?;
            statement.query_map(params![account, after, size], read_ledger)?.collect::<rusqlite::Result<_>>()
        }
    };
    Ok(rows?)
}

pub(super) fn set_price(db: &Connection, row: &PriceRow) -> Result<(), StoreError> {
    let PriceRow { service, price, updated_at } = row;
    db.prepare_cached(SET_PRICE)?.execute(params![service, json(price), updated_at.0])?;
    Ok(())
}

pub(super) fn forget_price(db: &Connection, service: &str) -> Result<(), StoreError> {
    db.prepare_cached(FORGET_PRICE)?.execute([service])?;
    Ok(())
}

pub(super) fn prices(db: &Connection) -> Result<Vec<PriceRow>, StoreError> {
    let read = |row: &Row<'_>| {
        let mut columns = Columns::of(row);
        Ok(PriceRow { service: columns.value()?, price: columns.json()?, updated_at: columns.time()? })
    };
    Ok(db.prepare_cached(PRICES)?.query_map([], read)?.collect::<rusqlite::Result<_>>()?)
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<AccountRow> {
    let mut columns = Columns::of(row);
    Ok(AccountRow {
        id: columns.value()?,
        name: columns.value()?,
        balance: columns.value()?,
        held: columns.value()?,
        revision: columns.number()?,
        created_at: columns.time()?,
    })
}

fn read_movement(row: &Row<'_>) -> rusqlite::Result<Movement> {
    movement(&mut Columns::of(row))
}

fn movement(columns: &mut Columns<'_>) -> rusqlite::Result<Movement> {
    Ok(Movement {
        kind: columns.word()?,
        amount: columns.value()?,
        key: columns.value()?,
        held: columns.value()?,
        borne_by_platform: columns.value()?,
    })
}

fn read_ledger(row: &Row<'_>) -> rusqlite::Result<LedgerRow> {
    let mut columns = Columns::of(row);
    let (movement, seq) = (movement(&mut columns)?, columns.number()?);
    let (account, run, node) = (columns.value()?, columns.id_or_none()?, columns.path_or_none()?);
    let posting = Posting { account, movement, run, node };
    Ok(LedgerRow { seq, posting, balance_after: columns.value()?, at: columns.time()? })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    ACCOUNT,
    ACCOUNTS,
    ACCOUNTS_AFTER,
    ACCOUNTS_IN_NEED,
    IN_NEED,
    KNOWN,
    LEDGER,
    LEDGER_BACK,
    LEDGER_OF_RUN,
    LEDGER_OF_RUN_BACK,
    OPEN,
    POST,
    SET_PRICE,
    FORGET_PRICE,
    PRICES,
];
