//! Small rows that somebody sets and others look up: each stands for itself, and the last word counts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::id::{RunId, ScheduleId};
use windlass_engine::time::Timestamp;

use crate::account::{AccountRow, InNeed, PriceRow};
use crate::job::{LetterGroup, ReadyPlace, ReadyQuery};
use crate::log::{LogRow, LogsOf};
use crate::page::{LineOrder, Part};
use crate::queue::{Held, QueueDepth, QueueSettings, Spent};
use crate::schedule::Scheduled;
use crate::server::ServerRow;
use crate::service::ServiceRow;
use crate::worker::{WorkerBeat, WorkerQuery, WorkerRow};

/// A row to be written.
#[derive(Debug, Clone, PartialEq)]
pub enum Record {
    Server(ServerRow),
    Worker(WorkerRow),
    WorkerBeat(WorkerBeat),
    /// Whether a worker is on its way out: it stays so whatever signs of life it gives, until it registers again. An
    /// unknown one is refused.
    WorkerDrain {
        id: String,
        is_draining: bool,
    },
    /// Forgets workers that were last heard of before, a thousand at most: whoever of them comes back registers again.
    WorkersGone {
        before: Timestamp,
    },
    /// Forgets servers that were last heard of before, a thousand at most. Whoever began last stays, because the next
    /// one counts on from it, and so do those that runs belong to.
    ServersGone {
        before: Timestamp,
    },
    /// Opens an account. One that is there and has the name is no news; one that has another name is refused.
    Account {
        id: String,
        name: String,
        now: Timestamp,
    },
    Price(PriceRow),
    /// Asks nothing for a service any more; one that had no price is no news.
    PriceGone {
        service: String,
    },
    Queue(QueueSettings),
    /// Of what is said about the same rate, the latest moment counts. What can be used again by now is forgotten.
    Spent {
        spent: Vec<Spent>,
        now: Timestamp,
    },
    /// What is set for a service; the whole of it.
    Service(ServiceRow),
}

/// Rows to be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecordQuery {
    /// By id.
    Servers,
    /// By id.
    Workers(WorkerQuery),
    /// By id; all, or one.
    Accounts(Option<String>),
    /// By id, after this one.
    AccountsAfter {
        after: Option<String>,
        limit: usize,
    },
    /// Those with runs that wait for money, by id; all, or one.
    AccountsInNeed(Option<String>),
    /// Runs of an account whose calls wait for money and could go with so much of it, oldest first.
    InNeed {
        account: String,
        within: i64,
        limit: usize,
    },
    /// By service.
    Prices,
    /// By name.
    Services,
    /// By name; open jobs that can be claimed at `now` count as due.
    Queues {
        now: Timestamp,
    },
    /// What counts against the limits of a queue. Costs what is waited for: asked when a limit is first kept.
    Held {
        queue: String,
    },
    /// By queue and limit key; what is not used up any more may be missing.
    Spent,
    /// Dead letters of a queue by what went wrong, the largest group first, then the latest; at most
    /// [`crate::job::GROUPS_MAX`].
    LetterGroups {
        queue: String,
    },
    /// Where jobs that can be claimed stand, without the jobs; in order.
    Ready(ReadyQuery),
    /// Oldest first; all, or one.
    Schedules(Option<ScheduleId>),
    Audit(AuditQuery),
    /// At most [`crate::log::LOGS_MAX`].
    Logs {
        run: RunId,
        of: LogsOf,
    },
}

/// Rows that were read.
#[derive(Debug, Clone, PartialEq)]
pub enum Records {
    Servers(Vec<ServerRow>),
    Workers(Vec<WorkerRow>),
    Accounts(Vec<AccountRow>),
    InNeed(Vec<InNeed>),
    Prices(Vec<PriceRow>),
    Services(Vec<ServiceRow>),
    Queues(Vec<QueueDepth>),
    Held(Held),
    Spent(Vec<Spent>),
    LetterGroups(Vec<LetterGroup>),
    Ready(Vec<ReadyPlace>),
    Schedules(Vec<Scheduled>),
    Audit(Vec<(u64, AuditRow)>),
    Logs(Vec<LogRow>),
}

/// Who did what. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AuditRow {
    pub at: Timestamp,
    pub who: String,
    /// What was done, as a verb of the API.
    pub what: String,
    /// The id of what it was done to.
    pub subject: String,
    pub detail: Value,
}

/// Which lines of the audit are asked for. What is not said leaves nothing out; what is said costs the lines that are
/// looked through until there are enough.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AuditQuery {
    pub who: Option<String>,
    pub what: Option<String>,
    pub subject: Option<String>,
    pub order: LineOrder,
    /// Lines past this one, in the order that is asked for; 0 = from the beginning.
    pub after: u64,
    /// 0 = the default of a page; never more than a page.
    pub limit: usize,
}

impl AuditQuery {
    /// What a line's number must be beyond, or below if the newest come first.
    pub(crate) fn edge(&self) -> u64 {
        match self.order {
            LineOrder::Newest if self.after == 0 => u64::MAX,
            LineOrder::Newest | LineOrder::Oldest => self.after,
        }
    }

    /// How many lines the page may have.
    pub(crate) fn size(&self) -> usize {
        Part { limit: self.limit, ..Part::default() }.size()
    }
}
