//! Rows that a group of commits depends on: read at once, with the rows that will change locked until the end of
//! the transaction, and kept up to date as commits of the group are decided, so that each sees those before it.
//!
//! Rows are locked in the order of the tables below and of their ids, so that two groups wait for one another and never
//! deadlock. A row that does not exist yet cannot be locked: two creators of the same row meet at a unique index, and
//! one of them begins anew and finds it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use tokio_postgres::Row;
use windlass_engine::counter::Revision;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, VersionId};
use windlass_engine::money::Movement;
use windlass_engine::project::Project;
use windlass_engine::schedule::Firing;
use windlass_engine::time::Timestamp;

use super::column::PostgresColumns;
use super::commit::{self, Draft};
use super::link::{BoundStatement, Link, Piped};
use super::{account, blob, job, outbox, queue, run, schedule};
use crate::account::{AccountRow, related_keys};
use crate::blob::blob_of;
use crate::column::Columns;
use crate::commit::{Commit, Committed};
use crate::error::StoreError;
use crate::job::JobStatus;
use crate::outbox::MessageId;
use crate::schedule::Started;

#[derive(Debug, Default)]
pub(super) struct ReadSet {
    pub(super) runs: HashMap<RunId, run::LockedRun>,
    pub(super) versions: HashMap<VersionId, FlowId>,
    pub(super) requests: HashMap<String, (RunId, String)>,
    pub(super) jobs: HashMap<JobId, job::LockedJob>,
    /// Keys that are there, and whose they are: the empty id if that job is gone.
    pub(super) keys: HashMap<(String, String), Option<JobId>>,
    pub(super) holders: HashMap<JobId, job::Holder>,
    /// Claim counters of queues with limits.
    pub(super) turns: HashMap<String, u64>,
    pub(super) accounts: HashMap<String, AccountRow>,
    /// By account and key.
    pub(super) known: HashMap<String, BTreeMap<String, Movement>>,
    /// Whether they were delivered.
    pub(super) messages: BTreeMap<MessageId, bool>,
    pub(super) schedules: HashMap<ScheduleId, Revision>,
    pub(super) firings: BTreeSet<Firing>,
    pub(super) commands: HashMap<CommandId, Committed>,
    /// Hashes of blobs that are there.
    pub(super) blobs: BTreeSet<String>,
}

impl ReadSet {
    /// Begins a transaction, locks the rows that the group will change, and reads the rows that it depends on.
    pub(super) async fn prepare(
        db: &Link,
        project: &Project,
        drafts: &[Draft],
    ) -> Result<ReadSet, StoreError> {
        let wanted = Wanted::of(drafts);
        let (kinds, asks): (Vec<ReadKind>, Vec<BoundStatement<'_>>) =
            wanted.asks(project).into_iter().unzip();
        let answers = match db.pipeline(Some("BEGIN"), &asks, None).await? {
            Piped::Done(answers) => answers,
            Piped::Failed { error, .. } => return Err(error),
        };
        let mut read_set = ReadSet::default();
        for (kind, rows) in kinds.into_iter().zip(&answers) {
            for row in rows {
                read_set.take(kind, row)?;
            }
        }
        Ok(read_set)
    }

    fn take(&mut self, kind: ReadKind, row: &Row) -> Result<(), StoreError> {
        let mut columns = PostgresColumns::of(row);
        match kind {
            ReadKind::Runs => self.runs.extend([run::LockedRun::read(row)?]),
            ReadKind::Jobs => self.jobs.extend([job::LockedJob::read(row)?]),
            ReadKind::Keys => {
                self.keys.insert((columns.text()?, columns.text()?), None);
            }
            ReadKind::Holders => {
                let (key, id, holder) = job::Holder::read(row)?;
                self.keys.insert(key, Some(id));
                self.holders.insert(id, holder);
            }
            ReadKind::Turns => {
                self.turns.insert(columns.text()?, columns.number()?);
            }
            ReadKind::Accounts => {
                let account = account::read(row)?;
                self.accounts.insert(account.id.clone(), account);
            }
            ReadKind::Known => {
                let posting = account::read_ledger(row)?.posting;
                let known = self.known.entry(posting.account).or_default();
                known.insert(posting.movement.key.clone(), posting.movement);
            }
            ReadKind::Messages => self.messages.extend([outbox::read_found(row)?]),
            ReadKind::Schedules => self.schedules.extend([schedule::read_rev(row)?]),
            ReadKind::Firings => self.firings.extend([schedule::read_fired(row)?]),
            ReadKind::Requests => {
                let request = columns.text()?;
                self.requests.insert(request, (columns.id()?, columns.text()?));
            }
            ReadKind::Versions => {
                self.versions.insert(columns.id()?, columns.id()?);
            }
            ReadKind::Blobs => {
                self.blobs.insert(columns.text()?);
            }
            ReadKind::Commands => {
                let committed = commit::read(row)?;
                self.commands.insert(committed.command, committed);
            }
        }
        Ok(())
    }

    /// The current holder of a key.
    pub(super) fn holder(&self, queue: &str, key: &str, now: Timestamp) -> Option<(JobId, JobStatus)> {
        let id = (*self.keys.get(&(queue.to_owned(), key.to_owned()))?)?;
        let holder = self.holders.get(&id)?;
        let has_it = holder.is_open || holder.until.is_some_and(|until| until > now);
        has_it.then_some((id, holder.status))
    }
}

/// The rows of a statement.
#[derive(Debug, Clone, Copy)]
enum ReadKind {
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
    Blobs,
    Commands,
}

impl ReadKind {
    /// Whether the statement has the project as its last parameter. Firings are found by their schedules.
    fn has_project(self) -> bool {
        !matches!(self, ReadKind::Firings)
    }
}

/// The ids that a group concerns.
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
    blobs: BTreeSet<&'c str>,
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
        self.blobs.extend(commit.blobs.iter().map(|layer| blob_of(layer).hash.as_str()));
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
            // A claimed job has its key already.
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
            // Its start must not end while the firing is written: the firing would never learn of it.
            match row.started {
                Started::Run(id) => drop(self.runs.insert(id)),
                Started::Job(id) => drop(self.jobs.insert(id)),
            }
        }
    }

    /// The statements that are needed. Commands come last: one that was being committed
    /// when a row was waited for is there by then.
    fn asks(&self, project: &'c Project) -> Vec<(ReadKind, BoundStatement<'c>)> {
        let asks = [
            (self.runs.is_empty(), ReadKind::Runs, run::heads(self.runs.iter().copied())),
            (self.jobs.is_empty(), ReadKind::Jobs, job::heads(self.jobs.iter().copied())),
            (self.claims.is_empty(), ReadKind::Jobs, job::heads_at_once(self.claims.iter().copied())),
            (self.keys.is_empty(), ReadKind::Keys, job::hold_keys(&self.keys)),
            (self.keys.is_empty(), ReadKind::Holders, job::holders(&self.keys)),
            (self.turns.is_empty(), ReadKind::Turns, queue::turns(&self.turns)),
            (self.accounts.is_empty(), ReadKind::Accounts, account::hold(&self.accounts)),
            (self.known.is_empty(), ReadKind::Known, account::known(&self.known)),
            (self.messages.is_empty(), ReadKind::Messages, outbox::find(&self.messages)),
            (self.schedules.is_empty(), ReadKind::Schedules, schedule::revs(&self.schedules)),
            (self.firings.is_empty(), ReadKind::Firings, schedule::fired(&self.firings)),
            (self.requests.is_empty(), ReadKind::Requests, run::requests(self.requests.iter().copied())),
            (self.versions.is_empty(), ReadKind::Versions, run::versions(self.versions.iter().copied())),
            (self.blobs.is_empty(), ReadKind::Blobs, blob::hold(&self.blobs)),
            (false, ReadKind::Commands, commit::find(self.commands.iter().copied())),
        ];
        let wanted = asks.into_iter().filter(|(is_empty, ..)| !is_empty);
        wanted
            .map(|(_, kind, ask)| (kind, if kind.has_project() { ask.in_project(project) } else { ask }))
            .collect()
    }
}
