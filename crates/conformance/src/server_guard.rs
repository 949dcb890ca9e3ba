//! A guard of a database server that a test starts: a shell process that ends the server and deletes its directory when
//! the test process ends, also after a kill.

use std::fs;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

/// Deletes the directory. A server that is ending may still create files in it, hence the retries.
const REMOVE: &str = r#"for _ in 1 2 3 4 5 6 7 8 9 10; do rm -rf "$1" && break; sleep 0.2; done"#;

/// A directory for a server, and the process that waits for the end of the test.
#[derive(Debug)]
pub struct ServerGuard {
    directory: PathBuf,
    process: Child,
    // The guard acts on a line or on the end of this pipe, which the system closes when the test process ends.
    pipe: ChildStdin,
}

impl ServerGuard {
    /// Creates a directory for a server of this kind; `end` is the shell command that ends the server in the directory `$1`.
    pub fn start(kind: &str, end: &str) -> ServerGuard {
        static STARTED: AtomicU64 = AtomicU64::new(0);
        let nth = STARTED.fetch_add(1, Ordering::Relaxed);
        let directory = std::env::temp_dir().join(format!("windlass-{kind}-{}-{nth}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        // Ctrl-C in a terminal ends the process group of the test; the guard has its own and outlives it.
        let mut process = Command::new("sh")
            .args(["-c", &format!("read -r _; {end} 2>/dev/null; {REMOVE}"), "server-guard"])
            .arg(&directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let pipe = process.stdin.take().unwrap();
        ServerGuard { directory, process, pipe }
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Ends the server, deletes its directory and waits for both.
    pub fn end(&mut self) {
        drop(self.pipe.write_all(b"\n"));
        drop(self.process.wait());
    }
}
