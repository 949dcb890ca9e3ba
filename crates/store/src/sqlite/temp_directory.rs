//! A directory for a store that is deleted on drop.

use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};

/// A temporary directory, deleted on drop with its contents.
#[derive(Debug)]
pub(crate) struct TempDirectory(pub(crate) PathBuf);

impl TempDirectory {
    pub(crate) fn make() -> std::io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(0);
        loop {
            let name = format!("windlass-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
            let path = std::env::temp_dir().join(name);
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return Ok(TempDirectory(path)),
                // A process with the same id left it behind.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for TempDirectory {
    fn drop(&mut self) {
        // The system cleans its temporary directory, so a failure here needs no report.
        drop(fs::remove_dir_all(&self.0));
    }
}
