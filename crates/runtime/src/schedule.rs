//! Schedules: jobs and runs that start by the clock.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use windlass_engine::id::{FlowId, ScheduleId};
use windlass_engine::job::JobSpec;
use windlass_engine::problem::Problem;
use windlass_engine::schedule::{Catchup, Dst, Overlap};
use windlass_store::schedule::{Scheduled, Started};

use crate::{Runtime, RuntimeError};

/// What a schedule starts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    Job(Box<JobSpec>),
    Flow {
        flow: FlowId,
        /// `None` = the latest published one when it fires.
        version: Option<u32>,
        params: Map<String, Value>,
        #[serde(default)]
        account: Option<String>,
    },
}

/// A schedule as somebody wants it.
#[derive(Debug, Clone, PartialEq)]
pub struct Draft {
    pub name: String,
    /// Five fields, or six with seconds first.
    pub cron_expr: String,
    /// An IANA name; empty = UTC.
    pub timezone: String,
    pub dst: Dst,
    pub enabled: bool,
    pub overlap: Overlap,
    pub catchup: Catchup,
    /// 0 = a day.
    pub window_ms: u64,
    pub target: Target,
}

/// Why a schedule stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum ScheduleError {
    #[error("there is no schedule {0}")]
    Unknown(ScheduleId),
    /// Everything that is wrong with it, each with the field as clients spell it.
    #[error("the schedule cannot be kept: {} problems", .0.len())]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runtime {
    /// Makes a schedule.
    pub async fn create_schedule(&self, _draft: Draft) -> Result<Scheduled, ScheduleError> {
        unimplemented!()
    }

    /// Changes a schedule: it is given as it is and answers as it is to be. Its slots so far stay decided.
    pub async fn change_schedule(
        &self,
        _id: ScheduleId,
        _change: impl FnOnce(Draft) -> Draft + Clone + Send,
    ) -> Result<Scheduled, ScheduleError> {
        unimplemented!()
    }

    /// Deletes a schedule; what it started goes on.
    pub async fn delete_schedule(&self, _id: ScheduleId) -> Result<(), ScheduleError> {
        unimplemented!()
    }

    /// Starts what the schedule starts, now, whether or not it is enabled.
    pub async fn trigger_schedule(&self, _id: ScheduleId) -> Result<Started, ScheduleError> {
        unimplemented!()
    }

    /// Schedules, oldest first; all, or one.
    pub async fn schedules(&self, id: Option<ScheduleId>) -> Result<Vec<Scheduled>, RuntimeError> {
        Ok(self.store().schedules(id).await?)
    }
}

/// The draft that a stored schedule was made from.
pub fn draft_of(_scheduled: &Scheduled) -> Draft {
    unimplemented!()
}
