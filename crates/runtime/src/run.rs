//! Runs: starting them, telling them something, looking at them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::broadcast;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId, ScheduleId, VersionId};
use windlass_engine::input::{Input, Refusal};
use windlass_engine::plan::Plan;
use windlass_engine::run::Run;
use windlass_store::commit::JobChange;
use windlass_store::outbox::MessageId;
use windlass_store::run::{Origin, Request, RunRow, RunStatus};

use crate::feed::Change;
use crate::{Runtime, RuntimeError, SubmitError};

/// A run to be started.
#[derive(Debug, Clone)]
pub struct NewRun {
    pub flow: FlowId,
    pub version: VersionId,
    /// Makes creating again create nothing.
    pub request: Option<Request>,
    pub labels: BTreeMap<String, String>,
    pub schedule: Option<ScheduleId>,
    /// What it is given. Prices and time limits are added by the server.
    pub start: Start,
}

/// What became of a request to start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Started {
    pub run: RunId,
    pub status: RunStatus,
    /// `false`: an earlier request with the same id made it.
    pub created: bool,
}

/// Why a run was not started.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The request id was used for something else.
    #[error("request `{request}` already made {existing} with another body: use another request id")]
    RequestTaken { request: String, existing: RunId },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Where a run stands after an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub status: RunStatus,
    /// Entries in its journal.
    pub len: u64,
}

/// What else goes into the commit of an input.
#[derive(Debug, Default, Clone)]
pub struct Along {
    pub create: Option<Origin>,
    pub jobs: Vec<JobChange>,
    pub delivered: Vec<MessageId>,
}

/// A run as it is stored: its row, its plan, and its state folded from the journal.
#[derive(Debug, Clone)]
pub struct RunView {
    pub row: RunRow,
    pub plan: Arc<Plan>,
    pub state: Arc<Run>,
}

impl Runtime {
    /// Starts a run; answered when its first entry is durable.
    pub async fn start(&self, new: NewRun) -> Result<Started, StartError> {
        let _ = new;
        unimplemented!()
    }

    /// Takes an input to a run; answered when what was decided is durable.
    pub async fn submit(&self, run: RunId, input: Input) -> Result<Seen, SubmitError> {
        self.submit_along(run, input, Along::default()).await
    }

    /// Takes an input to a run, with other rows that are written in the same commit or not at all. When the run
    /// refuses the input, nothing of what went along is written.
    pub(crate) async fn submit_along(
        &self,
        run: RunId,
        input: Input,
        along: Along,
    ) -> Result<Seen, SubmitError> {
        let _ = (run, input, along);
        unimplemented!()
    }

    /// A run as it is stored now.
    pub async fn view(&self, run: RunId) -> Result<Option<RunView>, RuntimeError> {
        let _ = run;
        unimplemented!()
    }

    /// The state of a run after so many entries of its journal; `None` = no such run or fewer entries.
    pub async fn view_at(&self, run: RunId, len: u64) -> Result<Option<RunView>, RuntimeError> {
        let _ = (run, len);
        unimplemented!()
    }

    /// Waits until the run has ended, but no longer than that; answers with its status either way.
    pub async fn wait_ended(&self, run: RunId, at_most: Duration) -> Result<Option<RunStatus>, RuntimeError> {
        let _ = (run, at_most);
        unimplemented!()
    }

    /// Everything that becomes durable from now on.
    pub fn changes(&self) -> broadcast::Receiver<Arc<Change>> {
        self.feed().subscribe()
    }
}
