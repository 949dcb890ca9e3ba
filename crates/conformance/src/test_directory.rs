//! Temporary directories of tests.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory that is deleted with its contents when it is dropped.
#[derive(Debug)]
pub struct TestDirectory(PathBuf);

impl TestDirectory {
    /// Creates an empty directory.
    pub fn create() -> TestDirectory {
        static CREATED: AtomicU64 = AtomicU64::new(0);
        loop {
            let nth = CREATED.fetch_add(1, Ordering::Relaxed);
            let path = std::env::temp_dir().join(format!("windlass-test-{}-{nth}", std::process::id()));
            match fs::create_dir(&path) {
                Ok(()) => return TestDirectory(path),
                // An earlier process with the same id left it behind.
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The path of a file in it.
    pub fn join(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestDirectory {
    fn drop(&mut self) {
        // The system cleans its temporary directory, so a failure here needs no report.
        drop(fs::remove_dir_all(&self.0));
    }
}
