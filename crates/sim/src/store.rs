//! The store of a world: the real in-memory store, wrapped in the faults of a real database.

use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::project::Project;
use windlass_engine::recovery::DEAD_MS;
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, Committed};
use windlass_store::job::{JobRow, ReadyQuery};
use windlass_store::outbox::{Message, Party};
use windlass_store::run::{RunQuery, RunRef, RunRow, Since};
use windlass_store::store::Due;
use windlass_store::{Memory, StoreError};

use crate::fault::{SimFault, SimFaults};
use crate::rng::SimRng;

/// More rows than any world has.
const ALL: usize = 10_000;
/// Faults come from the wrapper, never from the in-memory store.
const MEMORY_NEVER_FAILS: &str = "memory is always there";

#[derive(Default)]
pub struct SimStore {
    pub memory: Memory,
    n_commands: u128,
}

/// The reply to a commit.
pub enum CommitReply {
    Answer(Result<Committed, StoreError>),
    /// No reply: the outcome is unknown to the server. Only the world knows it.
    Unknown {
        happened: bool,
    },
}

impl SimStore {
    pub fn command(&mut self) -> CommandId {
        self.n_commands += 1;
        CommandId::new(Uuid::from_u128(self.n_commands))
    }

    /// Writes a commit or fails, and replies or not.
    pub fn commit(&self, commit: Commit, faults: &mut SimFaults, rng: &mut SimRng) -> CommitReply {
        if faults.strikes(SimFault::StoreUnavailable, 5, rng) {
            return CommitReply::Unknown { happened: false };
        }
        let answer = self.memory.commit_now(vec![commit]).pop().expect("every commit is answered");
        if faults.strikes(SimFault::AnswerLost, 5, rng) {
            CommitReply::Unknown { happened: answer.is_ok() }
        } else {
            CommitReply::Answer(answer)
        }
    }

    pub fn looked_up(&self, command: CommandId) -> Option<Committed> {
        self.memory.command_now(&Project::DEFAULT, command).expect(MEMORY_NEVER_FAILS)
    }

    pub fn len(&self, run: RunId) -> Seq {
        self.row(run).map_or(Seq::ZERO, |row| row.len)
    }

    pub fn row(&self, run: RunId) -> Option<RunRow> {
        self.memory.run_now(&Project::DEFAULT, RunRef::Id(run)).expect(MEMORY_NEVER_FAILS)
    }

    pub fn entries(&self, run: RunId) -> Vec<Entry> {
        let journal = self
            .memory
            .journal_now(&Project::DEFAULT, run, Since::Entry(Seq::ZERO), ALL)
            .expect(MEMORY_NEVER_FAILS);
        journal.entries.into_iter().map(|(_, entry)| entry).collect()
    }

    pub fn rows(&self) -> Vec<RunRow> {
        let mut query = RunQuery::default();
        let mut rows = Vec::new();
        loop {
            let page = self.memory.runs_now(&Project::DEFAULT, query.clone()).expect(MEMORY_NEVER_FAILS);
            rows.extend(page.items);
            match page.next {
                Some(next) => query.part.cursor = Some(next),
                None => return rows,
            }
        }
    }

    pub fn due(&self, now: Timestamp) -> Due {
        self.memory.due_now(now, ALL).expect(MEMORY_NEVER_FAILS)
    }

    pub fn job(&self, job: JobId) -> Option<JobRow> {
        self.memory.job_now(&Project::DEFAULT, job).expect(MEMORY_NEVER_FAILS)
    }

    pub fn ready(&self, services: Vec<String>, now: Timestamp) -> Vec<JobRow> {
        let query = ReadyQuery { queues: Vec::new(), services, now, limit: 10, ..ReadyQuery::default() };
        self.memory.ready_now(&Project::DEFAULT, query).expect(MEMORY_NEVER_FAILS)
    }

    pub fn outbox_to(&self, run: RunId) -> Vec<Message> {
        self.memory.outbox_to_now(&Project::DEFAULT, Party::Run(run)).expect(MEMORY_NEVER_FAILS)
    }

    pub fn outbox(&self, now: Timestamp) -> Vec<Message> {
        let undelivered = self.memory.outbox_now(now, None, ALL).expect(MEMORY_NEVER_FAILS);
        let mut messages: Vec<Message> = undelivered.into_iter().map(|row| row.message).collect();
        for tree in self.memory.waiting_trees_now(None, ALL).expect(MEMORY_NEVER_FAILS) {
            let children = self.memory.waiting_children_now(&tree.project, tree.root, ALL);
            messages.extend(children.expect(MEMORY_NEVER_FAILS).into_iter().filter(|sent| sent.at <= now));
        }
        messages.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
        messages
    }

    /// Runs whose owner is dead.
    pub fn orphans(&self, now: Timestamp) -> Vec<RunRow> {
        self.memory.orphans_now(now, DEAD_MS, None, ALL).expect(MEMORY_NEVER_FAILS)
    }
}
