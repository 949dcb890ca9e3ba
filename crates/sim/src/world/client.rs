//! Modelled clients: they start runs, send signals, decide approvals, cancel, pause and retry, and repeat requests
//! without a reply.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;
use windlass_engine::event::{ExecMode, InsufficientFundsAction, Start};
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_engine::input::Input;
use windlass_engine::money::{Amount, Movement, Price};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Form, Plan, Routing};
use windlass_engine::project::Project;
use windlass_engine::run::state::Status;
use windlass_store::account::Posting;
use windlass_store::commit::Commit;
use windlass_store::flow::{FlowChoice, FlowDraft, Publication, VersionDraft, VersionStatus};
use windlass_store::outbox::{Child, Message, MessageId, Note, Party};
use windlass_store::run::{Origin, Request};

use super::{SimEvent, SimWorld, compiled};
use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::fault::SimFault;
use crate::plans;
use crate::rng::SimRng;
use crate::server::{SimExtraWrites, SimReply};

/// The time limit of push, local and script attempts in simulated runs.
const CALL_TIMEOUT_MS: u64 = 30_000;

pub(super) struct SimClient {
    request: String,
    start: Start,
    plan: std::sync::Arc<windlass_engine::plan::Plan>,
    /// The run, once the client knows it.
    pub(super) run: Option<RunId>,
    n_asked: u32,
    n_signals: u32,
}

impl SimWorld {
    pub(super) fn new_client(&mut self, number: usize) {
        let mut rng = self.rng.fork();
        let plan = compiled(&plans::definition(&mut rng));
        let items: Vec<Value> = (0..rng.below(6)).map(Value::from).collect();
        let mut params = Map::new();
        params.insert("items".to_owned(), Value::Array(items));
        params.insert("n".to_owned(), rng.below(4).into());
        let start = Start {
            params,
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
        let request = format!("request{number}");
        self.clients.push(SimClient { request, start, plan, run: None, n_asked: 0, n_signals: 0 });
        let ms = self.rng.between(1, 10_000);
        self.after(ms, SimEvent::Client(number));
    }

    /// Publishes one version for all runs; each run executes its own generated plan.
    pub(super) fn publish(&mut self) {
        let flow = FlowDraft {
            id: FlowId::new(Uuid::from_u128(1)),
            name: "simulated".to_owned(),
            description: String::new(),
            labels: BTreeMap::new(),
            is_template: false,
            allow_same_name: false,
        };
        let version = VersionDraft {
            id: VersionId::new(Uuid::from_u128(1)),
            number: None,
            definition: String::new(),
            form: Form::Graph,
            lenient: false,
            status: VersionStatus::Published,
            note: String::new(),
        };
        let publication =
            Publication { flow: FlowChoice::Create(flow), version: Some(version), now: self.now };
        self.store.memory.publish_now(&Project::DEFAULT, publication).expect("an empty store takes a flow");
    }

    pub(super) fn open_accounts(&mut self) {
        for number in 0..2 {
            let (id, now) = (format!("account{number}"), self.now);
            let opened = self.store.memory.open_account_now(&Project::DEFAULT, &id, &id, now);
            opened.expect("an account can be opened");
            let low = self.faults.enabled().contains(&SimFault::ShortBalance);
            let _ = self.deposit(&id, if low { 20 } else { 100_000 });
        }
    }

    /// Deposits an amount and wakes the runs that wait for it.
    pub(super) fn deposit(&mut self, account: &str, amount: i64) -> Result<(), Violation> {
        let command = self.store.command();
        let movement = Movement::deposit(&command.to_string(), Amount(amount));
        let posting = Posting { account: account.to_owned(), movement };
        self.checker.money.posted(&posting.account, &posting.movement)?;
        let id = MessageId::new(Party::Account(account.to_owned()), self.n_queued);
        let to = Party::Account(account.to_owned());
        let message = Message { id, to, at: self.now, note: Note::BalanceChanged };
        let mut commit = Commit::new(&Project::DEFAULT, command, self.now);
        commit.postings.push(posting);
        commit.messages.push(message);
        for answer in self.store.memory.commit_now(vec![commit]) {
            answer.expect("a deposit is never refused");
        }
        self.n_queued += 1;
        Ok(())
    }

    /// Takes one action of a client and schedules the next.
    pub(super) fn client_acts(&mut self, number: usize) -> Result<(), Violation> {
        match self.clients[number].run {
            None => self.ask_for_run(number)?,
            Some(run) => self.meddle(number, run)?,
        }
        let ms = self.rng.between(200, 15_000);
        self.after(ms, SimEvent::Client(number));
        Ok(())
    }

    fn ask_for_run(&mut self, number: usize) -> Result<(), Violation> {
        let Some(server) = self.any_server() else { return Ok(()) };
        let client = &mut self.clients[number];
        client.n_asked += 1;
        let salt = if client.n_asked > 1 { u128::from(client.n_asked) << 64 } else { 0 };
        // Every attempt proposes a new id; the request id decides which one counts.
        let id = RunId::new(Uuid::from_u128((number as u128 + 1) | (1 << 100) | salt));
        let mut request = client.request.clone();
        if self.bug == Some(PlantedBug::NoRequestDedup) {
            request = format!("{request}.{}", client.n_asked);
        }
        let (start, plan) = (client.start.clone(), client.plan.clone());
        self.plans.insert(id, plan);
        let origin = self.origin(Some(request), &start);
        let along = SimExtraWrites { create: Some(origin), ..SimExtraWrites::default() };
        let reply = if self.answers_before_commit(server) {
            SimReply::Taken
        } else {
            self.submit(server, id, &Input::Start(Box::new(start)), &along)?
        };
        let run = match reply {
            SimReply::Taken => id,
            SimReply::Existing(existing) => existing,
            SimReply::Refused(_) | SimReply::Outdated | SimReply::Nothing => return Ok(()),
        };
        // The reply may be lost: then the client asks again.
        let heard = !self.faults.strikes(SimFault::ClientRetry, 30, &mut self.rng);
        self.checker.acknowledged(&self.clients[number].request, run)?;
        if heard {
            self.clients[number].run = Some(run);
        }
        Ok(())
    }

    /// Applies the planted bug that answers before the commit and then crashes.
    fn answers_before_commit(&mut self, server: usize) -> bool {
        let dies = self.bug == Some(PlantedBug::AnswerBeforeCommit) && self.rng.percent(10);
        if dies {
            self.crash(server);
        }
        dies
    }

    fn meddle(&mut self, number: usize, run: RunId) -> Result<(), Violation> {
        let Some(server) = self.any_server() else { return Ok(()) };
        let inputs = [
            (SimFault::Signal, 60, ClientAction::Signal),
            (SimFault::Cancel, 6, ClientAction::Cancel),
            (SimFault::Pause, 15, ClientAction::Pause),
            (SimFault::Retry, 30, ClientAction::Retry),
            (SimFault::Rerun, 20, ClientAction::Rerun),
        ];
        for (fault, percent, act) in inputs {
            if self.faults.strikes(fault, percent, &mut self.rng) {
                self.act(number, server, run, act)?;
            }
        }
        self.act(number, server, run, ClientAction::Go)
    }

    fn act(&mut self, number: usize, server: usize, run: RunId, act: ClientAction) -> Result<(), Violation> {
        let input = match act {
            ClientAction::Signal => return self.send_signal(number, server, run),
            ClientAction::Cancel => Input::Cancel { reason: Some("simulated".to_owned()), by: None },
            ClientAction::Pause => Input::Pause,
            ClientAction::Go => {
                let resume = self.rng.percent(50);
                if resume { Input::Resume } else { Input::Step }
            }
            ClientAction::Retry => Input::Retry,
            ClientAction::Rerun => match self.some_node(run) {
                Some(from) => Input::Rerun { from, shared: None },
                None => return Ok(()),
            },
        };
        self.submit(server, run, &input, &SimExtraWrites::default()).map(|_| ())
    }

    /// Sends a signal with an id, so that it can be repeated without a reply.
    fn send_signal(&mut self, number: usize, server: usize, run: RunId) -> Result<(), Violation> {
        let client = &mut self.clients[number];
        let again = self.rng.percent(30) && client.n_signals > 0;
        client.n_signals += u32::from(!again);
        let id = format!("signal{}", client.n_signals);
        let sent = if self.bug == Some(PlantedBug::NoSignalDedup) { None } else { Some(id.clone()) };
        let key = ["go0", "go1", "ok0", "ok1", "x"][client.n_signals as usize % 5];
        let input = Input::Signal { id: sent, key: key.to_owned(), value: json!(true), by: None };
        match self.submit(server, run, &input, &SimExtraWrites::default())? {
            SimReply::Taken => self.checker.signal_acknowledged(run, &id),
            SimReply::Refused(_) | SimReply::Existing(_) | SimReply::Outdated | SimReply::Nothing => {}
        }
        Ok(())
    }

    /// A random node that has run.
    fn some_node(&mut self, run: RunId) -> Option<NodePath> {
        use windlass_engine::event::Event;
        let entries = self.store.entries(run);
        let entered: BTreeSet<NodePath> = entries
            .iter()
            .flat_map(|entry| &entry.events)
            .filter_map(|event| match event {
                Event::Entered { node, .. } => Some(node.clone()),
                _ => None,
            })
            .collect();
        let entered: Vec<NodePath> = entered.into_iter().collect();
        self.rng.pick(&entered).cloned()
    }

    /// Removes the cause that keeps an open run from ending.
    pub(super) fn unblock(&mut self, run: RunId, status: Status) -> Result<(), Violation> {
        let Some(server) = self.any_server() else { return Ok(()) };
        // A run in manual mode may have hundreds of nodes to enter.
        let mut inputs = vec![Input::Step; 200];
        if status == Status::Paused {
            inputs.push(Input::Resume);
        }
        for key in ["go0", "go1", "ok0", "ok1"] {
            inputs.push(Input::Signal { id: None, key: key.to_owned(), value: json!(true), by: None });
        }
        inputs.push(Input::BalanceChanged { budget: Some(Amount(1_000_000)), balance: None });
        for input in inputs {
            self.submit(server, run, &input, &SimExtraWrites::default())?;
        }
        Ok(())
    }

    fn origin(&self, request: Option<String>, start: &Start) -> Origin {
        Origin {
            flow: FlowId::new(Uuid::from_u128(1)),
            version: VersionId::new(Uuid::from_u128(1)),
            request: request.map(|id| Request { id, digest: "same".to_owned() }),
            labels: BTreeMap::new(),
            account: start.account.clone(),
            parent: start.parent.clone(),
            schedule: None,
            created_at: self.now,
        }
    }

    pub(super) fn child_start(&self, child: &Child) -> (Input, Origin) {
        let start = Start { call_timeout_ms: CALL_TIMEOUT_MS, ..child.start() };
        let origin = self.origin(None, &start);
        (Input::Start(Box::new(start)), origin)
    }
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
