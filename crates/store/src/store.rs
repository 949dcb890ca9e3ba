//! The trait that every backend implements, and typed questions built on it.

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::time::Timestamp;

use crate::account::{AccountRow, InNeed, LedgerQuery, LedgerRow, PriceRow};
use crate::commit::{Commit, Committed};
use crate::error::StoreError;
use crate::flow::{FlowQuery, FlowRef, FlowRow, Publication, Published, VersionRef, VersionRow};
use crate::hint::Hints;
use crate::job::{JobQuery, JobRow, KeyQuery, KeyRows, LetterGroup, ReadyPlace, ReadyQuery};
use crate::log::{LogRow, LogsOf};
use crate::outbox::{Message, Party};
use crate::page::Page;
use crate::queue::{Held, QueueDepth, Spent};
use crate::record::{AuditQuery, AuditRow, Record, RecordQuery, Records};
use crate::run::{Journal, RunQuery, RunRef, RunRow, Since, Wake};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::service::ServiceRow;
use crate::worker::{WorkerQuery, WorkerRow};

/// What time asks for.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Due {
    /// Open runs whose wake-up has come.
    pub runs: Vec<Wake<RunId>>,
    /// Open jobs whose wait, lease, time limit or grace is over.
    pub jobs: Vec<Wake<JobId>>,
    pub schedules: Vec<Scheduled>,
}

/// How much was deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Retained {
    pub n_runs: usize,
    pub n_jobs: usize,
    pub n_commands: usize,
}

/// Everything that is remembered.
#[async_trait]
pub trait Store: Send + Sync {
    /// Publishes a flow, a version, or both, or nothing at all. Names are unique unless the draft says otherwise.
    async fn publish(&self, publication: Publication) -> Result<Published, StoreError>;

    /// Flows that match.
    async fn flows(&self, query: FlowQuery) -> Result<Page<FlowRow>, StoreError>;

    /// One version, with its definition.
    async fn version(&self, version: VersionRef) -> Result<Option<VersionRow>, StoreError>;

    /// The versions of a flow, newest number first.
    async fn versions(&self, flow: FlowId) -> Result<Vec<VersionRow>, StoreError>;

    /// Writes each commit wholly or not at all, in order, and answers for each in its place. They share a
    /// transaction to the disk and nothing else: what one meets does not spoil another.
    async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>>;

    /// What came of a command, if it was committed: how an unknown outcome is looked up.
    async fn command(&self, command: CommandId) -> Result<Option<Committed>, StoreError>;

    /// A part of a run's journal, oldest first, at most `limit` entries; empty if there is no such run.
    async fn journal(&self, run: RunId, since: Since, limit: usize) -> Result<Journal, StoreError>;

    /// One run.
    async fn run(&self, run: RunRef) -> Result<Option<RunRow>, StoreError>;

    /// Runs that match.
    async fn runs(&self, query: RunQuery) -> Result<Page<RunRow>, StoreError>;

    /// Open runs, open jobs and schedules whose time has come at `now`, oldest first, at most `limit` of each. A
    /// `now` that is still to come asks what will: each says when.
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Due, StoreError>;

    /// Open runs whose owner has not been heard of for `dead_after_ms`, or never in this epoch; by id, after
    /// this one.
    async fn orphans(
        &self,
        now: Timestamp,
        dead_after_ms: u64,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunRow>, StoreError>;

    /// One job.
    async fn job(&self, job: JobId) -> Result<Option<JobRow>, StoreError>;

    /// Jobs that match.
    async fn jobs(&self, query: JobQuery) -> Result<Page<JobRow>, StoreError>;

    /// All attempts at a job after this number, oldest first, also those that the job itself has forgotten.
    async fn attempts(&self, job: JobId, after: u32, limit: usize) -> Result<Vec<Attempt>, StoreError>;

    /// Jobs that can be claimed, in the order in which they should be: higher priority first, then the earlier due,
    /// then the smaller id. Paused queues have none. Nothing is claimed by asking.
    async fn ready(&self, query: ReadyQuery) -> Result<Vec<JobRow>, StoreError>;

    /// Jobs of one queue that can be claimed, limit key by limit key. A paused queue has none.
    async fn ready_by_key(&self, query: KeyQuery) -> Result<KeyRows, StoreError>;

    /// Messages that were not delivered and may be by now, oldest first.
    async fn outbox(&self, now: Timestamp, limit: usize) -> Result<Vec<Message>, StoreError>;

    /// Messages to one receiver that were not delivered, by sender; also those that may not be yet.
    async fn outbox_to(&self, to: Party) -> Result<Vec<Message>, StoreError>;

    /// The ledger of an account.
    async fn ledger(&self, query: LedgerQuery) -> Result<Vec<LedgerRow>, StoreError>;

    /// Writes one small row.
    async fn save(&self, record: Record) -> Result<(), StoreError>;

    /// Reads small rows.
    async fn records(&self, query: RecordQuery) -> Result<Records, StoreError>;

    /// Deletes at most `limit` runs that ended before, at most as many jobs of no run that did, and commands as old,
    /// with everything that belongs to them. Never the ledger, the audit, dead letters, or a message that was not
    /// delivered.
    async fn retain(&self, before: Timestamp, limit: usize) -> Result<Retained, StoreError>;

    /// What others have written to the same store, as far as it is heard of, from now on. Only a hint: some of it may
    /// never be heard. `None` = nobody else can write to it.
    fn hints(&self) -> Option<Hints> {
        None
    }

    /// So many servers write to the store: each does less of it at once, and more of it together.
    fn shared_by(&self, _n_servers: usize) {}

    /// The time as everybody who shares the store reads it. `None` = that of whoever asks.
    async fn now(&self) -> Result<Option<Timestamp>, StoreError> {
        Ok(None)
    }
}

/// A store that answers a question with the rows of another one is not a store.
fn mixed_up<T>() -> Result<T, StoreError> {
    Err(StoreError::Corrupt("the rows are not of the kind that was asked for".to_owned()))
}

macro_rules! typed {
    ($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $row:ty, $query:expr, $variant:ident) => {
        $(#[$doc])*
        pub async fn $name(&self, $($arg: $type),*) -> Result<Vec<$row>, StoreError> {
            match self.records($query).await? {
                Records::$variant(rows) => Ok(rows),
                Records::Servers(_)
                | Records::Workers(_)
                | Records::Accounts(_)
                | Records::InNeed(_)
                | Records::Prices(_)
                | Records::Services(_)
                | Records::Queues(_)
                | Records::Held(_)
                | Records::Spent(_)
                | Records::LetterGroups(_)
                | Records::Ready(_)
                | Records::Schedules(_)
                | Records::Audit(_)
                | Records::Logs(_) => mixed_up(),
            }
        }
    };
}

#[allow(
    unreachable_patterns,
    reason = "every question has its own answer, and the others are listed for all"
)]
impl dyn Store + '_ {
    typed!(
        /// Servers, by id.
        servers() -> ServerRow, RecordQuery::Servers, Servers);
    typed!(
        /// Workers that match, by id.
        workers(query: WorkerQuery) -> WorkerRow, RecordQuery::Workers(query), Workers);
    typed!(
        /// Accounts, by id.
        accounts() -> AccountRow, RecordQuery::Accounts(None), Accounts);
    typed!(
        /// Accounts after this one, by id.
        accounts_after(after: Option<String>, limit: usize) -> AccountRow,
        RecordQuery::AccountsAfter { after, limit }, Accounts);
    typed!(
        /// Accounts with runs that wait for money, by id; all, or one.
        accounts_in_need(account: Option<String>) -> AccountRow, RecordQuery::AccountsInNeed(account), Accounts);
    typed!(
        /// Runs of an account whose calls wait for money and could go with so much of it, oldest first.
        in_need(account: String, within: i64, limit: usize) -> InNeed,
        RecordQuery::InNeed { account, within, limit }, InNeed);
    typed!(
        /// Prices, by service.
        prices() -> PriceRow, RecordQuery::Prices, Prices);
    typed!(
        /// What is set for services, by name.
        services() -> ServiceRow, RecordQuery::Services, Services);
    typed!(
        /// Queues and how full they are, by name.
        queues(now: Timestamp) -> QueueDepth, RecordQuery::Queues { now }, Queues);
    typed!(
        /// What is used up of rates, by queue and limit key.
        spent() -> Spent, RecordQuery::Spent, Spent);
    typed!(
        /// Dead letters of a queue by what went wrong.
        letter_groups(queue: String) -> LetterGroup, RecordQuery::LetterGroups { queue }, LetterGroups);
    typed!(
        /// Where jobs that can be claimed stand, without the jobs: the same as [`Store::ready`] otherwise.
        ready_places(query: ReadyQuery) -> ReadyPlace, RecordQuery::Ready(query), Ready);
    typed!(
        /// Schedules, oldest first; all, or one.
        schedules(id: Option<ScheduleId>) -> Scheduled, RecordQuery::Schedules(id), Schedules);
    typed!(
        /// Lines of the audit, each with its number: from 1, without gaps.
        audit(query: AuditQuery) -> (u64, AuditRow), RecordQuery::Audit(query), Audit);
    typed!(
        /// What attempts of a run wrote.
        logs(run: RunId, of: LogsOf) -> LogRow, RecordQuery::Logs { run, of }, Logs);

    /// What counts against the limits of a queue.
    pub async fn held(&self, queue: String) -> Result<Held, StoreError> {
        match self.records(RecordQuery::Held { queue }).await? {
            Records::Held(held) => Ok(held),
            Records::Servers(_)
            | Records::Workers(_)
            | Records::InNeed(_)
            | Records::Prices(_)
            | Records::Services(_)
            | Records::Queues(_)
            | Records::Accounts(_)
            | Records::Spent(_)
            | Records::LetterGroups(_)
            | Records::Ready(_)
            | Records::Schedules(_)
            | Records::Audit(_)
            | Records::Logs(_) => mixed_up(),
        }
    }

    /// One account.
    pub async fn account(&self, id: &str) -> Result<Option<AccountRow>, StoreError> {
        match self.records(RecordQuery::Accounts(Some(id.to_owned()))).await? {
            Records::Accounts(rows) => Ok(rows.into_iter().next()),
            Records::Servers(_)
            | Records::Workers(_)
            | Records::InNeed(_)
            | Records::Prices(_)
            | Records::Services(_)
            | Records::Queues(_)
            | Records::Held(_)
            | Records::Spent(_)
            | Records::LetterGroups(_)
            | Records::Ready(_)
            | Records::Schedules(_)
            | Records::Audit(_)
            | Records::Logs(_) => mixed_up(),
        }
    }

    /// One flow; of several with the name, the one that had it first.
    pub async fn flow(&self, flow: FlowRef) -> Result<Option<FlowRow>, StoreError> {
        let page = self.flows(FlowQuery::of_one(flow)).await?;
        Ok(page.items.into_iter().next())
    }

    /// Writes one commit.
    pub async fn commit_one(&self, commit: Commit) -> Result<Committed, StoreError> {
        let answer = self.commit(vec![commit]).await.into_iter().next();
        answer.unwrap_or_else(|| Err(StoreError::Corrupt("a commit was not answered".to_owned())))
    }
}
