//! Many ends of one run at once: 64 workers finish nodes of a dag of 200 at the same moment, some twice, some with
//! another result, on every store there is and by way of one server or several. Nothing is lost, nothing counts twice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::Barrier;
use tokio::task::JoinSet;
use uuid::Uuid;
use windlass_conformance::backend::Backend;
use windlass_engine::counter::Seq;
use windlass_engine::definition::Strictness;
use windlass_engine::event::{Event, Start};
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::input::CallOutcome;
use windlass_engine::money::{Amount, Movement, MovementKind};
use windlass_engine::project::Project;
use windlass_engine::run::state::Phase;
use windlass_engine::time::Timestamp;
use windlass_runtime::jobs::{ClaimRequest, ClaimVerdict, JobEnd, LeasedJob};
use windlass_runtime::runs::RunSpec;
use windlass_runtime::runs::flow::{FlowSpec, VersionSpec};
use windlass_runtime::{Runtime, Settings};
use windlass_store::account::{LedgerQuery, LedgerRow, Posting};
use windlass_store::commit::Commit;
use windlass_store::flow::VersionStatus;
use windlass_store::memory::Memory;
use windlass_store::run::{RunStatus, Since};
use windlass_store::{Durability, Sqlite, Store};

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
/// Nodes of each layer: all of one are ready when the one before is done. Together 200.
const LAYERS: [usize; 5] = [64, 64, 64, 7, 1];
const N_NODES: i64 = 200;
/// The charge of a node, and its cost in the end.
const ESTIMATE: i64 = 3;
const ACTUAL: i64 = 2;
const DEPOSIT: i64 = 10_000;
/// Runs of the same account that are raced at the same time.
const N_RUNS: usize = 2;

fn node_id(layer: usize, nth: usize) -> String {
    format!("n{layer}-{nth}")
}

/// Layers of calls; every node waits for two of the layer before, the last one for all of it.
fn layered() -> Value {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    for (layer, n) in LAYERS.into_iter().enumerate() {
        for nth in 0..n {
            let id = node_id(layer, nth);
            let cost = json!({"estimate": ESTIMATE, "actual": ACTUAL});
            nodes.push(json!({"id": id, "type": "work", "config": {"nth": nth}, "cost": cost}));
            let Some(before) = layer.checked_sub(1) else { continue };
            let width = LAYERS[before];
            let sources: BTreeSet<usize> = match n {
                1 => (0..width).collect(),
                _ => [nth % width, (nth + 1) % width].into(),
            };
            let edge = |source| json!({"source": node_id(before, source), "target": id});
            edges.extend(sources.into_iter().map(edge));
        }
    }
    json!({"nodes": nodes, "edges": edges})
}

async fn servers(store: &Arc<dyn Store>, n: usize) -> Vec<Runtime> {
    let mut servers = Vec::new();
    for nth in 0..n {
        let settings = Settings { name: format!("server {nth}"), ..Settings::default() };
        servers.push(Runtime::start_up(store.clone(), settings).await.unwrap());
    }
    servers
}

async fn open_account(store: &dyn Store) {
    let now = Timestamp(1);
    store.open_account(&Project::DEFAULT, "payer", "", now).await.unwrap();
    let movement = Movement::deposit("first", Amount(DEPOSIT));
    let posting = Posting { account: "payer".to_owned(), movement };
    let commit = Commit {
        postings: vec![posting],
        ..Commit::new(&Project::DEFAULT, CommandId::new(Uuid::now_v7()), now)
    };
    store.commit_one(commit).await.unwrap();
}

async fn start_runs(server: &Runtime) -> BTreeSet<RunId> {
    let flow = FlowSpec { name: "race".to_owned(), ..FlowSpec::default() };
    let version = VersionSpec {
        definition: layered().to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let published = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    let mut runs = BTreeSet::new();
    for _ in 0..N_RUNS {
        let new = RunSpec {
            flow: published.flow,
            version: published.version.unwrap().0,
            request: None,
            labels: BTreeMap::new(),
            schedule: None,
            start: Start { account: Some("payer".to_owned()), ..Start::default() },
        };
        runs.insert(server.runs().start(new).await.unwrap().run);
    }
    runs
}

/// Exactly so many jobs, all in hand before any of them is finished. Each server knows best of those that it made, so
/// they are asked in turn.
async fn claim_all(servers: &[Runtime], n: usize) -> Vec<LeasedJob> {
    let (mut claimed, begun) = (Vec::new(), Instant::now());
    for server in servers.iter().cycle().take_while(|_| begun.elapsed() < PATIENCE) {
        if claimed.len() == n {
            return claimed;
        }
        let claim = ClaimRequest {
            worker: "w".to_owned(),
            queues: Vec::new(),
            services: vec!["work".to_owned()],
            max: n - claimed.len(),
            wait: Duration::from_millis(20),
            lease: PATIENCE,
        };
        claimed.extend(server.jobs().claim(claim).await.unwrap());
    }
    panic!("only {} of {n} jobs were there", claimed.len());
}

fn done(claimed: &LeasedJob, value: Value) -> JobEnd {
    let outcome = CallOutcome::Done(value.into());
    JobEnd {
        job: claimed.job,
        fence: claimed.fence,
        outcome,
        worker: None,
        log: windlass_runtime::calls::log::Log::default(),
        retry_after_ms: None,
    }
}

/// The output of each node, by run and path.
type Winners = BTreeMap<(RunId, String), Value>;

/// Finishes all of them at one moment: each twice with one result, and once with another. One result wins, a repeat of
/// it is accepted, and the other is refused.
async fn finish_at_once(servers: &[Runtime], claimed: Vec<LeasedJob>, winners: &mut Winners) {
    let (gate, claimed) = (Arc::new(Barrier::new(claimed.len() * 3)), Arc::new(claimed));
    let mut racing = JoinSet::new();
    for at in 0..claimed.len() {
        for (nth, value) in ["mine", "mine", "other"].into_iter().enumerate() {
            let (gate, claimed) = (gate.clone(), claimed.clone());
            let server = servers[(at + nth) % servers.len()].clone();
            racing.spawn(async move {
                gate.wait().await;
                let answers = server.jobs().finish(vec![done(&claimed[at], json!(value))]).await;
                (at, value, answers.into_iter().next().unwrap().unwrap())
            });
        }
    }
    let mut verdicts: BTreeMap<usize, Vec<(&str, ClaimVerdict)>> = BTreeMap::new();
    for (at, value, verdict) in racing.join_all().await {
        verdicts.entry(at).or_default().push((value, verdict));
    }
    for (at, verdicts) in verdicts {
        let accepted = |&&(_, verdict): &&(&str, ClaimVerdict)| verdict == ClaimVerdict::Ok;
        let taken: BTreeSet<&str> = verdicts.iter().filter(accepted).map(|(value, _)| *value).collect();
        assert_eq!(taken.len(), 1, "one result wins: {verdicts:?}");
        let refused = verdicts.iter().filter(|(value, _)| !taken.contains(value));
        assert!(refused.into_iter().all(|(_, verdict)| *verdict == ClaimVerdict::Lost), "{verdicts:?}");
        let same = verdicts.iter().filter(|(value, _)| taken.contains(value));
        assert!(same.into_iter().all(|(_, verdict)| *verdict == ClaimVerdict::Ok), "{verdicts:?}");
        let call = claimed[at].call.clone().unwrap();
        let winner = json!(taken.first().unwrap());
        let before = winners.insert((call.run, call.node.as_str().to_owned()), winner);
        assert_eq!(before, None, "{} was handed out twice", call.node);
    }
}

/// Every node ended once, with the result that won, and so did the run; its costs are those of its nodes.
async fn check_run(server: &Runtime, run: RunId, winners: &Winners) {
    // The worker of the last node was answered when the end of the run was durable.
    let view = server.runs().view(run).await.unwrap().unwrap();
    assert_eq!(view.row.projection.status, RunStatus::Completed);
    let cost = view.row.projection.cost;
    assert_eq!((cost.estimated.0, cost.actual.0), (N_NODES * ESTIMATE, N_NODES * ACTUAL));
    let nodes = &view.plan.root.nodes;
    assert_eq!(nodes.len() as i64, N_NODES);
    for (ix, node) in nodes.iter().enumerate() {
        let state = view.state.root.node(ix);
        assert!(matches!(state.phase, Phase::Done), "{} is {:?}", node.key, state.phase);
        assert_eq!(state.output.as_deref(), winners.get(&(run, node.key.clone())), "{}", node.key);
    }
    let journal =
        server.store().journal(server.project(), run, Since::Entry(Seq::ZERO), 10_000).await.unwrap();
    let (mut n_ends, mut ended) = (0, BTreeSet::new());
    for event in journal.entries.iter().flat_map(|(_, entry)| &entry.events) {
        match event {
            Event::Done { node, .. } => assert!(ended.insert(node.clone()), "{node} was done twice"),
            Event::Ended { .. } => n_ends += 1,
            _ => {}
        }
    }
    assert_eq!((ended.len() as i64, n_ends), (N_NODES, 1));
}

async fn ledger(store: &dyn Store) -> Vec<LedgerRow> {
    let mut rows: Vec<LedgerRow> = Vec::new();
    loop {
        let after = rows.last().map_or(Seq::ZERO, |row| row.seq);
        let query =
            LedgerQuery { account: "payer".to_owned(), after, limit: 1_000, ..LedgerQuery::default() };
        let page = store.ledger(&Project::DEFAULT, query).await.unwrap();
        if page.is_empty() {
            return rows;
        }
        rows.extend(page);
    }
}

/// Every node was charged once and settled once, and the balance agrees.
async fn check_money(store: &dyn Store) {
    let rows = ledger(store).await;
    let calls = N_NODES * N_RUNS as i64;
    let of = |kind: MovementKind| rows.iter().filter(|row| row.posting.movement.kind == kind).count() as i64;
    assert_eq!(
        (of(MovementKind::Charge), of(MovementKind::Settle), of(MovementKind::Refund)),
        (calls, calls, 0)
    );
    let keys: BTreeSet<&str> = rows.iter().map(|row| row.posting.movement.key.as_str()).collect();
    assert_eq!(keys.len(), rows.len(), "a movement was made twice");
    let sum: i64 = rows.iter().map(|row| row.posting.movement.amount.0).sum();
    let account = store.account(&Project::DEFAULT, "payer").await.unwrap().unwrap();
    assert_eq!((account.balance.0, account.held.0), (sum, 0));
    assert_eq!(sum, DEPOSIT - calls * ACTUAL);
}

async fn race(store: Arc<dyn Store>, n_servers: usize) {
    let servers = servers(&store, n_servers).await;
    open_account(&*store).await;
    let runs = start_runs(&servers[0]).await;
    let mut winners = Winners::new();
    for n in LAYERS {
        let claimed = claim_all(&servers, n * N_RUNS).await;
        finish_at_once(&servers, claimed, &mut winners).await;
    }
    for run in runs {
        check_run(&servers[0], run, &winners).await;
    }
    check_money(&*store).await;
    for server in servers {
        server.shut_down(Duration::from_secs(1)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_memory() {
    race(Arc::new(Memory::new()), 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn in_memory_by_way_of_two_servers() {
    race(Arc::new(Memory::shared()), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_sqlite() {
    race(Backend::Sqlite.fresh().await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_sqlite_by_way_of_two_servers() {
    let store = Sqlite::temporary(Durability::Fast).unwrap().shared();
    race(Arc::new(store), 2).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_postgres() {
    race(Backend::Postgres.fresh().await, 1).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn on_postgres_by_way_of_three_servers() {
    race(Backend::Postgres.fresh().await, 3).await;
}
