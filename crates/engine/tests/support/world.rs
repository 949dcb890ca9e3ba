//! A run with its journal, and the checks that hold after every input.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::Value;
use windlass_engine::counter::Fence;
use windlass_engine::effect::Effect;
use windlass_engine::event::Event;
use windlass_engine::id::RunId;
use windlass_engine::input::{Given, Input, Refusal};
use windlass_engine::plan::Plan;
use windlass_engine::run::{Run, RunStep};
use windlass_engine::time::Timestamp;

pub struct TestRun {
    pub plan: Arc<Plan>,
    pub run: Run,
    pub journal: Vec<(Timestamp, Event)>,
    pub effects: Vec<Effect>,
    /// The result of the last input.
    pub last: Option<Result<RunStep, Refusal>>,
}

impl TestRun {
    pub fn of(plan: Arc<Plan>) -> TestRun {
        TestRun { plan, run: Run::new(run_id()), journal: Vec::new(), effects: Vec::new(), last: None }
    }

    pub fn submit(&mut self, input: &Input, given: &Given) -> Result<RunStep, Refusal> {
        let step = self.run.submit(&self.plan, input, given)?;
        self.journal.extend(step.events.iter().map(|event| (given.now, event.clone())));
        self.effects.extend(step.effects.iter().cloned());
        Ok(step)
    }

    /// Replaying the journal, and reading a snapshot back, give the very same state; and no two visits share a key.
    pub fn check(&self) -> Result<(), String> {
        let mut keys = std::collections::BTreeSet::new();
        for effect in &self.effects {
            if let Effect::Call(spec) = effect
                && (spec.attempt, &spec.memo) == (1, &None)
                && !keys.insert(&spec.key)
            {
                return Err(format!("two first attempts have the key {}", spec.key));
            }
        }
        let live = picture(&self.run);
        let stored: Vec<(Timestamp, Event)> = self
            .journal
            .iter()
            .map(|(at, event)| {
                let text = serde_json::to_string(event).unwrap();
                (*at, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
            })
            .collect();
        let replayed = Run::replay(self.run.id, &self.plan, stored.iter().map(|(at, event)| (*at, event)));
        if picture(&replayed) != live {
            return Err(format!("replay differs\nlive   {live}\nreplay {}", picture(&replayed)));
        }
        let read: Run = serde_json::from_value(live.clone()).map_err(|error| format!("snapshot: {error}"))?;
        if picture(&read) != live {
            return Err("the snapshot reads back differently".to_owned());
        }
        self.check_promises()
    }

    /// Properties of every run at every moment.
    fn check_promises(&self) -> Result<(), String> {
        let run = &self.run;
        if !run.status.is_ended() && run.why(&self.plan).is_empty() {
            return Err("the run is open and waits for nothing".to_owned());
        }
        let (mut fence, mut keys) = (Fence::ZERO, BTreeSet::new());
        let (mut n_charges, mut n_closed) = (0, 0);
        for effect in &self.effects {
            match effect {
                Effect::Call(spec) if spec.fence <= fence => {
                    return Err(format!("fence {} of `{}` was used before", spec.fence, spec.node));
                }
                Effect::Call(spec) => fence = spec.fence,
                Effect::Move { movement, .. } => {
                    if !keys.insert(movement.key.clone()) {
                        return Err(format!("money moved twice under {}", movement.key));
                    }
                    match movement.kind.word() {
                        "charge" => n_charges += 1,
                        _ => n_closed += 1,
                    }
                }
                Effect::Cancel { .. }
                | Effect::Withdraw { .. }
                | Effect::Tell { .. }
                | Effect::Bill { .. }
                | Effect::Raise { .. } => {}
            }
        }
        if run.status.is_ended() && n_charges != n_closed {
            return Err(format!("{n_charges} charges, but {n_closed} settled or refunded"));
        }
        Ok(())
    }
}

pub fn run_id() -> RunId {
    "run_0190a1b2c3d47000800000000000000a".parse().unwrap()
}

pub fn picture(run: &Run) -> Value {
    serde_json::to_value(run).unwrap()
}
