//! Accounts, their ledger, and prices.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use windlass_engine::counter::Seq;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use super::column::{PostgresColumns, PostgresId, cells, text, unnest};
use super::guard;
use super::link::{BoundStatement, Link};
use super::read_set::ReadSet;
use crate::account::{self, AccountRow, BalanceWaiter, LedgerQuery, LedgerRow, Posting, PriceRow};
use crate::column::{bound, json, stored};
use crate::commit::Unmoved;
use crate::decode;
use crate::error::{Refusal, StoreError, Subject};
use crate::page::{LineOrder, Part};
use crate::table;

macro_rules! accounts {
    ($where:literal) => {
        concat!("SELECT id, name, balance, held, revision, created_at FROM accounts ", $where)
    };
}
macro_rules! ledger {
    ($rest:literal) => {
        concat!(
            "SELECT kind, amount, ledger.key, held, borne_by_platform, seq, ledger.account, balance_after, at \
             FROM ledger ",
            $rest
        )
    };
}

const ACCOUNT: &str = accounts!("WHERE project = $2 AND id = $1");
const ACCOUNTS: &str = accounts!("WHERE project = $1 ORDER BY id");
const ACCOUNTS_AFTER: &str = accounts!("WHERE project = $3 AND id > $1 ORDER BY id LIMIT $2");
const ACCOUNTS_IN_NEED: &str = accounts!(
    "WHERE project = $1 AND id IN (SELECT account FROM runs WHERE needs IS NOT NULL AND project = $1) ORDER BY id"
);
const ACCOUNT_IN_NEED: &str = accounts!(
    "WHERE project = $2 AND id = $1 AND EXISTS (SELECT 1 FROM runs WHERE needs IS NOT NULL AND project = $2 AND account = $1)"
);
const BALANCE_WAITERS: &str = "SELECT id, needs FROM runs WHERE needs IS NOT NULL AND project = $4 AND account = $1 AND needs <= $2 \
     ORDER BY created_at, id LIMIT $3";
// A transaction that moves money of an account, or relies on its balance, locks its row.
const HOLD: &str = accounts!("WHERE project = $2 AND id = ANY($1) ORDER BY id FOR NO KEY UPDATE");
const KNOWN: &str = ledger!(
    "JOIN UNNEST($1::text[], $2::text[]) AS asked (account, key) \
     ON ledger.project = $3 AND asked.account = ledger.account AND md5(asked.key) = md5(ledger.key) AND asked.key = ledger.key"
);
const LEDGER_BY_KEY: &str =
    ledger!("WHERE project = $3 AND account = $1 AND md5(key) = md5($2) AND key = $2");
const LEDGER: &str = ledger!("WHERE project = $4 AND account = $1 AND seq > $2 ORDER BY seq LIMIT $3");
const LEDGER_BACK: &str =
    ledger!("WHERE project = $4 AND account = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3");
const LEDGER_OF_RUN: &str =
    ledger!("WHERE project = $5 AND account = $1 AND run = $4 AND seq > $2 ORDER BY seq LIMIT $3");
const LEDGER_OF_RUN_BACK: &str =
    ledger!("WHERE project = $5 AND account = $1 AND run = $4 AND seq < $2 ORDER BY seq DESC LIMIT $3");
const OPEN: &str = "INSERT INTO accounts (id, name, balance, held, revision, created_at, project) \
     VALUES ($1, $2, 0, 0, 0, $3, $4) ON CONFLICT (project, id) DO NOTHING";
const POST: &str = "INSERT INTO ledger (account, seq, kind, amount, key, held, borne_by_platform, run, node, \
     balance_after, at, project) SELECT new.*, $12::text FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], \
     $6::bigint[], $7::bigint[], $8::uuid[], $9::text[], $10::bigint[], $11::bigint[]) AS new";
const MOVE: &str = "UPDATE accounts SET balance = new.balance, held = new.held, revision = new.revision \
     FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS new (id, balance, held, revision) \
     WHERE accounts.project = $5 AND accounts.id = new.id";
const SET_PRICE: &str = "INSERT INTO prices (service, price, updated_at, project) VALUES ($1, $2, $3, $4) \
     ON CONFLICT (project, service) DO UPDATE SET price = excluded.price, updated_at = excluded.updated_at";
const FORGET_PRICE: &str = "DELETE FROM prices WHERE project = $2 AND service = $1";
const PRICES: &str = "SELECT service, price, updated_at FROM prices WHERE project = $1 ORDER BY service";

/// The effect of postings on one account.
pub(super) struct Posted<'c> {
    pub(super) account: AccountRow,
    pub(super) rows: Vec<PostedRow<'c>>,
}

/// One row of the ledger.
pub(super) struct PostedRow<'c> {
    pub(super) seq: Seq,
    pub(super) posting: &'c Posting,
    pub(super) balance_after: Amount,
    pub(super) at: Timestamp,
}

pub(super) fn hold<'a>(accounts: &BTreeSet<&'a str>) -> BoundStatement<'a> {
    BoundStatement::new(HOLD, cells![accounts.iter().map(|id| text(id)).collect::<Vec<_>>()])
}

/// The rows of the ledger that decide about movements.
pub(super) fn known<'a>(keys: &BTreeSet<(&'a str, String)>) -> BoundStatement<'a> {
    BoundStatement::new(KNOWN, unnest!(keys, |(account, key)| [text(account), text(key).into_owned()]))
}

/// Whether the account has not moved since it was read.
pub(super) fn check_unmoved(read_set: &ReadSet, unmoved: &Unmoved) -> Result<(), StoreError> {
    let Unmoved { account, revision } = unmoved;
    let found = required(read_set, account)?.revision;
    guard(|| Subject::Account(account.clone()), *revision, found)
}

/// The effects of postings, by account.
pub(super) fn check<'c>(
    read_set: &ReadSet,
    postings: &'c [Posting],
    at: Timestamp,
) -> Result<Vec<Posted<'c>>, StoreError> {
    let mut by_account: BTreeMap<&str, Vec<&'c Posting>> = BTreeMap::new();
    for posting in postings {
        by_account.entry(&posting.account).or_default().push(posting);
    }
    let mut posted = Vec::with_capacity(by_account.len());
    for (id, postings) in by_account {
        let row = required(read_set, id)?;
        let (account, fresh) = account::post(row, &known_of(read_set, id, &postings), &postings)?;
        let mut revision = row.revision;
        let mut rows = Vec::with_capacity(fresh.len());
        for (posting, balance_after) in fresh {
            revision = revision.next();
            rows.push(PostedRow { seq: Seq(revision.0), posting, balance_after, at });
        }
        let (balance, held) = (account.balance, account.held);
        let account = AccountRow { balance, held, revision, ..row.clone() };
        posted.push(Posted { account, rows });
    }
    Ok(posted)
}

fn known_of(read_set: &ReadSet, id: &str, postings: &[&Posting]) -> Vec<Movement> {
    let Some(known) = read_set.known.get(id) else { return Vec::new() };
    let keys = postings.iter().flat_map(|posting| account::related_keys(&posting.movement));
    keys.filter_map(|key| known.get(&key).cloned()).collect()
}

fn required<'d>(read_set: &'d ReadSet, id: &str) -> Result<&'d AccountRow, StoreError> {
    read_set.accounts.get(id).ok_or_else(|| Refusal::UnknownAccount(id.to_owned()).into())
}

pub(super) fn post<'c>(rows: &[PostedRow<'c>]) -> BoundStatement<'c> {
    let cells = unnest!(rows, |row| [
        text(&row.posting.account),
        stored(row.seq),
        row.posting.movement.kind.word(),
        row.posting.movement.amount.0,
        text(&row.posting.movement.key),
        row.posting.movement.held.0,
        row.posting.movement.borne_by_platform.0,
        row.posting.run().map(PostgresId::key),
        row.posting.node().map(|node| text(node.as_str()).into_owned()),
        row.balance_after.0,
        row.at.0,
    ]);
    BoundStatement::new(POST, cells)
}

pub(super) fn moved<'c>(accounts: &[&'c AccountRow]) -> BoundStatement<'c> {
    let cells = unnest!(accounts, |row| [text(&row.id), row.balance.0, row.held.0, stored(row.revision)]);
    BoundStatement::new(MOVE, cells)
}

/// Opens an account; one that is there has to have the name.
pub(super) async fn open(
    db: &Link,
    project: &Project,
    id: &str,
    name: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    if db.execute(OPEN, &cells![text(id), text(name), now.0, project.as_str()]).await? == 0 {
        let taken = account(db, project, id).await?;
        let taken = taken.ok_or_else(|| Refusal::UnknownAccount(id.to_owned()))?.name;
        if taken != name {
            return Err(Refusal::AccountTaken { id: id.to_owned(), name: taken }.into());
        }
    }
    Ok(())
}

/// Accounts after this one; no id comes before the empty one, and none is empty.
pub(super) async fn accounts_after(
    db: &Link,
    project: &Project,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<AccountRow>, StoreError> {
    let given = |limit| cells![text(after.unwrap_or_default()), limit, project.as_str()];
    db.first_rows(&table::ACCOUNTS, ACCOUNTS_AFTER, limit, given, read).await
}

/// Accounts with runs that wait for money.
pub(super) async fn accounts_with_waiters(
    db: &Link,
    project: &Project,
    id: Option<&str>,
) -> Result<Vec<AccountRow>, StoreError> {
    let rows = match id {
        Some(id) => db.ask(ACCOUNT_IN_NEED, &cells![text(id), project.as_str()]).await?,
        None => db.ask(ACCOUNTS_IN_NEED, &cells![project.as_str()]).await?,
    };
    db.decoded(&table::ACCOUNTS, &rows, read)
}

/// Runs of an account that could go with so much money.
pub(super) async fn balance_waiters(
    db: &Link,
    project: &Project,
    account: &str,
    within: Amount,
    limit: usize,
) -> Result<Vec<BalanceWaiter>, StoreError> {
    let read = |row: &Row| decode::balance_waiters(&mut PostgresColumns::of(row));
    let cells = cells![text(account), within.0, bound(limit), project.as_str()];
    db.decoded(&table::RUNS, &db.ask(BALANCE_WAITERS, &cells).await?, read)
}

pub(super) async fn accounts(db: &Link, project: &Project) -> Result<Vec<AccountRow>, StoreError> {
    db.decoded(&table::ACCOUNTS, &db.ask(ACCOUNTS, &cells![project.as_str()]).await?, read)
}

pub(super) async fn account(
    db: &Link,
    project: &Project,
    id: &str,
) -> Result<Option<AccountRow>, StoreError> {
    db.ask_one(ACCOUNT, &cells![text(id), project.as_str()]).await?.as_ref().map(read).transpose()
}

pub(super) async fn ledger(
    db: &Link,
    project: &Project,
    query: &LedgerQuery,
) -> Result<Vec<LedgerRow>, StoreError> {
    let project = project.as_str();
    let size = bound(Part { limit: query.limit, ..Part::default() }.size());
    let account = text(&query.account);
    if let Some(key) = &query.key {
        let found = db.ask(LEDGER_BY_KEY, &cells![account, text(key), project]).await?;
        let found = found.iter().map(read_ledger).collect::<Result<Vec<_>, _>>()?;
        let is_asked = |row: &LedgerRow| query.run.is_none() || query.run == row.posting.run();
        return Ok(found.into_iter().filter(is_asked).collect());
    }
    let (all, of_run, after) = match query.order {
        LineOrder::Oldest => (LEDGER, LEDGER_OF_RUN, query.after),
        LineOrder::Newest if query.after == Seq::ZERO => (LEDGER_BACK, LEDGER_OF_RUN_BACK, Seq(u64::MAX)),
        LineOrder::Newest => (LEDGER_BACK, LEDGER_OF_RUN_BACK, query.after),
    };
    let after = bound(after.0);
    let rows = match query.run {
        Some(run) => db.ask(of_run, &cells![account, after, size, run.key(), project]).await?,
        None => db.ask(all, &cells![account, after, size, project]).await?,
    };
    rows.iter().map(read_ledger).collect()
}

pub(super) async fn set_price(db: &Link, project: &Project, row: &PriceRow) -> Result<(), StoreError> {
    let PriceRow { service, price, updated_at } = row;
    let row = cells![text(service), json(price), updated_at.0, project.as_str()];
    db.execute(SET_PRICE, &row).await?;
    Ok(())
}

/// Asks nothing for a service any more.
pub(super) async fn forget_price(db: &Link, project: &Project, service: &str) -> Result<(), StoreError> {
    db.execute(FORGET_PRICE, &cells![text(service), project.as_str()]).await?;
    Ok(())
}

pub(super) async fn prices(db: &Link, project: &Project) -> Result<Vec<PriceRow>, StoreError> {
    let read = |row: &Row| decode::price(&mut PostgresColumns::of(row));
    db.decoded(&table::PRICES, &db.ask(PRICES, &cells![project.as_str()]).await?, read)
}

pub(super) fn read(row: &Row) -> Result<AccountRow, StoreError> {
    decode::account(&mut PostgresColumns::of(row))
}

pub(super) fn read_ledger(row: &Row) -> Result<LedgerRow, StoreError> {
    decode::ledger(&mut PostgresColumns::of(row))
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    ACCOUNT,
    ACCOUNTS,
    ACCOUNTS_AFTER,
    ACCOUNTS_IN_NEED,
    ACCOUNT_IN_NEED,
    BALANCE_WAITERS,
    HOLD,
    KNOWN,
    LEDGER_BY_KEY,
    LEDGER,
    LEDGER_BACK,
    LEDGER_OF_RUN,
    LEDGER_OF_RUN_BACK,
    OPEN,
    POST,
    MOVE,
    SET_PRICE,
    FORGET_PRICE,
    PRICES,
];
