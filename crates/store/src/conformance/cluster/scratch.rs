//! One server for all tests of a process, and a store of its own on it for each of them.

use std::sync::OnceLock;

use super::{Cluster, block_on};
use crate::durability::Durability;
use crate::postgres::Postgres;
use crate::store::Store;

/// The database that others are copies of.
pub(super) const TEMPLATE: &str = "windlass_template";

/// The server that all tests of this process share.
pub fn shared() -> &'static Cluster {
    static SHARED: OnceLock<Cluster> = OnceLock::new();
    SHARED.get_or_init(|| {
        let cluster = Cluster::start(false);
        assert!(
            cluster
                .sql("postgres", &format!("CREATE DATABASE {TEMPLATE} TEMPLATE template0 ENCODING 'UTF8'"))
        );
        let address = cluster.address(TEMPLATE);
        // A thread of its own: the caller may be in a runtime already.
        let made = std::thread::spawn(move || {
            block_on(async { Postgres::open(&address, Durability::Fast).await.map(drop) })
        });
        made.join().unwrap().unwrap();
        cluster
    })
}

/// A store in a database that is deleted when it is dropped.
#[derive(Debug)]
pub struct Scratch {
    pub store: Postgres,
    pub address: String,
    database: String,
}

/// An empty store of one's own, on the shared server.
pub async fn scratch() -> Scratch {
    let database = tokio::task::spawn_blocking(|| shared().copy()).await.unwrap();
    let address = shared().address(&database);
    let store = Postgres::open(&address, Durability::Fast).await.unwrap();
    Scratch { store, address, database }
}

impl AsRef<dyn Store> for Scratch {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        &self.store
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        shared().delete(&self.database);
    }
}
