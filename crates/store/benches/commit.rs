//! How many commits a store takes: whole runs of three calls as the engine decides them, by so many committers at
//! once. Committers are tasks, as in a server: a thread each would measure the system's scheduler. The sync rate of
//! the disk is printed beside it, because `strict` depends on it, and so is the size of a run on the disk.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops at once and talks to people")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use windlass_conformance::block_on;
use windlass_engine::counter::{Epoch, Seq};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::effect::Effect;
use windlass_engine::event::Start;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::plan::Form;
use windlass_engine::project::Project;
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_store::commit::Commit;
use windlass_store::flow::{FlowChoice, FlowDraft, Publication, VersionDraft, VersionStatus};
use windlass_store::projection::{Projection, project};
use windlass_store::run::{Origin, Owner};
use windlass_store::sqlite::Durability;
use windlass_store::{Memory, Sqlite, Store};

criterion_group!(benches, commits);
criterion_main!(benches);

const DEFINITION: &str = r#"{"start": "a",
    "nodes": {
        "a": {"service": "transform", "prep": {"input_key": "$params.x"}, "post": {"output_key": "one"}},
        "b": {"service": "transform", "prep": {"input_key": "$shared.one"}, "post": {"output_key": "two"}},
        "c": {"service": "transform", "prep": {"input_key": "$shared.two"}, "post": {"output_key": "three"}}
    },
    "edges": [{"from": "a", "to": "b"}, {"from": "b", "to": "c"}]}"#;
const MOMENT: Timestamp = Timestamp(1_790_000_000_000);
/// Threads of the committers.
const THREADS: usize = 2;
/// Runs that are counted in bytes.
const RUNS: u64 = 20_000;

fn id<I: FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u64) -> I {
    format!("{prefix}_0190a1b2c3d47000{n:016x}").parse().unwrap()
}

fn publish(store: &dyn Store) {
    let flow = FlowDraft {
        id: id("flow", 1),
        name: "flow".to_owned(),
        description: String::new(),
        labels: BTreeMap::new(),
        is_template: false,
        allow_same_name: false,
    };
    let version = VersionDraft {
        id: id("ver", 1),
        number: None,
        definition: DEFINITION.to_owned(),
        plan: None,
        form: Form::Graph,
        lenient: false,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let (flow, version) = (FlowChoice::Create(flow), Some(version));
    block_on(store.publish(&Project::DEFAULT, Publication { flow, version, now: Timestamp(0) })).unwrap();
}

/// The commits of one run, from its start to its end.
fn commits_of_a_run() -> Vec<Commit> {
    let plan = compile(DEFINITION, Strictness::Strict).plan.unwrap();
    let owner = Owner { server: id("srv", 1), epoch: Epoch(1) };
    let (mut run, mut projection) = (Run::new(id("run", 0)), Projection::default());
    let start = Start {
        params: json!({ "x": "hello" }).as_object().unwrap().clone().into(),
        call_timeout_ms: 60_000,
        ..Start::default()
    };
    let origin = Origin {
        flow: id("flow", 1),
        version: id("ver", 1),
        request: None,
        labels: BTreeMap::new(),
        account: None,
        parent: None,
        schedule: None,
        created_at: MOMENT,
    };
    let (mut input, mut create) = (Some(Input::Start(Box::new(start))), Some(origin));
    let mut commits = Vec::new();
    while let Some(next) = input.take() {
        let now = MOMENT.after(commits.len() as u64);
        let step = run.submit(&plan, &next, &Given::at(now)).unwrap();
        let rows = project(&mut projection, &run, &step, Some(owner), now);
        for effect in &step.effects {
            if let Effect::Call(spec) = effect {
                let outcome = CallOutcome::Done(Arc::new(json!("hello")));
                let (node, worker) = (spec.node.clone(), Some("worker-1".to_owned()));
                input = Some(Input::CallEnded { node, fence: spec.fence, outcome, worker });
            }
        }
        let len = Seq(commits.len() as u64);
        commits.push(rows.into_commit(id("cmd", 0), now, &run, len, step, create.take()));
    }
    assert!(run.status.is_ended());
    commits
}

/// The last number handed out: committers never meet.
struct Counters {
    commits: Vec<Commit>,
    runs: AtomicU64,
    commands: AtomicU64,
}

impl Counters {
    fn new() -> Arc<Self> {
        Arc::new(Counters {
            commits: commits_of_a_run(),
            runs: AtomicU64::new(1),
            commands: AtomicU64::new(1),
        })
    }

    async fn commit_run(&self, store: &dyn Store) {
        let run = id("run", self.runs.fetch_add(1, Ordering::Relaxed));
        for commit in &self.commits {
            let mut commit = commit.clone();
            // In the order of commits, not of runs, as ids made in time are.
            commit.command = id("cmd", self.commands.fetch_add(1, Ordering::Relaxed));
            let change = commit.run.as_mut().unwrap();
            (change.run, change.entry.command) = (run, commit.command);
            store.commit_one(commit).await.unwrap();
        }
    }
}

/// So many runs by so many committers.
fn commit(store: &Arc<dyn Store>, threads: &Runtime, n_committers: u64, n: u64, counters: &Arc<Counters>) {
    let left = Arc::new(AtomicU64::new(n));
    let take = |left: u64| left.checked_sub(1);
    let committers: Vec<_> = (0..n_committers)
        .map(|_| {
            let (store, counters, left) = (store.clone(), counters.clone(), left.clone());
            threads.spawn(async move {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    counters.commit_run(&*store).await;
                }
            })
        })
        .collect();
    threads.block_on(async {
        for committer in committers {
            committer.await.unwrap();
        }
    });
}

fn commits(c: &mut Criterion) {
    print_syncs();
    let threads = Builder::new_multi_thread().worker_threads(THREADS).build().unwrap();
    print_bytes(&threads);
    let stores: [(&str, Arc<dyn Store>); 3] = [
        ("memory", Arc::new(Memory::new())),
        ("sqlite-strict", Arc::new(Sqlite::temporary(Durability::Strict).unwrap())),
        ("sqlite-fast", Arc::new(Sqlite::temporary(Durability::Fast).unwrap())),
    ];
    let mut group = c.benchmark_group("commit");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(commits_of_a_run().len() as u64));
    for (name, store) in &stores {
        publish(&**store);
        let counters = Counters::new();
        for n_committers in [1, 64, 256, 1_024] {
            group.bench_function(format!("{name}/{n_committers}"), |b| {
                b.iter_custom(|n| {
                    let begun = Instant::now();
                    commit(store, &threads, n_committers, n, &counters);
                    begun.elapsed()
                });
            });
        }
    }
    group.finish();
}

/// How often the disk under the temporary directory can be made to keep a page.
fn print_syncs() {
    const SYNCS: u32 = 200;
    let path = std::env::temp_dir().join(format!("windlass-syncs-{}", std::process::id()));
    let mut file = fs::File::create(&path).unwrap();
    let begun = Instant::now();
    for _ in 0..SYNCS {
        file.write_all(&[7; 4096]).unwrap();
        file.sync_data().unwrap();
    }
    let rate = f64::from(SYNCS) / begun.elapsed().as_secs_f64();
    fs::remove_file(&path).unwrap();
    println!("the disk syncs {rate:.0} times a second");
}

/// Bytes of a finished run on the disk.
fn print_bytes(threads: &Runtime) {
    let place = std::env::temp_dir().join(format!("windlass-bytes-{}", std::process::id()));
    fs::create_dir(&place).unwrap();
    let path = place.join("store.db");
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(&path, Durability::Fast).unwrap());
    publish(&*store);
    let empty = fs::metadata(&path).unwrap().len();
    commit(&store, threads, 256, RUNS, &Counters::new());
    drop(store);
    let bytes = fs::metadata(&path).unwrap().len().saturating_sub(empty) / RUNS;
    fs::remove_dir_all(&place).unwrap();
    println!("a finished run takes {bytes} bytes");
}
