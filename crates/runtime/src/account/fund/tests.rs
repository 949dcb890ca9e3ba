use std::sync::Arc;

use windlass_store::Memory;

use super::*;
use crate::Settings;

#[tokio::test]
async fn what_comes_back_while_somebody_looks_is_looked_at_again() {
    let server = Runtime::start_up(Arc::new(Memory::new()), Settings::default()).await.unwrap();
    assert!(server.is_alone());
    server.credited("acme");
    assert!(!server.needy().is_looked_at("acme"), "nobody waits for it");
    assert!(server.needy().begin("acme"));
    server.credited("acme");
    assert!(server.needy().end("acme"));
    assert!(!server.needy().end("acme"));
}

#[tokio::test]
async fn whoever_goes_away_leaves_an_account_to_others() {
    let needy = Needy::default();
    assert!(needy.begin("acme"));
    drop(Looking { needy: &needy, account: "acme" });
    assert!(needy.begin("acme"));
}

#[test]
fn a_run_is_told_again_only_when_it_needs_something_else() {
    let run = |n: u128| RunId::new(uuid::Uuid::from_u128(n));
    let rows = |needs: [i64; 2]| {
        vec![InNeed { run: run(1), needs: needs[0] }, InNeed { run: run(2), needs: needs[1] }]
    };
    let mut told = BTreeSet::new();
    assert_eq!(affordable(rows([30, 30]), 50, &mut told), [(run(1), 50)]);
    assert_eq!(affordable(rows([30, 30]), 50, &mut told), [(run(2), 50)]);
    assert_eq!(affordable(rows([30, 30]), 50, &mut told), []);
    assert_eq!(affordable(rows([40, 30]), 50, &mut told), [(run(1), 50)]);
}
