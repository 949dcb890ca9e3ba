//! The store in a PostgreSQL database.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod bad_rows;
mod crashes;
mod encryption;
mod groups;
mod many;
mod opening;
mod texts;
mod views;

use tokio_postgres::{Client, NoTls};
use windlass_conformance::block_on_tokio;
use windlass_conformance::postgres_server::test_database;

windlass_conformance::conformance!(test_database, block_on_tokio);

/// A connection beside those of a store.
async fn connect(address: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}
