//! A shell beside a server: commands as a person and as a script would give them.

use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;

use crate::server::{Place, Server};
use crate::talk::seen;

/// A person's shell beside a server.
pub(crate) struct Desk {
    pub(crate) server: Server,
    pub(crate) place: Place,
}

impl Desk {
    pub(crate) async fn open() -> Self {
        Desk { server: Server::start(&[]).await, place: Place::new() }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_windlass"));
        command
            .args(arguments)
            .current_dir(self.place.path())
            .env_clear()
            .env("SCHEDULER_BASE", self.server.url())
            .env("USER", "ann")
            .stdin(Stdio::null());
        command
    }

    /// Runs a command that must end with this code; what it printed.
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
        std::fs::write(self.place.path().join(name), text).unwrap();
    }

    /// A standard worker; killed with what is returned.
    pub(crate) fn worker(&self, arguments: &[&str]) -> Ended {
        let arguments = [&["worker", "--url", "http://127.0.0.1:0"], arguments].concat();
        Ended(self.command(&arguments).stderr(Stdio::null()).spawn().unwrap())
    }
}

/// A process that is killed when it is dropped.
pub(crate) struct Ended(pub(crate) Child);

impl Ended {
    /// Waits until the process has ended by itself, and well.
    pub(crate) async fn goes(&mut self) {
        let status = seen("the end of the process", || std::future::ready(self.0.try_wait().unwrap())).await;
        assert!(status.success(), "{status}");
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}
