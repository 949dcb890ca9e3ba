use super::*;
use crate::conformance::cluster::{block_on, scratch};

crate::conformance!(scratch, block_on);

/// Every statement with a text of its own.
const ALL: [&[&str]; 27] = [
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
    depth::ALL,
    dead_letter::ALL,
    queue::ALL,
    account::ALL,
    outbox::ALL,
    schedule::ALL,
    log::ALL,
    audit::ALL,
    server::ALL,
    service::ALL,
    worker::ALL,
    listen::ALL,
    commit::ALL,
    copy::ALL,
    retain::ALL,
];

#[test]
fn every_statement_prepares_against_the_migrated_schema() {
    block_on(async {
        let scratch = scratch().await;
        let db = scratch.store.link().await.unwrap();
        for sql in ALL.into_iter().flatten() {
            db.prepare(sql).await.unwrap_or_else(|error| panic!("{error:?}\n{sql}"));
        }
    });
}

#[test]
fn no_connection_compiles_its_statements() {
    block_on(async {
        let scratch = scratch().await;
        let db = scratch.store.link().await.unwrap();
        let row = db.ask_one("SELECT current_setting('jit')", &[]).await.unwrap().unwrap();
        assert_eq!(column::PostgresColumns::of(&row).value::<String>().unwrap(), "off");
    });
}

mod bench;
mod crashes;
mod groups;
mod many;
mod opening;
mod plans;
mod texts;
mod views;
