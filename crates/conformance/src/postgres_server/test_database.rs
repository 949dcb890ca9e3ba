//! One server for all tests of a process, and a store of its own on it for each of them.

use std::sync::OnceLock;

use windlass_store::{Durability, Postgres, Store};

use super::PostgresServer;
use crate::block_on_tokio;

/// The database that others are copies of.
pub(super) const TEMPLATE: &str = "windlass_template";

/// The server that all tests of this process share.
pub fn shared() -> &'static PostgresServer {
    static SHARED: OnceLock<PostgresServer> = OnceLock::new();
    SHARED.get_or_init(|| {
        let server = PostgresServer::start(false);
        assert!(
            server.sql("postgres", &format!("CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'"))
        );
        let address = server.address(TEMPLATE);
        // A thread of its own: the caller may be in a runtime already.
        let made = std::thread::spawn(move || {
            block_on_tokio(async { Postgres::open(&address, Durability::Fast).await.map(drop) })
        });
        made.join().unwrap().unwrap();
        server
    })
}

/// A store in a database that is deleted when it is dropped.
#[derive(Debug)]
pub struct TestDatabase {
    pub store: Postgres,
    pub address: String,
    database: String,
}

/// An empty store of one's own, on the shared server.
pub async fn test_database() -> TestDatabase {
    let database = tokio::task::spawn_blocking(|| shared().copy()).await.unwrap();
    let address = shared().address(&database);
    let store = Postgres::open(&address, Durability::Fast).await.unwrap();
    TestDatabase { store, address, database }
}

impl AsRef<dyn Store> for TestDatabase {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        &self.store
    }
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        shared().delete(&self.database);
    }
}
