//! Journals that were stored once replay for ever: `tests/journals/*.json` hold a definition, the entries as they
//! were stored, and their expected states. They are never rewritten. `RECORD=1` adds files for events and kinds of nodes
//! that none of them has yet.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]

#[path = "support/dice.rs"]
mod dice;
#[path = "support/game.rs"]
mod game;
#[path = "support/moves.rs"]
mod moves;
#[path = "support/random.rs"]
mod random;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::event::Event;
use windlass_engine::journal::{Entry, JournalError, VERSION};
use windlass_engine::plan::{Body, Branches, NodeKind, Plan, Scope};
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;

const EVENTS: [&str; 28] = [
    "started",
    "entered",
    "granted",
    "suspended",
    "deferred",
    "expiring",
    "done",
    "failed",
    "skipped",
    "dropped",
    "judged",
    "opened",
    "draining",
    "turned",
    "waiting",
    "signaled",
    "decided",
    "canceling",
    "paused",
    "resumed",
    "stepped",
    "set_back",
    "retried",
    "rerun",
    "funded",
    "billed",
    "logged",
    "ended",
];
const KINDS: [&str; 11] =
    ["call", "choice", "fan", "sub", "loop", "timer", "wait", "approval", "compute", "pass", "return"];

#[derive(Serialize, Deserialize)]
struct Fixture {
    definition: Value,
    /// As stored: the bytes of `Entry::encode`.
    entries: Vec<Value>,
    expect: Value,
}

fn dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/journals")
}

fn fixtures() -> Vec<(String, Fixture)> {
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(dir()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let read = |file: &PathBuf| {
        let fixture = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        (file.file_name().unwrap().to_string_lossy().into_owned(), fixture)
    };
    files.iter().map(read).collect()
}

fn events(fixture: &Fixture) -> Vec<(Timestamp, Event)> {
    let decode = |stored: &Value| {
        let entry = Entry::decode(stored.to_string().as_bytes()).unwrap();
        entry.events.into_iter().map(move |event| (entry.at, event)).collect::<Vec<_>>()
    };
    fixture.entries.iter().flat_map(decode).collect()
}

fn replayed(fixture: &Fixture) -> (std::sync::Arc<Plan>, Run) {
    let plan = compile_value(fixture.definition.clone(), Strictness::Strict).plan.unwrap();
    let events = events(fixture);
    let run = Run::replay(world::run_id(), &plan, events.iter().map(|(at, event)| (*at, event)));
    (plan, run)
}

/// The visible state of a run: its status, its shared state, and the status of every node it has been to.
fn digest(plan: &Plan, run: &Run, journal: &[(Timestamp, Event)]) -> Value {
    let state = world::picture(run);
    let nodes: Map<String, Value> = journal
        .iter()
        .filter_map(|(_, event)| match event {
            Event::Entered { node, .. } | Event::Granted { node, .. } | Event::Skipped { node } => Some(node),
            _ => None,
        })
        .filter_map(|node| Some((node.to_string(), json!(run.node_status(plan, node)?))))
        .collect();
    json!({
        "status": state["status"], "round": run.round, "shared": state["root"]["shared"], "nodes": nodes,
        "result": state["result"], "cost": [run.cost.estimated, run.cost.actual], "length": run.length,
    })
}

/// The stored name of an event. A new variant has to be named here, added to `EVENTS` and recorded.
fn name(event: &Event) -> &'static str {
    match event {
        Event::Started(_) => "started",
        Event::Entered { .. } => "entered",
        Event::Granted { .. } => "granted",
        Event::Suspended { .. } => "suspended",
        Event::Deferred { .. } => "deferred",
        Event::Expiring { .. } => "expiring",
        Event::Done { .. } => "done",
        Event::Failed { .. } => "failed",
        Event::Skipped { .. } => "skipped",
        Event::Dropped { .. } => "dropped",
        Event::Judged { .. } => "judged",
        Event::Opened { .. } => "opened",
        Event::Draining { .. } => "draining",
        Event::Turned { .. } => "turned",
        Event::Waiting { .. } => "waiting",
        Event::Signaled { .. } => "signaled",
        Event::Decided { .. } => "decided",
        Event::Canceling { .. } => "canceling",
        Event::Paused => "paused",
        Event::Resumed => "resumed",
        Event::Stepped => "stepped",
        Event::SetBack { .. } => "set_back",
        Event::Retried { .. } => "retried",
        Event::Rerun { .. } => "rerun",
        Event::Funded { .. } => "funded",
        Event::Billed { .. } => "billed",
        Event::Logged { .. } => "logged",
        Event::Ended { .. } => "ended",
    }
}

/// The kind of the node at a path of the plan.
fn kind_at(scope: &Scope, path: &str) -> Option<&'static str> {
    let (key, rest) = path.split_once('/').unwrap_or((path, ""));
    let (_, node) = scope.node(key)?;
    if rest.is_empty() {
        return Some(match &node.kind {
            NodeKind::Call(_) => "call",
            NodeKind::Choice(_) => "choice",
            NodeKind::Fan(_) => "fan",
            NodeKind::Sub(_) => "sub",
            NodeKind::Loop(_) => "loop",
            NodeKind::Timer(_) => "timer",
            NodeKind::Wait(_) => "wait",
            NodeKind::Approval(_) => "approval",
            NodeKind::Compute(_) => "compute",
            NodeKind::Pass => "pass",
            NodeKind::Return => "return",
        });
    }
    let inner = |rest: &'_ str| rest.split_once('/').map(|(_, rest)| rest.to_owned());
    match &node.kind {
        NodeKind::Sub(sub) => kind_at(&sub.scope, rest),
        NodeKind::Loop(repeat) => kind_at(&repeat.body, &inner(rest)?),
        NodeKind::Fan(fan) => {
            let index: usize = rest.split('/').next()?.parse().ok()?;
            let branch = match &fan.branches {
                Branches::Fixed(list) => list.get(index)?,
                Branches::Services { each } | Branches::Items { each, .. } => each,
            };
            let Body::Scope(scope) = &branch.body else { return None };
            kind_at(scope, &inner(rest)?)
        }
        _ => None,
    }
}

/// Which events and kinds of nodes a journal has.
fn covered(plan: &Plan, journal: &[(Timestamp, Event)]) -> BTreeSet<&'static str> {
    let kinds = journal.iter().filter_map(|(_, event)| match event {
        Event::Entered { node, .. } => kind_at(&plan.root, node.as_str()),
        _ => None,
    });
    journal.iter().map(|(_, event)| name(event)).chain(kinds).collect()
}

fn covered_by_fixtures() -> BTreeSet<&'static str> {
    let cover = |(_, fixture): &(String, Fixture)| {
        let (plan, _) = replayed(fixture);
        covered(&plan, &events(fixture))
    };
    fixtures().iter().flat_map(cover).collect()
}

#[test]
fn every_old_journal_replays_to_what_it_was() {
    record();
    for (name, fixture) in fixtures() {
        let (plan, run) = replayed(&fixture);
        assert_eq!(digest(&plan, &run, &events(&fixture)), fixture.expect, "{name}");
    }
    let seen = covered_by_fixtures();
    let missing: Vec<&str> = EVENTS.into_iter().chain(KINDS).filter(|name| !seen.contains(name)).collect();
    assert!(missing.is_empty(), "no journal has {missing:?}: run with RECORD=1");
}

#[test]
fn an_entry_of_a_newer_version_is_refused_by_name() {
    let newer = json!({"v": VERSION + 1, "at": 0, "events": [{"e": "dreamt", "of": "sheep"}]});
    let error = Entry::decode(newer.to_string().as_bytes()).unwrap_err();
    assert!(matches!(error, JournalError::TooNew { found } if found == VERSION + 1));
    assert!(error.to_string().contains("upgrade"), "{error}");
    assert!(matches!(Entry::decode(b"{\"v\": 1}").unwrap_err(), JournalError::Unreadable(_)));
}

#[test]
fn unknown_fields_are_passed_over() {
    for (name, fixture) in fixtures() {
        for stored in &fixture.entries {
            let mut extended = stored.clone();
            extended["later"] = json!({"any": "thing"});
            for event in extended["events"].as_array_mut().unwrap() {
                event["later"] = json!([1]);
            }
            let plain = Entry::decode(stored.to_string().as_bytes()).unwrap();
            let read = Entry::decode(extended.to_string().as_bytes());
            assert_eq!(read.unwrap(), plain, "{name}");
        }
    }
}

/// Adds journals of random games for events that no file has yet. Never touches an existing file.
fn record() {
    #[expect(clippy::disallowed_methods, reason = "the test is told from outside to record")]
    if std::env::var_os("RECORD").is_none() {
        return;
    }
    let mut seen = covered_by_fixtures();
    for seed in 0..2_000 {
        let bytes = dice::noise(seed, 160);
        let Ok(game) = game::play(&bytes) else { continue };
        let world = &game.world;
        let new = covered(&world.plan, &world.journal);
        let file = dir().join(format!("game-{seed}.json"));
        if new.is_subset(&seen) || file.exists() {
            continue;
        }
        let definition = random::definition(&mut dice::Dice::new(&bytes));
        let expect = digest(&world.plan, &world.run, &world.journal);
        let fixture = Fixture { definition, entries: stored(&world.journal), expect };
        std::fs::write(&file, format!("{:#}\n", serde_json::to_value(&fixture).unwrap())).unwrap();
        seen.extend(new);
    }
}

fn stored(journal: &[(Timestamp, Event)]) -> Vec<Value> {
    let command = "cmd_0190a1b2c3d47000800000000000000b".parse().unwrap();
    let entry = |part: &[(Timestamp, Event)]| {
        let events = part.iter().map(|(_, event)| event.clone()).collect();
        serde_json::from_slice(&Entry::new(part[0].0, command, events).encode()).unwrap()
    };
    journal.chunk_by(|a, b| a.0 == b.0).map(entry).collect()
}
