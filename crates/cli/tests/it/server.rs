//! A server in a process of its own, with a store of its own.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use windlass_sdk::Client;
use windlass_sdk::contract::{FlowRequest, RunRequest};

use crate::store::Store;

/// How long anything may take that should take a moment, on a machine that is busy with other things.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// A directory that is deleted with everything in it.
pub(crate) struct TempDir(PathBuf);

impl TempDir {
    pub(crate) fn new() -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let name = format!("windlass-it-{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        TempDir(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        drop(std::fs::remove_dir_all(&self.0));
    }
}

/// `windlass serve`, killed when it is dropped.
pub(crate) struct Server {
    child: Option<Child>,
    port: u16,
    flags: Vec<String>,
    /// The command prefix that enters the namespace of the server.
    wrap: Vec<String>,
    store: Store,
    dir: TempDir,
}

impl Server {
    /// Starts a server and waits until it takes work.
    pub(crate) async fn start(flags: &[&str]) -> Self {
        let dir = TempDir::new();
        let store = Store::fresh(&dir);
        Server::start_at(dir, store, &[], flags).await
    }

    /// Starts a server on this store, by way of another command.
    pub(crate) async fn start_at(dir: TempDir, store: Store, wrap: &[&str], flags: &[&str]) -> Self {
        let port = free_port();
        let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
        let (flags, wrap) = (owned(flags), owned(wrap));
        let mut server = Server { child: None, port, flags, wrap, store, dir };
        server.spawn();
        server.ready().await;
        server
    }

    /// Starts a server on a database that it shares with others.
    pub(crate) async fn start_on(database: &str, flags: &[&str]) -> Self {
        Server::start_at(TempDir::new(), Store::Shared(database.to_owned()), &[], flags).await
    }

    /// Starts the process; it may take a moment to be ready.
    pub(crate) fn spawn(&mut self) {
        let log = std::fs::File::options()
            .create(true)
            .append(true)
            .open(self.dir.path().join("server.log"))
            .unwrap();
        let mut words = self.wrap.clone();
        words.push(env!("CARGO_BIN_EXE_windlass").to_owned());
        let child = Command::new(&words[0])
            .args(&words[1..])
            .args(["serve", "--listen", &format!("127.0.0.1:{}", self.port)])
            .args(self.store.flags())
            .args(&self.flags)
            .env_remove("RUST_LOG")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        self.child = Some(child);
    }

    pub(crate) async fn ready(&self) {
        let (begun, client) = (Instant::now(), self.client());
        while !matches!(client.raw("GET", "/readyz", None).await, Ok((200, _))) {
            assert!(begun.elapsed() < PATIENCE, "not ready; its log: {}", self.log());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Ends the process without any warning.
    pub(crate) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    /// Asks the process to end and says how it did.
    pub(crate) fn terminate(&mut self) -> std::process::ExitStatus {
        self.ask_to_end();
        self.child.take().expect("it was started").wait().unwrap()
    }

    /// Stops the process where it stands, or lets it go on.
    pub(crate) fn freeze(&self, is_frozen: bool) {
        let name = if is_frozen { "STOP" } else { "CONT" };
        signal(self.child.as_ref().expect("it was started"), name);
    }

    /// Asks the process to end, and does not wait for it.
    pub(crate) fn ask_to_end(&self) {
        signal(self.child.as_ref().expect("it was started"), "TERM");
    }

    /// Whether the process has ended, and how.
    pub(crate) fn ended(&mut self) -> Option<std::process::ExitStatus> {
        self.child.as_mut().expect("it was started").try_wait().unwrap()
    }

    /// The id of the process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.as_ref().expect("it was started").id()
    }

    pub(crate) fn store(&self) -> &Store {
        &self.store
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address())
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.url()).unwrap()
    }

    /// The log of the process so far.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("server.log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            let log = self.log();
            let tail: Vec<&str> = log.lines().rev().take(40).collect();
            eprintln!("the last lines of the server:");
            tail.iter().rev().for_each(|line| eprintln!("  {line}"));
        }
    }
}

pub(crate) fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Sends a process a signal.
pub(crate) fn signal(process: &Child, name: &str) {
    let sent = Command::new("kill").args([&format!("-{name}"), &process.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

/// Publishes a flow.
pub(crate) async fn publish(client: &Client, name: &str, definition: Value) {
    let flow: FlowRequest = serde_json::from_value(json!({"name": name, "definition": definition})).unwrap();
    client.flows().create(&flow).await.unwrap();
}

/// A request to start a run with these params.
pub(crate) fn with_params(params: &Value) -> RunRequest {
    RunRequest { params: params.as_object().cloned(), ..RunRequest::default() }
}
