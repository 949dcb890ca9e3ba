//! Everything in maps behind one lock: for tests and the simulator. Deterministic, correct and simple, and the
//! meaning of the trait in its plainest form; nothing survives the process.
//!
//! Every verb of [`Store`] has a synchronous twin ending in `_now`, because the simulator has no futures. Faults are
//! not injected here: whoever wants them wraps the trait.

mod commit;
mod flow;
mod hint;
mod keys;
mod read;
mod record;
mod retain;
mod state;

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId};
use windlass_engine::job::Attempt;
use windlass_engine::time::Timestamp;

use crate::account::{LedgerQuery, LedgerRow};
use crate::commit::{Commit, Committed};
use crate::error::StoreError;
use crate::flow::{FlowQuery, FlowRow, Publication, Published, VersionRef, VersionRow};
use crate::hint::{Hints, Listeners};
use crate::job::{JobQuery, JobRow, KeyQuery, KeyRows, ReadyQuery};
use crate::outbox::{Message, Party};
use crate::page::Page;
use crate::record::{Record, RecordQuery, Records};
use crate::run::{Journal, RunQuery, RunRef, RunRow, Since};
use crate::store::{Due, Retained, Store};

use state::State;

/// A store in memory.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<State>,
    listeners: Listeners,
}

impl Memory {
    /// An empty store.
    pub fn new() -> Self {
        Self::default()
    }

    /// Every commit checks before it writes, so that a panic elsewhere never leaves half of one behind the lock.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AsRef<dyn Store> for Memory {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        self
    }
}

macro_rules! forward {
    ($($verb:ident / $now:ident ($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        impl Memory {
            $(
                #[doc = concat!("[`Store::", stringify!($verb), "`], at once.")]
                pub fn $now(&self, $($arg: $type),*) -> $answer {
                    self.state().$verb($($arg),*)
                }
            )*
        }

        #[async_trait]
        impl Store for Memory {
            $(
                async fn $verb(&self, $($arg: $type),*) -> $answer {
                    self.$now($($arg),*)
                }
            )*

            async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
                self.commit_now(commits)
            }

            async fn save(&self, record: Record) -> Result<(), StoreError> {
                self.save_now(record)
            }

            /// Tells of everything, also to whoever wrote it: nobody here knows who that was.
            fn hints(&self) -> Option<Hints> {
                Some(self.listeners.add())
            }
        }
    };
}

impl Memory {
    /// [`Store::commit`], at once.
    pub fn commit_now(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
        let told =
            (!self.listeners.is_empty()).then(|| commits.iter().map(hint::of_commit).collect::<Vec<_>>());
        let answers = self.state().commit(commits);
        for (hint, answer) in told.into_iter().flatten().zip(&answers) {
            if answer.is_ok() {
                self.listeners.tell(&hint);
            }
        }
        answers
    }

    /// [`Store::save`], at once.
    pub fn save_now(&self, record: Record) -> Result<(), StoreError> {
        let hint = hint::of_record(&record);
        self.state().save(record)?;
        self.listeners.tell(&hint);
        Ok(())
    }
}

forward! {
    publish / publish_now(publication: Publication) -> Result<Published, StoreError>;
    flows / flows_now(query: FlowQuery) -> Result<Page<FlowRow>, StoreError>;
    version / version_now(version: VersionRef) -> Result<Option<VersionRow>, StoreError>;
    versions / versions_now(flow: FlowId) -> Result<Vec<VersionRow>, StoreError>;
    command / command_now(command: CommandId) -> Result<Option<Committed>, StoreError>;
    journal / journal_now(run: RunId, since: Since, limit: usize) -> Result<Journal, StoreError>;
    run / run_now(run: RunRef) -> Result<Option<RunRow>, StoreError>;
    runs / runs_now(query: RunQuery) -> Result<Page<RunRow>, StoreError>;
    due / due_now(now: Timestamp, limit: usize) -> Result<Due, StoreError>;
    orphans / orphans_now(now: Timestamp, dead_after_ms: u64, after: Option<RunId>, limit: usize) -> Result<Vec<RunRow>, StoreError>;
    job / job_now(job: JobId) -> Result<Option<JobRow>, StoreError>;
    jobs / jobs_now(query: JobQuery) -> Result<Page<JobRow>, StoreError>;
    attempts / attempts_now(job: JobId, after: u32, limit: usize) -> Result<Vec<Attempt>, StoreError>;
    ready / ready_now(query: ReadyQuery) -> Result<Vec<JobRow>, StoreError>;
    ready_by_key / ready_by_key_now(query: KeyQuery) -> Result<KeyRows, StoreError>;
    outbox / outbox_now(now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError>;
    outbox_to / outbox_to_now(to: Party) -> Result<Vec<Message>, StoreError>;
    ledger / ledger_now(query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError>;
    records / records_now(query: RecordQuery) -> Result<Records, StoreError>;
    retain / retain_now(before: Timestamp, limit: usize) -> Result<Retained, StoreError>;
}

#[cfg(test)]
mod tests;
