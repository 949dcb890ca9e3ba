//! A private Redis server for tests, on a socket in its own directory, without a port.
//!
//! The programs of Redis must be in `PATH`. The server and its directory are removed when the process that started it
//! ends, in any way.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::server_guard::ServerGuard;

/// The time limit of a start: a loaded machine is slow.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The command that ends the server.
const END: &str = r#"kill -KILL "$(cat "$1/pid")""#;

/// A private Redis server.
#[derive(Debug)]
pub struct RedisTestServer {
    guard: ServerGuard,
    flags: Vec<String>,
    child: Option<Child>,
}

impl RedisTestServer {
    /// Starts a server without persistence, with these extra flags.
    pub fn start(flags: &[&str]) -> RedisTestServer {
        let flags = flags.iter().map(|flag| (*flag).to_owned()).collect();
        let mut server = RedisTestServer { guard: ServerGuard::start("redis", END), flags, child: None };
        server.launch();
        server
    }

    fn socket(&self) -> PathBuf {
        self.guard.directory().join("redis.sock")
    }

    /// The address to connect to.
    pub fn address(&self) -> String {
        format!("redis+unix://{}", self.socket().display())
    }

    /// Starts or restarts the server and waits until it answers.
    pub fn launch(&mut self) {
        let directory = self.guard.directory().to_owned();
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
        // Redis does not signal its readiness, so it is polled. A server with a password answers `NOAUTH`.
        while !self.cli(&["PING"]).is_some_and(|told| told.contains("PONG") || told.contains("NOAUTH")) {
            let ended = self.child.as_mut().unwrap().try_wait().unwrap();
            let log = || fs::read_to_string(directory.join("log")).unwrap_or_default();
            assert!(ended.is_none() && begun.elapsed() < TIMEOUT, "redis does not start:\n{}", log());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Kills the server without a shutdown.
    pub fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Stops the process, or lets it continue.
    pub fn freeze(&self, is_frozen: bool) {
        let signal = if is_frozen { "-STOP" } else { "-CONT" };
        let id = self.child.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// The output of `redis-cli`; `None` if the command failed.
    pub fn cli(&self, words: &[&str]) -> Option<String> {
        let mut command = Command::new("redis-cli");
        command.arg("-s").arg(self.socket()).args(words).stdin(Stdio::null()).stderr(Stdio::null());
        let output = command.output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// The lines of the output of `redis-cli`.
    pub fn lines(&self, words: &[&str]) -> Vec<String> {
        let told = self.cli(words).unwrap_or_default();
        told.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }
}

impl Drop for RedisTestServer {
    fn drop(&mut self) {
        self.guard.end();
        if let Some(mut child) = self.child.take() {
            drop(child.wait());
        }
    }
}
