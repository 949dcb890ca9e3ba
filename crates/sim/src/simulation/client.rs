//! Modelled clients: they start runs, send signals, decide approvals, cancel, pause and retry, and repeat requests
//! without a reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use windlass_engine::money::Amount;

use serde_json::{Map, Value, json};
use uuid::Uuid;
use windlass_engine::event::{Event, ExecMode, InsufficientFundsAction, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::money::Price;
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Plan, Routing};

use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::event::SimEvent;
use crate::fault::SimFault;
use crate::plans;
use crate::rng::SimRng;
use crate::server::{SimExtraWrites, SimReply};
use crate::world::{CALL_TIMEOUT_MS, SimWorld};

pub(super) struct SimClient {
    number: usize,
    request: String,
    start: Start,
    plan: Arc<Plan>,
    /// The run, once the client knows it.
    run: Option<RunId>,
    n_asked: u32,
    n_signals: u32,
}

impl SimClient {
    /// A client that will start one random run.
    pub(super) fn new(number: usize, world: &mut SimWorld) -> Self {
        let mut rng = world.rng.fork();
        let plan = plans::compiled(&plans::definition(&mut rng));
        let items: Vec<Value> = (0..rng.below(6)).map(Value::from).collect();
        let mut params = Map::new();
        params.insert("items".to_owned(), Value::Array(items));
        params.insert("n".to_owned(), rng.below(4).into());
        let start = Start {
            params: params.into(),
            account: rng.percent(80).then(|| format!("account{}", rng.below(2))),
            budget: rng.percent(20).then_some(Amount(40)),
            on_short_balance: if rng.percent(50) {
                InsufficientFundsAction::Wait
            } else {
                InsufficientFundsAction::Fail
            },
            manual: rng.percent(5),
            prices: prices(&mut rng).into(),
            call_timeout_ms: CALL_TIMEOUT_MS,
            ..part_of(&plan, &mut rng)
        };
        let ms = world.rng.between(1, 10_000);
        world.after(ms, SimEvent::Client(number));
        let request = format!("request{number}");
        SimClient { number, request, start, plan, run: None, n_asked: 0, n_signals: 0 }
    }

    /// Takes one action and schedules the next.
    pub(super) fn act(&mut self, world: &mut SimWorld) -> Result<(), Violation> {
        match self.run {
            None => self.ask_for_run(world)?,
            Some(run) => self.meddle(world, run)?,
        }
        let ms = world.rng.between(200, 15_000);
        world.after(ms, SimEvent::Client(self.number));
        Ok(())
    }

    fn ask_for_run(&mut self, world: &mut SimWorld) -> Result<(), Violation> {
        let Some(server) = world.any_server() else { return Ok(()) };
        self.n_asked += 1;
        let salt = if self.n_asked > 1 { u128::from(self.n_asked) << 64 } else { 0 };
        // Every attempt proposes a new id; the request id decides which one counts.
        let id = RunId::new(Uuid::from_u128((self.number as u128 + 1) | (1 << 100) | salt));
        let mut request = self.request.clone();
        if world.bug == Some(PlantedBug::NoRequestDedup) {
            request = format!("{request}.{}", self.n_asked);
        }
        let start = self.start.clone();
        world.set_plan(id, self.plan.clone());
        let origin = world.origin(Some(request), &start);
        let extra = SimExtraWrites { create: Some(origin), ..SimExtraWrites::default() };
        let reply = if answers_before_commit(world, server) {
            SimReply::Taken
        } else {
            world.submit(server, id, &Input::Start(Box::new(start)), &extra)?
        };
        let run = match reply {
            SimReply::Taken => id,
            SimReply::Existing(existing) => existing,
            SimReply::Refused(_) | SimReply::Outdated | SimReply::Nothing => return Ok(()),
        };
        // The reply may be lost: then the client asks again.
        let heard = !world.faults.strikes(SimFault::ClientRetry, 30, &mut world.rng);
        world.checker.acknowledged(&self.request, run)?;
        if heard {
            self.run = Some(run);
        }
        Ok(())
    }

    /// Sends random inputs to the client's run.
    fn meddle(&mut self, world: &mut SimWorld, run: RunId) -> Result<(), Violation> {
        let Some(server) = world.any_server() else { return Ok(()) };
        let inputs = [
            (SimFault::Signal, 60, ClientAction::Signal),
            (SimFault::Cancel, 6, ClientAction::Cancel),
            (SimFault::Pause, 15, ClientAction::Pause),
            (SimFault::Retry, 30, ClientAction::Retry),
            (SimFault::Rerun, 20, ClientAction::Rerun),
        ];
        for (fault, percent, action) in inputs {
            if world.faults.strikes(fault, percent, &mut world.rng) {
                self.send(world, server, run, action)?;
            }
        }
        self.send(world, server, run, ClientAction::Go)
    }

    fn send(
        &mut self,
        world: &mut SimWorld,
        server: usize,
        run: RunId,
        action: ClientAction,
    ) -> Result<(), Violation> {
        let input = match action {
            ClientAction::Signal => return self.send_signal(world, server, run),
            ClientAction::Cancel => Input::Cancel { reason: Some("simulated".to_owned()), by: None },
            ClientAction::Pause => Input::Pause,
            ClientAction::Go => {
                let resume = world.rng.percent(50);
                if resume { Input::Resume } else { Input::Step }
            }
            ClientAction::Retry => Input::Retry,
            ClientAction::Rerun => match some_node(world, run) {
                Some(from) => Input::Rerun { from, shared: None },
                None => return Ok(()),
            },
        };
        world.submit(server, run, &input, &SimExtraWrites::default()).map(|_| ())
    }

    /// Sends a signal with an id, so that it can be repeated without a reply.
    fn send_signal(&mut self, world: &mut SimWorld, server: usize, run: RunId) -> Result<(), Violation> {
        let again = world.rng.percent(30) && self.n_signals > 0;
        self.n_signals += u32::from(!again);
        let id = format!("signal{}", self.n_signals);
        let sent = if world.bug == Some(PlantedBug::NoSignalDedup) { None } else { Some(id.clone()) };
        let key = ["go0", "go1", "ok0", "ok1", "x"][self.n_signals as usize % 5];
        let input = Input::Signal { id: sent, key: key.to_owned(), value: json!(true), by: None };
        match world.submit(server, run, &input, &SimExtraWrites::default())? {
            SimReply::Taken => world.checker.signal_acknowledged(run, &id),
            SimReply::Refused(_) | SimReply::Existing(_) | SimReply::Outdated | SimReply::Nothing => {}
        }
        Ok(())
    }
}

/// Applies the planted bug that answers before the commit and then crashes.
fn answers_before_commit(world: &mut SimWorld, server: usize) -> bool {
    let dies = world.bug == Some(PlantedBug::AnswerBeforeCommit) && world.rng.percent(10);
    if dies {
        world.crash(server);
    }
    dies
}

/// A random node that has run.
fn some_node(world: &mut SimWorld, run: RunId) -> Option<NodePath> {
    let entries = world.store.entries(run);
    let entered: BTreeSet<NodePath> = entries
        .iter()
        .flat_map(|entry| &entry.events)
        .filter_map(|event| match event {
            Event::Entered { node, .. } => Some(node.clone()),
            _ => None,
        })
        .collect();
    let entered: Vec<NodePath> = entered.into_iter().collect();
    world.rng.pick(&entered).cloned()
}

/// Some runs execute only a part of their plan, if the form has exec modes.
fn part_of(plan: &Plan, rng: &mut SimRng) -> Start {
    let some = rng.percent(15) && matches!(plan.root.routing, Routing::Join { .. });
    let Some(node) = rng.pick(&plan.root.nodes).filter(|_| some) else { return Start::default() };
    let exec_mode = if rng.percent(50) { ExecMode::SpecifiedStarts } else { ExecMode::IsolatedNodes };
    Start { exec_mode, start_node_ids: vec![node.key.clone()], ..Start::default() }
}

/// Random prices of some services.
fn prices(rng: &mut SimRng) -> BTreeMap<String, Price> {
    let price = |rng: &mut SimRng| Price {
        unit_price: Amount(2),
        min_unit: 1,
        units: json!(rng.between(0, 5)),
        actual_units: Some(json!("$result.fence")),
    };
    (0..4)
        .filter(|_| rng.percent(20))
        .map(|at| format!("s{at}"))
        .collect::<Vec<_>>()
        .into_iter()
        .map(|service| (service, price(rng)))
        .collect()
}

#[derive(Clone, Copy)]
enum ClientAction {
    Signal,
    Cancel,
    Pause,
    Go,
    Retry,
    Rerun,
}
