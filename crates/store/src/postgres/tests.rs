mod lists;
mod plans;

use crate::durability::Durability;
use windlass_conformance::block_on_tokio;
use windlass_conformance::postgres_server::shared;

use super::*;

/// An empty store in a new database of the shared server, which goes with the server.
pub(super) async fn migrated() -> Postgres {
    let address =
        tokio::task::spawn_blocking(|| shared().address(&shared().create_migrated())).await.unwrap();
    Postgres::open(&address, Durability::Fast).await.unwrap()
}

/// Every statement with a text of its own.
const ALL: [&[&str]; 34] = [
    address::ALL,
    beside::ALL,
    schema::ALL,
    flow::ALL,
    journal::ALL,
    run::ALL,
    run::CHANGES,
    attempt::ALL,
    job::ALL,
    job::CHANGES,
    job::READY,
    job::KEYS,
    job::OUTLINES,
    depth::ALL,
    dead_letter::ALL,
    queue::ALL,
    account::ALL,
    blob::ALL,
    outbox::ALL,
    schedule::ALL,
    log::ALL,
    audit::ALL,
    server::ALL,
    set_back::ALL,
    store_key::ALL,
    api_key::ALL,
    service::ALL,
    worker::ALL,
    listen::ALL,
    commit::ALL,
    copy::ALL,
    retain::ALL,
    bulk::ALL,
    sample::ALL,
];

#[test]
fn every_statement_prepares_against_the_migrated_schema() {
    block_on_tokio(async {
        let store = migrated().await;
        let db = store.link().await.unwrap();
        for sql in ALL.into_iter().flatten() {
            db.prepare(sql).await.unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
        }
    });
}

#[test]
fn no_connection_compiles_its_statements() {
    block_on_tokio(async {
        let store = migrated().await;
        let db = store.link().await.unwrap();
        let row = db.ask_one("SELECT current_setting('jit')", &[]).await.unwrap().unwrap();
        assert_eq!(column::PostgresColumns::of(&row).value::<String>().unwrap(), "off");
    });
}

#[test]
fn a_caller_without_a_free_connection_gets_an_error_and_does_not_hang() {
    block_on_tokio(async {
        let store = migrated().await;
        let mut held = Vec::new();
        for _ in 0..READERS {
            held.push(store.link().await.unwrap());
        }
        let error = store.outbox(Timestamp(0), None, 1).await.unwrap_err();
        let StoreError::Unavailable(reason) = error else { panic!("{error:?}") };
        let told = reason.to_string();
        assert!(told.contains("all connections") && told.contains("pg_stat_activity"), "{told}");
        held.pop();
        store.outbox(Timestamp(0), None, 1).await.unwrap();
    });
}
