//! Sees to it that a server that a test starts ends with it, however that ends, and leaves nothing behind.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that is still being written to comes back while it is removed.
const REMOVE: &str = r#"for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" && break; sleep 0.2; done"#;

/// A directory for a server, and a process that waits until the test is over.
#[derive(Debug)]
pub struct ServerGuard {
    directory: PathBuf,
    process: Child,
    // Closed when this is dropped, or the process of the test ends: that is the word too.
    word: ChildStdin,
}

impl ServerGuard {
    /// Makes a directory for a server of this kind; `end` is the shell command that ends one that works in `$1`.
    pub fn of(kind: &str, end: &str) -> ServerGuard {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("windlass-{kind}-{}-{nth}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        // In a process group of its own: Ctrl-C in a test does not end it before its work is done.
        let mut process = Command::new("sh")
            .args(["-c", &format!("read -r _; {end} 2>/dev/null; {REMOVE}"), "server-guard"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let word = process.stdin.take().unwrap();
        ServerGuard { directory, process, word }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Has the server ended and its directory removed, and waits for it.
    pub fn end(&mut self) {
        drop(self.word.write_all(b"\n"));
        drop(self.process.wait());
    }
}
