use windlass_engine::counter::{Seq, Visit};
use windlass_engine::money::{Amount, LedgerFault, charge_key};

use super::*;
use crate::error::Refusal;
use crate::sqlite::account;
use crate::sqlite::schema;
use crate::sqlite::writer_cache::WriterCache;

const ACCOUNTS: [&str; 3] = ["busy", "quiet", "once"];
const PROJECT: &Project = &Project::DEFAULT;
const NOW: Timestamp = Timestamp(3);

fn run(n: u128) -> RunId {
    RunId::new(uuid::Uuid::from_u128(n))
}

/// A writer with accounts that have money.
fn cache() -> WriterCache {
    let mut db = Connection::open_in_memory().unwrap();
    schema::migrate(&mut db).unwrap();
    let cache = WriterCache::new(db).unwrap();
    for id in ACCOUNTS {
        account::open(cache.db(), PROJECT, id, "", NOW).unwrap();
        post(&cache, id, Movement::deposit("first", Amount(100_000))).unwrap();
    }
    cache.accounts().write(cache.db()).unwrap();
    cache
}

fn post(cache: &WriterCache, account: &str, movement: Movement) -> Result<(), StoreError> {
    let postings = [Posting { account: account.to_owned(), movement }];
    for posted in account::check(cache, PROJECT, &postings, None)? {
        account::write(cache, PROJECT, &posted, NOW)?;
    }
    Ok(())
}

fn charge() -> Movement {
    Movement::charge("charge:x".to_owned(), Amount(60))
}

/// Balance, held money and revision in the open transaction.
fn current(cache: &WriterCache) -> (i64, i64, u64) {
    cache
        .accounts()
        .read(cache.db(), PROJECT, "busy", |row| Ok((row.balance.0, row.held.0, row.revision.0)))
        .unwrap()
}

/// Balance, held money and revision in the table.
fn written(cache: &WriterCache) -> (i64, i64, u64) {
    let row = account::account(cache.db(), PROJECT, "busy").unwrap().unwrap();
    (row.balance.0, row.held.0, row.revision.0)
}

fn nth_charge(nth: u64) -> Movement {
    Movement::charge(charge_key(run(u128::from(nth % 7)), "a", Visit(nth)), Amount(2))
}

/// Posts to two accounts in turns: most charges are settled after fifty others, some stay open.
fn fill(cache: &WriterCache) {
    let account = |nth: u64| if nth.is_multiple_of(10) { "quiet" } else { "busy" };
    for nth in 0..300 {
        post(cache, account(nth), nth_charge(nth)).unwrap();
        if let Some(old) = nth.checked_sub(50).filter(|old| !old.is_multiple_of(11)) {
            post(cache, account(old), Movement::settle(&nth_charge(old).key, Amount(2), Amount(1))).unwrap();
        }
    }
    cache.accounts().write(cache.db()).unwrap();
}

/// All rows that a query finds, page by page.
fn read_all(db: &Connection, mut query: LedgerQuery) -> Vec<LedgerRow> {
    let mut rows = Vec::new();
    loop {
        let page = ledger(db, PROJECT, &query).unwrap();
        assert!(page.len() <= query.limit);
        let Some(last) = page.last() else { return rows };
        query.after = last.seq;
        rows.extend(page);
    }
}

#[test]
fn a_ledger_is_read_whole_in_either_order_by_pages_of_any_size() {
    let cache = cache();
    fill(&cache);
    for account in ACCOUNTS {
        let query = LedgerQuery { account: account.to_owned(), limit: 1_000, ..Default::default() };
        let all = read_all(cache.db(), query.clone());
        assert!(all.iter().zip(1..).all(|(row, seq)| row.seq == Seq(seq)));
        for of in [None, Some(run(1)), Some(run(8))] {
            let is_of_run = |row: &&LedgerRow| of.is_none() || row.posting.run() == of;
            let mut expected: Vec<_> = all.iter().filter(is_of_run).cloned().collect();
            for order in [LineOrder::Oldest, LineOrder::Newest] {
                for limit in [7, 33, 1_000] {
                    let query = LedgerQuery { run: of, order, limit, ..query.clone() };
                    assert_eq!(read_all(cache.db(), query), expected, "{account} {of:?} {order:?} {limit}");
                }
                expected.reverse();
            }
        }
    }
}

#[test]
fn every_movement_is_found_by_its_key_and_only_in_its_account() {
    let cache = cache();
    fill(&cache);
    let by_key = |account: &str, key: &str, run| {
        let query =
            LedgerQuery { account: account.to_owned(), key: Some(key.to_owned()), run, ..Default::default() };
        ledger(cache.db(), PROJECT, &query).unwrap()
    };
    let all = LedgerQuery { account: "busy".to_owned(), limit: 1_000, ..Default::default() };
    for row in read_all(cache.db(), all).iter().skip(1) {
        let key = &row.posting.movement.key;
        assert_eq!(by_key("busy", key, None), std::slice::from_ref(row));
        assert_eq!(by_key("busy", key, row.posting.run()), std::slice::from_ref(row));
        assert_eq!(by_key("busy", key, Some(run(99))), []);
        assert_eq!(by_key("once", key, None), []);
    }
    assert_eq!(by_key("busy", &Movement::settle(&nth_charge(22).key, Amount(2), Amount(1)).key, None), []);
}

#[test]
fn a_moved_account_is_current_at_once_and_written_before_the_commit() {
    let cache = cache();
    post(&cache, "busy", charge()).unwrap();
    post(&cache, "busy", Movement::settle("charge:x", Amount(60), Amount(20))).unwrap();
    assert_eq!((current(&cache), written(&cache)), ((99_980, 0, 3), (100_000, 0, 1)));
    cache.accounts().write(cache.db()).unwrap();
    assert_eq!((current(&cache), written(&cache)), ((99_980, 0, 3), (99_980, 0, 3)));
}

#[test]
fn a_rolled_back_movement_is_forgotten() {
    let cache = cache();
    cache.db().execute_batch("BEGIN").unwrap();
    post(&cache, "busy", charge()).unwrap();
    cache.db().execute_batch("ROLLBACK").unwrap();
    cache.forget();
    assert_eq!(current(&cache), (100_000, 0, 1));
    let refused = post(&cache, "busy", Movement::refund("charge:x", Amount(60))).unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::NoCharge { .. }))), "{refused}");
}

#[test]
fn a_charge_is_made_and_closed_once_in_one_transaction_or_in_several() {
    for is_one_transaction in [true, false] {
        let cache = cache();
        let end = || {
            if !is_one_transaction {
                cache.accounts().write(cache.db()).unwrap();
            }
        };
        post(&cache, "busy", charge()).unwrap();
        end();
        post(&cache, "busy", charge()).unwrap();
        assert!(post(&cache, "busy", Movement::charge("charge:x".to_owned(), Amount(61))).is_err());
        assert_eq!(current(&cache), (99_940, 60, 2));
        post(&cache, "busy", Movement::settle("charge:x", Amount(60), Amount(60))).unwrap();
        end();
        // A duplicate is a no-op; any other movement that closes the charge is refused.
        post(&cache, "busy", Movement::settle("charge:x", Amount(60), Amount(60))).unwrap();
        let refused = post(&cache, "busy", Movement::refund("charge:x", Amount(60))).unwrap_err();
        let is_closed = matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { .. })));
        assert!(is_closed, "{refused}");
        assert_eq!(current(&cache), (99_940, 0, 3));
    }
}

#[test]
fn a_table_refuses_a_second_row_with_the_same_key() {
    let cache = cache();
    let posting =
        Posting { account: "busy".to_owned(), movement: Movement::deposit("first", Amount(100_000)) };
    assert!(matches!(
        append(cache.db(), PROJECT, Seq(2), &posting, Amount::ZERO, NOW),
        Err(StoreError::Corrupt(_))
    ));
}
