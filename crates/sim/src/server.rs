//! A modelled server: its memory, and the way of an input to the store.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::counter::{Epoch, Seq};
use windlass_engine::effect::Effect;
use windlass_engine::event::Event;
use windlass_engine::id::{JobId, RunId, ScheduleId, ServerId};
use windlass_engine::input::{CallOutcome, Given, Input, Refusal};
use windlass_engine::job::State as JobState;
use windlass_engine::meter::Meter;
use windlass_engine::money::{Amount, Movement, MovementKind, node_of_key};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::project::Project;
use windlass_engine::run::{Run, RunStep};
use windlass_engine::time::Timestamp;
use windlass_store::account::Posting;
use windlass_store::commit::{Commit, Committed, JobChange, Unmoved};
use windlass_store::error::Subject;
use windlass_store::job::JobRow;
use windlass_store::outbox::MessageId;
use windlass_store::projection::{Projection, cancelled, project};
use windlass_store::run::{Origin, Owner};
use windlass_store::schedule::Scheduled;
use windlass_store::{Refusal as Forbidden, StoreError};

use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::fault::SimFault;
use crate::store::CommitReply;
use crate::store::SimStore;
use crate::world::{SimWorld, moment_of};

/// How often an input is decided again before the server gives up: conflicts and short balances end long before.
const RETRIES_MAX: usize = 40;

pub struct SimServer {
    pub id: ServerId,
    /// A new epoch with every start.
    pub epoch: Epoch,
    pub is_up: bool,
    pub last_beat: Timestamp,
    pub cached: BTreeMap<RunId, SimCachedRun>,
    /// The latest known rows of plain jobs and schedules.
    pub jobs: BTreeMap<JobId, JobRow>,
    pub schedules: BTreeMap<ScheduleId, Scheduled>,
}

/// A run in the memory of a server, which may be outdated.
#[derive(Clone)]
pub struct SimCachedRun {
    pub run: Run,
    pub plan: Arc<Plan>,
    pub projection: Projection,
    pub len: Seq,
}

impl SimServer {
    pub fn new(number: u64) -> Self {
        let id = ServerId::new(Uuid::from_u128(u128::from(number) + 1));
        SimServer {
            id,
            epoch: Epoch::ZERO,
            is_up: false,
            last_beat: Timestamp(0),
            cached: BTreeMap::new(),
            jobs: BTreeMap::new(),
            schedules: BTreeMap::new(),
        }
    }

    /// Stops the server and clears its memory.
    pub fn die(&mut self) {
        self.is_up = false;
        self.cached.clear();
        self.jobs.clear();
        self.schedules.clear();
    }

    pub fn owner(&self) -> Owner {
        Owner { server: self.id, epoch: self.epoch }
    }
}

/// Further writes in the commit of an input.
#[derive(Default, Clone)]
pub struct SimExtraWrites {
    pub create: Option<Origin>,
    pub jobs: Vec<JobChange>,
    pub delivered: Vec<MessageId>,
}

/// The reply of a server to an input.
pub enum SimReply {
    Taken,
    Refused(Refusal),
    /// The request was answered before, with this run.
    Existing(RunId),
    /// A job or message of the extra writes has changed meanwhile.
    Outdated,
    /// The outcome is unknown; ask again.
    Nothing,
}

impl SimWorld {
    /// Takes an input through decide, commit and effects.
    pub fn submit(
        &mut self,
        server: usize,
        run: RunId,
        input: &Input,
        extra: &SimExtraWrites,
    ) -> Result<SimReply, Violation> {
        let mut short: BTreeSet<NodePath> = BTreeSet::new();
        // The balance of the account when it was found insufficient, valid at that revision.
        let mut insufficient: Option<(i64, Unmoved)> = None;
        for _ in 0..RETRIES_MAX {
            let Some(mut cached) = self.load(server, run, extra.create.is_some()) else {
                return Ok(SimReply::Nothing);
            };
            let before = cached.run.clone();
            let spend_limit =
                insufficient.as_ref().map(|(balance, _)| before.paid().saturating_add(Amount(*balance)));
            let (now, epoch) = (self.seen_now(input), self.servers[server].epoch);
            let (wall, meter) = (self.wall(), Meter::of(self.slice_steps));
            let given = Given { now, wall, epoch, insufficient_funds: short.clone(), spend_limit, meter };
            let step = match cached.run.submit(&cached.plan, input, &given) {
                Ok(step) => withdraw_unclaimed(&self.store, &mut cached, step, &given),
                Err(_) if self.is_outdated(server, &cached) => continue,
                Err(refusal) => return Ok(SimReply::Refused(refusal)),
            };
            if step.events.is_empty() && extra.delivered.is_empty() && extra.jobs.is_empty() {
                if self.is_outdated(server, &cached) {
                    continue;
                }
                return Ok(SimReply::Taken);
            }
            let mut commit = self.draft(server, &mut cached, &step, extra);
            commit.unmoved.extend(insufficient.as_ref().map(|(_, at)| at.clone()));
            if self.bug == Some(PlantedBug::EffectBeforeCommit) {
                self.carry_out(server, &cached, &step)?;
            }
            match self.write(server, &cached, commit)? {
                WriteOutcome::Yes => {
                    if self.bug == Some(PlantedBug::CancelForgotten) && matches!(input, Input::Cancel { .. })
                    {
                        cached.run = before;
                    }
                    let is_unfinished = cached.run.is_unfinished();
                    self.on_committed(server, cached, &step)?;
                    if is_unfinished {
                        self.go_on(server, run)?;
                    }
                    return Ok(SimReply::Taken);
                }
                WriteOutcome::Again => {
                    self.servers[server].cached.remove(&run);
                }
                WriteOutcome::InsufficientFunds { .. } if self.bug == Some(PlantedBug::Overdraft) => {
                    self.overdraw = true;
                }
                WriteOutcome::Moved => {
                    self.servers[server].cached.remove(&run);
                    short.clear();
                    insufficient = None;
                }
                WriteOutcome::InsufficientFunds { nodes, balance, at } => {
                    short.extend(nodes);
                    insufficient = Some((balance, at));
                }
                WriteOutcome::Existing(existing) => return Ok(SimReply::Existing(existing)),
                WriteOutcome::Outdated => return Ok(SimReply::Outdated),
                WriteOutcome::No => return Ok(SimReply::Nothing),
            }
        }
        Ok(SimReply::Nothing)
    }

    /// Goes on with an agenda that is still open: at once as an actor does, or when the run is woken, as after a crash.
    fn go_on(&mut self, server: usize, run: RunId) -> Result<(), Violation> {
        if !self.servers[server].is_up
            || self.bug == Some(PlantedBug::AgendaForgotten)
            || self.rng.percent(20)
        {
            return Ok(());
        }
        self.submit(server, run, &Input::TimePassed, &SimExtraWrites::default()).map(|_| ())
    }

    /// The time that the server sees: the true one, unless a bug is planted.
    fn seen_now(&self, input: &Input) -> Timestamp {
        match (self.bug, input) {
            (Some(PlantedBug::EarlyTimer), Input::TimePassed) => self.now.after(500),
            _ => self.now,
        }
    }

    /// Whether the cached run is behind the store. Nothing may be answered from it then.
    fn is_outdated(&mut self, server: usize, cached: &SimCachedRun) -> bool {
        if self.bug == Some(PlantedBug::NoLengthGuard) || cached.len == self.store.len(cached.run.id) {
            return false;
        }
        self.servers[server].cached.remove(&cached.run.id);
        true
    }

    /// The run as it is in the store; the cached one only if it is current.
    pub(crate) fn load_current(&mut self, server: usize, run: RunId) -> Option<SimCachedRun> {
        let cached = self.load(server, run, false)?;
        if self.is_outdated(server, &cached) { self.load(server, run, false) } else { Some(cached) }
    }

    /// The cached run, or else the run replayed from its journal.
    fn load(&mut self, server: usize, run: RunId, create: bool) -> Option<SimCachedRun> {
        if let Some(cached) = self.servers[server].cached.get(&run) {
            return Some(cached.clone());
        }
        let plan = self.plan_of(run)?;
        let mut entries = self.store.entries(run);
        if entries.is_empty() && !create {
            return None;
        }
        let len = Seq(entries.len() as u64);
        if self.bug == Some(PlantedBug::TornJournal) && entries.len() > 2 {
            entries.pop();
        }
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = Run::replay(run, &plan, events);
        let projection = match self.store.row(run) {
            Some(row) => Projection::resume(&plan, &state, &row.projection),
            None => Projection::default(),
        };
        Some(SimCachedRun { run: state, plan, projection, len })
    }

    fn draft(
        &mut self,
        server: usize,
        cached: &mut SimCachedRun,
        step: &RunStep,
        extra: &SimExtraWrites,
    ) -> Commit {
        let command = self.store.command();
        let owner = self.servers[server].owner();
        let rows = project(&mut cached.projection, &cached.run, step, Some(owner), self.now);
        let cancels = rows.cancel.iter().filter_map(|id| self.store.job(*id)).collect();
        let create = extra.create.clone().filter(|_| cached.len == Seq::ZERO);
        let mut commit = if step.events.is_empty() {
            Commit::new(&Project::DEFAULT, command, self.now)
        } else {
            rows.into_commit(command, self.now, &cached.run, cached.len, step.clone(), create)
        };
        let own: BTreeSet<_> = extra.jobs.iter().map(|change| change.job.id).collect();
        commit
            .jobs
            .extend(cancelled(cancels, self.now).into_iter().filter(|change| !own.contains(&change.job.id)));
        commit.jobs.extend(extra.jobs.iter().cloned());
        commit.delivered.clone_from(&extra.delivered);
        self.apply_bug(cached, step, &mut commit);
        commit
    }

    /// Applies planted bugs that change the commit.
    fn apply_bug(&mut self, cached: &SimCachedRun, step: &RunStep, commit: &mut Commit) {
        match self.bug {
            Some(PlantedBug::NoRefund) => {
                commit.postings.retain(|posting| posting.movement.kind != MovementKind::Refund)
            }
            Some(PlantedBug::AgendaForgotten) if cached.run.is_unfinished() => {
                if let Some(change) = &mut commit.run {
                    change.projection.wake_at = None;
                }
            }
            Some(PlantedBug::ChargePerAttempt) => commit.postings.extend(charges_again(cached, step)),
            Some(PlantedBug::Overdraft) if std::mem::take(&mut self.overdraw) => {
                for posting in commit.postings.iter_mut().filter(|p| p.movement.kind == MovementKind::Charge)
                {
                    posting.movement.amount = Amount::ZERO;
                    posting.movement.held = Amount::ZERO;
                }
            }
            Some(PlantedBug::NoLengthGuard) => {
                let len = self.store.len(cached.run.id);
                if let Some(change) = &mut commit.run
                    && change.create.is_none()
                {
                    change.expected_len = len;
                }
            }
            _ => {}
        }
    }

    fn write(
        &mut self,
        server: usize,
        cached: &SimCachedRun,
        mut commit: Commit,
    ) -> Result<WriteOutcome, Violation> {
        self.interleave_write(server, &commit)?;
        loop {
            let reply = self.store.commit(commit.clone(), &mut self.faults, &mut self.rng);
            if matches!(reply, CommitReply::Answer(Ok(_)) | CommitReply::Unknown { happened: true }) {
                self.observe(cached, &commit)?;
            }
            return Ok(match reply {
                CommitReply::Answer(answer) => self.outcome_of(answer),
                CommitReply::Unknown { .. } if self.bug == Some(PlantedBug::BlindRetry) => {
                    commit.command = self.store.command();
                    if let Some(change) = &mut commit.run {
                        change.entry.command = commit.command;
                        change.expected_len = self.store.len(change.run);
                        change.create = change.create.take().filter(|_| change.expected_len == Seq::ZERO);
                    }
                    continue;
                }
                // An unknown outcome is looked up, never guessed.
                CommitReply::Unknown { .. } => match self.store.looked_up(commit.command) {
                    Some(_) => WriteOutcome::Yes,
                    None => WriteOutcome::Again,
                },
            });
        }
    }

    fn outcome_of(&mut self, answer: Result<Committed, StoreError>) -> WriteOutcome {
        match answer {
            Ok(_) => WriteOutcome::Yes,
            Err(StoreError::Refused(Forbidden::InsufficientFunds {
                keys,
                account,
                balance,
                revision,
                ..
            })) => {
                let nodes = keys.iter().filter_map(|key| node_of_key(key)).collect();
                WriteOutcome::InsufficientFunds {
                    nodes,
                    balance: balance.0,
                    at: Unmoved { account, revision },
                }
            }
            Err(StoreError::Refused(Forbidden::RequestTaken { existing, .. })) => {
                WriteOutcome::Existing(existing)
            }
            Err(StoreError::Refused(Forbidden::AlreadyDelivered(_))) => WriteOutcome::Outdated,
            Err(StoreError::Conflict { what: Subject::Run(_), .. }) => WriteOutcome::Again,
            Err(StoreError::Conflict { what: Subject::Account(_), .. }) => WriteOutcome::Moved,
            Err(StoreError::Conflict { .. }) => WriteOutcome::Outdated,
            Err(error) => {
                self.story.push(format!("{error}"));
                WriteOutcome::No
            }
        }
    }

    /// Sometimes lets another server write to the same run first.
    fn interleave_write(&mut self, server: usize, commit: &Commit) -> Result<(), Violation> {
        let Some(change) = &commit.run else { return Ok(()) };
        let strikes = self.faults.strikes(SimFault::Conflict, 4, &mut self.rng);
        if change.create.is_some() || !strikes || self.is_interleaving {
            return Ok(());
        }
        let other = (0..self.servers.len()).find(|other| *other != server && self.servers[*other].is_up);
        let Some(other) = other else { return Ok(()) };
        let run = change.run;
        let noise = Input::Signal { id: None, key: "noise".to_owned(), value: self.now.0.into(), by: None };
        self.is_interleaving = true;
        let reply = self.submit(other, run, &noise, &SimExtraWrites::default());
        self.is_interleaving = false;
        reply.map(|_| ())
    }

    /// Passes an accepted commit to the checker, whether or not its server learns of it.
    fn observe(&mut self, cached: &SimCachedRun, commit: &Commit) -> Result<(), Violation> {
        for posting in &commit.postings {
            self.checker.money.posted(&posting.account, &posting.movement)?;
        }
        let moment = moment_of(self);
        self.checker.late.committed(commit, moment);
        let Some(change) = &commit.run else { return Ok(()) };
        self.trace.mix(&change.entry.encode(), self.now);
        self.checker.committed(&cached.run, &cached.plan, change.expected_len, &change.entry)
    }

    /// Carries out the effects of a commit that its server knows to be durable.
    fn on_committed(
        &mut self,
        server: usize,
        mut cached: SimCachedRun,
        step: &RunStep,
    ) -> Result<(), Violation> {
        if !step.events.is_empty() {
            cached.len = cached.len.next();
        }
        self.servers[server].cached.insert(cached.run.id, cached.clone());
        if self.faults.strikes(SimFault::CrashBeforeEffects, 2, &mut self.rng) {
            self.crash(server);
            return Ok(());
        }
        if self.bug == Some(PlantedBug::EffectBeforeCommit) {
            Ok(())
        } else {
            self.carry_out(server, &cached, step)
        }
    }
}

/// A charge for every attempt after the first.
fn charges_again(cached: &SimCachedRun, step: &RunStep) -> Vec<Posting> {
    let account = cached.run.start.account.clone().filter(|_| cached.run.cost.estimated > Amount::ZERO);
    let again = step.events.iter().filter_map(|event| match event {
        Event::Granted { node, attempt, .. } if *attempt > 1 => Some((node, attempt)),
        _ => None,
    });
    let posting = |account: &String, (node, attempt): (&NodePath, &u32)| {
        let key = format!("charge:{}/{node}/attempt{attempt}.{}", cached.run.id, cached.run.fence);
        let movement = Movement::charge(key, Amount::ZERO);
        Posting { account: account.clone(), movement }
    };
    account.iter().flat_map(|account| again.clone().map(move |event| posting(account, event))).collect()
}

enum WriteOutcome {
    Yes,
    /// Load the new entries and decide again.
    Again,
    /// The balance has changed since calls were found unaffordable: decide again.
    Moved,
    InsufficientFunds {
        nodes: BTreeSet<NodePath>,
        balance: i64,
        at: Unmoved,
    },
    Existing(RunId),
    Outdated,
    No,
}

/// Ends the calls of jobs that should not begin any more and that no worker has claimed.
fn withdraw_unclaimed(
    store: &SimStore,
    cached: &mut SimCachedRun,
    mut step: RunStep,
    given: &Given,
) -> RunStep {
    let mut n_seen = 0;
    while let Some(effect) = step.effects.get(n_seen).cloned() {
        n_seen += 1;
        let Effect::Withdraw { node, fence, exec: Exec::Queue } = effect else { continue };
        let job = store.job(JobId::of_call(cached.run.id, fence));
        if job.is_some_and(|row| matches!(row.job.state, JobState::Running { .. })) {
            continue;
        }
        let ended = Input::CallEnded { node, fence, outcome: CallOutcome::Canceled, worker: None };
        if let Ok(more) = cached.run.submit(&cached.plan, &ended, given) {
            step.events.extend(more.events);
            step.effects.extend(more.effects);
        }
    }
    step
}
