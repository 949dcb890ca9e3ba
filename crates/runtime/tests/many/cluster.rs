//! Servers that share a store, and helpers for tests.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_conformance::faulty_store::{FaultyStore, unavailable};
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::job::JobSpec;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_queue::redis::Redis;
use windlass_runtime::calls::function::Functions;
use windlass_runtime::calls::log::Log;
use windlass_runtime::jobs::{ClaimRequest, JobEnd, LeasedJob};
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, Settings};
use windlass_store::flow::VersionStatus;
use windlass_store::run::{RunRef, RunRow, RunStatus};
use windlass_store::server::ServerRow;
use windlass_store::{Memory, Store};

/// Longer than anything takes that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A hint takes less than this, on a busy machine too; polling takes five seconds (workers) or thirty.
pub(crate) const SOON: Duration = Duration::from_secs(3);

pub(crate) struct Cluster {
    pub(crate) store: Arc<Memory>,
    pub(crate) servers: Vec<Runtime>,
    /// Whether the server with this number can write nothing.
    cuts: Vec<Arc<AtomicBool>>,
    redis: Option<Redis>,
}

impl Cluster {
    pub(crate) async fn of(n: usize) -> Self {
        Cluster::with(n, None).await
    }

    /// Servers that hand out jobs through this Redis.
    pub(crate) async fn with(n: usize, redis: Option<Redis>) -> Self {
        let (store, cuts) = (Arc::new(Memory::shared()), Vec::new());
        let mut cluster = Cluster { store, servers: Vec::new(), cuts, redis };
        for _ in 0..n {
            cluster.join(Functions::built_in()).await;
        }
        cluster
    }

    /// One more server, with functions of its own.
    pub(crate) async fn join(&mut self, functions: Functions) -> Runtime {
        let is_cut = Arc::new(AtomicBool::new(false));
        let (on_commit, on_save) = (is_cut.clone(), is_cut.clone());
        let store = FaultyStore {
            on_commit: Box::new(move |_, _| !on_commit.load(Ordering::SeqCst)),
            on_save: Box::new(
                move || if on_save.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(()) },
            ),
            ..FaultyStore::over(self.store.clone())
        };
        let settings = Settings {
            name: format!("server {}", self.servers.len()),
            redis: self.redis.clone(),
            hot_run_idle: Duration::from_millis(200),
            functions,
            ..Settings::default()
        };
        let server = Runtime::start_up(Arc::new(store), settings).await.unwrap();
        self.servers.push(server.clone());
        self.cuts.push(is_cut);
        server
    }

    /// From now on this server can write nothing, and the others take it for dead.
    pub(crate) async fn cut(&self, nth: usize) {
        self.cuts[nth].store(true, Ordering::SeqCst);
        let row = self.store.servers().await.unwrap();
        let row = row.into_iter().find(|row| row.owner == self.servers[nth].owner()).unwrap();
        self.store.save_server_now(ServerRow { beat_at: Timestamp(0), ..row }).unwrap();
    }

    /// It can write again, as if it had only slept.
    pub(crate) fn mend(&self, nth: usize) {
        self.cuts[nth].store(false, Ordering::SeqCst);
    }

    pub(crate) fn row(&self, run: RunId) -> RunRow {
        self.store.run_now(&Project::DEFAULT, RunRef::Id(run)).unwrap().unwrap()
    }

    /// Waits until the store says so.
    pub(crate) async fn until(&self, what: &str, seen: impl Fn(&Memory) -> bool) {
        let begun = tokio::time::Instant::now();
        while !seen(&self.store) {
            assert!(begun.elapsed() < PATIENCE, "never: {what}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

pub(crate) async fn publish(server: &Runtime, name: &str, definition: Value) -> (FlowId, VersionId) {
    let flow = FlowSpec { name: name.to_owned(), ..FlowSpec::default() };
    let version = VersionSpec {
        definition: definition.to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let done = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    (done.flow, done.version.unwrap().0)
}

pub(crate) async fn start(server: &Runtime, of: (FlowId, VersionId), params: Value) -> RunId {
    let Value::Object(params) = params else { panic!("params are an object") };
    let new = RunSpec {
        flow: of.0,
        version: of.1,
        request: None,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start { params: params.into(), ..Start::default() },
    };
    server.runs().start(new).await.unwrap().run
}

pub(crate) async fn end(server: &Runtime, run: RunId) -> RunStatus {
    server.runs().wait_ended(run, PATIENCE).await.unwrap().unwrap()
}

pub(crate) fn go() -> Input {
    Input::Signal { id: None, key: "go".to_owned(), value: json!(true), by: None }
}

/// Waits for a signal, then ends.
pub(crate) fn waits() -> Value {
    json!({"start": "w", "nodes": {"w": {"kind": "wait_event", "params": {"signal_key": "$shared.go"}}}})
}

pub(crate) fn timer(ms: u64) -> Value {
    json!({"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": ms}}}})
}

/// A function of the server.
pub(crate) fn calls(func: &str) -> Value {
    json!({"start": "a", "nodes": {"a": {
        "exec_type": "local_func", "func": func, "params": {"mul": 2},
        "prep": {"input_key": "$params.x"}, "post": {"output_key": "a"},
    }}})
}

pub(crate) fn spec(queue: &str) -> JobSpec {
    JobSpec { payload: json!({"n": 1}).into(), ..JobSpec::new("work", queue) }
}

pub(crate) fn claim(queue: &str, max: usize, wait: Duration) -> ClaimRequest {
    let (worker, lease) = ("w".to_owned(), Duration::from_secs(30));
    ClaimRequest { worker, queues: vec![queue.to_owned()], services: Vec::new(), max, wait, lease }
}

pub(crate) fn done(claimed: &LeasedJob, value: Value) -> JobEnd {
    let outcome = CallOutcome::Done(value.into());
    JobEnd {
        job: claimed.job,
        fence: claimed.fence,
        outcome,
        worker: None,
        log: Log::default(),
        retry_after_ms: None,
    }
}
