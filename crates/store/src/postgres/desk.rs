//! What a group of commits has to know to be decided: read at once, with the rows that will change held until the end of
//! the transaction, and kept up to date as commits of the group are decided, so that each sees those before it.
//!
//! Rows are held in the order of the tables below and of their ids, so that two groups wait for one another and never
//! for each other. Whatever is not there yet cannot be held: two who create the same thing meet at a unique index, and
//! one of them begins anew and finds it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tokio_postgres::Row;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, VersionId};
use windlass_engine::money::Movement;
use windlass_engine::schedule::Firing;
use windlass_engine::time::Timestamp;

use super::column::Columns;
use super::commit::{self, Draft};
use super::link::{Ask, Link, Piped};
use super::{account, job, outbox, queue, run, schedule};
use crate::account::{AccountRow, related_keys};
use crate::commit::{Commit, Committed};
use crate::error::StoreError;
use crate::job::JobStatus;
use crate::outbox::MessageId;
use crate::schedule::Started;

#[derive(Debug, Default)]
pub(super) struct Desk {
    pub(super) runs: HashMap<RunId, run::Head>,
    pub(super) versions: HashMap<VersionId, FlowId>,
    pub(super) requests: HashMap<String, (RunId, String)>,
    pub(super) jobs: HashMap<JobId, job::Head>,
    /// Keys that are there, and whose they are: the empty id if that job is gone.
    pub(super) keys: HashMap<(String, String), Option<JobId>>,
    pub(super) holders: HashMap<JobId, job::Holder>,
    /// Of queues with limits.
    pub(super) turns: HashMap<String, u64>,
    pub(super) accounts: HashMap<String, AccountRow>,
    /// By account and key.
    pub(super) known: HashMap<String, BTreeMap<String, Movement>>,
    /// Whether they were delivered.
    pub(super) messages: BTreeMap<MessageId, bool>,
    pub(super) schedules: HashMap<ScheduleId, u64>,
    pub(super) firings: BTreeSet<Firing>,
    pub(super) commands: HashMap<CommandId, Committed>,
}

impl Desk {
    /// Begins a transaction, holds what the group will change, and reads what it has to know.
    pub(super) async fn prepare(db: &Link, drafts: &[Draft]) -> Result<Desk, StoreError> {
        let wanted = Wanted::of(drafts);
        let (kinds, asks): (Vec<Kind>, Vec<Ask<'_>>) = wanted.asks().into_iter().unzip();
        let answers = match db.pipeline(Some("BEGIN"), &asks, None).await? {
            Piped::Done(answers) => answers,
            Piped::Failed { error, .. } => return Err(error),
        };
        let mut desk = Desk::default();
        for (kind, rows) in kinds.into_iter().zip(&answers) {
            for row in rows {
                desk.take(kind, row)?;
            }
        }
        Ok(desk)
    }

    fn take(&mut self, kind: Kind, row: &Row) -> Result<(), StoreError> {
        let mut columns = Columns::of(row);
        match kind {
            Kind::Runs => self.runs.extend([run::Head::read(row)?]),
            Kind::Jobs => self.jobs.extend([job::Head::read(row)?]),
            Kind::Keys => {
                self.keys.insert((columns.text()?, columns.text()?), None);
            }
            Kind::Holders => {
                let (key, id, holder) = job::Holder::read(row)?;
                self.keys.insert(key, Some(id));
                self.holders.insert(id, holder);
            }
            Kind::Turns => {
                self.turns.insert(columns.text()?, columns.number()?);
            }
            Kind::Accounts => {
                let account = account::read(row)?;
                self.accounts.insert(account.id.clone(), account);
            }
            Kind::Known => {
                let posting = account::read_ledger(row)?.posting;
                let known = self.known.entry(posting.account).or_default();
                known.insert(posting.movement.key.clone(), posting.movement);
            }
            Kind::Messages => self.messages.extend([outbox::read_found(row)?]),
            Kind::Schedules => self.schedules.extend([schedule::read_rev(row)?]),
            Kind::Firings => self.firings.extend([schedule::read_fired(row)?]),
            Kind::Requests => {
                let request = columns.text()?;
                self.requests.insert(request, (columns.id()?, columns.text()?));
            }
            Kind::Versions => {
                self.versions.insert(columns.id()?, columns.id()?);
            }
            Kind::Commands => {
                let committed = commit::read(row)?;
                self.commands.insert(committed.command, committed);
            }
        }
        Ok(())
    }

    /// Who has a key now.
    pub(super) fn holder(&self, queue: &str, key: &str, now: Timestamp) -> Option<(JobId, JobStatus)> {
        let id = (*self.keys.get(&(queue.to_owned(), key.to_owned()))?)?;
        let holder = self.holders.get(&id)?;
        let has_it = holder.is_open || holder.until.is_some_and(|until| until > now);
        has_it.then_some((id, holder.status))
    }
}

/// What a statement answers.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Runs,
    Jobs,
    Keys,
    Holders,
    Turns,
    Accounts,
    Known,
    Messages,
    Schedules,
    Firings,
    Requests,
    Versions,
    Commands,
}

/// What a group is about.
#[derive(Default)]
struct Wanted<'c> {
    runs: BTreeSet<RunId>,
    versions: BTreeSet<VersionId>,
    requests: BTreeSet<&'c str>,
    jobs: BTreeSet<JobId>,
    /// Jobs that are not waited for.
    claims: BTreeSet<JobId>,
    keys: BTreeSet<(&'c str, &'c str)>,
    turns: BTreeSet<&'c str>,
    accounts: BTreeSet<&'c str>,
    known: BTreeSet<(&'c str, String)>,
    messages: BTreeSet<&'c MessageId>,
    schedules: BTreeSet<ScheduleId>,
    firings: BTreeSet<Firing>,
    commands: BTreeSet<CommandId>,
}

impl<'c> Wanted<'c> {
    fn of(drafts: &'c [Draft]) -> Self {
        let mut wanted = Wanted::default();
        drafts.iter().for_each(|draft| wanted.add(&draft.commit));
        let waited_for = &wanted.jobs;
        wanted.claims.retain(|id| !waited_for.contains(id));
        wanted
    }

    fn add(&mut self, commit: &'c Commit) {
        self.commands.insert(commit.command);
        if let Some(change) = &commit.run {
            self.runs.insert(change.run);
            if let Some(origin) = &change.create {
                self.versions.insert(origin.version);
                self.requests.extend(origin.request.as_ref().map(|request| request.id.as_str()));
            }
        }
        for change in &commit.jobs {
            let spec = &change.job.spec;
            if commit.is_hasty { &mut self.claims } else { &mut self.jobs }.insert(change.job.id);
            // Whoever claims has the key already.
            if change.job.is_open() && !commit.is_hasty && !spec.dedup_key.is_empty() {
                self.keys.insert((&spec.queue, &spec.dedup_key));
            }
        }
        self.turns.extend(commit.turns.iter().map(|turn| turn.queue.as_str()));
        for posting in &commit.postings {
            self.accounts.insert(&posting.account);
            let keys = related_keys(&posting.movement).into_iter();
            self.known.extend(keys.map(|key| (posting.account.as_str(), key)));
        }
        self.accounts.extend(commit.unmoved.iter().map(|unmoved| unmoved.account.as_str()));
        self.messages.extend(&commit.delivered);
        self.schedules.extend(commit.schedules.iter().map(|change| change.row.id()));
        for row in &commit.firings {
            self.schedules.insert(row.firing.schedule);
            self.firings.insert(row.firing);
            // What it started must not end while the firing is written: nobody would tell it.
            match row.started {
                Started::Run(id) => drop(self.runs.insert(id)),
                Started::Job(id) => drop(self.jobs.insert(id)),
            }
        }
    }

    /// The statements, of which what nobody asks for is left out. Commands come last: one that was being committed
    /// when a row was waited for is there by then.
    fn asks(&self) -> Vec<(Kind, Ask<'c>)> {
        let asks = [
            (self.runs.is_empty(), Kind::Runs, run::heads(self.runs.iter().copied())),
            (self.jobs.is_empty(), Kind::Jobs, job::heads(self.jobs.iter().copied())),
            (self.claims.is_empty(), Kind::Jobs, job::heads_at_once(self.claims.iter().copied())),
            (self.keys.is_empty(), Kind::Keys, job::hold_keys(&self.keys)),
            (self.keys.is_empty(), Kind::Holders, job::holders(&self.keys)),
            (self.turns.is_empty(), Kind::Turns, queue::turns(&self.turns)),
            (self.accounts.is_empty(), Kind::Accounts, account::hold(&self.accounts)),
            (self.known.is_empty(), Kind::Known, account::known(&self.known)),
            (self.messages.is_empty(), Kind::Messages, outbox::find(&self.messages)),
            (self.schedules.is_empty(), Kind::Schedules, schedule::revs(&self.schedules)),
            (self.firings.is_empty(), Kind::Firings, schedule::fired(&self.firings)),
            (self.requests.is_empty(), Kind::Requests, run::requests(self.requests.iter().copied())),
            (self.versions.is_empty(), Kind::Versions, run::versions(self.versions.iter().copied())),
            (false, Kind::Commands, commit::find(self.commands.iter().copied())),
        ];
        asks.into_iter().filter(|(is_empty, ..)| !is_empty).map(|(_, kind, ask)| (kind, ask)).collect()
    }
}
