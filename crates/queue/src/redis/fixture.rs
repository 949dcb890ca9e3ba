//! A private Redis for tests: a server of one's own on a socket in a directory of its own, and no port.
//!
//! The programs of Redis have to be in `PATH`. The server ends with the process that started it, however that ends, and
//! its directory goes with it.
#![allow(clippy::unwrap_used, reason = "a test that cannot start its Redis has failed")]

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use windlass_store::conformance::keeper::Keeper;

/// How long a server may take to start: a loaded machine is slow.
const PATIENCE: Duration = Duration::from_secs(60);
/// How it ends.
const END: &str = r#"kill -KILL "$(cat "$1/pid")""#;

/// A server.
#[derive(Debug)]
pub struct Server {
    keeper: Keeper,
    flags: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Starts a server that keeps nothing on the disk; these flags are its own.
    pub fn start(flags: &[&str]) -> Server {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut server = Server { keeper: Keeper::of("redis", END), flags, child: None };
        server.launch();
        server
    }

    fn socket(&self) -> PathBuf {
        self.keeper.directory().join("redis.sock")
    }

    /// Where it is.
    pub fn address(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Starts it, or starts it again, and waits until it answers.
    pub fn launch(&mut self) {
        let directory = self.keeper.directory().to_owned();
        let log = fs::OpenOptions::new().create(true).append(true).open(directory.join("log")).unwrap();
        let child = Command::new("redis-server")
            .args(["--port", "0", "--save", "", "--appendonly", "no", "--unixsocket"])
            .arg(self.socket())
            .arg("--pidfile")
            .arg(directory.join("pid"))
            .arg("--dir")
            .arg(&directory)
            .args(&self.flags)
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .process_group(0)
            .spawn()
            .expect(
                "there is a `redis-server`: install Redis, on Debian with `apt-get install redis-server`",
            );
        self.child = Some(child);
        let begun = Instant::now();
        // It tells nobody when it is there: it has to be asked. One with a password says at least that.
        while !self.cli(&["PING"]).is_some_and(|told| told.contains("PONG") || told.contains("NOAUTH")) {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
            assert!(ended.is_none() && begun.elapsed() < PATIENCE, "redis does not start:\n{}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills it without a word to anybody.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops it where it stands, or lets it go on.
    pub fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// What `redis-cli` says to this; `None` = it could not say it.
    pub fn cli(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.socket()).args(words).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// What `redis-cli` says to this, line by line.
    pub fn lines(&self, words: &[&str]) -> Vec<String> {
        let told = self.cli(words).unwrap_or_default();
        told.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.keeper.end();
        if let Some(mut child) = self.child.take() {
            drop(child.wait());
        }
    }
}
