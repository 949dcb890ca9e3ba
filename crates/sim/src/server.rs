//! One simulated server: what it keeps in memory, and how it takes an input to the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::event::Event;
use windlass_engine::id::{JobId, RunId, ScheduleId, ServerId};
use windlass_engine::input::{Given, Input, Refusal};
use windlass_engine::money::{Kind, Movement, node_of_key};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::run::{Run, Step};
use windlass_engine::time::Timestamp;
use windlass_store::account::Posting;
use windlass_store::commit::{Commit, Committed, JobChange, Unmoved};
use windlass_store::error::Subject;
use windlass_store::job::JobRow;
use windlass_store::outbox::MessageId;
use windlass_store::project::{Projection, cancelled, project};
use windlass_store::run::{Origin, Owner};
use windlass_store::schedule::Scheduled;
use windlass_store::{Refusal as Forbidden, StoreError};

use crate::bug::Bug;
use crate::checker::Violation;
use crate::disk::Heard;
use crate::fault::Fault;
use crate::world::World;

/// How often one input is decided again before its server gives up: conflicts and short balances end long before.
const TRIES: usize = 40;

pub struct Server {
    pub id: ServerId,
    /// A new number with every start.
    pub life: u64,
    pub is_up: bool,
    pub last_beat: Timestamp,
    pub hot: BTreeMap<RunId, Hot>,
    /// Plain jobs and schedules as it last heard of them.
    pub jobs: BTreeMap<JobId, JobRow>,
    pub schedules: BTreeMap<ScheduleId, Scheduled>,
}

/// A run in memory, as it was when this server last heard of it.
#[derive(Clone)]
pub struct Hot {
    pub run: Run,
    pub plan: Arc<Plan>,
    pub projection: Projection,
    pub len: u64,
}

impl Server {
    pub fn new(number: u64) -> Self {
        let id = ServerId::new(Uuid::from_u128(u128::from(number) + 1));
        Server {
            id,
            life: 0,
            is_up: false,
            last_beat: Timestamp(0),
            hot: BTreeMap::new(),
            jobs: BTreeMap::new(),
            schedules: BTreeMap::new(),
        }
    }

    /// It dies, and with it what it kept in memory.
    pub fn die(&mut self) {
        self.is_up = false;
        self.hot.clear();
        self.jobs.clear();
        self.schedules.clear();
    }

    pub fn owner(&self) -> Owner {
        Owner { server: self.id, epoch: self.life }
    }
}

/// What else goes into the commit of an input.
#[derive(Default, Clone)]
pub struct Along {
    pub create: Option<Origin>,
    pub jobs: Vec<JobChange>,
    pub delivered: Vec<MessageId>,
}

/// What a server says to whoever brought the input.
pub enum Said {
    Taken,
    Refused(Refusal),
    /// The request was answered before, with this run.
    Existing(RunId),
    /// Something it went along with is no longer so.
    Outdated,
    /// The server cannot tell; ask again.
    Nothing,
}

impl World {
    /// Takes an input through decide, commit and effects, as a server does.
    pub fn submit(
        &mut self,
        server: usize,
        run: RunId,
        input: &Input,
        along: &Along,
    ) -> Result<Said, Violation> {
        let mut short: BTreeSet<NodePath> = BTreeSet::new();
        // What the account had when something was found short, while it is at that revision.
        let mut lack: Option<(i64, Unmoved)> = None;
        for _ in 0..TRIES {
            let Some(mut hot) = self.load(server, run, along.create.is_some()) else {
                return Ok(Said::Nothing);
            };
            let before = hot.run.clone();
            let purse = lack.as_ref().map(|(balance, _)| before.paid().saturating_add(*balance));
            let (now, life) = (self.seen_now(input), self.servers[server].life);
            let given = Given { now, life, short: short.clone(), purse };
            let step = match hot.run.submit(&hot.plan, input, &given) {
                Ok(step) => step,
                Err(_) if self.is_outdated(server, &hot) => continue,
                Err(refusal) => return Ok(Said::Refused(refusal)),
            };
            if step.events.is_empty() && along.delivered.is_empty() && along.jobs.is_empty() {
                if self.is_outdated(server, &hot) {
                    continue;
                }
                return Ok(Said::Taken);
            }
            let mut commit = self.draft(server, &mut hot, &step, along);
            commit.unmoved.extend(lack.as_ref().map(|(_, at)| at.clone()));
            if self.bug == Some(Bug::EffectBeforeCommit) {
                self.carry_out(server, &hot, &step)?;
            }
            match self.write(server, &hot, commit)? {
                Written::Yes => {
                    if self.bug == Some(Bug::CancelForgotten) && matches!(input, Input::Cancel { .. }) {
                        hot.run = before;
                    }
                    self.known(server, hot, &step)?;
                    return Ok(Said::Taken);
                }
                Written::Again => {
                    self.servers[server].hot.remove(&run);
                }
                Written::Short { .. } if self.bug == Some(Bug::Overdraft) => {
                    self.overdraw = true;
                }
                Written::Moved => {
                    self.servers[server].hot.remove(&run);
                    short.clear();
                    lack = None;
                }
                Written::Short { nodes, balance, at } => {
                    short.extend(nodes);
                    lack = Some((balance, at));
                }
                Written::Existing(existing) => return Ok(Said::Existing(existing)),
                Written::Outdated => return Ok(Said::Outdated),
                Written::No => return Ok(Said::Nothing),
            }
        }
        Ok(Said::Nothing)
    }

    /// What the server takes for the time: the truth, unless it is broken.
    fn seen_now(&self, input: &Input) -> Timestamp {
        match (self.bug, input) {
            (Some(Bug::EarlyTimer), Input::TimePassed) => self.now.after(500),
            _ => self.now,
        }
    }

    /// Whether what was decided on is not the last word: nothing may be answered from it.
    fn is_outdated(&mut self, server: usize, hot: &Hot) -> bool {
        if self.bug == Some(Bug::NoLengthGuard) || hot.len == self.disk.len(hot.run.id) {
            return false;
        }
        self.servers[server].hot.remove(&hot.run.id);
        true
    }

    /// The run as it is in the store, taken from memory only if that is the last word.
    pub(crate) fn load_anew(&mut self, server: usize, run: RunId) -> Option<Hot> {
        let hot = self.load(server, run, false)?;
        if self.is_outdated(server, &hot) { self.load(server, run, false) } else { Some(hot) }
    }

    /// The run in this server's memory, from its journal if need be.
    fn load(&mut self, server: usize, run: RunId, create: bool) -> Option<Hot> {
        if let Some(hot) = self.servers[server].hot.get(&run) {
            return Some(hot.clone());
        }
        let plan = self.plan_of(run)?;
        let mut entries = self.disk.entries(run);
        if entries.is_empty() && !create {
            return None;
        }
        let len = entries.len() as u64;
        if self.bug == Some(Bug::TornJournal) && entries.len() > 2 {
            entries.pop();
        }
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = Run::replay(run, &plan, events);
        let projection = match self.disk.row(run) {
            Some(row) => Projection::resume(&plan, &state, &row.standing),
            None => Projection::default(),
        };
        Some(Hot { run: state, plan, projection, len })
    }

    fn draft(&mut self, server: usize, hot: &mut Hot, step: &Step, along: &Along) -> Commit {
        let command = self.disk.command();
        let owner = self.servers[server].owner();
        let rows = project(&mut hot.projection, &hot.run, step, Some(owner), self.now);
        let cancels = rows.cancel.iter().filter_map(|id| self.disk.job(*id)).collect();
        let create = along.create.clone().filter(|_| hot.len == 0);
        let mut commit = if step.events.is_empty() {
            Commit::new(command, self.now)
        } else {
            rows.into_commit(command, self.now, &hot.run, hot.len, step.clone(), create)
        };
        let own: BTreeSet<_> = along.jobs.iter().map(|change| change.job.id).collect();
        commit
            .jobs
            .extend(cancelled(cancels, self.now).into_iter().filter(|change| !own.contains(&change.job.id)));
        commit.jobs.extend(along.jobs.iter().cloned());
        commit.delivered.clone_from(&along.delivered);
        self.spoil(hot, step, &mut commit);
        commit
    }

    /// The planted bugs that change what is written.
    fn spoil(&mut self, hot: &Hot, step: &Step, commit: &mut Commit) {
        match self.bug {
            Some(Bug::NoRefund) => commit.postings.retain(|posting| posting.movement.kind != Kind::Refund),
            Some(Bug::ChargePerAttempt) => commit.postings.extend(charges_again(hot, step)),
            Some(Bug::Overdraft) if std::mem::take(&mut self.overdraw) => {
                for posting in commit.postings.iter_mut().filter(|p| p.movement.kind == Kind::Charge) {
                    posting.movement.amount = 0;
                    posting.movement.held = 0;
                }
            }
            Some(Bug::NoLengthGuard) => {
                let len = self.disk.len(hot.run.id);
                if let Some(change) = &mut commit.run
                    && change.create.is_none()
                {
                    change.expected_len = len;
                }
            }
            _ => {}
        }
    }

    fn write(&mut self, server: usize, hot: &Hot, mut commit: Commit) -> Result<Written, Violation> {
        self.someone_else_first(server, &commit)?;
        loop {
            let heard = self.disk.commit(commit.clone(), &mut self.faults, &mut self.rng);
            if matches!(heard, Heard::Answer(Ok(_)) | Heard::Silence { happened: true }) {
                self.observe(hot, &commit)?;
            }
            return Ok(match heard {
                Heard::Answer(answer) => self.heard(answer),
                Heard::Silence { .. } if self.bug == Some(Bug::BlindRetry) => {
                    commit.command = self.disk.command();
                    if let Some(change) = &mut commit.run {
                        change.entry.command = commit.command;
                        change.expected_len = self.disk.len(change.run);
                        change.create = change.create.take().filter(|_| change.expected_len == 0);
                    }
                    continue;
                }
                // An unknown outcome is looked up, never guessed.
                Heard::Silence { .. } => match self.disk.looked_up(commit.command) {
                    Some(_) => Written::Yes,
                    None => Written::Again,
                },
            });
        }
    }

    fn heard(&mut self, answer: Result<Committed, StoreError>) -> Written {
        match answer {
            Ok(_) => Written::Yes,
            Err(StoreError::Refused(Forbidden::Short { keys, account, balance, revision, .. })) => {
                let nodes = keys.iter().filter_map(|key| node_of_key(key)).collect();
                Written::Short { nodes, balance, at: Unmoved { account, revision } }
            }
            Err(StoreError::Refused(Forbidden::RequestTaken { existing, .. })) => Written::Existing(existing),
            Err(StoreError::Refused(Forbidden::AlreadyDelivered(_))) => Written::Outdated,
            Err(StoreError::Conflict { what: Subject::Run(_), .. }) => Written::Again,
            Err(StoreError::Conflict { what: Subject::Account(_), .. }) => Written::Moved,
            Err(StoreError::Conflict { .. }) => Written::Outdated,
            Err(error) => {
                self.notes.push(format!("{error}"));
                Written::No
            }
        }
    }

    /// Sometimes another server writes to the same run just before.
    fn someone_else_first(&mut self, server: usize, commit: &Commit) -> Result<(), Violation> {
        let Some(change) = &commit.run else { return Ok(()) };
        let strikes = self.faults.strikes(Fault::Conflict, 4, &mut self.rng);
        if change.create.is_some() || !strikes || self.meddling {
            return Ok(());
        }
        let other = (0..self.servers.len()).find(|other| *other != server && self.servers[*other].is_up);
        let Some(other) = other else { return Ok(()) };
        let run = change.run;
        let noise = Input::Signal { id: None, key: "noise".to_owned(), value: self.now.0.into(), by: None };
        self.meddling = true;
        let said = self.submit(other, run, &noise, &Along::default());
        self.meddling = false;
        said.map(|_| ())
    }

    /// The store took a commit, whether its server knows or not.
    fn observe(&mut self, hot: &Hot, commit: &Commit) -> Result<(), Violation> {
        for posting in &commit.postings {
            self.checker.money.posted(&posting.account, &posting.movement)?;
        }
        let Some(change) = &commit.run else { return Ok(()) };
        self.trace(&change.entry.encode());
        self.checker.committed(&hot.run, &hot.plan, change.expected_len, &change.entry)
    }

    /// The server knows that its commit is durable: it acts on it.
    fn known(&mut self, server: usize, mut hot: Hot, step: &Step) -> Result<(), Violation> {
        hot.len += u64::from(!step.events.is_empty());
        self.servers[server].hot.insert(hot.run.id, hot.clone());
        if self.faults.strikes(Fault::CrashBeforeEffects, 2, &mut self.rng) {
            self.crash(server);
            return Ok(());
        }
        if self.bug == Some(Bug::EffectBeforeCommit) { Ok(()) } else { self.carry_out(server, &hot, step) }
    }
}

/// A charge for every attempt after the first.
fn charges_again(hot: &Hot, step: &Step) -> Vec<Posting> {
    let account = hot.run.start.account.clone().filter(|_| hot.run.cost.estimated > 0);
    let again = step.events.iter().filter_map(|event| match event {
        Event::Granted { node, attempt, .. } if *attempt > 1 => Some((node, attempt)),
        _ => None,
    });
    let posting = |account: &String, (node, attempt): (&NodePath, &u32)| {
        let key = format!("charge:{}/{node}/attempt{attempt}.{}", hot.run.id, hot.run.fence);
        let movement = Movement::charge(key, 0);
        Posting { account: account.clone(), movement }
    };
    account.iter().flat_map(|account| again.clone().map(move |event| posting(account, event))).collect()
}

enum Written {
    Yes,
    /// Load what is new and decide again.
    Again,
    /// The account is no longer as it was when calls were found short: decide anew.
    Moved,
    Short {
        nodes: BTreeSet<NodePath>,
        balance: i64,
        at: Unmoved,
    },
    Existing(RunId),
    Outdated,
    No,
}
