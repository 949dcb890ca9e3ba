//! Plays a run to its end on one thread: calls are made one after the other, timers are waited for, and what the
//! script says happens when the run can go no further by itself. Nothing is stored.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value};
use windlass_engine::effect::{Effect, Order};
use windlass_engine::event::{Ending as RunEnding, Event, Parent, Start};
use windlass_engine::function;
use windlass_engine::id::RunId;
use windlass_engine::input::{Given, Input, Outcome, Refusal};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;

use super::example::{Act, Answer, Flows, Script};

/// How a run ended, or where it stood when patience did.
pub(super) struct Ending {
    pub(super) status: &'static str,
    pub(super) took: Duration,
    pub(super) n_events: usize,
    /// What the flow returned, or else its shared state.
    pub(super) result: Value,
    pub(super) error: Option<String>,
    pub(super) shared: Map<String, Value>,
    /// What went wrong with playing it.
    pub(super) trouble: Vec<String>,
    plan: Arc<Plan>,
    run: Run,
}

impl Ending {
    pub(super) fn node_status(&self, node: &str) -> Option<&'static str> {
        self.run.node_status(&self.plan, &NodePath::from(node))
    }

    pub(super) fn node_output(&self, node: &str) -> Option<Arc<Value>> {
        self.run.node_output(&self.plan, &NodePath::from(node))
    }
}

/// Plays `plan` as `script` says. `number` makes the ids of one session distinct.
pub(super) fn play(
    plan: &Arc<Plan>,
    script: &Script,
    flows: &Flows,
    number: u32,
    patience: Duration,
) -> Ending {
    let began = Instant::now();
    let id: RunId = format!("run_{:032x}", u64::from(number) + 1).parse().expect("32 hex digits are an id");
    let mut world = World {
        runs: BTreeMap::new(),
        orders: VecDeque::new(),
        n_answers: BTreeMap::new(),
        script,
        flows,
        trouble: Vec::new(),
    };
    let start = Start { params: script.params.clone(), ..Start::default() };
    world.begin(id, Arc::clone(plan), start);
    let mut acts: VecDeque<Act> = script.script.iter().cloned().collect();
    while world.trouble.is_empty() && world.advance(id, &mut acts) {
        if began.elapsed() > patience {
            world.trouble.push(format!("it did not end within {patience:?}"));
        }
    }
    if !acts.is_empty() && world.trouble.is_empty() {
        world.trouble.push(format!("it ended with {} acts of its script left", acts.len()));
    }
    world.ending(id, began.elapsed())
}

/// Runs in memory, and the calls that are to be made.
struct World<'s> {
    runs: BTreeMap<RunId, Live>,
    orders: VecDeque<Order>,
    /// Scripted answers given so far, by their key.
    n_answers: BTreeMap<&'s str, usize>,
    script: &'s Script,
    flows: &'s Flows,
    trouble: Vec<String>,
}

struct Live {
    plan: Arc<Plan>,
    run: Run,
    journal: Vec<(Timestamp, Event)>,
}

impl World<'_> {
    /// Does the next thing there is to do; `false` when the run has ended and nothing is left to happen to it.
    fn advance(&mut self, main: RunId, acts: &mut VecDeque<Act>) -> bool {
        if let Some(order) = self.orders.pop_front() {
            self.make(order);
            return true;
        }
        let wake = self.runs.values().filter_map(|live| live.run.wake_at()).min();
        if let Some(act) = acts.front() {
            match self.submit(main, &input_of(act)) {
                Ok(()) => {
                    acts.pop_front();
                    return true;
                }
                // The approval is still to come: time has to pass first.
                Err(Refusal::NoApproval) if wake.is_some() => {}
                Err(refusal) => {
                    self.trouble.push(format!("the script's next act was refused: {refusal}"));
                    return true;
                }
            }
        }
        let Some(wake) = wake else {
            self.check_ended(main);
            return false;
        };
        std::thread::sleep(Duration::from_millis(wake.since(now())));
        let due: Vec<RunId> = self.runs.keys().copied().collect();
        for id in due {
            self.report(id, &Input::TimePassed);
        }
        true
    }

    fn check_ended(&mut self, main: RunId) {
        let Some(live) = self.runs.get(&main) else { return };
        if live.run.status.is_ended() {
            return;
        }
        let reasons = live.run.why(&live.plan);
        let reasons = serde_json::to_string(&reasons).unwrap_or_default();
        self.trouble.push(format!("nothing is left to do, but it has not ended; it waits: {reasons}"));
    }

    fn begin(&mut self, id: RunId, plan: Arc<Plan>, start: Start) {
        self.runs.insert(id, Live { plan, run: Run::new(id), journal: Vec::new() });
        let parent = start.parent.clone();
        if let Err(refusal) = self.submit(id, &Input::Start(Box::new(start))) {
            match parent {
                Some(parent) => self.answer(parent, failed(&refusal.to_string())),
                None => self.trouble.push(format!("it could not be started: {refusal}")),
            }
        }
    }

    /// Feeds an input whose refusal changes nothing: an answer nobody waits for any more.
    fn report(&mut self, id: RunId, input: &Input) {
        let _late = self.submit(id, input);
    }

    fn submit(&mut self, id: RunId, input: &Input) -> Result<(), Refusal> {
        let Some(live) = self.runs.get_mut(&id) else { return Err(Refusal::NotStarted) };
        let given = Given::at(now());
        let plan = Arc::clone(&live.plan);
        let step = live.run.submit(&plan, input, &given)?;
        live.journal.extend(step.events.into_iter().map(|event| (given.now, event)));
        for effect in step.effects {
            match effect {
                Effect::Call(order) => self.orders.push_back(*order),
                Effect::Cancel { node, fence, exec } => self.stop(id, node, fence, &exec),
                Effect::Tell { parent, status, result, error } => {
                    let outcome = match status {
                        RunEnding::Completed => Outcome::Done(result),
                        RunEnding::Failed => failed(&error.unwrap_or_default()),
                        RunEnding::Canceled => Outcome::Canceled,
                    };
                    self.answer(parent, outcome);
                }
                // Examples name no account, and without one nothing is charged.
                Effect::Move { .. } => {}
            }
        }
        Ok(())
    }

    /// Stops a call: one that was not made yet is dropped, a child run is cancelled.
    fn stop(&mut self, id: RunId, node: NodePath, fence: u64, exec: &Exec) {
        self.orders.retain(|order| (order.run, order.fence) != (id, fence));
        match exec {
            Exec::Flow { .. } => {
                let child = RunId::of_call(id, fence);
                self.report(child, &Input::Cancel { reason: None, by: None });
            }
            Exec::Http | Exec::Queue | Exec::Func { .. } | Exec::Script(_) => {
                let outcome = Outcome::Canceled;
                self.report(id, &Input::CallEnded { node, fence, outcome, worker: None });
            }
        }
    }

    fn answer(&mut self, to: Parent, outcome: Outcome) {
        let Parent { run, node, fence, .. } = to;
        self.report(run, &Input::CallEnded { node, fence, outcome, worker: None });
    }

    /// Makes a call: as scripted, by a built-in function, or by a child run.
    fn make(&mut self, order: Order) {
        let to = Parent { run: order.run, node: order.node.clone(), fence: order.fence, depth: order.depth };
        if let Some(outcome) = self.scripted(&order) {
            return self.answer(to, outcome);
        }
        let outcome = match &order.exec {
            Exec::Flow { flow, .. } => match self.flows.get(flow) {
                Some(plan) => {
                    let params = (*order.params.merged()).clone();
                    let child = RunId::of_call(order.run, order.fence);
                    let start = Start { params, parent: Some(to), ..Start::default() };
                    return self.begin(child, Arc::clone(plan), start);
                }
                None => failed(&format!("there is no flow `{flow}` among the examples")),
            },
            Exec::Script(_) => failed("scripts are not run here: answer this node in `answers`"),
            Exec::Func { name } => built_in(name, &order),
            Exec::Http | Exec::Queue => built_in(&order.service, &order),
        };
        self.answer(to, outcome);
    }

    fn scripted(&mut self, order: &Order) -> Option<Outcome> {
        let script = self.script;
        let (key, answers) = script
            .answers
            .get_key_value(order.node.as_str())
            .or_else(|| script.answers.get_key_value(&order.service))?;
        let n = self.n_answers.entry(key.as_str()).or_default();
        let answer = answers.at(*n)?;
        *n += 1;
        Some(match answer {
            Answer::Done(value) => Outcome::Done(Arc::new(value.clone())),
            Answer::Fail(message) => Outcome::Failed(Fault::new(FaultKind::Error, message.clone())),
            Answer::Suspend { recheck_ms, memo } => {
                Outcome::Suspended { memo: memo.clone(), recheck_ms: Some(*recheck_ms) }
            }
        })
    }

    fn ending(mut self, id: RunId, took: Duration) -> Ending {
        let live = self.runs.remove(&id).expect("the run was put there before it was started");
        let events = live.journal.iter().map(|(at, event)| (*at, event));
        let replayed = Run::replay(id, &live.plan, events);
        if picture(&replayed) != picture(&live.run) {
            self.trouble.push("its journal replays to another state: this is a bug in windlass".to_owned());
        }
        let shared: Map<String, Value> = live.run.root.shared.iter().flatten().map(owned).collect();
        let result = match &live.run.result {
            Some(result) => (**result).clone(),
            None => Value::Object(shared.clone()),
        };
        let error = live.run.error.as_ref().map(|error| format!("{}: {}", error.node, error.fault.message));
        Ending {
            status: live.run.status.word(),
            took,
            n_events: live.journal.len(),
            result,
            error,
            shared,
            trouble: self.trouble,
            plan: live.plan,
            run: live.run,
        }
    }
}

fn owned((key, value): (&String, &Arc<Value>)) -> (String, Value) {
    (key.clone(), (**value).clone())
}

/// All of a run's state, in a form that can be compared.
fn picture(run: &Run) -> Option<Value> {
    serde_json::to_value(run).ok()
}

fn input_of(act: &Act) -> Input {
    match act.clone() {
        Act::Signal { key, value } => Input::Signal { id: None, key, value, by: None },
        Act::Decide { node, decision, by, comment } => {
            let node = node.as_deref().map(NodePath::from);
            Input::Decide { node, decision, by, comment }
        }
        Act::Cancel { reason } => Input::Cancel { reason, by: None },
        Act::Retry {} => Input::Retry,
    }
}

fn built_in(name: &str, order: &Order) -> Outcome {
    let params = order.params.merged();
    match function::call(name, &order.input, &params, order.memo.as_deref()) {
        Some(function::Outcome::Done(value)) => Outcome::Done(Arc::new(value)),
        Some(function::Outcome::Suspended { memo, recheck_ms }) => {
            Outcome::Suspended { memo, recheck_ms: Some(recheck_ms) }
        }
        Some(function::Outcome::Failed { message, retryable }) => {
            let fault = Fault::new(FaultKind::Error, message);
            Outcome::Failed(if retryable { fault } else { fault.permanent() })
        }
        None => {
            failed(&format!("nobody serves `{name}`: it is not built in, and `answers` does not name it"))
        }
    }
}

/// A failure that trying again would not change.
fn failed(message: &str) -> Outcome {
    Outcome::Failed(Fault::new(FaultKind::Error, message).permanent())
}

/// Milliseconds since 1970; a clock set before that reads as 1970.
fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}
