//! A store that takes everything but lines of the audit.

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId};
use windlass_engine::job::Attempt;
use windlass_engine::time::Timestamp;
use windlass_store::account::{LedgerQuery, LedgerRow};
use windlass_store::commit::{Commit, Committed};
use windlass_store::flow::{FlowQuery, FlowRow, Publication, Published, VersionRef, VersionRow};
use windlass_store::job::{JobQuery, JobRow};
use windlass_store::outbox::Message;
use windlass_store::page::Page;
use windlass_store::ready::{KeyQuery, KeyRows, ReadyQuery};
use windlass_store::record::{Record, RecordQuery, Records};
use windlass_store::run::{Journal, RunQuery, RunRef, RunRow, Since};
use windlass_store::store::{Due, Retained};
use windlass_store::{Memory, Store, StoreError};

#[derive(Default)]
pub(crate) struct Deaf(Memory);

macro_rules! pass_on {
    ($($verb:ident($($arg:ident: $type:ty),*) -> $answer:ty;)*) => {
        #[async_trait]
        impl Store for Deaf {
            $(
                async fn $verb(&self, $($arg: $type),*) -> $answer {
                    self.0.$verb($($arg),*).await
                }
            )*

            async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
                if commits.iter().any(|commit| !commit.audit.is_empty()) {
                    let deaf = |_| Err(StoreError::Unavailable("there is no room".into()));
                    return commits.into_iter().map(deaf).collect();
                }
                self.0.commit(commits).await
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
    ledger(query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError>;
    outbox(now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError>;
    outbox_to(run: RunId) -> Result<Vec<Message>, StoreError>;
    records(query: RecordQuery) -> Result<Records, StoreError>;
    save(record: Record) -> Result<(), StoreError>;
    retain(before: Timestamp, limit: usize) -> Result<Retained, StoreError>;
}
