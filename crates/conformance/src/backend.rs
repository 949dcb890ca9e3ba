//! The backend of a suite of tests. `WINDLASS_TEST_ON` names it, so that the same tests run on every backend that users
//! run; without it that is SQLite.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use windlass_store::{Durability, Postgres, Sqlite, Store};

use crate::postgres_server::shared;

/// The variable that names one.
pub const VARIABLE: &str = "WINDLASS_TEST_ON";

/// Backends of servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    Sqlite,
    Postgres,
    /// PostgreSQL, with jobs that are handed out through Redis.
    PostgresAndRedis,
}

impl Backend {
    /// Each under its name.
    const ALL: [(&str, Backend); 3] = [
        ("sqlite", Backend::Sqlite),
        ("postgres", Backend::Postgres),
        ("postgres+redis", Backend::PostgresAndRedis),
    ];

    /// The one that the tests of this process were asked to run on.
    pub fn chosen() -> Backend {
        let Some(word) = std::env::var(VARIABLE).ok().filter(|word| !word.is_empty()) else {
            return Backend::Sqlite;
        };
        let found = Backend::ALL.into_iter().find(|(name, _)| *name == word);
        let names = || Backend::ALL.map(|(name, _)| name).join(", ");
        found.unwrap_or_else(|| panic!("{VARIABLE}={word}: nobody knows that, there are {}", names())).1
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

/// A database that a test had, and the store that was in it.
type Past = (Weak<dyn Store>, String);

async fn postgres() -> Arc<dyn Store> {
    static PAST: Mutex<Vec<Past>> = Mutex::new(Vec::new());
    let past = || PAST.lock().unwrap_or_else(PoisonError::into_inner);
    let database = tokio::task::spawn_blocking(move || {
        // A store ends with the last task of its test, without a notice: the next test sweeps.
        let gone: Vec<Past> = past().extract_if(.., |(store, _)| store.strong_count() == 0).collect();
        gone.iter().for_each(|(_, database)| shared().delete(database));
        shared().copy()
    });
    let database = database.await.unwrap();
    let store = Postgres::open(&shared().address(&database), Durability::Fast).await.unwrap();
    let store: Arc<dyn Store> = Arc::new(store);
    past().push((Arc::downgrade(&store), database));
    store
}
