//! Runs as they are stored: a journal, and a row that says where the run stands.
//!
//! The row has two halves. The origin of a run never changes and is written once; its projection is written with
//! every entry of the journal. Neither grows with the run.

mod condition;
mod search;

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::{Epoch, Seq};
use windlass_engine::event::{Parent, RunFault};
use windlass_engine::id::{FlowId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::journal::Entry;
use windlass_engine::money::Amount;
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::run::Totals;
use windlass_engine::time::Timestamp;

use crate::page::{Order, Part};

pub use condition::{RunCondition, RunTest, RunTrigger};
pub use search::{ParamTest, RunSearch, SearchError, SearchField, SearchTerm, VersionName};

/// The status of a run in tables, lists and answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RunStatus {
    Pending,
    /// A call is granted.
    Running,
    /// No call is granted: a timer, a signal, an approval, a retry, a report, money.
    Waiting,
    Paused,
    Canceling,
    Completed,
    Failed,
    Canceled,
}

impl RunStatus {
    /// Every status, open ones first.
    pub const ALL: [RunStatus; 8] = [
        RunStatus::Pending,
        RunStatus::Running,
        RunStatus::Waiting,
        RunStatus::Paused,
        RunStatus::Canceling,
        RunStatus::Completed,
        RunStatus::Failed,
        RunStatus::Canceled,
    ];

    /// The word used on the wire.
    pub fn word(self) -> &'static str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Running => "running",
            RunStatus::Waiting => "waiting",
            RunStatus::Paused => "paused",
            RunStatus::Canceling => "canceling",
            RunStatus::Completed => "completed",
            RunStatus::Failed => "failed",
            RunStatus::Canceled => "canceled",
        }
    }

    /// The status that `word` names.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.word() == word)
    }

    /// Whether the run has not ended.
    pub fn is_open(self) -> bool {
        match self {
            RunStatus::Pending
            | RunStatus::Running
            | RunStatus::Waiting
            | RunStatus::Paused
            | RunStatus::Canceling => true,
            RunStatus::Completed | RunStatus::Failed | RunStatus::Canceled => false,
        }
    }
}

/// A server and its epoch: every restart begins a new epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Owner {
    pub server: ServerId,
    pub epoch: Epoch,
}

/// The origin of a run. Never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    pub flow: FlowId,
    pub version: VersionId,
    /// Creating again with the same request id creates nothing.
    pub request: Option<Request>,
    pub labels: BTreeMap<String, String>,
    pub account: Option<String>,
    pub parent: Option<Parent>,
    pub schedule: Option<ScheduleId>,
    pub created_at: Timestamp,
}

/// A creation that the client can repeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Request {
    pub id: String,
    /// A digest of the canonical body: tells a repetition from another request under the same id.
    pub digest: String,
}

impl Request {
    /// The request of this id with this body.
    pub fn new(id: impl Into<String>, body: &Value) -> Self {
        // FNV-1a: a client that picks colliding bodies affects only its own request ids.
        let bytes = body.to_string().into_bytes();
        let start = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128;
        let fold =
            |hash: u128, byte: u8| (hash ^ u128::from(byte)).wrapping_mul(0x0100_0000_0000_0000_0000_013b);
        let digest = bytes.into_iter().fold(start, fold);
        Request { id: id.into(), digest: format!("{digest:032x}") }
    }
}

/// Where a run stands after an entry of its journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunProjection {
    pub status: RunStatus,
    pub round: u32,
    /// The node that was entered last.
    pub node: Option<NodePath>,
    /// The action with which a node of the outermost scope ended last.
    pub action: Option<String>,
    pub step_count: u64,
    /// When it has to be looked at again by itself; never set once it has ended.
    pub wake_at: Option<Timestamp>,
    /// The server that watches its calls; never set while only jobs and child runs work on it.
    pub owner: Option<Owner>,
    pub cost: Totals,
    /// The balance that its account needs before any call that waits for money can go; `None` = none of them waits.
    pub needs: Option<Amount>,
    pub error: Option<RunFault>,
    /// The shared state and the result, once it has ended.
    pub shared: Option<Arc<Value>>,
    pub result: Option<Arc<Value>>,
    pub updated_at: Timestamp,
    pub ended_at: Option<Timestamp>,
}

/// A run as it is listed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRow {
    pub project: Project,
    pub id: RunId,
    /// Entries in its journal.
    pub len: Seq,
    pub origin: Origin,
    pub projection: RunProjection,
}

/// Names one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunRef {
    Id(RunId),
    /// By the request id it was created with.
    Request(String),
}

/// Which runs are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunQuery {
    /// Empty = any.
    pub statuses: Vec<RunStatus>,
    /// Running runs: those with calls of a server, or those with only jobs and child runs.
    pub is_owned: Option<bool>,
    /// Waiting runs: those that have entered a node in this round, or those that have not.
    pub has_entered: Option<bool>,
    pub flow: Option<FlowId>,
    pub version: Option<VersionId>,
    pub account: Option<String>,
    pub parent: Option<RunId>,
    pub schedule: Option<ScheduleId>,
    /// A label, and its value if that matters.
    pub label: Option<(String, Option<String>)>,
    /// Created at or after.
    pub since: Option<Timestamp>,
    /// Created before.
    pub until: Option<Timestamp>,
    /// In the id, the request id, a label's value or the error, ignoring case.
    pub text: Option<String>,
    /// From the first id to the last.
    pub ids: Option<(RunId, RunId)>,
    /// Further tests, for which every row is examined.
    pub tests: Vec<RunTest>,
    pub part: Part,
}

/// Runs that are counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunGroup {
    /// All child runs in the tree of this run, at any depth.
    Below(RunId),
    /// Those of them that have not ended.
    OpenBelow(RunId),
    /// Open runs of a flow.
    OpenOfFlow(FlowId),
    /// Open runs of the project.
    Open,
}

/// The index that a list of runs is read by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunIndex {
    Id,
    Parent,
    Schedule,
    Account,
    /// Open runs, and ended runs by status; each with its flow or version.
    Status,
    Creation,
}

impl RunQuery {
    /// The index for this query.
    pub(crate) fn index(&self) -> RunIndex {
        let has_status = !self.statuses.is_empty() || self.is_owned.is_some() || self.has_entered.is_some();
        let is_by_status = has_status || self.flow.is_some() || self.version.is_some();
        match self {
            RunQuery { ids: Some(_), .. } => RunIndex::Id,
            RunQuery { parent: Some(_), .. } => RunIndex::Parent,
            RunQuery { schedule: Some(_), .. } => RunIndex::Schedule,
            RunQuery { account: Some(_), .. } => RunIndex::Account,
            _ if is_by_status || self.part.order == Order::LatestChange => RunIndex::Status,
            _ => RunIndex::Creation,
        }
    }

    /// Whether the index leaves a part of the query open, so that every row has to be examined.
    pub(crate) fn is_examined(&self) -> bool {
        let is_filtered = self.label.is_some() || self.text.is_some() || !self.tests.is_empty();
        let has_status = !self.statuses.is_empty() || self.is_owned.is_some() || self.has_entered.is_some();
        let has_origin = has_status || self.flow.is_some() || self.version.is_some();
        is_filtered
            || match self.index() {
                RunIndex::Id => {
                    has_origin || self.parent.is_some() || self.schedule.is_some() || self.account.is_some()
                }
                RunIndex::Parent => has_origin || self.schedule.is_some() || self.account.is_some(),
                RunIndex::Schedule => has_origin || self.account.is_some(),
                RunIndex::Account => has_origin,
                RunIndex::Status | RunIndex::Creation => false,
            }
    }

    /// The open statuses and the ended statuses that are asked for.
    pub(crate) fn asked_statuses(&self) -> (Vec<RunStatus>, Vec<RunStatus>) {
        let asked = |status: &RunStatus| self.statuses.is_empty() || self.statuses.contains(status);
        RunStatus::ALL.into_iter().filter(asked).partition(|status| status.is_open())
    }
}

impl RunRow {
    /// Whether the query asks for it, its part aside.
    pub fn matches(&self, query: &RunQuery) -> bool {
        fn is<T: PartialEq>(asked: Option<&T>, found: Option<&T>) -> bool {
            asked.is_none() || asked == found
        }
        let (origin, projection) = (&self.origin, &self.projection);
        let owned = projection.owner.is_some();
        let entered = projection.step_count > 0;
        (query.statuses.is_empty() || query.statuses.contains(&projection.status))
            && (projection.status != RunStatus::Running || is(query.is_owned.as_ref(), Some(&owned)))
            && (projection.status != RunStatus::Waiting || is(query.has_entered.as_ref(), Some(&entered)))
            && is(query.flow.as_ref(), Some(&origin.flow))
            && is(query.version.as_ref(), Some(&origin.version))
            && is(query.account.as_ref(), origin.account.as_ref())
            && is(query.parent.as_ref(), origin.parent.as_ref().map(|parent| &parent.run))
            && is(query.schedule.as_ref(), origin.schedule.as_ref())
            && has_label(&origin.labels, query.label.as_ref())
            && query.since.is_none_or(|since| origin.created_at >= since)
            && query.until.is_none_or(|until| origin.created_at < until)
            && query.text.as_ref().is_none_or(|text| self.says(text))
            && query.ids.is_none_or(|(first, last)| (first..=last).contains(&self.id))
            && query.tests.iter().all(|test| test.holds(self))
    }

    fn says(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let says = |field: &str| field.to_lowercase().contains(&text);
        says(&self.id.to_string())
            || self.origin.request.as_ref().is_some_and(|request| says(&request.id))
            || self.origin.labels.values().any(|value| says(value))
            || self.projection.error.as_ref().is_some_and(|error| says(&error.fault.message))
    }
}

pub(crate) fn has_label(labels: &BTreeMap<String, String>, asked: Option<&(String, Option<String>)>) -> bool {
    asked.is_none_or(|(key, value)| {
        labels.get(key).is_some_and(|found| value.as_ref().is_none_or(|value| value == found))
    })
}

/// Which part of a journal is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// The newest snapshot and the entries after it: enough to load a run.
    Snapshot,
    /// Entries after so many, without a snapshot: 0 = everything.
    Entry(Seq),
}

/// The state after `seq` entries, in the form that its writer chose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    pub seq: Seq,
    pub bytes: Vec<u8>,
}

/// A part of a run's journal. Entries are numbered from 1, without gaps.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Journal {
    pub snapshot: Option<Snapshot>,
    pub entries: Vec<(Seq, Entry)>,
}

/// A run, job or schedule that is due, and since when.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wake<I> {
    pub at: Timestamp,
    pub id: I,
    pub project: Project,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_request_is_told_from_another_by_what_it_asks() {
        let request = Request::new("r", &json!({"a": 1, "b": 2}));
        assert_eq!(request, Request::new("r", &json!({"b": 2, "a": 1})));
        assert_ne!(request, Request::new("r", &json!({"a": 1, "b": 3})));
        // Stored digests must mean the same in every version.
        assert_eq!(Request::new("r", &json!("a")).digest, "a68c4db0ee8b5822836dbc790667a42a");
        assert_eq!(Request::new("r", &json!(null)).digest, Request::new("s", &json!(null)).digest);
    }
}
