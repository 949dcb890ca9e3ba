//! Accounts, their ledger, and prices.

use std::collections::{BTreeMap, BTreeSet};

use tokio_postgres::Row;
use windlass_engine::money::Movement;
use windlass_engine::time::Timestamp;

use super::column::{Columns, Id, bound, cells, json, stored, text, unnest};
use super::desk::Desk;
use super::guard;
use super::link::{Ask, Link};
use crate::account::{self, AccountRow, InNeed, LedgerQuery, LedgerRow, Posting, PriceRow};
use crate::commit::Unmoved;
use crate::error::{Refusal, StoreError, Subject};
use crate::page::{LineOrder, Part};

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

const ACCOUNT: &str = accounts!("WHERE id = $1");
const ACCOUNTS: &str = accounts!("ORDER BY id");
const ACCOUNTS_AFTER: &str = accounts!("WHERE id > $1 ORDER BY id LIMIT $2");
const ACCOUNTS_IN_NEED: &str =
    accounts!("WHERE id IN (SELECT account FROM runs WHERE needs IS NOT NULL) ORDER BY id");
const ACCOUNT_IN_NEED: &str =
    accounts!("WHERE id = $1 AND EXISTS (SELECT 1 FROM runs WHERE needs IS NOT NULL AND account = $1)");
const IN_NEED: &str = "SELECT id, needs FROM runs WHERE needs IS NOT NULL AND account = $1 AND needs <= $2 \
     ORDER BY created_at, id LIMIT $3";
// Whoever moves money of an account, or relies on it, has it to itself until that is written.
const HOLD: &str = accounts!("WHERE id = ANY($1) ORDER BY id FOR NO KEY UPDATE");
const KNOWN: &str = ledger!(
    "JOIN UNNEST($1::text[], $2::text[]) AS asked (account, key) \
     ON asked.account = ledger.account AND md5(asked.key) = md5(ledger.key) AND asked.key = ledger.key"
);
const LEDGER_BY_KEY: &str = ledger!("WHERE account = $1 AND md5(key) = md5($2) AND key = $2");
const LEDGER: &str = ledger!("WHERE account = $1 AND seq > $2 ORDER BY seq LIMIT $3");
const LEDGER_BACK: &str = ledger!("WHERE account = $1 AND seq < $2 ORDER BY seq DESC LIMIT $3");
const LEDGER_OF_RUN: &str = ledger!("WHERE account = $1 AND run = $4 AND seq > $2 ORDER BY seq LIMIT $3");
const LEDGER_OF_RUN_BACK: &str =
    ledger!("WHERE account = $1 AND run = $4 AND seq < $2 ORDER BY seq DESC LIMIT $3");
const OPEN: &str = "INSERT INTO accounts (id, name, balance, held, revision, created_at) \
     VALUES ($1, $2, 0, 0, 0, $3) ON CONFLICT (id) DO NOTHING";
const POST: &str = "INSERT INTO ledger (account, seq, kind, amount, key, held, borne_by_platform, run, node, \
     balance_after, at) SELECT * FROM UNNEST($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::text[], \
     $6::bigint[], $7::bigint[], $8::uuid[], $9::text[], $10::bigint[], $11::bigint[])";
const MOVE: &str = "UPDATE accounts SET balance = new.balance, held = new.held, revision = new.revision \
     FROM UNNEST($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS new (id, balance, held, revision) \
     WHERE accounts.id = new.id";
const SET_PRICE: &str = "INSERT INTO prices (service, price, updated_at) VALUES ($1, $2, $3) \
     ON CONFLICT (service) DO UPDATE SET price = excluded.price, updated_at = excluded.updated_at";
const FORGET_PRICE: &str = "DELETE FROM prices WHERE service = $1";
const PRICES: &str = "SELECT service, price, updated_at FROM prices ORDER BY service";

/// What posting to one account leads to.
pub(super) struct Posted<'c> {
    pub(super) account: AccountRow,
    pub(super) rows: Vec<PostedRow<'c>>,
}

/// One row of the ledger.
pub(super) struct PostedRow<'c> {
    pub(super) seq: u64,
    pub(super) posting: &'c Posting,
    pub(super) balance_after: i64,
    pub(super) at: Timestamp,
}

pub(super) fn hold<'a>(accounts: &BTreeSet<&'a str>) -> Ask<'a> {
    Ask::new(HOLD, cells![accounts.iter().map(|id| text(id)).collect::<Vec<_>>()])
}

/// The rows of the ledger that decide about movements.
pub(super) fn known<'a>(keys: &BTreeSet<(&'a str, String)>) -> Ask<'a> {
    Ask::new(KNOWN, unnest!(keys, |(account, key)| [text(account), text(key).into_owned()]))
}

/// Whether nobody has moved the account since it was looked at.
pub(super) fn check_unmoved(desk: &Desk, unmoved: &Unmoved) -> Result<(), StoreError> {
    let Unmoved { account, revision } = unmoved;
    let found = required(desk, account)?.revision;
    guard(|| Subject::Account(account.clone()), *revision, found)
}

/// What the postings lead to, by account.
pub(super) fn check<'c>(
    desk: &Desk,
    postings: &'c [Posting],
    at: Timestamp,
) -> Result<Vec<Posted<'c>>, StoreError> {
    let mut by_account: BTreeMap<&str, Vec<&'c Posting>> = BTreeMap::new();
    for posting in postings {
        by_account.entry(&posting.account).or_default().push(posting);
    }
    let mut posted = Vec::with_capacity(by_account.len());
    for (id, postings) in by_account {
        let row = required(desk, id)?;
        let (account, fresh) = account::post(row, &known_of(desk, id, &postings), &postings)?;
        let mut seq = row.revision;
        let mut rows = Vec::with_capacity(fresh.len());
        for (posting, balance_after) in fresh {
            seq = seq.saturating_add(1);
            rows.push(PostedRow { seq, posting, balance_after, at });
        }
        let (balance, held) = (account.balance, account.held);
        let account = AccountRow { balance, held, revision: seq, ..row.clone() };
        posted.push(Posted { account, rows });
    }
    Ok(posted)
}

fn known_of(desk: &Desk, id: &str, postings: &[&Posting]) -> Vec<Movement> {
    let Some(known) = desk.known.get(id) else { return Vec::new() };
    let keys = postings.iter().flat_map(|posting| account::related_keys(&posting.movement));
    keys.filter_map(|key| known.get(&key).cloned()).collect()
}

fn required<'d>(desk: &'d Desk, id: &str) -> Result<&'d AccountRow, StoreError> {
    desk.accounts.get(id).ok_or_else(|| Refusal::UnknownAccount(id.to_owned()).into())
}

pub(super) fn post<'c>(rows: &[PostedRow<'c>]) -> Ask<'c> {
    let cells = unnest!(rows, |row| [
        text(&row.posting.account),
        stored(row.seq),
        row.posting.movement.kind.word(),
        row.posting.movement.amount,
        text(&row.posting.movement.key),
        row.posting.movement.held,
        row.posting.movement.borne_by_platform,
        row.posting.run().map(Id::key),
        row.posting.node().map(|node| text(node.as_str()).into_owned()),
        row.balance_after,
        row.at.0,
    ]);
    Ask::new(POST, cells)
}

pub(super) fn moved<'c>(accounts: &[&'c AccountRow]) -> Ask<'c> {
    let cells = unnest!(accounts, |row| [text(&row.id), row.balance, row.held, stored(row.revision)]);
    Ask::new(MOVE, cells)
}

/// Opens an account; one that is there has to have the name.
pub(super) async fn open(db: &Link, id: &str, name: &str, now: Timestamp) -> Result<(), StoreError> {
    if db.execute(OPEN, &cells![text(id), text(name), now.0]).await? == 0 {
        let taken = accounts(db, Some(id)).await?.into_iter().next();
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
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<AccountRow>, StoreError> {
    let cells = cells![text(after.unwrap_or_default()), bound(limit)];
    db.ask(ACCOUNTS_AFTER, &cells).await?.iter().map(read).collect()
}

/// Accounts with runs that wait for money.
pub(super) async fn accounts_in_need(db: &Link, id: Option<&str>) -> Result<Vec<AccountRow>, StoreError> {
    let rows = match id {
        Some(id) => db.ask(ACCOUNT_IN_NEED, &cells![text(id)]).await?,
        None => db.ask(ACCOUNTS_IN_NEED, &[]).await?,
    };
    rows.iter().map(read).collect()
}

/// Runs of an account that could go with so much money.
pub(super) async fn in_need(
    db: &Link,
    account: &str,
    within: i64,
    limit: usize,
) -> Result<Vec<InNeed>, StoreError> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        Ok(InNeed { run: columns.id()?, needs: columns.value()? })
    };
    db.ask(IN_NEED, &cells![text(account), within, bound(limit)]).await?.iter().map(read).collect()
}

pub(super) async fn accounts(db: &Link, id: Option<&str>) -> Result<Vec<AccountRow>, StoreError> {
    let rows = match id {
        Some(id) => db.ask(ACCOUNT, &cells![text(id)]).await?,
        None => db.ask(ACCOUNTS, &[]).await?,
    };
    rows.iter().map(read).collect()
}

pub(super) async fn ledger(db: &Link, query: &LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
    let size = bound(Part { limit: query.limit, ..Part::default() }.size());
    let account = text(&query.account);
    if let Some(key) = &query.key {
        let found = db.ask(LEDGER_BY_KEY, &cells![account, text(key)]).await?;
        let found = found.iter().map(read_ledger).collect::<Result<Vec<_>, _>>()?;
        let is_asked = |row: &LedgerRow| query.run.is_none() || query.run == row.posting.run();
        return Ok(found.into_iter().filter(is_asked).collect());
    }
    let (all, of_run, after) = match query.order {
        LineOrder::Oldest => (LEDGER, LEDGER_OF_RUN, query.after),
        LineOrder::Newest if query.after == 0 => (LEDGER_BACK, LEDGER_OF_RUN_BACK, u64::MAX),
        LineOrder::Newest => (LEDGER_BACK, LEDGER_OF_RUN_BACK, query.after),
    };
    let after = bound(after);
    let rows = match query.run {
        Some(run) => db.ask(of_run, &cells![account, after, size, run.key()]).await?,
        None => db.ask(all, &cells![account, after, size]).await?,
    };
    rows.iter().map(read_ledger).collect()
}

pub(super) async fn set_price(db: &Link, row: &PriceRow) -> Result<(), StoreError> {
    let PriceRow { service, price, updated_at } = row;
    db.execute(SET_PRICE, &cells![text(service), json(price), updated_at.0]).await?;
    Ok(())
}

/// Asks nothing for a service any more.
pub(super) async fn forget_price(db: &Link, service: &str) -> Result<(), StoreError> {
    db.execute(FORGET_PRICE, &cells![text(service)]).await?;
    Ok(())
}

pub(super) async fn prices(db: &Link) -> Result<Vec<PriceRow>, StoreError> {
    let read = |row: &Row| {
        let mut columns = Columns::of(row);
        Ok(PriceRow { service: columns.text()?, price: columns.json()?, updated_at: columns.time()? })
    };
    db.ask(PRICES, &[]).await?.iter().map(read).collect()
}

pub(super) fn read(row: &Row) -> Result<AccountRow, StoreError> {
    let mut columns = Columns::of(row);
    Ok(AccountRow {
        id: columns.text()?,
        name: columns.text()?,
        balance: columns.value()?,
        held: columns.value()?,
        revision: columns.number()?,
        created_at: columns.time()?,
    })
}

pub(super) fn read_ledger(row: &Row) -> Result<LedgerRow, StoreError> {
    let mut columns = Columns::of(row);
    let movement = Movement {
        kind: columns.word()?,
        amount: columns.value()?,
        key: columns.text()?,
        held: columns.value()?,
        borne_by_platform: columns.value()?,
    };
    let seq = columns.number()?;
    let posting = Posting { account: columns.text()?, movement };
    Ok(LedgerRow { seq, posting, balance_after: columns.value()?, at: columns.time()? })
}

#[cfg(test)]
pub(super) const ALL: &[&str] = &[
    ACCOUNT,
    ACCOUNTS,
    ACCOUNTS_AFTER,
    ACCOUNTS_IN_NEED,
    ACCOUNT_IN_NEED,
    IN_NEED,
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
