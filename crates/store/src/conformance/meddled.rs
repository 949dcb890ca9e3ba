//! A store in which others meddle, when a test says so.

use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId};
use windlass_engine::job::Attempt;
use windlass_engine::time::Timestamp;

use crate::account::{LedgerQuery, LedgerRow};
use crate::commit::{Commit, Committed};
use crate::flow::{FlowQuery, FlowRow, Publication, Published, VersionRef, VersionRow};
use crate::job::{JobQuery, JobRow};
use crate::outbox::{Message, Party};
use crate::page::Page;
use crate::ready::{KeyQuery, KeyRows, ReadyQuery};
use crate::record::{Record, RecordQuery, Records};
use crate::run::{Journal, RunQuery, RunRef, RunRow, Since};
use crate::store::{Due, Retained};
use crate::{Memory, Store, StoreError};

type OnCommit = Box<dyn Fn(&Memory, &[Commit]) -> bool + Send + Sync>;
type OnMessages = Box<dyn Fn(&Party, Vec<Message>) -> Vec<Message> + Send + Sync>;
type OnRecords = Box<dyn Fn(&RecordQuery) -> Result<(), StoreError> + Send + Sync>;

pub struct Meddled {
    pub memory: Memory,
    /// Called before commits are made, and says whether they are.
    pub on_commit: OnCommit,
    /// Called with the messages to a receiver that were read, and says which there are by then.
    pub on_messages: OnMessages,
    /// Called before small rows are read.
    pub on_records: OnRecords,
    /// Messages that were read so far.
    pub n_messages: AtomicUsize,
}

impl Default for Meddled {
    fn default() -> Self {
        Meddled {
            memory: Memory::new(),
            on_commit: Box::new(|_, _| true),
            on_messages: Box::new(|_, sent| sent),
            on_records: Box::new(|_| Ok(())),
            n_messages: AtomicUsize::new(0),
        }
    }
}

impl Meddled {
    fn count(&self, read: Result<Vec<Message>, StoreError>) -> Result<Vec<Message>, StoreError> {
        self.n_messages.fetch_add(read.as_ref().map_or(0, Vec::len), Ordering::SeqCst);
        read
    }
}

pub fn unavailable() -> StoreError {
    StoreError::Unavailable("the disk is elsewhere".into())
}

macro_rules! pass_on {
    ($($verb:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Meddled {
            $(
                async fn $verb(&self, $($arg: $type),*) -> $answer {
                    self.memory.$verb($($arg),*).await
                }
            )*

            async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
                match (self.on_commit)(&self.memory, &commits) {
                    true => self.memory.commit(commits).await,
                    false => commits.iter().map(|_| Err(unavailable())).collect(),
                }
            }

            async fn outbox(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError> {
                self.count(self.memory.outbox(now, limit).await)
            }

            async fn outbox_to(&self, to: Party) -> Result<Vec<Message>, StoreError> {
                let sent = self.memory.outbox_to(to.clone()).await;
                self.count(sent.map(|sent| (self.on_messages)(&to, sent)))
            }

            async fn ledger(&self, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError> {
                let rows = self.memory.ledger(query).await;
                // Others have their turn between what is read and what is made of it.
                tokio::task::yield_now().await;
                rows
            }

            async fn records(&self, query: RecordQuery) -> Result<Records, StoreError> {
                (self.on_records)(&query)?;
                self.memory.records(query).await
            }
        }
    };
}

pass_on! {
    publish(publication: Publication) -> Result<Published, StoreError>;
    flows(query: FlowQuery) -> Result<Page<FlowRow>, StoreError>;
    version(version: VersionRef) -> Result<Option<VersionRow>, StoreError>;
    versions(flow: FlowId) -> Result<Vec<VersionRow>, StoreError>;
    command(command: CommandId) -> Result<Option<Committed>, StoreError>;
    journal(run: RunId, since: Since, limit: usize) -> Result<Journal, StoreError>;
    run(run: RunRef) -> Result<Option<RunRow>, StoreError>;
    runs(query: RunQuery) -> Result<Page<RunRow>, StoreError>;
    due(now: Timestamp, limit: usize) -> Result<Due, StoreError>;
    orphans(now: Timestamp, dead_after_ms: u64, after: Option<RunId>, limit: usize) -> Result<Vec<RunRow>, StoreError>;
    job(job: JobId) -> Result<Option<JobRow>, StoreError>;
    jobs(query: JobQuery) -> Result<Page<JobRow>, StoreError>;
    attempts(job: JobId, after: u32, limit: usize) -> Result<Vec<Attempt>, StoreError>;
    ready(query: ReadyQuery) -> Result<Vec<JobRow>, StoreError>;
    ready_by_key(query: KeyQuery) -> Result<KeyRows, StoreError>;
    save(record: Record) -> Result<(), StoreError>;
    retain(before: Timestamp, limit: usize) -> Result<Retained, StoreError>;
}
