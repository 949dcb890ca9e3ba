//! How fast the engine is: time of decide and apply alone, without a store. Targets are in `docs/benchmarks.md`.

#![allow(
    clippy::unwrap_used,
    unreachable_pub,
    dead_code,
    reason = "a benchmark stops at once and has no users"
)]

#[path = "../tests/support/shapes.rs"]
mod shapes;

use std::borrow::Cow;
use std::hint::black_box;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use serde_json::{Map, Value, json};
use shapes::{Play, items, plan_of, run_id};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::Event;
use windlass_engine::expr::{cel, json as operators};
use windlass_engine::input::Input;
use windlass_engine::journal::Entry;
use windlass_engine::layout::{self, Direction};
use windlass_engine::meter::Meter;
use windlass_engine::reference::{Facts, Root};
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;

criterion_group!(benches, runs, fans, long_runs, replay, compiling, conditions, entries, layouts);
criterion_main!(benches);

fn one_param() -> Map<String, Value> {
    Map::from_iter([("x".to_owned(), json!("hello"))])
}

fn layouts(c: &mut Criterion) {
    for (name, plan) in [
        ("layout/layers-1000", plan_of(&shapes::dag_layers(1_000, 10))),
        ("layout/chain-1000", plan_of(&shapes::graph_chain(1_000))),
    ] {
        c.bench_function(name, |b| b.iter(|| layout::layout(&plan, Direction::LeftRight)));
    }
}

fn runs(c: &mut Criterion) {
    let plan = plan_of(&shapes::graph_chain(3));
    c.bench_function("run/3-nodes", |b| b.iter(|| Play::to_end(&plan, one_param())));
    let plan = plan_of(&shapes::dag_layers(1_000, 10));
    c.bench_function("run/dag-1000", |b| b.iter(|| Play::to_end(&plan, Map::new())));
}

fn fans(c: &mut Criterion) {
    let mut group = c.benchmark_group("foreach");
    group.sample_size(10);
    for (name, definition) in [
        ("calls", shapes::foreach_calls()),
        ("params", shapes::foreach_with_params()),
        ("flows", shapes::foreach_flows()),
    ] {
        let plan = plan_of(&definition);
        for n in [10_000, 20_000, 100_000] {
            let make = || items(n);
            group.bench_function(format!("{name}-{n}"), |b| {
                b.iter_batched(make, |params| Play::to_end(&plan, params), BatchSize::PerIteration);
            });
        }
    }
    let plan = plan_of(&shapes::foreach_waits());
    for n in [1_000, 2_000] {
        group.bench_function(format!("waits-{n}"), |b| {
            b.iter_batched(|| items(n), |params| wait_then_go(&plan, params), BatchSize::PerIteration);
        });
    }
}

/// All flows wait for one signal while the others still write.
fn wait_then_go(plan: &windlass_engine::plan::Plan, params: Map<String, Value>) -> Play {
    let mut play = Play::start(plan, params);
    play.answer_all(plan);
    let (key, value) = ("go".to_owned(), json!(true));
    play.feed(plan, &Input::Signal { id: None, key, value, by: None });
    assert!(play.run.status.is_ended());
    play
}

fn long_runs(c: &mut Criterion) {
    let mut group = c.benchmark_group("long");
    group.sample_size(10);
    for n in [4_000, 8_000] {
        for (name, definition) in [
            ("dag-wide", shapes::dag_wide(n)),
            ("dag-deep", shapes::dag_layers(n, 1)),
            ("loop", shapes::steps_loop(n)),
        ] {
            let plan = plan_of(&definition);
            group.bench_function(format!("{name}-{n}"), |b| b.iter(|| Play::to_end(&plan, Map::new())));
        }
    }
}

fn replay(c: &mut Criterion) {
    let plan = plan_of(&shapes::graph_chain(3_333));
    let journal = Play::to_end(&plan, one_param()).journal;
    assert!(journal.len() >= 10_000);
    let fold = |journal: &[(Timestamp, Event)]| {
        Run::replay(run_id(), &plan, journal.iter().map(|(at, event)| (*at, event)))
    };
    c.bench_function("replay/10000-events", |b| b.iter(|| fold(&journal)));
    let command = "cmd_0190a1b2c3d47000800000000000000b".parse().unwrap();
    let stored: Vec<Vec<u8>> = journal
        .chunks(3)
        .map(|part| {
            let events = part.iter().map(|(_, event)| event.clone()).collect();
            Entry::new(part[0].0, command, events).encode()
        })
        .collect();
    c.bench_function("replay/10000-events-decoded", |b| {
        b.iter(|| {
            let mut run = Run::new(run_id());
            for bytes in &stored {
                let entry = Entry::decode(bytes).unwrap();
                entry.events.iter().for_each(|event| run.apply(&plan, event, entry.at));
            }
            run
        });
    });
}

fn compiling(c: &mut Criterion) {
    for (name, definition) in [
        ("graph", shapes::graph_chain(1_000)),
        ("dag", shapes::dag_layers(1_000, 10)),
        ("steps", shapes::steps_chain(999)),
    ] {
        let text = definition.to_string();
        c.bench_function(&format!("compile/{name}-1000"), |b| b.iter(|| compile(&text, Strictness::Strict)));
    }
}

struct BenchRun(Value);

impl Facts for BenchRun {
    fn root(&self, root: &Root) -> Option<Cow<'_, Value>> {
        matches!(root, Root::Shared).then_some(Cow::Borrowed(&self.0))
    }

    fn field(&self, root: &Root, key: &str) -> Option<Cow<'_, Value>> {
        matches!(root, Root::Shared).then(|| self.0.get(key)).flatten().map(Cow::Borrowed)
    }
}

fn conditions(c: &mut Criterion) {
    let world = BenchRun(json!({"n": 7, "name": "alpha", "list": [1, 2, 3]}));
    let expr = cel::CelExpr::parse("$var.n > 5 && $var.name == 'alpha' && 2 in $var.list").unwrap();
    c.bench_function("condition/cel", |b| b.iter(|| black_box(expr.holds(&world, &Meter::default()))));
    let mut problems = windlass_engine::problem::Problems::default();
    let written = json!({"and": [{"gt": ["$shared.n", 5]}, {"eq": ["$shared.name", "alpha"]}, {"in": [2, "$shared.list"]}]});
    let expr = operators::JsonExpr::parse(&written, "$", &mut problems).unwrap();
    c.bench_function("condition/json", |b| b.iter(|| black_box(expr.holds(&world, &Meter::default()))));
}

fn entries(c: &mut Criterion) {
    let plan = plan_of(&shapes::graph_chain(3));
    let journal = Play::to_end(&plan, one_param()).journal;
    let events = journal.iter().take(3).map(|(_, event)| event.clone()).collect();
    let command = "cmd_0190a1b2c3d47000800000000000000b".parse().unwrap();
    let entry = Entry::new(journal[0].0, command, events);
    let bytes = entry.encode();
    c.bench_function("entry/encode", |b| b.iter(|| entry.encode()));
    c.bench_function("entry/decode", |b| b.iter(|| Entry::decode(&bytes).unwrap()));
}
