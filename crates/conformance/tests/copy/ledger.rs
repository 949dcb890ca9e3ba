//! The ledger after a copy: paid charges stay paid, open ones can be closed.

use rusqlite::Connection;
use windlass_engine::counter::{Seq, Visit};
use windlass_engine::id::RunId;
use windlass_engine::money::{Amount, LedgerFault, Movement, charge_key};
use windlass_store::account::{LedgerQuery, LedgerRow, Posting};
use windlass_store::commit::Committed;
use windlass_store::page::LineOrder;
use windlass_store::{Refusal, StoreError};

use super::*;

/// More rows in one commit than fit into a page.
const N_CALLS: u64 = 1_200;
/// The first of the charges that stay open; each copy closes one.
const OPEN: u64 = 100;

fn run(n: u64) -> RunId {
    RunId::new(Uuid::from_u128(n.into()))
}

/// The key of a charge of one of two runs, on a node with a path.
fn call(n: u64) -> String {
    charge_key(run(n % 2), "each/say", Visit(n))
}

async fn post(
    store: &dyn Store,
    n: u128,
    postings: impl IntoIterator<Item = (&str, Movement)>,
) -> Result<Committed, StoreError> {
    let posting = |(account, movement): (&str, Movement)| Posting { account: account.to_owned(), movement };
    let postings = postings.into_iter().map(posting).collect();
    let command = CommandId::new(Uuid::from_u128(n));
    store.commit_one(Commit { postings, ..Commit::new(&Project::DEFAULT, command, Timestamp(5)) }).await
}

async fn open_account(store: &dyn Store, id: &str) {
    store.open_account(&Project::DEFAULT, id, id, Timestamp(1)).await.unwrap();
}

/// Opens accounts, not in the order of their names, and makes charges that end in every way.
async fn spend(store: &dyn Store) {
    for id in ["payer", "idle", HOSTILE, "beggar"] {
        open_account(store, id).await;
    }
    let first = Movement::deposit("first", Amount(10_000));
    post(store, 1, [("payer", first.clone()), (HOSTILE, first)]).await.unwrap();
    post(store, 2, [("payer", Movement::deposit(HOSTILE, Amount(7)))]).await.unwrap();
    let charges = (0..N_CALLS).map(|n| ("payer", Movement::charge(call(n), Amount(3))));
    post(store, 3, charges).await.unwrap();
    // Settled below and above the held amount, and refunded, with other charges between.
    post(
        store,
        4,
        [
            ("payer", Movement::settle(&call(1), Amount(3), Amount(1))),
            ("payer", Movement::settle(&call(2), Amount(3), Amount(9))),
        ],
    )
    .await
    .unwrap();
    post(store, 5, [(HOSTILE, Movement::charge("charge:x/1".to_owned(), Amount(4)))]).await.unwrap();
    post(
        store,
        6,
        [
            ("payer", Movement::refund(&call(4), Amount(3))),
            (HOSTILE, Movement::refund("charge:x/1", Amount(4))),
        ],
    )
    .await
    .unwrap();
    post(store, 7, [(HOSTILE, Movement::charge(call(1), Amount(4)))]).await.unwrap();
}

/// All rows of the ledgers by account and by run, and the accounts as text.
async fn books(store: &dyn Store) -> (Vec<LedgerRow>, String) {
    let accounts = store.accounts(&Project::DEFAULT).await.unwrap();
    let (mut rows, mut told) = (Vec::new(), format!("{accounts:?}"));
    for account in accounts.into_iter().map(|row| row.id) {
        for of in [None, Some(run(0)), Some(run(1))] {
            let mut after = Seq::ZERO;
            loop {
                let (account, order) = (account.clone(), LineOrder::Oldest);
                let query = LedgerQuery { account, run: of, key: None, order, after, limit: 0 };
                let page = store.ledger(&Project::DEFAULT, query).await.unwrap();
                let Some(last) = page.last() else { break };
                after = last.seq;
                told.extend(page.iter().map(|row| format!("{of:?} {}", row.seq)));
                rows.extend(page);
            }
        }
    }
    (rows, told)
}

/// The ledger as a reader of the file sees it.
fn shown(place: &StoreAddress) -> Option<Vec<String>> {
    let StoreAddress::File(path) = place else { return None };
    let db = Connection::open(path).unwrap();
    let sql = "SELECT concat_ws('|', hex(account), seq, kind, amount, hex(key), held, borne_by_platform, hex(run), \
         node, balance_after, at) FROM ledger ORDER BY account, seq";
    let mut statement = db.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    Some(rows.map(Result::unwrap).collect())
}

fn is_closed(refused: &StoreError) -> bool {
    matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { .. })))
}

/// Closed charges stay closed, and open ones can be closed; `n` differs for each store.
async fn go_on(store: &dyn Store, n: u64) {
    let command = u128::from(n) * 100;
    let before = store.account(&Project::DEFAULT, "payer").await.unwrap().unwrap();
    // A deposit that is repeated is a no-op; another amount under its key is refused.
    for (at, key, amount) in [(1, "first", 10_000), (2, HOSTILE, 7)] {
        let again =
            post(store, command + at, [("payer", Movement::deposit(key, Amount(amount)))]).await.unwrap();
        assert_eq!(again.balances["payer"], before.balance);
        let other =
            post(store, command + at + 2, [("payer", Movement::deposit(key, Amount(1)))]).await.unwrap_err();
        let is_other = matches!(other.refusal(), Some(Refusal::Ledger(LedgerFault::Different { .. })));
        assert!(is_other, "{other}");
    }
    for (account, closing) in [
        ("payer", Movement::refund(&call(1), Amount(3))),
        ("payer", Movement::refund(&call(2), Amount(3))),
        ("payer", Movement::settle(&call(4), Amount(3), Amount(1))),
        (HOSTILE, Movement::settle("charge:x/1", Amount(4), Amount(1))),
    ] {
        let refused = post(store, command + 5, [(account, closing)]).await.unwrap_err();
        assert!(is_closed(&refused), "{refused}");
    }
    let made = post(store, command + 6, [("payer", Movement::settle(&call(OPEN + n), Amount(3), Amount(1)))])
        .await
        .unwrap();
    assert_eq!(made.balances["payer"].0, before.balance.0 + 2);
    let refused = post(store, command + 7, [("payer", Movement::refund(&call(OPEN + n), Amount(3)))])
        .await
        .unwrap_err();
    assert!(is_closed(&refused), "{refused}");
    post(store, command + 8, [("payer", Movement::charge(call(N_CALLS + n), Amount(1)))]).await.unwrap();
    let after = store.account(&Project::DEFAULT, "payer").await.unwrap().unwrap();
    assert_eq!((after.revision, after.held.0), (before.revision.next().next(), before.held.0 - 2));
    // A new account has its own ledger.
    let new = format!("new {n}");
    open_account(store, &new).await;
    post(store, command + 9, [(new.as_str(), Movement::deposit("first", Amount(1)))]).await.unwrap();
    let query = LedgerQuery { account: new, ..LedgerQuery::default() };
    assert_eq!(store.ledger(&Project::DEFAULT, query).await.unwrap().len(), 1);
}

#[test]
fn the_ledger_is_the_same_after_every_copy() {
    block_on_tokio(async {
        let place = TestDirectory::create();
        let file = |name: &str| StoreAddress::File(place.join(name));
        let (base, other) = tokio::task::spawn_blocking(|| (database(), database())).await.unwrap();
        let first = Sqlite::open(place.join("a.db"), Durability::Fast).unwrap();
        spend(&first).await;
        let mut expected = books(&first).await;
        drop(first);
        let stores = [file("a.db"), file("b.db"), base, other, file("c.db"), file("d.db")];
        for (n, pair) in (1..).zip(stores.windows(2)) {
            let copied = copy(&pair[0], &pair[1], &mut |_| {}).await.unwrap();
            let ledger = copied.tables.iter().find(|table| table.table == "ledger").unwrap();
            assert!(copied.tables.iter().all(|table| table.is_same) && ledger.n_to > N_CALLS, "{ledger:?}");
            assert!(books(&*copied.store).await == expected, "{:?}", pair[1]);
            if let (Some(from), Some(to)) = (shown(&pair[0]), shown(&pair[1])) {
                assert_eq!(from, to);
            }
            go_on(&*copied.store, n).await;
            expected = books(&*copied.store).await;
        }
    });
}
