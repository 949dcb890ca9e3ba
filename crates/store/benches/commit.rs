//! How many commits a store takes: a run's row, an entry of its journal and a command each, from so many committers
//! at once. The sync rate of the disk is printed beside it, because that is what `strict` is made of.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark stops at once and talks to people")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use windlass_engine::event::{Event, Level};
use windlass_engine::journal::Entry;
use windlass_engine::plan::Form;
use windlass_engine::run::Totals;
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, RunChange};
use windlass_store::conformance::block_on;
use windlass_store::flow::{FlowChoice, FlowDraft, Publication, VersionDraft, VersionStatus};
use windlass_store::run::{Origin, RunStatus, Standing};
use windlass_store::sqlite::Durability;
use windlass_store::{Memory, Sqlite, Store};

criterion_group!(benches, commits);
criterion_main!(benches);

/// Entries per run: about what three steps take.
const ENTRIES: u64 = 5;

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
        definition: String::new(),
        form: Form::Graph,
        lenient: false,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let (flow, version) = (FlowChoice::Create(flow), Some(version));
    block_on(store.publish(Publication { flow, version, now: Timestamp(0) })).unwrap();
}

/// One more entry of a run, which ends with the last of its [`ENTRIES`].
fn entry(run: u64, expected_len: u64) -> Commit {
    let (command, now) = (id("cmd", run * ENTRIES + expected_len), Timestamp(1));
    let origin = Origin {
        flow: id("flow", 1),
        version: id("ver", 1),
        request: None,
        labels: BTreeMap::new(),
        account: None,
        parent: None,
        schedule: None,
        created_at: now,
    };
    let is_last = expected_len + 1 == ENTRIES;
    let standing = Standing {
        status: if is_last { RunStatus::Completed } else { RunStatus::Running },
        round: 1,
        node: Some("step".into()),
        action: None,
        step_count: expected_len,
        wake_at: None,
        owner: None,
        cost: Totals::default(),
        error: None,
        shared: None,
        result: None,
        updated_at: now,
        ended_at: is_last.then_some(now),
    };
    let message = "what a step leaves behind".to_owned();
    let event = Event::Logged { level: Level::Info, node: None, message };
    let change = RunChange {
        run: id("run", run),
        expected_len,
        create: (expected_len == 0).then_some(origin),
        entry: Entry::new(now, command, vec![event]),
        standing,
        snapshot: None,
    };
    Commit { run: Some(change), ..Commit::new(command, now) }
}

/// At least `n` commits by so many committers, each with runs of its own.
fn commit(store: &dyn Store, n_committers: u64, n: u64, n_runs: &AtomicU64) -> Duration {
    let left = AtomicU64::new(n.div_ceil(ENTRIES));
    let take = |left: u64| left.checked_sub(1);
    let begun = Instant::now();
    thread::scope(|scope| {
        for _ in 0..n_committers {
            scope.spawn(|| {
                while left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok() {
                    let run = n_runs.fetch_add(1, Ordering::Relaxed);
                    for expected_len in 0..ENTRIES {
                        block_on(store.commit_one(entry(run, expected_len))).unwrap();
                    }
                }
            });
        }
    });
    // More may have been done than was asked for: the time is that of what was asked for.
    begun.elapsed().mul_f64(n as f64 / (n.div_ceil(ENTRIES) * ENTRIES) as f64)
}

fn commits(c: &mut Criterion) {
    print_syncs();
    let memory = Memory::new();
    let strict = Sqlite::temporary(Durability::Strict).unwrap();
    let fast = Sqlite::temporary(Durability::Fast).unwrap();
    let stores: [(&str, &dyn Store); 3] =
        [("memory", &memory), ("sqlite-strict", &strict), ("sqlite-fast", &fast)];
    let mut group = c.benchmark_group("commit");
    group.sample_size(10).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(2));
    group.throughput(Throughput::Elements(1));
    for (name, store) in stores {
        publish(store);
        let n_runs = AtomicU64::new(1);
        for n_committers in [1, 64, 256] {
            group.bench_function(format!("{name}/{n_committers}"), |b| {
                b.iter_custom(|n| commit(store, n_committers, n, &n_runs));
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
