//! Money: each movement is made once, balances are the sums of their ledgers, and no charge overdraws an account.

use windlass_engine::counter::{Revision, Seq, Visit};
use windlass_engine::money::{Amount, LedgerFault, Movement, charge_key};
use windlass_engine::project::Project;
use windlass_store::account::{LedgerQuery, LedgerRow};
use windlass_store::commit::{Commit, Unmoved};
use windlass_store::error::Subject;
use windlass_store::page::LineOrder;
use windlass_store::run::{Origin, RunProjection, RunStatus};
use windlass_store::{Refusal, Store, StoreError};

use crate::executor::side_by_side;
use crate::fixture::{StoreFixture, at, movement, run_id};

fn charge(n: u64, amount: i64) -> Movement {
    Movement::charge(format!("charge:call/{n}"), Amount(amount))
}

async fn ledger(store: &dyn Store, account: &str) -> Vec<LedgerRow> {
    let query = LedgerQuery { account: account.to_owned(), limit: 1_000, ..LedgerQuery::default() };
    store.ledger(&Project::DEFAULT, query).await.unwrap()
}

pub async fn a_balance_is_the_sum_of_its_ledger(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.post("payer", charge(1, 60)).await.unwrap();
    let committed =
        fixture.post("payer", Movement::settle("charge:call/1", Amount(60), Amount(25))).await.unwrap();
    assert_eq!(committed.balances["payer"], Amount(75));
    fixture.post("payer", charge(2, 30)).await.unwrap();
    assert_eq!(fixture.balance("payer").await, (45, 30));
    let rows = ledger(store, "payer").await;
    assert_eq!(rows.iter().map(|row| row.seq.0).collect::<Vec<_>>(), [1, 2, 3, 4]);
    assert_eq!(rows.iter().map(|row| row.balance_after.0).collect::<Vec<_>>(), [100, 40, 75, 45]);
    assert_eq!(rows.iter().map(|row| row.posting.movement.amount.0).sum::<i64>(), 45);
    assert_eq!(store.account(&Project::DEFAULT, "payer").await.unwrap().unwrap().revision, Revision(4));
}

pub async fn a_movement_is_made_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.post("payer", charge(1, 60)).await.unwrap();
    // Another command with the same movement is a no-op.
    let again = fixture.post("payer", charge(1, 60)).await.unwrap();
    assert_eq!(again.balances["payer"], Amount(40));
    assert_eq!((fixture.balance("payer").await, ledger(store, "payer").await.len()), ((40, 60), 2));
    let refused = fixture.post("payer", charge(1, 50)).await.unwrap_err();
    let different = LedgerFault::Different { key: "charge:call/1".to_owned() };
    assert_eq!(refused.refusal(), Some(&Refusal::Ledger(different)));
}

pub async fn a_charge_is_closed_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.post("payer", charge(1, 60)).await.unwrap();
    fixture.post("payer", Movement::refund("charge:call/1", Amount(60))).await.unwrap();
    let settle = Movement::settle("charge:call/1", Amount(60), Amount(10));
    let refused = fixture.post("payer", settle).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::Ledger(LedgerFault::Closed { by: "refund", .. }))));
    assert_eq!(fixture.balance("payer").await, (100, 0));
}

pub async fn every_charge_that_does_not_fit_is_named(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let postings = [70, 40, 20, 30].iter().zip(1..).map(|(amount, n)| movement("payer", charge(n, *amount)));
    let commit =
        Commit { postings: postings.collect(), ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) };
    let refused = fixture.commit(commit).await.unwrap_err();
    let Some(Refusal::InsufficientFunds { account, needed, balance, keys, revision }) = refused.refusal()
    else {
        panic!("{refused}")
    };
    assert_eq!((account.as_str(), needed.0, balance.0, *revision), ("payer", 160, 100, Revision(1)));
    assert_eq!(*keys, ["charge:call/2", "charge:call/4"]);
    assert_eq!(fixture.balance("payer").await, (100, 0));
}

pub async fn an_unknown_account_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let refused = fixture.post("unknown", Movement::deposit("d", Amount(5))).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownAccount("unknown".to_owned())));
    assert_eq!(store.account(&Project::DEFAULT, "unknown").await.unwrap(), None);
    assert!(ledger(store, "unknown").await.is_empty());
}

pub async fn a_movement_that_makes_no_sense_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    for bad in [
        Movement::refund("charge:call/1", Amount(60)),
        Movement::deposit("x", Amount(-5)),
        Movement::deposit("flood", Amount::MAX),
        charge(1, -5),
        charge(1, i64::MIN),
    ] {
        let refused = fixture.post("payer", bad.clone()).await.unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::Ledger(_))), "{bad:?}: {refused}");
    }
    assert_eq!((fixture.balance("payer").await, ledger(store, "payer").await.len()), ((100, 0), 1));
}

pub async fn concurrent_charges_never_overdraw(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let charges: Vec<_> = (0..50).map(|n| fixture.post("payer", charge(n, 7))).collect();
    let answers = side_by_side(charges).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 14);
    let is_short = |error: &StoreError| matches!(error.refusal(), Some(Refusal::InsufficientFunds { .. }));
    assert!(answers.iter().flat_map(|answer| answer.as_ref().err()).all(is_short));
    assert_eq!(fixture.balance("payer").await, (2, 98));
}

pub async fn a_commit_that_relied_on_a_moved_account_is_a_conflict(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 10).await;
    let relying = |revision| {
        let unmoved = vec![Unmoved { account: "payer".to_owned(), revision: Revision(revision) }];
        fixture.commit(Commit { unmoved, ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) })
    };
    relying(1).await.unwrap();
    fixture.post("payer", Movement::deposit("more", Amount(5))).await.unwrap();
    let refused = relying(1).await.unwrap_err();
    let StoreError::Conflict { what, expected, found } = refused else { panic!("{refused}") };
    assert_eq!((what, expected, found), (Subject::Account("payer".to_owned()), 1, 2));
    relying(2).await.unwrap();
}

pub async fn opening_an_account_again_keeps_its_money(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 10).await;
    let again = |name| store.open_account(&Project::DEFAULT, "payer", name, at(9));
    again("PAYER").await.unwrap();
    let refused = again("Ms Payer").await.unwrap_err();
    let taken = Refusal::AccountTaken { id: "payer".to_owned(), name: "PAYER".to_owned() };
    assert_eq!(refused.refusal(), Some(&taken));
    fixture.account("other", 0).await;
    let rows = store.accounts(&Project::DEFAULT).await.unwrap();
    assert_eq!(rows.iter().map(|row| row.id.as_str()).collect::<Vec<_>>(), ["other", "payer"]);
    let page = async |after: Option<&str>, limit| {
        let rows = store.accounts_after(&Project::DEFAULT, after.map(str::to_owned), limit).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(page(None, 1).await, ["other"]);
    assert_eq!(page(Some("other"), 9).await, ["payer"]);
    assert!(page(Some("payer"), 9).await.is_empty());
    assert_eq!((rows[1].name.as_str(), rows[1].balance.0, rows[1].created_at), ("PAYER", 10, at(0)));
}

pub async fn the_ledger_comes_in_parts_and_by_run(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let key = |n| charge_key(run_id(n % 2), "call", Visit(n));
    for n in 1..=4 {
        let postings = vec![movement("payer", Movement::charge(key(n), Amount(1)))];
        fixture
            .commit(Commit { postings, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) })
            .await
            .unwrap();
    }
    let query = |run, after, limit| {
        let account = "payer".to_owned();
        LedgerQuery { account, run, after: Seq(after), limit, ..LedgerQuery::default() }
    };
    let seqs = |rows: Vec<LedgerRow>| rows.into_iter().map(|row| row.seq.0).collect::<Vec<_>>();
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, query(None, 2, 2)).await.unwrap()), [3, 4]);
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, query(Some(run_id(1)), 0, 0)).await.unwrap()), [2, 4]);
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, query(Some(run_id(0)), 3, 0)).await.unwrap()), [5]);
    let back = |run, after, limit| LedgerQuery { order: LineOrder::Newest, ..query(run, after, limit) };
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, back(None, 0, 2)).await.unwrap()), [5, 4]);
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, back(None, 4, 2)).await.unwrap()), [3, 2]);
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, back(Some(run_id(1)), 0, 0)).await.unwrap()), [4, 2]);
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, back(Some(run_id(0)), 5, 0)).await.unwrap()), [3]);
    let keyed = |key: &str| LedgerQuery { key: Some(key.to_owned()), ..query(None, 0, 0) };
    assert_eq!(seqs(store.ledger(&Project::DEFAULT, keyed(&key(3))).await.unwrap()), [4]);
    assert!(store.ledger(&Project::DEFAULT, keyed(&key(9))).await.unwrap().is_empty());
}

pub async fn a_long_ledger_is_read_a_page_at_a_time(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 1_000).await;
    // One large commit and small ones, two runs in turn, some charges closed.
    let key = |n: u64| charge_key(run_id(n % 2), "call", Visit(n));
    let charges = (0..100).map(|n| movement("payer", Movement::charge(key(n), Amount(2)))).collect();
    fixture
        .commit(Commit { postings: charges, ..Commit::new(&Project::DEFAULT, fixture.command(), at(1)) })
        .await
        .unwrap();
    for n in [7, 98, 32, 33, 1] {
        fixture.post("payer", Movement::settle(&key(n), Amount(2), Amount(1))).await.unwrap();
    }
    let whole = ledger(store, "payer").await;
    assert_eq!(whole.iter().map(|row| row.seq.0).collect::<Vec<_>>(), (1..=106).collect::<Vec<u64>>());
    for run in [None, Some(run_id(0)), Some(run_id(1))] {
        let mut expected: Vec<LedgerRow> = whole.clone();
        expected.retain(|row| run.is_none() || row.posting.run() == run);
        assert!(expected.len() > 50);
        for order in [LineOrder::Oldest, LineOrder::Newest] {
            for limit in [1, 7, 32, 33, 106] {
                let (mut read, mut after) = (Vec::new(), Seq::ZERO);
                loop {
                    let account = "payer".to_owned();
                    let query = LedgerQuery { account, run, key: None, order, after, limit };
                    let page = store.ledger(&Project::DEFAULT, query).await.unwrap();
                    assert!(page.len() <= limit);
                    let Some(last) = page.last() else { break };
                    after = last.seq;
                    read.extend(page);
                }
                assert_eq!(read, expected, "{order:?} {limit}");
            }
            expected.reverse();
        }
    }
}

pub async fn runs_that_wait_for_money_are_found_by_the_amount_they_need(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for account in ["payer", "other", "rich"] {
        fixture.account(account, 5).await;
    }
    let of = |account: &str, needs: Option<i64>| {
        let account = Some(account.to_owned());
        move |origin: &mut Origin, projection: &mut RunProjection| {
            origin.account = account;
            projection.needs = needs.map(Amount);
        }
    };
    for (n, account, needs) in [
        (1, "payer", Some(30)),
        (2, "payer", Some(10)),
        (3, "other", Some(1)),
        (4, "payer", Some(20)),
        (5, "rich", None),
    ] {
        let created = at(i64::try_from(n).unwrap());
        fixture.create(n, RunStatus::Waiting, created, of(account, needs)).await.unwrap();
    }
    let found = async |within, limit| {
        let rows = store.balance_waiters(&Project::DEFAULT, "payer".to_owned(), within, limit).await.unwrap();
        rows.into_iter().map(|row| (row.run, row.needs)).collect::<Vec<_>>()
    };
    assert_eq!(found(Amount(20), 10).await, [(run_id(2), Amount(10)), (run_id(4), Amount(20))]);
    assert_eq!(found(Amount::MAX, 2).await, [(run_id(1), Amount(30)), (run_id(2), Amount(10))]);
    assert!(found(Amount(9), 10).await.is_empty());
    let accounts = async |id: Option<&str>| {
        let rows = store.accounts_with_waiters(&Project::DEFAULT, id.map(str::to_owned)).await.unwrap();
        rows.into_iter().map(|row| row.id).collect::<Vec<_>>()
    };
    assert_eq!(accounts(None).await, ["other", "payer"]);
    assert_eq!(accounts(Some("other")).await, ["other"]);
    for account in ["rich", "unknown"] {
        assert!(accounts(Some(account)).await.is_empty(), "{account}");
    }
    fixture.commit(fixture.entry(2, 1, RunStatus::Running, at(9))).await.unwrap();
    assert_eq!(found(Amount(20), 10).await, [(run_id(4), Amount(20))]);
}
