//! `windlass dev` in a process of its own, with one example and a store in a directory of its own.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::server::{PATIENCE, TempDir, free_port};
use crate::shell::KilledOnDrop;

const EXAMPLE: &str = r#"{"start": "a", "nodes": {"a": {"kind": "local", "func": "echo"}}, "edges": []}"#;

/// `windlass dev`, killed when it is dropped.
pub(crate) struct DevServer {
    _process: KilledOnDrop,
    port: u16,
    pub(crate) dir: TempDir,
}

impl DevServer {
    /// Starts it in this directory and waits until it has played its example and serves.
    pub(crate) async fn start_in(dir: TempDir) -> Self {
        let examples = dir.path().join("some");
        std::fs::create_dir_all(&examples).unwrap();
        std::fs::write(examples.join("flow.json"), EXAMPLE).unwrap();
        std::fs::write(examples.join("flow.run.json"), "{}").unwrap();
        let port = free_port();
        let log = std::fs::File::create(dir.path().join("dev.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_windlass"))
            .args(["dev", "--examples", "some", "--listen", &format!("127.0.0.1:{port}")])
            .current_dir(dir.path())
            .env_clear()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let dev = DevServer { _process: KilledOnDrop(child), port, dir };
        let begun = Instant::now();
        while !dev.log().contains("serving until") {
            assert!(begun.elapsed() < PATIENCE, "{}", dev.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        dev
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("dev.log")).unwrap_or_default()
    }
}
