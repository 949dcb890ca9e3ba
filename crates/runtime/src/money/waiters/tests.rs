use std::sync::Arc;
use windlass_engine::money::Amount;

use windlass_store::Memory;

use super::*;
use crate::{Runtime, Settings};

#[tokio::test]
async fn a_credit_during_a_check_causes_another_check() {
    let server = Runtime::start_up(Arc::new(Memory::new()), Settings::default()).await.unwrap();
    assert!(!server.is_shared());
    server.money().on_credit("acme");
    assert!(!server.money().is_checking("acme"), "nobody waits for it");
    assert!(server.money().state().waiters.begin("acme"));
    server.money().on_credit("acme");
    assert!(server.money().state().waiters.end("acme"));
    assert!(!server.money().state().waiters.end("acme"));
}

#[tokio::test]
async fn a_dropped_check_leaves_the_account_to_others() {
    let waiters = BalanceWaiters::default();
    assert!(waiters.begin("acme"));
    drop(AccountCheck { waiters: &waiters, account: "acme" });
    assert!(waiters.begin("acme"));
}

#[test]
fn a_run_is_told_again_only_when_it_needs_something_else() {
    let run = |n: u128| RunId::new(uuid::Uuid::from_u128(n));
    let rows = |needs: [i64; 2]| {
        vec![
            BalanceWaiter { run: run(1), needs: Amount(needs[0]) },
            BalanceWaiter { run: run(2), needs: Amount(needs[1]) },
        ]
    };
    let mut told = BTreeSet::new();
    assert_eq!(affordable(rows([30, 30]), Amount(50), &mut told), [(run(1), Amount(50))]);
    assert_eq!(affordable(rows([30, 30]), Amount(50), &mut told), [(run(2), Amount(50))]);
    assert_eq!(affordable(rows([30, 30]), Amount(50), &mut told), []);
    assert_eq!(affordable(rows([40, 30]), Amount(50), &mut told), [(run(1), Amount(50))]);
}
