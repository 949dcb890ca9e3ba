//! Requests to start a run: the choice of the version, and the deduplication by request id. Every surface calls
//! [`Runs::start_flow`] and only translates its result, so a request means the same on all of them.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use windlass_engine::event::Start;
use windlass_engine::id::VersionId;
use windlass_store::flow::{FlowRow, VersionRef, VersionRow, VersionStatus};
use windlass_store::run::{Request, RunRef, RunRow};

use super::{RunSpec, Runs, StartError, StartedRun};
use crate::RuntimeError;
use crate::part::RuntimePart;

/// A request to start a run of a flow.
#[derive(Debug, Clone)]
pub struct FlowStart {
    pub flow: FlowRow,
    /// `None`: the highest published version.
    pub version: Option<u32>,
    /// A repeated request with the same id and body answers with the first run.
    pub request: Option<Request>,
    pub labels: BTreeMap<String, String>,
    pub start: Start,
    /// How long to wait for the end of the run; `None`: not at all.
    pub wait: Option<Duration>,
}

/// The run that a request started, now or before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowStarted {
    pub started: StartedRun,
    pub version: VersionId,
    /// The number of the version; `None`: an earlier request started the run.
    pub number: Option<u32>,
}

/// Why a flow has no version to start.
#[derive(Debug, thiserror::Error)]
pub enum VersionChoiceError {
    #[error("flow `{flow}` has no published version: publish one first")]
    NonePublished { flow: String },
    #[error("flow `{flow}` has no version {number}: its highest is {highest}")]
    Unknown { flow: String, number: u32, highest: u32 },
    #[error("version {number} of `{flow}` is {status}: start a published one")]
    NotPublished { flow: String, number: u32, status: &'static str },
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runs {
    /// Starts a run of a flow, or finds the run that an earlier request with the same id started. The commit decides
    /// which of two equal requests is first. A repeated request is answered with its run even if the start is no
    /// longer possible, for example because the version was archived. `on_taken` runs before the wait for the end, when the
    /// values of the request are no longer with it.
    pub async fn start_flow(&self, new: FlowStart, on_taken: impl Fn()) -> Result<FlowStarted, StartError> {
        let (request, began, wait) = (new.request.clone(), Instant::now(), new.wait);
        let error = match self.start_version(new, &on_taken).await {
            Ok(started) => return Ok(started),
            Err(error @ StartError::RequestTaken { .. }) => return Err(error),
            Err(error) => error,
        };
        let Some(request) = request else { return Err(error) };
        // The answer stays the error of the start if the store cannot answer either.
        let Ok(Some(row)) = self.store().run(self.project(), RunRef::Request(request.id.clone())).await
        else {
            return Err(error);
        };
        on_taken();
        self.repeated(request, row, wait.map(|wait| wait.saturating_sub(began.elapsed()))).await
    }

    async fn start_version(&self, new: FlowStart, on_taken: impl Fn()) -> Result<FlowStarted, StartError> {
        let chosen = self.choose_version(&new.flow, new.version).await?;
        let version = chosen.id;
        let run = RunSpec {
            flow: new.flow.id,
            version,
            request: new.request,
            labels: new.labels,
            schedule: None,
            start: new.start,
        };
        let started = match new.wait {
            Some(wait) => self.start_and_wait(run, wait, on_taken).await?,
            None => self.start(run).await?,
        };
        if started.created {
            return Ok(FlowStarted { started, version, number: Some(chosen.number) });
        }
        // The run of the first request may have another version.
        let row =
            self.store().run(self.project(), RunRef::Id(started.run)).await.map_err(RuntimeError::from)?;
        Ok(FlowStarted { started, version: row.map_or(version, |row| row.origin.version), number: None })
    }

    async fn repeated(
        &self,
        request: Request,
        row: RunRow,
        wait: Option<Duration>,
    ) -> Result<FlowStarted, StartError> {
        if row.origin.request.as_ref() != Some(&request) {
            return Err(StartError::RequestTaken { request: request.id, existing: row.id });
        }
        let mut status = row.projection.status;
        if let Some(wait) = wait.filter(|_| status.is_open()) {
            status = self.wait_ended(row.id, wait).await?.unwrap_or(status);
        }
        let started = StartedRun { run: row.id, status, created: false };
        Ok(FlowStarted { started, version: row.origin.version, number: None })
    }

    /// The version to start: the one with this number, or the highest published one.
    pub async fn choose_version(
        &self,
        flow: &FlowRow,
        number: Option<u32>,
    ) -> Result<VersionRow, VersionChoiceError> {
        let wanted = match number {
            Some(number) => VersionRef::Number { flow: flow.id, number },
            None => VersionRef::Latest { flow: flow.id },
        };
        let found = self.store().version(self.project(), wanted).await.map_err(RuntimeError::from)?;
        let name = flow.name.clone();
        let Some(version) = found else {
            return Err(match number {
                Some(number) => VersionChoiceError::Unknown { flow: name, number, highest: flow.latest },
                None => VersionChoiceError::NonePublished { flow: name },
            });
        };
        let status = match version.status {
            VersionStatus::Published => return Ok(version),
            VersionStatus::Draft => "a draft",
            VersionStatus::Archived => "archived",
        };
        Err(VersionChoiceError::NotPublished { flow: name, number: version.number, status })
    }
}
