//! The backend of tests of whole servers. The variable `WINDLASS_TEST_ON` names it, so that the same tests run on every
//! backend; the default is SQLite.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use windlass_store::{Durability, Postgres, Sqlite, Store};

use crate::postgres_server::shared;

/// The environment variable with the name of the backend.
pub const VARIABLE: &str = "WINDLASS_TEST_ON";

/// Backends of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
    /// PostgreSQL, with jobs that are dispatched through Redis.
    PostgresAndRedis,
}

impl Backend {
    /// The backends by name.
    const ALL: [(&str, Backend); 3] = [
        ("sqlite", Backend::Sqlite),
        ("postgres", Backend::Postgres),
        ("postgres+redis", Backend::PostgresAndRedis),
    ];

    /// The backend that the environment names.
    pub fn chosen() -> Backend {
        let Some(word) = std::env::var(VARIABLE).ok().filter(|word| !word.is_empty()) else {
            return Backend::Sqlite;
        };
        let found = Backend::ALL.into_iter().find(|(name, _)| *name == word);
        let names = || Backend::ALL.map(|(name, _)| name).join(", ");
        found.unwrap_or_else(|| panic!("{VARIABLE}={word}: unknown backend, choose one of {}", names())).1
    }

    /// An empty store, for a server in the process of the test.
    pub async fn fresh(self) -> Arc<dyn Store> {
        match self {
            Backend::Sqlite => Arc::new(Sqlite::temporary(Durability::Fast).unwrap()),
            Backend::Postgres | Backend::PostgresAndRedis => postgres().await,
        }
    }
}

/// An empty store of the chosen backend.
pub async fn fresh() -> Arc<dyn Store> {
    Backend::chosen().fresh().await
}

/// The store of an earlier test, and the name of its database.
type UsedDatabase = (Weak<dyn Store>, String);

async fn postgres() -> Arc<dyn Store> {
    static USED: Mutex<Vec<UsedDatabase>> = Mutex::new(Vec::new());
    let used = || USED.lock().unwrap_or_else(PoisonError::into_inner);
    let database = tokio::task::spawn_blocking(move || {
        // The last task of a test drops its store without a notice, so the next test deletes its database.
        let gone: Vec<UsedDatabase> = used().extract_if(.., |(store, _)| store.strong_count() == 0).collect();
        gone.iter().for_each(|(_, database)| shared().delete(database));
        shared().create_migrated()
    });
    let database = database.await.unwrap();
    let store = Postgres::open(&shared().address(&database), Durability::Fast).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    used().push((Arc::downgrade(&store), database));
    store
}
