//! Where the stores of a bench are: files in its directory, or databases beside the one it was given.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use windlass_store::postgres::beside;
use windlass_store::{Durability, Postgres, Sqlite, Store};

/// How long a store may take to be closed.
const PATIENCE: Duration = Duration::from_secs(120);

/// Where stores are made.
#[derive(Debug, Clone)]
pub(crate) struct Ground {
    dir: PathBuf,
    /// A database of the server that the others are made on.
    database: Option<String>,
    /// Databases that were made.
    made: Arc<Mutex<Vec<String>>>,
}

impl Ground {
    pub(crate) fn new(dir: PathBuf, database: Option<String>) -> Self {
        Ground { dir, database, made: Arc::default() }
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }

    pub(crate) fn is_database(&self) -> bool {
        self.database.is_some()
    }

    /// What the stores are, in a word.
    pub(crate) fn word(&self) -> &'static str {
        if self.is_database() { "postgresql" } else { "sqlite" }
    }

    /// A place for an empty store; each has a name of its own.
    pub(crate) async fn place(&self, name: &str) -> Result<Place> {
        let Some(address) = &self.database else {
            return Ok(Place::File(self.dir.join(format!("{name}.db"))));
        };
        let name = format!("windlass_bench_{}_{}", std::process::id(), name.replace('-', "_"));
        let made = beside::create(address, &name).await.context("a database for the bench cannot be made")?;
        self.made.lock().unwrap_or_else(PoisonError::into_inner).push(name);
        Ok(Place::Database(made))
    }

    /// Deletes what was made. What cannot be deleted is left to whoever tidies such places.
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

/// Where one store is.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    File(PathBuf),
    Database(String),
}

impl Place {
    /// As a server is told it.
    pub(super) fn address(&self) -> String {
        match self {
            Place::File(path) => format!("sqlite:{}", path.display()),
            Place::Database(address) => address.clone(),
        }
    }

    pub(super) async fn open(&self, durability: Durability) -> Result<Arc<dyn Store>> {
        Ok(match self {
            Place::File(path) => Arc::new(Sqlite::open(path, durability)?),
            Place::Database(address) => Arc::new(Postgres::open(address, durability).await?),
        })
    }

    /// Whether only one server can have it.
    pub(super) fn is_alone(&self) -> bool {
        match self {
            Place::File(_) => true,
            Place::Database(_) => false,
        }
    }

    /// Waits until everything is in the place where it stays, after whoever used it has closed it.
    pub(super) async fn settled(&self) -> Result<()> {
        let path = match self {
            Place::File(path) => path,
            Place::Database(address) => return Ok(beside::tidy(address).await?),
        };
        let (log, begun) = (beside_of(path, "-wal"), Instant::now());
        while Path::new(&log).exists() {
            ensure!(begun.elapsed() < PATIENCE, "{} was not closed", path.display());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Ok(())
    }

    /// The bytes of the store.
    pub(super) async fn size(&self) -> Result<f64> {
        let path = match self {
            Place::File(path) => path,
            Place::Database(address) => return Ok(beside::size(address).await? as f64),
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
