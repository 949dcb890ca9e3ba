//! A store in maps behind one lock, for tests and the simulator. It is deterministic and gives the trait's meaning in its
//! plainest form; nothing survives the process.
//!
//! Every verb of [`Store`] has a synchronous twin ending in `_now`, because the simulator has no futures. The store injects
//! no faults: tests wrap it for that.

mod api_key;
mod audit;
mod blob;
mod bulk;
mod commit;
mod flow;
mod hint;
mod keys;
mod read;
mod registry;
mod retain;
mod set_back;
mod small_rows;
mod state;

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId};
use windlass_engine::job::Attempt;
use windlass_engine::money::Amount;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::account::{AccountRow, BalanceWaiter, LedgerQuery, LedgerRow, PriceRow};
use crate::audit::{AuditEntry, AuditHead, AuditQuery};
use crate::blob::FoundBlobs;
use crate::commit::{Commit, Committed};
use crate::error::StoreError;
use crate::flow::{FlowQuery, FlowRow, Publication, Published, VersionRef, VersionRow};
use crate::hint::{Hint, Hints, Listeners};
use crate::job::{
    DeadLetterGroup, JobOutline, JobQuery, JobRow, KeyQuery, KeyRows, OutlineQuery, ReadyCursor, ReadyQuery,
};
use crate::log::{LogRow, LogsOf};
use crate::outbox::{Message, OutboxCursor, Party, Undelivered, WaitingTree};
use crate::page::{NameRange, Page, Part};
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};
use crate::run::{Journal, RunGroup, RunQuery, RunRef, RunRow, Since};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::service::{LiveService, ServiceRow, WaitingService};
use crate::store::{Due, Retained, SetBack, Store};
use crate::store_key::StoreKey;
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

use state::MemoryState;

/// A store in memory.
#[derive(Debug, Default)]
pub struct Memory {
    state: Mutex<MemoryState>,
    listeners: Listeners,
    is_shared: bool,
}

impl Memory {
    /// An empty store of one server.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store that several servers use.
    pub fn shared() -> Self {
        Memory { is_shared: true, ..Memory::default() }
    }

    /// Every commit checks before it writes, so that a panic never leaves half of one behind the lock.
    fn state(&self) -> MutexGuard<'_, MemoryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell_of_settings(&self) {
        self.listeners.tell(&Hint { settings: true, ..Hint::default() });
    }

    /// [`Store::commit`], synchronously.
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
}

impl AsRef<dyn Store> for Memory {
    fn as_ref(&self) -> &(dyn Store + 'static) {
        self
    }
}

/// Verbs in three groups: of the whole store, of a project, and of a project's settings, which listeners are told of. `in`
/// names the part of a project's tables that has the verb.
macro_rules! forward {
    (
        whole { $($whole:ident / $whole_now:ident ($($arg:ident: $type:ty),*) -> $answer:ty;)* }
        project { $($verb:ident $(in $table:ident)? / $now:ident ($($p_arg:ident: $p_type:ty),*) -> $p_answer:ty;)* }
        settings { $($set:ident $(in $s_table:ident)? / $set_now:ident ($($s_arg:ident: $s_type:ty),*);)* }
    ) => {
        impl Memory {
            $(
                #[doc = concat!("[`Store::", stringify!($whole), "`], synchronously.")]
                pub fn $whole_now(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                    self.state().$whole($($arg),*)
                }
            )*
            $(
                #[doc = concat!("[`Store::", stringify!($verb), "`], synchronously.")]
                pub fn $now(&self, project: &Project, $($p_arg: $p_type),*) -> Result<$p_answer, StoreError> {
                    self.state().tables(project)$(.$table)?.$verb($($p_arg),*)
                }
            )*
            $(
                #[doc = concat!("[`Store::", stringify!($set), "`], synchronously.")]
                pub fn $set_now(&self, project: &Project, $($s_arg: $s_type),*) -> Result<(), StoreError> {
                    self.state().tables(project)$(.$s_table)?.$set($($s_arg),*)?;
                    self.tell_of_settings();
                    Ok(())
                }
            )*
        }

        #[async_trait]
        impl Store for Memory {
            $(
                async fn $whole(&self, $($arg: $type),*) -> Result<$answer, StoreError> {
                    self.$whole_now($($arg),*)
                }
            )*
            $(
                async fn $verb(&self, project: &Project, $($p_arg: $p_type),*) -> Result<$p_answer, StoreError> {
                    self.$now(project, $($p_arg),*)
                }
            )*
            $(
                async fn $set(&self, project: &Project, $($s_arg: $s_type),*) -> Result<(), StoreError> {
                    self.$set_now(project, $($s_arg),*)
                }
            )*

            async fn commit(&self, commits: Vec<Commit>) -> Vec<Result<Committed, StoreError>> {
                self.commit_now(commits)
            }

            fn is_shared(&self) -> bool {
                self.is_shared
            }

            /// Announces every write, also to the server that made it: the store does not know which one that was.
            fn hints(&self) -> Option<Hints> {
                Some(self.listeners.add())
            }
        }
    };
}

forward! {
    whole {
        due / due_now(now: Timestamp, limit: usize) -> Due;
        orphans / orphans_now(now: Timestamp, dead_after_ms: u64, after: Option<RunId>, limit: usize) -> Vec<RunRow>;
        outbox / outbox_now(now: Timestamp, after: Option<OutboxCursor>, limit: usize) -> Vec<Undelivered>;
        waiting_trees / waiting_trees_now(after: Option<WaitingTree>, limit: usize) -> Vec<WaitingTree>;
        retain / retain_now(before: Timestamp, limit: usize) -> Retained;
        set_back / set_back_now(now: Timestamp) -> SetBack;
        servers / servers_now() -> Vec<ServerRow>;
        save_server / save_server_now(row: ServerRow) -> ();
        store_key / store_key_now(name: &str, fresh: StoreKey) -> StoreKey;
        delete_servers / delete_servers_now(before: Timestamp) -> ();
        delete_workers / delete_workers_now(before: Timestamp, limit: usize) -> usize;
        delete_queues / delete_queues_now(before: Timestamp, limit: usize) -> usize;
    }
    project {
        publish / publish_now(publication: Publication) -> Published;
        flows / flows_now(query: FlowQuery) -> Page<FlowRow>;
        version / version_now(version: VersionRef) -> Option<VersionRow>;
        versions / versions_now(flow: FlowId) -> Vec<VersionRow>;
        command / command_now(command: CommandId) -> Option<Committed>;
        journal / journal_now(run: RunId, since: Since, limit: usize) -> Journal;
        blobs in blobs / blobs_now(hashes: BTreeSet<String>) -> FoundBlobs;
        run / run_now(run: RunRef) -> Option<RunRow>;
        runs / runs_now(query: RunQuery) -> Page<RunRow>;
        count_runs / count_runs_now(of: RunGroup, limit: usize) -> usize;
        count_matching / count_matching_now(query: RunQuery, limit: usize) -> Option<usize>;
        job / job_now(job: JobId) -> Option<JobRow>;
        jobs / jobs_now(query: JobQuery) -> Page<JobRow>;
        attempts / attempts_now(job: JobId, after: u32, limit: usize) -> Vec<Attempt>;
        ready / ready_now(query: ReadyQuery) -> Vec<JobRow>;
        ready_cursors / ready_cursors_now(query: ReadyQuery) -> Vec<ReadyCursor>;
        job_outlines / job_outlines_now(query: OutlineQuery) -> Vec<JobOutline>;
        ready_by_key / ready_by_key_now(query: KeyQuery) -> KeyRows;
        outbox_to / outbox_to_now(to: Party) -> Vec<Message>;
        waiting_children / waiting_children_now(root: RunId, limit: usize) -> Vec<Message>;
        ledger / ledger_now(query: LedgerQuery) -> Vec<LedgerRow>;
        open_account / open_account_now(id: &str, name: &str, now: Timestamp) -> ();
        account / account_now(id: &str) -> Option<AccountRow>;
        accounts / accounts_now() -> Vec<AccountRow>;
        accounts_after / accounts_after_now(after: Option<String>, limit: usize) -> Vec<AccountRow>;
        accounts_with_waiters / accounts_with_waiters_now(account: Option<String>) -> Vec<AccountRow>;
        balance_waiters / balance_waiters_now(account: String, within: Amount, limit: usize) -> Vec<BalanceWaiter>;
        prices in registry / prices_now() -> Vec<PriceRow>;
        services in registry / services_now(names: NameRange) -> Vec<ServiceRow>;
        live_services in registry / live_services_now(alive_since: Timestamp, names: NameRange) -> Vec<LiveService>;
        waiting_services / waiting_services_now(names: NameRange, now: Timestamp) -> Vec<WaitingService>;
        queues / queues_now(names: NameRange, now: Timestamp) -> Vec<QueueDepth>;
        held / held_now(queue: String) -> Held;
        spent / spent_now() -> Vec<Spent>;
        save_spent / save_spent_now(spent: Vec<Spent>, now: Timestamp) -> ();
        dead_letter_groups / dead_letter_groups_now(queue: String) -> Vec<DeadLetterGroup>;
        schedule / schedule_now(id: ScheduleId) -> Option<Scheduled>;
        schedules / schedules_now(part: Part) -> Page<Scheduled>;
        audit in audit / audit_now(query: AuditQuery) -> Vec<AuditEntry>;
        audit_head in audit / audit_head_now() -> AuditHead;
        logs / logs_now(run: RunId, of: LogsOf) -> Vec<LogRow>;
        workers in registry / workers_now(query: WorkerQuery) -> Vec<WorkerRow>;
        beat_worker in registry / beat_worker_now(beat: WorkerBeat) -> ();
    }
    settings {
        set_price in registry / set_price_now(row: PriceRow);
        delete_price in registry / delete_price_now(service: &str);
        save_service in registry / save_service_now(row: ServiceRow);
        save_queue / save_queue_now(settings: QueueSettings);
        save_worker in registry / save_worker_now(row: WorkerRow);
        drain_worker in registry / drain_worker_now(id: &str, is_draining: bool);
    }
}
