//! Files of the store are for the user of the server alone: the database, the files that SQLite keeps beside it, and
//! the lock. They hold parameters, results and the key of leases.

use std::fs::{self, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Rights of the owner alone.
const MODE: u32 = 0o600;
/// Rights of the group and of all other users.
const OTHERS: u32 = 0o077;

/// A file that other users of the machine could open until now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedFile {
    pub path: PathBuf,
    /// Whether their rights were taken away; the file system or the owner of the file may forbid it.
    pub is_narrowed: bool,
}

/// Options that create a file for its owner alone.
pub(super) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(MODE);
    options
}

/// Creates the database if it is missing, because SQLite gives the files beside it the same rights; takes the rights of
/// other users away from all files of the store.
pub(super) fn protect(database: &Path) -> io::Result<Vec<ExposedFile>> {
    options().open(database)?;
    let files = ["", "-wal", "-shm", ".lock"].map(|suffix| beside(database, suffix));
    Ok(files.into_iter().filter_map(narrow).collect())
}

/// The file whose name continues the name of the database.
pub(super) fn beside(database: &Path, suffix: &str) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

fn narrow(path: PathBuf) -> Option<ExposedFile> {
    // A file that is not there exposes nothing.
    let mode = fs::metadata(&path).ok()?.permissions().mode();
    if mode & OTHERS == 0 {
        return None;
    }
    let is_narrowed = fs::set_permissions(&path, Permissions::from_mode(mode & !OTHERS & 0o777)).is_ok();
    Some(ExposedFile { path, is_narrowed })
}
