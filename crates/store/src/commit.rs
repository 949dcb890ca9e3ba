//! One commit: everything a transition implies, or nothing of it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

use windlass_engine::counter::{Revision, Seq};
use windlass_engine::id::{CommandId, RunId};
use windlass_engine::job::Job;
use windlass_engine::journal::Entry;
use windlass_engine::money::Amount;
use windlass_engine::params::ParamLayer;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::account::Posting;
use crate::audit::AuditRow;
use crate::job::JobOrigin;
use crate::log::LogRow;
use crate::outbox::{Message, MessageId};
use crate::projection::Reopened;
use crate::queue::Spent;
use crate::run::{Origin, RunProjection};
use crate::schedule::{FiringRow, ScheduleRow};

/// Rows that are written together.
#[derive(Debug, Clone, PartialEq)]
pub struct Commit {
    /// The project of every row that is written.
    pub project: Project,
    /// Committing the same command again returns the first result, and writes nothing. It names
    /// one commit: never give it to another.
    pub command: CommandId,
    pub now: Timestamp,
    pub run: Option<RunChange>,
    pub jobs: Vec<JobChange>,
    /// A job that another commit is writing right now is refused at once instead of waited for: any other job will do.
    pub is_hasty: bool,
    /// Queues with limits that jobs are handed out from, if others do so too.
    pub turns: Vec<QueueGuard>,
    pub postings: Vec<Posting>,
    /// Accounts that must not have moved since they were looked at.
    pub unmoved: Vec<Unmoved>,
    /// A message that was sent before is a no-op.
    pub messages: Vec<Message>,
    /// Messages that this commit acts on; each can be acted on once.
    pub delivered: Vec<MessageId>,
    pub schedules: Vec<ScheduleChange>,
    pub firings: Vec<FiringRow>,
    pub audit: Vec<AuditRow>,
    /// Large parameters that the rows of the run refer to; without a run there are none.
    pub blobs: Vec<Arc<ParamLayer>>,
    /// Logs of a run that does not exist are dropped: nothing would delete them.
    pub logs: Vec<LogRow>,
}

/// One more entry in a run's journal.
#[derive(Debug, Clone, PartialEq)]
pub struct RunChange {
    pub run: RunId,
    /// Entries in the journal so far.
    pub expected_len: Seq,
    /// Present exactly when `expected_len` is 0.
    pub create: Option<Origin>,
    pub entry: Entry,
    pub projection: RunProjection,
    /// The state after this entry, when it is time for a snapshot.
    pub snapshot: Option<Vec<u8>>,
    /// The states of its nodes, if a new round begins. Views of the tables read them; the program does not.
    pub reopened: Option<Reopened>,
}

/// A job as it is from now on. Its specification changes only when it is opened again or replayed.
#[derive(Debug, Clone, PartialEq)]
pub struct JobChange {
    /// Its `rev` so far; 0 creates it.
    pub expected_rev: Revision,
    pub job: Job,
    /// Looked at only when it is created.
    pub origin: JobOrigin,
}

/// Jobs of a queue with limits are claimed: the commit fails if another server claimed since the limits were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueGuard {
    pub queue: String,
    /// Claims so far. A queue without settings has none, and is not guarded.
    pub expected: u64,
    /// Consumption of the rates of the queue.
    pub spent: Vec<Spent>,
}

/// An account that a decision was about although no money moves: a call is parked because of its balance.
/// A later deposit finds the parked run; an earlier deposit makes this commit a conflict.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmoved {
    pub account: String,
    pub revision: Revision,
}

/// A schedule as it is from now on.
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleChange {
    /// Its `rev` so far; 0 creates it.
    pub expected_rev: Revision,
    pub row: ScheduleRow,
    /// Deletes it instead. Its firings stay, so that no slot fires twice.
    pub delete: bool,
}

/// The result of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Committed {
    pub command: CommandId,
    pub at: Timestamp,
    /// The run it was about and the number of its new entry.
    pub run: Option<(RunId, Seq)>,
    /// Balances afterwards, of the accounts it posted to.
    pub balances: BTreeMap<String, Amount>,
}

impl Commit {
    /// A commit that changes nothing yet.
    pub fn new(project: &Project, command: CommandId, now: Timestamp) -> Self {
        Commit {
            project: project.clone(),
            command,
            now,
            run: None,
            jobs: Vec::new(),
            is_hasty: false,
            turns: Vec::new(),
            postings: Vec::new(),
            unmoved: Vec::new(),
            messages: Vec::new(),
            delivered: Vec::new(),
            schedules: Vec::new(),
            firings: Vec::new(),
            audit: Vec::new(),
            blobs: Vec::new(),
            logs: Vec::new(),
        }
    }

    /// The first error in the commit itself, independent of stored rows; every store checks it first.
    pub fn fault(&self) -> Option<&'static str> {
        fn twice<T: Ord>(items: impl Iterator<Item = T>) -> bool {
            let mut seen = std::collections::BTreeSet::new();
            !items.into_iter().all(|item| seen.insert(item))
        }
        if let Some(change) = &self.run {
            if change.create.is_some() != (change.expected_len == Seq::ZERO) {
                return Some("a run is created with its first entry, and only then");
            }
            if change.entry.command != self.command {
                return Some("the entry names another command");
            }
            if change.entry.at != self.now {
                return Some("the entry is of another moment");
            }
            let projection = &change.projection;
            if projection.status.is_open() == projection.ended_at.is_some() {
                return Some("a run has an end exactly when it has ended");
            }
            if projection.status.is_open() && (projection.shared.is_some() || projection.result.is_some()) {
                return Some("a run has a shared state and a result once it has ended");
            }
            if !projection.status.is_open() && (projection.wake_at.is_some() || projection.owner.is_some()) {
                return Some("a run that has ended has neither a wake-up nor an owner");
            }
        }
        if twice(self.jobs.iter().map(|change| change.job.id)) {
            return Some("a job is changed twice");
        }
        if twice(self.turns.iter().map(|turn| &turn.queue)) {
            return Some("a queue has two turns");
        }
        if twice(self.schedules.iter().map(|change| change.row.id())) {
            return Some("a schedule is changed twice");
        }
        if twice(self.firings.iter().map(|row| row.firing)) {
            return Some("a slot is fired twice");
        }
        if self.run.is_none() && !self.blobs.is_empty() {
            return Some("blobs belong to a run");
        }
        if twice(self.delivered.iter()) {
            return Some("a message is delivered twice");
        }
        if twice(self.logs.iter().map(|row| (row.run, row.entry, row.fence))) {
            return Some("a log is written twice");
        }
        None
    }
}
