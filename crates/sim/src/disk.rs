//! The store of a simulated world: the real memory backend, with the faults a real one has around it.

use uuid::Uuid;
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::journal::Entry;
use windlass_engine::recovery::DEAD_MS;
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, Committed};
use windlass_store::job::{JobRow, ReadyQuery};
use windlass_store::outbox::{Message, Party};
use windlass_store::run::{RunQuery, RunRef, RunRow, Since};
use windlass_store::store::Due;
use windlass_store::{Memory, StoreError};

use crate::fault::{Fault, Faults};
use crate::rng::Rng;

/// More than any simulated world has of anything.
const ALL: usize = 10_000;
/// Faults come from around the memory backend, never from it.
const WORKS: &str = "memory is always there";

#[derive(Default)]
pub struct Disk {
    pub memory: Memory,
    n_commands: u128,
}

/// What a server hears of its commit.
pub enum Heard {
    Answer(Result<Committed, StoreError>),
    /// Nothing: it may have happened or not. Only the world knows.
    Silence {
        happened: bool,
    },
}

impl Disk {
    pub fn command(&mut self) -> CommandId {
        self.n_commands += 1;
        CommandId::new(Uuid::from_u128(self.n_commands))
    }

    /// Writes a commit, or not, and answers, or not.
    pub fn commit(&self, commit: Commit, faults: &mut Faults, rng: &mut Rng) -> Heard {
        if faults.strikes(Fault::StoreUnavailable, 5, rng) {
            return Heard::Silence { happened: false };
        }
        let answer = self.memory.commit_now(vec![commit]).pop().expect("every commit is answered");
        if faults.strikes(Fault::AnswerLost, 5, rng) {
            Heard::Silence { happened: answer.is_ok() }
        } else {
            Heard::Answer(answer)
        }
    }

    pub fn looked_up(&self, command: CommandId) -> Option<Committed> {
        self.memory.command_now(command).expect(WORKS)
    }

    pub fn len(&self, run: RunId) -> u64 {
        self.row(run).map_or(0, |row| row.len)
    }

    pub fn row(&self, run: RunId) -> Option<RunRow> {
        self.memory.run_now(RunRef::Id(run)).expect(WORKS)
    }

    pub fn entries(&self, run: RunId) -> Vec<Entry> {
        let journal = self.memory.journal_now(run, Since::Entry(0), ALL).expect(WORKS);
        journal.entries.into_iter().map(|(_, entry)| entry).collect()
    }

    pub fn rows(&self) -> Vec<RunRow> {
        let mut query = RunQuery::default();
        let mut rows = Vec::new();
        loop {
            let page = self.memory.runs_now(query.clone()).expect(WORKS);
            rows.extend(page.items);
            match page.next {
                Some(next) => query.part.cursor = Some(next),
                None => return rows,
            }
        }
    }

    pub fn due(&self, now: Timestamp) -> Due {
        self.memory.due_now(now, ALL).expect(WORKS)
    }

    pub fn job(&self, job: JobId) -> Option<JobRow> {
        self.memory.job_now(job).expect(WORKS)
    }

    pub fn ready(&self, services: Vec<String>, now: Timestamp) -> Vec<JobRow> {
        let query = ReadyQuery { queues: Vec::new(), services, now, limit: 10, ..ReadyQuery::default() };
        self.memory.ready_now(query).expect(WORKS)
    }

    pub fn outbox_to(&self, run: RunId) -> Vec<Message> {
        self.memory.outbox_to_now(Party::Run(run)).expect(WORKS)
    }

    pub fn outbox(&self, now: Timestamp) -> Vec<Message> {
        self.memory.outbox_now(now, ALL).expect(WORKS)
    }

    /// Runs whose owner is dead.
    pub fn orphans(&self, now: Timestamp) -> Vec<RunRow> {
        self.memory.orphans_now(now, DEAD_MS, None, ALL).expect(WORKS)
    }
}
