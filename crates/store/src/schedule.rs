//! Stored schedules, and their starts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use windlass_engine::counter::Revision;
use windlass_engine::id::{JobId, RunId, ScheduleId};
use windlass_engine::project::Project;
use windlass_engine::schedule::{Firing, Progress, Schedule};
use windlass_engine::time::Timestamp;

use crate::page::Order;

/// A schedule, its target and its progress.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ScheduleRow {
    pub schedule: Schedule,
    pub name: String,
    /// Its target, as the client saved it. The store does not look into it.
    pub target: Value,
    pub progress: Progress,
    /// When to ask it again; `None` = never.
    pub next_at: Option<Timestamp>,
    #[serde(default)]
    pub history: History,
    pub created_at: Timestamp,
    pub updated_at: Timestamp,
}

/// Outcomes of the slots of a schedule so far.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// Firings that started something, triggered ones included.
    pub n_fired: u64,
    /// Slots that passed without a start, for any reason.
    pub n_passed: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last: Option<FiringRow>,
    /// Why the latest slot that should have started something did not; nothing once a later one did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<Misfire>,
}

/// A slot that should have started something, and why it did not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Misfire {
    pub slot: Timestamp,
    pub at: Timestamp,
    pub reason: String,
}

impl ScheduleRow {
    /// The id of the schedule.
    pub fn id(&self) -> ScheduleId {
        self.schedule.id
    }
}

/// A schedule with the facts that its rule needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scheduled {
    pub project: Project,
    /// From 1; goes up with every change.
    pub rev: Revision,
    pub row: ScheduleRow,
    /// Its open starts, oldest first; at most [`RUNNING_MAX`].
    pub running: Vec<Started>,
}

impl Scheduled {
    /// The place of the schedule in a list of this order.
    pub(crate) fn place(&self, order: Order) -> (Timestamp, ScheduleId) {
        match order {
            Order::Newest | Order::Oldest => (self.row.created_at, self.row.id()),
            Order::LatestChange => (self.row.updated_at, self.row.id()),
        }
    }
}

/// Open starts that are listed: more would be a flood, and are canceled a part at a time.
pub const RUNNING_MAX: usize = 1_000;

/// The start of a firing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Started {
    Run(RunId),
    Job(JobId),
}

/// One firing: there is never a second with the same schedule, slot and kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FiringRow {
    pub firing: Firing,
    pub started: Started,
}
