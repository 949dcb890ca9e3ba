//! The stores of test servers. `WINDLASS_TEST_ON` selects the backend, so that the whole suite runs on every backend that
//! users run; by default a test gets an empty store of this backend.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use windlass_conformance::backend::Backend;
use windlass_conformance::postgres_server::shared;
use windlass_conformance::redis_server::RedisTestServer as Redis;

use crate::server::TempDir;
use crate::shell::text;

/// The store of a test server.
pub(crate) enum Store {
    File(PathBuf),
    /// A database on the PostgreSQL of this process, deleted when this is dropped.
    Database(String),
    /// A database that servers share; its owner deletes it.
    Shared(String),
}

impl Store {
    /// An empty one, of the kind that the tests of this process run on.
    pub(crate) fn fresh(place: &TempDir) -> Store {
        match Backend::chosen() {
            Backend::Sqlite => Store::File(place.path().join("store.db")),
            Backend::Postgres | Backend::PostgresAndRedis => Store::Database(shared().create_migrated()),
        }
    }

    /// The flags of `windlass serve` for it.
    pub(crate) fn flags(&self) -> Vec<String> {
        let mut flags = vec!["--store".to_owned(), self.address()];
        if let (Store::Database(name), Backend::PostgresAndRedis) = (self, Backend::chosen()) {
            flags.extend(["--queue".to_owned(), format!("{}?prefix={name}:", redis().address())]);
        }
        flags
    }

    pub(crate) fn address(&self) -> String {
        match self {
            Store::File(path) => format!("sqlite:{}", path.display()),
            Store::Database(name) => shared().address(name),
            Store::Shared(address) => address.clone(),
        }
    }

    /// Asks it in SQL, without any of our code in between; a line for every row.
    pub(crate) fn ask(&self, sql: &str) -> String {
        match self {
            Store::File(path) => {
                let script = "import sqlite3, sys\n\
                    db = sqlite3.connect('file:%s?mode=ro' % sys.argv[1], uri=True)\n\
                    for row in db.execute(sys.argv[2]): print(*row, sep='|')";
                let asked = Command::new("python3").args(["-c", script]).arg(path).arg(sql).output().unwrap();
                assert!(asked.status.success(), "{sql}\n{}", text(&asked.stderr));
                text(&asked.stdout)
            }
            Store::Database(name) => shared().ask(name, sql),
            Store::Shared(_) => unreachable!("whoever shares a database asks it"),
        }
    }
}

/// The Redis of this process: a key prefix per server keeps them apart.
fn redis() -> &'static Redis {
    static REDIS: OnceLock<Redis> = OnceLock::new();
    REDIS.get_or_init(|| Redis::start(&[]))
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Store::Database(name) = self {
            shared().delete(name);
        }
    }
}
