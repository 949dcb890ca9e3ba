//! Accounts and prices. The writer checks postings here and appends them to the `ledger`.

use rusqlite::{Connection, OptionalExtension, Row, params};
use windlass_engine::counter::{Revision, Seq};
use windlass_engine::id::RunId;
use windlass_engine::money::{Account, Amount};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::SqliteColumns;
use super::readers::ReadConnection;
use super::writer_cache::WriterCache;
use super::{guard, ledger};
use crate::account::{self, AccountRow, BalanceWaiter, FreshPostings, Posting, PriceRow};
use crate::column::{bound, json};
use crate::commit::Unmoved;
use crate::decode;
use crate::error::{Refusal, StoreError, Subject};
use crate::table;

macro_rules! accounts {
    ($where:literal) => {
        concat!("SELECT id, name, balance, held, revision, created_at FROM accounts ", $where)
    };
}

pub(super) const ACCOUNT: &str = accounts!("WHERE project = ?2 AND id = ?1");
const ACCOUNTS: &str = accounts!("WHERE project = ?1 ORDER BY id");
const ACCOUNTS_AFTER: &str = accounts!("WHERE project = ?3 AND id > ?1 ORDER BY id LIMIT ?2");
const ACCOUNTS_IN_NEED: &str = accounts!(
    "WHERE project = ?1 AND id IN (SELECT account FROM runs INDEXED BY runs_in_need \
     WHERE project = ?1 AND needs IS NOT NULL) ORDER BY id"
);
const ACCOUNT_IN_NEED: &str = accounts!(
    "WHERE project = ?2 AND id = ?1 AND EXISTS (SELECT 1 FROM runs INDEXED BY runs_in_need \
     WHERE project = ?2 AND needs IS NOT NULL AND account = ?1)"
);
// The index is named because SQLite would otherwise read all runs in order.
const BALANCE_WAITERS: &str = "SELECT id, needs FROM runs INDEXED BY runs_in_need \
     WHERE project = ?4 AND needs IS NOT NULL AND account = ?1 AND needs <= ?2 ORDER BY no LIMIT ?3";
const OPEN: &str = "INSERT INTO accounts (project, id, name, balance, held, revision, created_at) \
     VALUES (?4, ?1, ?2, 0, 0, 0, ?3) ON CONFLICT (project, id) DO NOTHING";
const SET_PRICE: &str =
    "INSERT OR REPLACE INTO prices (project, service, price, updated_at) VALUES (?4, ?1, ?2, ?3)";
const DELETE_PRICE: &str = "DELETE FROM prices WHERE project = ?2 AND service = ?1";
const PRICES: &str = "SELECT service, price, updated_at FROM prices WHERE project = ?1 ORDER BY service";

/// The new ledger rows of one account, and the account after them.
pub(super) struct AccountPostings<'c> {
    pub(super) id: &'c str,
    pub(super) account: Account,
    /// The revision of the account before these rows.
    revision: Revision,
    rows: FreshPostings<'c>,
}

/// Refuses a commit if the account has moved since the caller read it.
pub(super) fn check_unmoved(
    cache: &WriterCache,
    project: &Project,
    unmoved: &Unmoved,
) -> Result<(), StoreError> {
    let Unmoved { account, revision } = unmoved;
    let found = cache.accounts().read(cache.db(), project, account, |row| Ok(row.revision))?;
    guard(|| Subject::Account(account.clone()), *revision, found)
}

/// Groups the postings of a commit by account and checks them by the rules of the ledger.
pub(super) fn check<'c>(
    cache: &WriterCache,
    project: &Project,
    postings: &'c [Posting],
    new_run: Option<RunId>,
) -> Result<Vec<AccountPostings<'c>>, StoreError> {
    let mut by_account: Vec<&Posting> = postings.iter().collect();
    // The sort is stable: postings of one account keep their order.
    by_account.sort_by_key(|posting| &posting.account);
    let post = |postings: &[&'c Posting]| {
        let (id, related) =
            (postings[0].account.as_str(), ledger::related(cache.db(), project, postings, new_run)?);
        cache.accounts().read(cache.db(), project, id, |row| {
            let (account, rows) = account::post(row, &related, postings)?;
            Ok(AccountPostings { id, account, revision: row.revision, rows })
        })
    };
    by_account.chunk_by(|one, next| one.account == next.account).map(post).collect()
}

/// Appends the ledger rows and moves the account.
pub(super) fn write(
    cache: &WriterCache,
    project: &Project,
    posted: &AccountPostings<'_>,
    at: Timestamp,
) -> Result<(), StoreError> {
    let mut revision = posted.revision;
    for (posting, balance_after) in &posted.rows {
        revision = revision.next();
        ledger::append(cache.db(), project, Seq(revision.0), posting, *balance_after, at)?;
    }
    cache.accounts().update(project, posted.id, posted.account, revision);
    Ok(())
}

/// Opens an account; an existing one must have the same name.
pub(super) fn open(
    db: &Connection,
    project: &Project,
    id: &str,
    name: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    if db.prepare_cached(OPEN)?.execute(params![id, name, now.0, project.as_str()])? == 0 {
        let taken = required(db, project, id)?.name;
        if taken != name {
            return Err(Refusal::AccountTaken { id: id.to_owned(), name: taken }.into());
        }
    }
    Ok(())
}

/// Accounts after this one. No id is empty, so the empty id comes before all.
pub(super) fn accounts_after(
    db: &ReadConnection,
    project: &Project,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<AccountRow>, StoreError> {
    let (after, project) = (after.unwrap_or_default().to_owned(), project.as_str().to_owned());
    let given = |limit: i64| vec![after.clone().into(), limit.into(), project.clone().into()];
    db.first_rows(&table::ACCOUNTS, ACCOUNTS_AFTER, limit, given, read)
}

/// Accounts with runs that wait for money; all, or this one if it has such runs.
pub(super) fn accounts_with_waiters(
    db: &ReadConnection,
    project: &Project,
    id: Option<&str>,
) -> Result<Vec<AccountRow>, StoreError> {
    match id {
        Some(id) => db.rows(&table::ACCOUNTS, ACCOUNT_IN_NEED, [id, project.as_str()], read),
        None => db.rows(&table::ACCOUNTS, ACCOUNTS_IN_NEED, [project.as_str()], read),
    }
}

/// Runs of an account that wait for at most `within`.
pub(super) fn balance_waiters(
    db: &ReadConnection,
    project: &Project,
    account: &str,
    within: Amount,
    limit: usize,
) -> Result<Vec<BalanceWaiter>, StoreError> {
    let read = |row: &Row<'_>| decode::balance_waiters(&mut SqliteColumns::of(row));
    db.rows(&table::RUNS, BALANCE_WAITERS, params![account, within.0, bound(limit), project.as_str()], read)
}

fn required(db: &Connection, project: &Project, id: &str) -> Result<AccountRow, StoreError> {
    account(db, project, id)?.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()).into())
}

pub(super) fn account(
    db: &Connection,
    project: &Project,
    id: &str,
) -> Result<Option<AccountRow>, StoreError> {
    Ok(db.prepare_cached(ACCOUNT)?.query_row([id, project.as_str()], read).optional()?)
}

pub(super) fn accounts(db: &ReadConnection, project: &Project) -> Result<Vec<AccountRow>, StoreError> {
    db.rows(&table::ACCOUNTS, ACCOUNTS, [project.as_str()], read)
}

pub(super) fn set_price(db: &Connection, project: &Project, row: &PriceRow) -> Result<(), StoreError> {
    let PriceRow { service, price, updated_at } = row;
    db.prepare_cached(SET_PRICE)?.execute(params![service, json(price), updated_at.0, project.as_str()])?;
    Ok(())
}

pub(super) fn delete_price(db: &Connection, project: &Project, service: &str) -> Result<(), StoreError> {
    db.prepare_cached(DELETE_PRICE)?.execute([service, project.as_str()])?;
    Ok(())
}

pub(super) fn prices(db: &ReadConnection, project: &Project) -> Result<Vec<PriceRow>, StoreError> {
    let read = |row: &Row<'_>| decode::price(&mut SqliteColumns::of(row));
    db.rows(&table::PRICES, PRICES, [project.as_str()], read)
}

pub(super) fn read(row: &Row<'_>) -> rusqlite::Result<AccountRow> {
    decode::account(&mut SqliteColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    ACCOUNT,
    ACCOUNTS,
    ACCOUNTS_AFTER,
    ACCOUNTS_IN_NEED,
    ACCOUNT_IN_NEED,
    BALANCE_WAITERS,
    OPEN,
    SET_PRICE,
    DELETE_PRICE,
    PRICES,
];
