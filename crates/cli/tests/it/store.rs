//! Where a server of these tests keeps its work. `WINDLASS_TEST_ON` says what kind of place that is, so that the whole
//! suite runs on everything that users run; a test that says nothing gets a place of its own of this kind.

use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use windlass_queue::redis::fixture::Server as Redis;
use windlass_store::conformance::backend::Backend;
use windlass_store::conformance::cluster::shared;

use crate::desk::text;
use crate::server::Place;

/// Where a server keeps its work.
pub(crate) enum Store {
    File(PathBuf),
    /// A database on the PostgreSQL of this process, deleted when this is dropped.
    Database(String),
    /// A database that servers share; somebody else deletes it.
    Shared(String),
}

impl Store {
    /// An empty one, of the kind that the tests of this process run on.
    pub(crate) fn fresh(place: &Place) -> Store {
        match Backend::chosen() {
            Backend::Sqlite => Store::File(place.path().join("store.db")),
            Backend::Postgres | Backend::PostgresAndRedis => Store::Database(shared().copy()),
        }
    }

    /// What tells `windlass serve` of it.
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

/// The Redis of this process: what stands before the keys of each server keeps them apart.
fn redis() -> &'static Redis {
    static REDIS: OnceLock<Redis> = OnceLock::new();
    REDIS.get_or_init(|| Redis::start(&[]))
}

/// Whether servers keep their work in a file of their own. A test that is about this file asks, and says why it does
/// nothing where there is none.
pub(crate) fn is_file(why: &str) -> bool {
    let backend = Backend::chosen();
    if backend != Backend::Sqlite {
        eprintln!("not on {backend:?}: {why}");
    }
    backend == Backend::Sqlite
}

impl Drop for Store {
    fn drop(&mut self) {
        if let Store::Database(name) = self {
            shared().delete(name);
        }
    }
}
