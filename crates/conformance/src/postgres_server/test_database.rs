//! The PostgreSQL server that all tests of a process share, and a database with a store for each of them.

use std::sync::OnceLock;

use windlass_store::{Durability, Postgres, Store};

use super::PostgresServer;
use crate::block_on_tokio;

/// The migrated database that the databases of tests are copied from.
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
        // In another thread, because the caller may be in a runtime already.
        let migrated = std::thread::spawn(move || {
            block_on_tokio(async { Postgres::open(&address, Durability::Fast).await.map(drop) })
        });
        migrated.join().unwrap().unwrap();
        server
    })
}

/// A store in a temporary database, which is deleted on drop.
#[derive(Debug)]
pub struct TestDatabase {
    pub store: Postgres,
    pub address: String,
    database: String,
}

/// An empty store in a new database on the shared server.
pub async fn test_database() -> TestDatabase {
    let database = tokio::task::spawn_blocking(|| shared().create_migrated()).await.unwrap();
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
