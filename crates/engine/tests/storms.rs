//! Throws random inputs at every flow of `tests/cases`: late, doubled, contradictory and out of place. After every
//! input, the journal replays to the same state, money moves once, an open run waits for something, and a run
//! that is answered ends. `SEEDS=1000 FLOWS=loop` looks harder at some.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "how a test is run is told by the environment")]
#![allow(unreachable_pub, dead_code, reason = "the support is shared by several tests")]

#[path = "support/world.rs"]
mod world;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_engine::counter::Fence;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::{Event, InsufficientFundsAction, Start};
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::meter::Meter;
use windlass_engine::money::{Amount, Bill};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::run::state::Status;
use windlass_engine::time::Timestamp;
use world::TestRun;

const SEEDS: u64 = 5;
const INPUTS: u64 = 40;
/// Answers after which a run that is only answered must have ended.
const ANSWERS: usize = 3_000;

#[test]
fn runs_stay_sound_and_end_under_any_inputs() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(SEEDS);
    let mut failures = Vec::new();
    let only = std::env::var("FLOWS").unwrap_or_default();
    for (name, plan, params) in flows().into_iter().filter(|(name, ..)| name.contains(&only)) {
        for seed in 0..seeds {
            let storm = std::panic::catch_unwind(|| Storm::new(plan.clone(), params.clone(), seed).blow());
            match storm {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failures.push(format!("{name} seed {seed}: {error}")),
                Err(panic) => {
                    let text = panic
                        .downcast_ref::<String>()
                        .cloned()
                        .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                    failures.push(format!("{name} seed {seed}: panicked: {text:?}"));
                }
            }
        }
    }
    failures.truncate(20);
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// The definition of every case that compiles, with the params its first start gives.
fn flows() -> Vec<(String, Arc<Plan>, Value)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut files = Vec::new();
    collect(&root, &mut files);
    files.sort();
    let mut flows = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let is_head = |line: &&str| !line.starts_with("< ") && !line.starts_with("= ");
        let head: String = text
            .lines()
            .take_while(is_head)
            .filter(|line| !line.starts_with("# "))
            .map(|line| format!("{line}\n"))
            .collect();
        let start = text.lines().find_map(|line| line.split_once(" start ")).map_or("{}", |(_, json)| json);
        let start: Value = serde_json::from_str(start).unwrap_or_default();
        if let Some(plan) = compile(&head, Strictness::Lenient).plan {
            let name = file.strip_prefix(&root).unwrap().display().to_string();
            flows.push((name, plan, start));
        }
    }
    flows
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|e| e == "case") {
            files.push(path);
        }
    }
}

struct Storm {
    world: TestRun,
    start: Value,
    seed: u64,
    now: i64,
    /// Child runs that have not reported their end: each does once, also when its parent no longer waits.
    children: BTreeMap<Fence, NodePath>,
    told: Vec<String>,
}

impl Storm {
    fn new(plan: Arc<Plan>, start: Value, seed: u64) -> Storm {
        Storm {
            world: TestRun::of(plan),
            start,
            seed: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
            now: 0,
            children: BTreeMap::new(),
            told: Vec::new(),
        }
    }

    fn roll(&mut self, n: u64) -> u64 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 11) % n
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.roll(100) < percent
    }

    fn blow(mut self) -> Result<(), String> {
        let mut start: Start = serde_json::from_value(self.start.clone()).unwrap_or_default();
        start.manual = self.chance(15);
        start.account = self.chance(70).then(|| "acme".to_owned());
        start.budget = self.chance(20).then_some(Amount(60));
        start.on_short_balance =
            if self.chance(50) { InsufficientFundsAction::Wait } else { InsufficientFundsAction::Fail };
        self.submit(Input::Start(Box::new(start)))?;
        if self.world.run.status == Status::Pending {
            return Ok(());
        }
        for _ in 0..INPUTS {
            self.now += i64::try_from(self.roll(3) * self.roll(20_000)).unwrap();
            let input = self.any_input();
            self.submit(input)?;
        }
        self.calm()
    }

    fn submit(&mut self, input: Input) -> Result<(), String> {
        let mut given = Given::at(Timestamp(self.now));
        if self.chance(10) {
            given.insufficient_funds = self.places().into_iter().collect();
        }
        // Inputs meet agendas that a spent budget left open.
        if self.chance(40) {
            given.meter = Meter::of(1 + self.roll(150));
        }
        self.tell(&input, &given)
    }

    fn tell(&mut self, input: &Input, given: &Given) -> Result<(), String> {
        self.told.push(format!("{} {input:?}", self.now));
        if let Input::ChildEnded { fence, .. } = input {
            self.children.remove(fence);
        }
        let before = self.world.journal.len();
        let _ = self.world.submit(input, given);
        for (node, fence, exec) in self.world.run.open_calls(&self.world.plan) {
            let is_new = self.world.journal[before..].iter().any(|(_, event)| is_grant(event, fence));
            if is_new && matches!(exec, Exec::Flow { .. }) {
                self.children.insert(fence, node);
            }
        }
        self.world.check().map_err(|error| self.story(&error))
    }

    fn story(&self, error: &str) -> String {
        let last = self.told.len().saturating_sub(60);
        format!("{error}\n    {}", self.told[last..].join("\n    "))
    }

    fn any_input(&mut self) -> Input {
        match self.roll(24) {
            0 => Input::Pause,
            1 | 2 => Input::Resume,
            3 | 4 => Input::Step,
            5 => Input::Retry,
            6 => Input::Rerun {
                from: self.place(),
                shared: self.chance(30).then(|| json!({"n": 1}).as_object().unwrap().clone()),
            },
            7 if self.chance(30) => Input::Cancel { reason: None, by: None },
            7 | 8 => Input::Continue { node: self.place(), value: self.value() },
            9 => Input::BalanceChanged { budget: self.chance(50).then_some(Amount(500)), balance: None },
            10 => Input::Signal {
                id: self.chance(50).then(|| "s1".to_owned()),
                key: "go".to_owned(),
                value: self.value(),
                by: None,
            },
            11 => {
                Input::Decide { node: None, decision: json!(true), by: Some("ann".to_owned()), comment: None }
            }
            12..=14 => {
                if let Some(at) = self.world.run.wake_at() {
                    self.now = self.now.max(at.0);
                }
                Input::TimePassed
            }
            _ => self.answer(),
        }
    }

    fn answer(&mut self) -> Input {
        let calls = self.world.run.open_calls(&self.world.plan);
        let n = calls.len() as u64;
        let (node, mut fence) = match n {
            0 => (self.place(), Fence(1)),
            n => {
                let (node, fence, _) = calls[self.roll(n) as usize].clone();
                (node, fence)
            }
        };
        if self.chance(10) {
            fence = Fence(fence.0.saturating_sub(1));
        }
        let outcome = match self.roll(12) {
            0 => CallOutcome::Failed(Fault::new(FaultKind::Error, "no")),
            1 => CallOutcome::Failed(Fault::new(FaultKind::Transport, "reset")),
            2 => CallOutcome::Failed(Fault::new(FaultKind::Error, "never").permanent()),
            3 => CallOutcome::Suspended { memo: json!("job"), recheck_ms: self.chance(50).then_some(500) },
            4 => CallOutcome::WorkerLost,
            5 => CallOutcome::ServerLost,
            6 if self.chance(30) => CallOutcome::Canceled,
            _ => CallOutcome::Done(Arc::new(self.value())),
        };
        if self.children.contains_key(&fence) {
            return child_ended(node, fence, outcome);
        }
        Input::CallEnded { node, fence, outcome, worker: Some("w".to_owned()) }
    }

    fn value(&mut self) -> Value {
        match self.roll(6) {
            0 => json!(null),
            1 => json!([1, 2, 3]),
            2 => json!({"go": true, "score": 0.7, "action": "default", "urls": ["u"]}),
            3 => json!("x"),
            4 => json!({"go": false, "n": 3, "c": 9}),
            _ => json!(7),
        }
    }

    /// Every place the run has been to.
    fn places(&self) -> Vec<NodePath> {
        let mut places: Vec<NodePath> = Vec::new();
        for (_, event) in &self.world.journal {
            let value = serde_json::to_value(event).unwrap();
            if let Some(node) = value.get("node").and_then(Value::as_str) {
                places.push(NodePath::from(node));
            }
        }
        places.sort();
        places.dedup();
        places
    }

    fn place(&mut self) -> NodePath {
        let places = self.places();
        match places.len() as u64 {
            0 => NodePath::from("nowhere"),
            n => places[self.roll(n) as usize].clone(),
        }
    }

    /// From now on everything is answered well: the run must end.
    fn calm(mut self) -> Result<(), String> {
        self.told.push("calm".to_owned());
        for _ in 0..ANSWERS {
            if self.world.run.status.is_ended() {
                return self.world.check().map_err(|error| self.story(&error));
            }
            let calls = self.world.run.open_calls(&self.world.plan);
            let done = || CallOutcome::Done(Arc::new(json!({"go": true, "n": 3})));
            let input = if let Some((fence, node)) = self.children.first_key_value() {
                child_ended(node.clone(), *fence, done())
            } else if self.world.run.status == Status::Paused {
                Input::Resume
            } else if let Some((node, fence, _)) = calls.first() {
                Input::CallEnded { node: node.clone(), fence: *fence, outcome: done(), worker: None }
            } else {
                self.next_calm()?
            };
            self.tell(&input, &Given::at(Timestamp(self.now)))?;
        }
        Err(self.story("does not end"))
    }

    fn next_calm(&mut self) -> Result<Input, String> {
        let why = serde_json::to_value(self.world.run.why(&self.world.plan)).unwrap();
        let reason = why.get(0).ok_or_else(|| self.story("waits for nothing"))?;
        let node = NodePath::from(reason["node"].as_str().unwrap());
        Ok(match reason["waits_for"].as_str().unwrap() {
            "step" => Input::Step,
            "turn" | "timer" | "retry" | "cancel_confirmation" => {
                let at = self.world.run.wake_at().ok_or_else(|| self.story("no wake-up"))?;
                self.now = self.now.max(at.0);
                Input::TimePassed
            }
            "balance" | "budget" => Input::BalanceChanged { budget: Some(Amount::MAX), balance: None },
            "approval" => {
                let by = reason["by"].get(0).and_then(Value::as_str).map(str::to_owned);
                Input::Decide { node: Some(node), decision: json!(true), by, comment: None }
            }
            "signal" | "report" => Input::Continue { node, value: json!(true) },
            other => return Err(self.story(&format!("cannot calm {other}"))),
        })
    }
}

fn child_ended(node: NodePath, fence: Fence, outcome: CallOutcome) -> Input {
    // A child run completes, fails or is canceled: it is never lost, and never waits for a report.
    let outcome = match outcome {
        CallOutcome::Suspended { .. } | CallOutcome::WorkerLost | CallOutcome::ServerLost => {
            CallOutcome::Canceled
        }
        ended @ (CallOutcome::Done(_) | CallOutcome::Failed(_) | CallOutcome::Canceled) => ended,
    };
    Input::ChildEnded {
        node,
        fence,
        outcome: Some(outcome),
        bill: Bill { estimated: Amount(3), actual: Amount(1) },
    }
}

fn is_grant(event: &Event, of: Fence) -> bool {
    matches!(event, Event::Granted { fence, .. } if *fence == of)
}
