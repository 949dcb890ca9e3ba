//! Opening a file.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use rusqlite::Connection;

use super::lock::FileLock;
use super::readers::Readers;
use super::temp_directory::TempDirectory;
use super::writer::SqliteWriter;
use super::{Sqlite, foreign, private_file, schema};
use crate::condition::ConditionLog;
use crate::durability::Durability;
use crate::error::StoreError;

impl Sqlite {
    /// Opens or creates the file and applies the missing migrations. It refuses a file of another program,
    /// one that another process has open, and one with an unfinished copy.
    pub fn open(path: impl AsRef<Path>, durability: Durability) -> Result<Sqlite, StoreError> {
        Self::open_checked(path.as_ref(), durability, schema::check_finished)
    }

    /// Opens the file even if a copy into it is unfinished.
    #[cfg(feature = "postgres")]
    pub(crate) fn open_unfinished(path: &Path, durability: Durability) -> Result<Sqlite, StoreError> {
        Self::open_checked(path, durability, |_| Ok(()))
    }

    fn open_checked(
        path: &Path,
        durability: Durability,
        check: fn(&Connection) -> Result<(), StoreError>,
    ) -> Result<Sqlite, StoreError> {
        // The same file under another name is the same store.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        foreign::check(&path)?;
        let lock = FileLock::take(&path)?;
        let exposed = private_file::protect(&path).map_err(StoreError::unavailable)?;
        let mut db = Connection::open(&path)?;
        schema::prepare_writer(&db, durability)?;
        schema::migrate(&mut db)?;
        check(&db)?;
        let condition = Arc::new(ConditionLog::default());
        let writer = SqliteWriter::start(db, condition.clone())?;
        let readers = Readers::start(&path, &condition)?;
        Ok(Sqlite {
            path,
            condition,
            check_start: Arc::default(),
            readers,
            writer,
            blobs: Arc::default(),
            is_shared: false,
            exposed,
            _lock: lock,
            _temporary: None,
        })
    }

    /// Opens a store that is deleted on drop: for tests and trials.
    pub fn temporary(durability: Durability) -> Result<Sqlite, StoreError> {
        let temporary = TempDirectory::make().map_err(StoreError::unavailable)?;
        let store = Sqlite::open(temporary.0.join("store.db"), durability)?;
        Ok(Sqlite { _temporary: Some(temporary), ..store })
    }
}
