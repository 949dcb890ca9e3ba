//! One server per file: a lock beside it, held as long as the store is open and let go by the system when the
//! process dies, however it dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::StoreError;

#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    /// Closing the file is not enough: a process that is just being started has it open too, until it is itself.
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

impl Lock {
    /// Takes the lock for the store at `path`, or says who has it.
    pub(super) fn take(path: &Path) -> Result<Self, StoreError> {
        lock(path).map(Lock).map_err(|error| StoreError::Unavailable(Box::new(error)))
    }
}

fn lock(path: &Path) -> Result<File, LockError> {
    let beside = beside(path);
    let unusable = |error| LockError::Unusable { path: beside.display().to_string(), error };
    let options = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&beside);
    let mut file = options.map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => {
            // For whoever meets the lock; the lock itself does not depend on it.
            file.set_len(0).map_err(unusable)?;
            file.seek(SeekFrom::Start(0)).map_err(unusable)?;
            write!(file, "process {}", std::process::id()).map_err(unusable)?;
            Ok(file)
        }
        Err(TryLockError::WouldBlock) => {
            let mut holder = String::new();
            // A holder that cannot be read is still a holder.
            drop(file.take(100).read_to_string(&mut holder));
            let holder = if holder.is_empty() { "another process".to_owned() } else { holder };
            Err(LockError::Held { path: path.display().to_string(), holder })
        }
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}
