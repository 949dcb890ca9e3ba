//! Lock file beside the database, so that one server has the file. `Sqlite` holds it while it is open; the system releases
//! it when the process dies.

use std::fs::{File, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::private_file;
use crate::error::StoreError;

#[derive(Debug)]
pub(super) struct FileLock(File);

impl Drop for FileLock {
    /// Unlocks explicitly: a child process between fork and exec shares the file, so closing it here does not unlock it.
    fn drop(&mut self) {
        drop(self.0.unlock());
    }
}

#[derive(Debug, thiserror::Error)]
enum LockError {
    #[error("`{path}` is in use by {holder}: stop it, or give this server a file of its own")]
    Held { path: String, holder: String },
    #[error("`{path}` cannot be locked: look at its path and its permissions")]
    Unusable {
        path: String,
        #[source]
        error: std::io::Error,
    },
}

impl FileLock {
    /// Takes the lock for the store at `path`; the error names the process that holds it.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        lock(path).map(FileLock).map_err(StoreError::unavailable)
    }
}

fn lock(path: &Path) -> Result<File, LockError> {
    let beside = private_file::beside(path, ".lock");
    let unusable = |error| LockError::Unusable { path: beside.display().to_string(), error };
    let mut file = private_file::options().open(&beside).map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {
            // For the error message of the next process; the lock itself does not depend on it.
            file.set_len(0).map_err(unusable)?;
            file.seek(SeekFrom::Start(0)).map_err(unusable)?;
            write!(file, "process {}", std::process::id()).map_err(unusable)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // The lock is held even if the name of its holder cannot be read.
            drop(file.take(100).read_to_string(&mut holder));
            let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
            Err(LockError::Held { path: path.display().to_string(), holder })
        }
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}
