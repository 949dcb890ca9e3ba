//! The stores of a benchmark: files in its directory, or databases beside the given one. `clear` deletes them all.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use windlass_store::postgres::beside;
use windlass_store::{Durability, Postgres, Sqlite, Store};

/// How long the close of a store may take.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(120);

/// Makes stores, and remembers the databases that it made.
#[derive(Debug, Clone)]
pub(crate) struct StoreFactory {
    dir: PathBuf,
    /// A database of the server on which the others are created.
    database: Option<String>,
    /// Databases that exist.
    made: Arc<Mutex<Vec<String>>>,
}

impl StoreFactory {
    pub(crate) fn new(dir: PathBuf, database: Option<String>) -> Self {
        StoreFactory { dir, database, made: Arc::default() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn is_database(&self) -> bool {
        self.database.is_some()
    }

    /// The kind of the stores, in a word.
    pub(crate) fn word(&self) -> &'static str {
        if self.is_database() { "postgresql" } else { "sqlite" }
    }

    /// Makes an empty store under this name; every caller uses a name of its own.
    pub(crate) async fn new_store(&self, name: &str) -> Result<BenchStore> {
        let Some(address) = &self.database else {
            return Ok(BenchStore::File(self.dir.join(format!("{name}.db"))));
        };
        let name = format!("windlass_bench_{}_{}", std::process::id(), name.replace('-', "_"));
        let made =
            beside::create(address, &name).await.context("cannot create a database for the benchmark")?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Ok(BenchStore::Database(made))
    }

    /// Deletes all stores. A database that cannot be deleted stays: the benchmark has its figures.
    pub(crate) async fn clear(&self) {
        let made = std::mem::take(&mut *self.made.lock().unwrap_or_else(PoisonError::into_inner));
        for name in made {
            if let Some(address) = &self.database {
                drop(beside::delete(address, &name).await);
            }
        }
        drop(std::fs::remove_dir_all(&self.dir));
    }
}

/// One store: a file or a database.
#[derive(Debug, Clone)]
pub(crate) enum BenchStore {
    File(PathBuf),
    Database(String),
}

impl BenchStore {
    /// The address for `--store`.
    pub(crate) fn address(&self) -> String {
        match self {
            BenchStore::File(path) => format!("sqlite:{}", path.display()),
            BenchStore::Database(address) => address.clone(),
        }
    }

    pub(crate) async fn open(&self, durability: Durability) -> Result<Arc<dyn Store>> {
        Ok(match self {
            BenchStore::File(path) => Arc::new(Sqlite::open(path, durability)?),
            BenchStore::Database(address) => Arc::new(Postgres::open(address, durability).await?),
        })
    }

    /// Waits until the closed store has moved its write-ahead log into the database file.
    pub(crate) async fn settled(&self) -> Result<()> {
        let path = match self {
            BenchStore::File(path) => path,
            BenchStore::Database(address) => return Ok(beside::tidy(address).await?),
        };
        let (log, begun) = (beside_of(path, "-wal"), Instant::now());
        while Path::new(&log).exists() {
            ensure!(begun.elapsed() < CLOSE_TIMEOUT, "{} was not closed", path.display());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// The bytes of the store.
    pub(crate) async fn size(&self) -> Result<f64> {
        let path = match self {
            BenchStore::File(path) => path,
            BenchStore::Database(address) => return Ok(beside::size(address).await? as f64),
        };
        let files = ["", "-wal"].map(|ending| std::fs::metadata(beside_of(path, ending)));
        let total: u64 = files.iter().flatten().map(std::fs::Metadata::len).sum();
        ensure!(total > 0, "{} is not there", path.display());
        Ok(total as f64)
    }
}

fn beside_of(path: &Path, ending: &str) -> OsString {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name
}
