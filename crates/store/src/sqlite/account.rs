//! Accounts and prices; what happens to accounts is in `ledger`.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::id::RunId;
use windlass_engine::money::Account;
use windlass_engine::time::Timestamp;

use super::column::{Columns, bound, json};
use super::desk::Desk;
use super::guard;
use super::slip::Slip;
use crate::account::{self, AccountRow, Fresh, InNeed, PriceRow};
use crate::commit::Unmoved;
use crate::error::{Refusal, StoreError, Subject};

macro_rules! accounts {
    ($where:literal) => {
        concat!("SELECT id, name, balance, held, revision, created_at FROM accounts ", $where)
    };
}

const ACCOUNT: &str = accounts!("WHERE id = ?1");
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
const OPEN: &str = "INSERT INTO accounts (id, name, balance, held, revision, created_at) \
     VALUES (?1, ?2, 0, 0, 0, ?3) ON CONFLICT (id) DO NOTHING";
const SET_PRICE: &str = "INSERT OR REPLACE INTO prices (service, price, updated_at) VALUES (?1, ?2, ?3)";
const FORGET_PRICE: &str = "DELETE FROM prices WHERE service = ?1";
const PRICES: &str = "SELECT service, price, updated_at FROM prices ORDER BY service";

/// What posting to one account leads to.
pub(super) struct Posted<'c> {
    pub(super) id: &'c str,
    pub(super) account: Account,
    rows: Fresh<'c, Slip>,
    new_run: Option<RunId>,
}

/// Whether nobody has moved the account since it was looked at.
pub(super) fn check_unmoved(desk: &Desk, unmoved: &Unmoved) -> Result<(), StoreError> {
    let Unmoved { account, revision } = unmoved;
    let found = desk.purses().look(desk, account, |purse| Ok(purse.row.revision))?;
    guard(|| Subject::Account(account.clone()), *revision, found)
}

/// What the postings lead to, by account. Nothing was charged before to a run that is created with them.
pub(super) fn check<'c>(
    desk: &Desk,
    slips: &'c [Slip],
    new_run: Option<RunId>,
) -> Result<Vec<Posted<'c>>, StoreError> {
    let mut by_account: Vec<&Slip> = slips.iter().collect();
    // Those of one account stay in their order.
    by_account.sort_by_key(|slip| slip.account());
    let post = |slips: &[&'c Slip]| {
        let id = slips[0].account();
        let (account, rows) = desk
            .purses()
            .look(desk, id, |purse| account::post(&purse.row, &purse.known(desk, slips, new_run)?, slips))?;
        Ok(Posted { id, account, rows, new_run })
    };
    by_account.chunk_by(|one, next| one.account() == next.account()).map(post).collect()
}

pub(super) fn write(desk: &Desk, posted: &Posted<'_>, at: Timestamp) -> Result<(), StoreError> {
    desk.purses().make(desk, posted.id, posted.account, &posted.rows, posted.new_run, at)
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

fn read(row: &Row<'_>) -> rusqlite::Result<AccountRow> {
    read_columns(&mut Columns::of(row))
}

pub(super) fn read_columns(columns: &mut Columns<'_>) -> rusqlite::Result<AccountRow> {
    Ok(AccountRow {
        id: columns.value()?,
        name: columns.value()?,
        balance: columns.value()?,
        held: columns.value()?,
        revision: columns.number()?,
        created_at: columns.time()?,
    })
}

#[cfg(test)]
pub(super) const ALL: &[&str] =
    &[ACCOUNT, ACCOUNTS, ACCOUNTS_AFTER, ACCOUNTS_IN_NEED, IN_NEED, OPEN, SET_PRICE, FORGET_PRICE, PRICES];
