//! Servers that share a store, and what tests do with them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::{Value, json};
use windlass_engine::definition::Strictness;
use windlass_engine::event::Start;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, VersionId};
use windlass_engine::input::{Input, Outcome};
use windlass_engine::job::{Attempt, JobSpec};
use windlass_engine::time::Timestamp;
use windlass_queue::redis::Redis;
use windlass_runtime::flow::{NewFlow, NewVersion};
use windlass_runtime::function::Functions;
use windlass_runtime::job::{Claim, Claimed, Finish};
use windlass_runtime::log::Log;
use windlass_runtime::run::NewRun;
use windlass_runtime::{Runtime, Settings};
use windlass_store::account::{LedgerQuery, LedgerRow};
use windlass_store::commit::{Commit, Committed};
use windlass_store::flow::{
    FlowQuery, FlowRow, Publication, Published, VersionRef, VersionRow, VersionStatus,
};
use windlass_store::hint::Hints;
use windlass_store::job::{JobQuery, JobRow, KeyQuery, KeyRows, ReadyQuery};
use windlass_store::outbox::{Message, Party};
use windlass_store::page::Page;
use windlass_store::record::{Record, RecordQuery, Records};
use windlass_store::run::{Journal, RunQuery, RunRef, RunRow, RunStatus, Since};
use windlass_store::server::ServerRow;
use windlass_store::store::{Due, Retained};
use windlass_store::{Memory, Store, StoreError};

/// Longer than anything takes that is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// What is told by a hint comes within this, on a busy machine too; what is found by looking takes five seconds (who
/// works) or thirty.
pub(crate) const SOON: Duration = Duration::from_secs(3);

/// The way of one server to the store, which can be cut.
pub(crate) struct Link {
    store: Arc<Memory>,
    is_cut: AtomicBool,
}

impl Link {
    fn writes(&self) -> Result<&Memory, StoreError> {
        if self.is_cut.load(Ordering::SeqCst) {
            return Err(StoreError::Unavailable("the link is cut".into()));
        }
        Ok(&self.store)
    }
}

macro_rules! forward {
    ($($verb:ident / $now:ident ($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Link {
            $(
                async fn $verb(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                    self.store.$now($($arg),*)
                }
            )*

            async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
                match self.writes() {
                    Ok(store) => store.commit_now(commits),
                    Err(_) => commits.iter().map(|_| Err(self.writes().err().unwrap())).collect(),
                }
            }

            async fn save(&self, record: Record) -> Result<(), StoreError> {
                self.writes()?.save_now(record)
            }

            fn hints(&self) -> Option<Hints> {
                self.store.hints()
            }
        }
    };
}

forward! {
    publish / publish_now(publication: Publication) -> Published;
    flows / flows_now(query: FlowQuery) -> Page<FlowRow>;
    version / version_now(version: VersionRef) -> Option<VersionRow>;
    versions / versions_now(flow: FlowId) -> Vec<VersionRow>;
    command / command_now(command: CommandId) -> Option<Committed>;
    journal / journal_now(run: RunId, since: Since, limit: usize) -> Journal;
    run / run_now(run: RunRef) -> Option<RunRow>;
    runs / runs_now(query: RunQuery) -> Page<RunRow>;
    due / due_now(now: Timestamp, limit: usize) -> Due;
    orphans / orphans_now(now: Timestamp, dead_after_ms: u64, after: Option<RunId>, limit: usize) -> Vec<RunRow>;
    job / job_now(job: JobId) -> Option<JobRow>;
    jobs / jobs_now(query: JobQuery) -> Page<JobRow>;
    attempts / attempts_now(job: JobId, after: u32, limit: usize) -> Vec<Attempt>;
    ready / ready_now(query: ReadyQuery) -> Vec<JobRow>;
    ready_by_key / ready_by_key_now(query: KeyQuery) -> KeyRows;
    outbox / outbox_now(now: Timestamp, limit: usize) -> Vec<Message>;
    outbox_to / outbox_to_now(to: Party) -> Vec<Message>;
    ledger / ledger_now(query: LedgerQuery) -> Vec<LedgerRow>;
    records / records_now(query: RecordQuery) -> Records;
    retain / retain_now(before: Timestamp, limit: usize) -> Retained;
}

pub(crate) struct Cluster {
    pub(crate) store: Arc<Memory>,
    pub(crate) servers: Vec<Runtime>,
    links: Vec<Arc<Link>>,
    redis: Option<Redis>,
}

impl Cluster {
    pub(crate) async fn of(n: usize) -> Self {
        Cluster::with(n, None).await
    }

    /// Servers that hand out jobs through this Redis.
    pub(crate) async fn with(n: usize, redis: Option<Redis>) -> Self {
        let (store, links) = (Arc::new(Memory::new()), Vec::new());
        let mut cluster = Cluster { store, servers: Vec::new(), links, redis };
        for _ in 0..n {
            cluster.join(Functions::built_in()).await;
        }
        cluster
    }

    /// One more server, with functions of its own.
    pub(crate) async fn join(&mut self, functions: Functions) -> Runtime {
        let link = Arc::new(Link { store: self.store.clone(), is_cut: AtomicBool::new(false) });
        let settings = Settings {
            name: format!("server {}", self.servers.len()),
            is_alone: false,
            redis: self.redis.clone(),
            hot_run_idle: Duration::from_millis(200),
            functions,
            ..Settings::default()
        };
        let server = Runtime::start_up(link.clone(), settings).await.unwrap();
        self.servers.push(server.clone());
        self.links.push(link);
        server
    }

    /// From now on this server can write nothing, and the others take it for dead.
    pub(crate) async fn cut(&self, nth: usize) {
        self.links[nth].is_cut.store(true, Ordering::SeqCst);
        let store: &dyn Store = &*self.store;
        let row = store.servers().await.unwrap();
        let row = row.into_iter().find(|row| row.owner == self.servers[nth].owner()).unwrap();
        self.store.save_now(Record::Server(ServerRow { beat_at: Timestamp(0), ..row })).unwrap();
    }

    /// It can write again, as if it had only slept.
    pub(crate) fn mend(&self, nth: usize) {
        self.links[nth].is_cut.store(false, Ordering::SeqCst);
    }

    pub(crate) fn row(&self, run: RunId) -> RunRow {
        self.store.run_now(RunRef::Id(run)).unwrap().unwrap()
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
    let flow = NewFlow { name: name.to_owned(), ..NewFlow::default() };
    let version = NewVersion {
        definition: definition.to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let done = server.publish_flow(flow, Some(version)).await.unwrap().published;
    (done.flow, done.version.unwrap().0)
}

pub(crate) async fn start(server: &Runtime, of: (FlowId, VersionId), params: Value) -> RunId {
    let Value::Object(params) = params else { panic!("params are an object") };
    let new = NewRun {
        flow: of.0,
        version: of.1,
        request: None,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start { params, ..Start::default() },
    };
    server.start(new).await.unwrap().run
}

pub(crate) async fn end(server: &Runtime, run: RunId) -> RunStatus {
    server.wait_ended(run, PATIENCE).await.unwrap().unwrap()
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
    JobSpec { payload: json!({"n": 1}), ..JobSpec::new("work", queue) }
}

pub(crate) fn claim(queue: &str, max: usize, wait: Duration) -> Claim {
    let (worker, lease) = ("w".to_owned(), Duration::from_secs(30));
    Claim { worker, queues: vec![queue.to_owned()], services: Vec::new(), max, wait, lease }
}

pub(crate) fn done(claimed: &Claimed, value: Value) -> Finish {
    let outcome = Outcome::Done(Arc::new(value));
    Finish {
        job: claimed.job,
        fence: claimed.fence,
        outcome,
        worker: None,
        log: Log::default(),
        retry_after_ms: None,
    }
}
