//! A shell beside a server: commands as a person and as a script would give them.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::http::seen;
use crate::server::{Server, TempDir};

/// A person's shell beside a server.
pub(crate) struct TestShell {
    pub(crate) server: Server,
    pub(crate) dir: TempDir,
}

impl TestShell {
    pub(crate) async fn open() -> Self {
        TestShell { server: Server::start(&[]).await, dir: TempDir::new() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(arguments)
            .current_dir(self.dir.path())
            .env_clear()
            .env("WINDLASS_SERVER", self.server.url())
            .env("USER", "ann")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command that must end with this code; returns its output.
    #[track_caller]
    pub(crate) fn code(&self, arguments: &[&str], code: i32) -> Output {
        let output = self.command(arguments).output().unwrap();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert_eq!(output.status.code(), Some(code), "{arguments:?}\n{out}\n{err}");
        output
    }

    #[track_caller]
    pub(crate) fn text(&self, arguments: &[&str]) -> String {
        text(&self.code(arguments, 0).stdout).trim_end().to_owned()
    }

    #[track_caller]
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.text(arguments)).unwrap()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.dir.path().join(name), text).unwrap();
    }

    /// A standard worker, killed when the returned value is dropped.
    pub(crate) fn worker(&self, arguments: &[&str]) -> KilledOnDrop {
        let arguments = [&["worker", "--url", "http://127.0.0.1:0"], arguments].concat();
        KilledOnDrop(self.command(&arguments).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// A process that is killed when it is dropped.
pub(crate) struct KilledOnDrop(pub(crate) Child);

impl KilledOnDrop {
    /// Waits until the process has ended by itself, and well.
    pub(crate) async fn goes(&mut self) {
        let status = seen("the end of the process", || std::future::ready(self.0.try_wait().unwrap())).await;
        assert!(status.success(), "{status}");
    }
}

impl Drop for KilledOnDrop {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
