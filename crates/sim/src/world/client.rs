//! Clients: they start runs, send signals, decide, cancel, pause, retry; and ask again when they heard nothing.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use uuid::Uuid;
use windlass_engine::event::{ExecMode, OnShort, Start};
use windlass_engine::id::{FlowId, RunId, VersionId};
use windlass_engine::input::Input;
use windlass_engine::money::{Movement, Price};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Form, Plan, Routing};
use windlass_engine::run::state::Status;
use windlass_store::account::Posting;
use windlass_store::commit::Commit;
use windlass_store::flow::{FlowChoice, FlowDraft, Publication, VersionDraft, VersionStatus};
use windlass_store::outbox::{Child, Message, MessageId, Note, Party};
use windlass_store::record::Record;
use windlass_store::run::{Origin, Request};

use super::{Happening, World, compiled};
use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Fault;
use crate::plans;
use crate::rng::Rng;
use crate::server::{Along, Said};

/// Push, local and script attempts take at most this long in simulated runs.
const CALL_TIMEOUT_MS: u64 = 30_000;

pub(super) struct Client {
    request: String,
    start: Start,
    plan: std::sync::Arc<windlass_engine::plan::Plan>,
    /// The run, once the client was told of it.
    pub(super) run: Option<RunId>,
    n_asked: u32,
    n_signals: u32,
}

impl World {
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
            budget: rng.percent(20).then_some(40),
            on_short_balance: if rng.percent(50) { OnShort::Wait } else { OnShort::Fail },
            manual: rng.percent(5),
            prices: prices(&mut rng).into(),
            call_timeout_ms: CALL_TIMEOUT_MS,
            ..part_of(&plan, &mut rng)
        };
        let request = format!("request{number}");
        self.clients.push(Client { request, start, plan, run: None, n_asked: 0, n_signals: 0 });
        let ms = self.rng.between(1, 10_000);
        self.after(ms, Happening::Client(number));
    }

    /// Every run is of one version on record; what it really executes is its own generated plan.
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
        self.disk.memory.publish_now(publication).expect("an empty store takes a flow");
    }

    pub(super) fn open_accounts(&mut self) {
        for number in 0..2 {
            let (id, now) = (format!("account{number}"), self.now);
            let record = Record::Account { id: id.clone(), name: id.clone(), now };
            self.disk.memory.save_now(record).expect("an account can be opened");
            let low = self.faults.enabled().contains(&Fault::ShortBalance);
            let _ = self.deposit(&id, if low { 20 } else { 100_000 });
        }
    }

    /// Money comes in, and the runs that wait for it hear of it.
    pub(super) fn deposit(&mut self, account: &str, amount: i64) -> Result<(), Violation> {
        let command = self.disk.command();
        let movement = Movement::deposit(&command.to_string(), amount);
        let posting = Posting { account: account.to_owned(), movement };
        self.checker.money.posted(&posting.account, &posting.movement)?;
        let id = MessageId::new(Party::Account(account.to_owned()), self.n_queued);
        let to = Party::Account(account.to_owned());
        let message = Message { id, to, at: self.now, note: Note::BalanceChanged };
        let mut commit = Commit::new(command, self.now);
        commit.postings.push(posting);
        commit.messages.push(message);
        for answer in self.disk.memory.commit_now(vec![commit]) {
            answer.expect("a deposit is never refused");
        }
        self.n_queued += 1;
        Ok(())
    }

    /// One thing a client does; then it comes back.
    pub(super) fn client_acts(&mut self, number: usize) -> Result<(), Violation> {
        match self.clients[number].run {
            None => self.ask_for_run(number)?,
            Some(run) => self.meddle(number, run)?,
        }
        let ms = self.rng.between(200, 15_000);
        self.after(ms, Happening::Client(number));
        Ok(())
    }

    fn ask_for_run(&mut self, number: usize) -> Result<(), Violation> {
        let Some(server) = self.any_server() else { return Ok(()) };
        let client = &mut self.clients[number];
        client.n_asked += 1;
        let salt = if client.n_asked > 1 { u128::from(client.n_asked) << 64 } else { 0 };
        // Every asking proposes a new id; the request decides which one counts.
        let id = RunId::new(Uuid::from_u128((number as u128 + 1) | (1 << 100) | salt));
        let mut request = client.request.clone();
        if self.bug == Some(Bug::NoRequestDedup) {
            request = format!("{request}.{}", client.n_asked);
        }
        let (start, plan) = (client.start.clone(), client.plan.clone());
        self.plans.insert(id, plan);
        let origin = self.origin(Some(request), &start);
        let along = Along { create: Some(origin), ..Along::default() };
        let said = if self.answers_too_soon(server) {
            Said::Taken
        } else {
            self.submit(server, id, &Input::Start(Box::new(start)), &along)?
        };
        let run = match said {
            Said::Taken => id,
            Said::Existing(existing) => existing,
            Said::Refused(_) | Said::Outdated | Said::Nothing => return Ok(()),
        };
        // The answer may be lost on its way: then the client asks again.
        let heard = !self.faults.strikes(Fault::ClientRetry, 30, &mut self.rng);
        self.checker.acknowledged(&self.clients[number].request, run)?;
        if heard {
            self.clients[number].run = Some(run);
        }
        Ok(())
    }

    /// The planted bug that answers before anything is durable, and then dies.
    fn answers_too_soon(&mut self, server: usize) -> bool {
        let dies = self.bug == Some(Bug::AnswerBeforeCommit) && self.rng.percent(10);
        if dies {
            self.crash(server);
        }
        dies
    }

    fn meddle(&mut self, number: usize, run: RunId) -> Result<(), Violation> {
        let Some(server) = self.any_server() else { return Ok(()) };
        let inputs = [
            (Fault::Signal, 60, Act::Signal),
            (Fault::Cancel, 6, Act::Cancel),
            (Fault::Pause, 15, Act::Pause),
            (Fault::Retry, 30, Act::Retry),
            (Fault::Rerun, 20, Act::Rerun),
        ];
        for (fault, percent, act) in inputs {
            if self.faults.strikes(fault, percent, &mut self.rng) {
                self.act(number, server, run, act)?;
            }
        }
        self.act(number, server, run, Act::Go)
    }

    fn act(&mut self, number: usize, server: usize, run: RunId, act: Act) -> Result<(), Violation> {
        let input = match act {
            Act::Signal => return self.send_signal(number, server, run),
            Act::Cancel => Input::Cancel { reason: Some("simulated".to_owned()), by: None },
            Act::Pause => Input::Pause,
            Act::Go => {
                let resume = self.rng.percent(50);
                if resume { Input::Resume } else { Input::Step }
            }
            Act::Retry => Input::Retry,
            Act::Rerun => match self.some_node(run) {
                Some(from) => Input::Rerun { from, shared: None },
                None => return Ok(()),
            },
        };
        self.submit(server, run, &input, &Along::default()).map(|_| ())
    }

    /// Signals carry ids, so that a client that heard nothing can send them again.
    fn send_signal(&mut self, number: usize, server: usize, run: RunId) -> Result<(), Violation> {
        let client = &mut self.clients[number];
        let again = self.rng.percent(30) && client.n_signals > 0;
        client.n_signals += u32::from(!again);
        let id = format!("signal{}", client.n_signals);
        let sent = if self.bug == Some(Bug::NoSignalDedup) { None } else { Some(id.clone()) };
        let key = ["go0", "go1", "ok0", "ok1", "x"][client.n_signals as usize % 5];
        let input = Input::Signal { id: sent, key: key.to_owned(), value: json!(true), by: None };
        match self.submit(server, run, &input, &Along::default())? {
            Said::Taken => self.checker.signal_acknowledged(run, &id),
            Said::Refused(_) | Said::Existing(_) | Said::Outdated | Said::Nothing => {}
        }
        Ok(())
    }

    /// A node that has run, chosen by chance.
    fn some_node(&mut self, run: RunId) -> Option<NodePath> {
        use windlass_engine::event::Event;
        let entries = self.disk.entries(run);
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

    /// What keeps an open run from ending now, done away with.
    pub(super) fn unblock(&mut self, run: RunId, status: Status) -> Result<(), Violation> {
        let Some(server) = self.any_server() else { return Ok(()) };
        // A run advanced by hand may have hundreds of nodes to enter.
        let mut inputs = vec![Input::Step; 200];
        if status == Status::Paused {
            inputs.push(Input::Resume);
        }
        for key in ["go0", "go1", "ok0", "ok1"] {
            inputs.push(Input::Signal { id: None, key: key.to_owned(), value: json!(true), by: None });
        }
        inputs.push(Input::BalanceChanged { budget: Some(1_000_000), balance: None });
        for input in inputs {
            self.submit(server, run, &input, &Along::default())?;
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

/// Some runs execute only a part of their plan, where the form has exec modes.
fn part_of(plan: &Plan, rng: &mut Rng) -> Start {
    let some = rng.percent(15) && matches!(plan.root.routing, Routing::Join { .. });
    let Some(node) = rng.pick(&plan.root.nodes).filter(|_| some) else { return Start::default() };
    let exec_mode = if rng.percent(50) { ExecMode::SpecifiedStarts } else { ExecMode::IsolatedNodes };
    Start { exec_mode, start_node_ids: vec![node.key.clone()], ..Start::default() }
}

/// Some services have a price.
fn prices(rng: &mut Rng) -> BTreeMap<String, Price> {
    let price = |rng: &mut Rng| Price {
        unit_price: 2,
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
enum Act {
    Signal,
    Cancel,
    Pause,
    Go,
    Retry,
    Rerun,
}
