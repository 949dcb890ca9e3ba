//! Runs: starting them, telling them something, looking at them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId, ScheduleId, VersionId};
use windlass_engine::input::{Input, Refusal};
use windlass_engine::plan::Plan;
use windlass_engine::run::Run;
use windlass_store::commit::{Commit, JobChange, ScheduleChange};
use windlass_store::outbox::MessageId;
use windlass_store::run::{Origin, Request, RunRef, RunRow, RunStatus};
use windlass_store::schedule::FiringRow;
use windlass_store::{Refusal as Forbidden, StoreError};

use crate::feed::Changes;
use crate::log::{Log, Wrote};
use crate::mailbox::Told;
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
    pub schedules: Vec<ScheduleChange>,
    pub firings: Vec<FiringRow>,
    /// What the attempt wrote whose end this is.
    pub(crate) log: Option<Wrote>,
}

impl Along {
    /// Whether there is something that is not about the run itself.
    pub(crate) fn has_company(&self) -> bool {
        let Along { create: _, jobs, delivered, schedules, firings, log: _ } = self;
        !(jobs.is_empty() && delivered.is_empty() && schedules.is_empty() && firings.is_empty())
    }

    /// Puts it into the commit that it goes along with.
    pub(crate) fn join(&self, commit: &mut Commit) {
        commit.jobs.extend(self.jobs.iter().cloned());
        commit.delivered.extend(self.delivered.iter().cloned());
        commit.schedules.extend(self.schedules.iter().cloned());
        commit.firings.extend(self.firings.iter().cloned());
        if let Some(log) = &self.log {
            log.join(commit);
        }
    }
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
        self.start_as(RunId::new(Uuid::now_v7()), new).await
    }

    /// Starts a run and waits until it has ended, but no longer than that; answers with its status either way.
    pub async fn start_and_wait(&self, new: NewRun, at_most: Duration) -> Result<Started, StartError> {
        let run = RunId::new(Uuid::now_v7());
        // Asked for before it can come.
        let mut end = self.feed().end_of(run);
        let started = self.start_as(run, new).await;
        let waits = matches!(&started, Ok(started) if started.created && started.status.is_open());
        if waits && let Some(status) = end.within(at_most).await {
            return Ok(Started { run, status, created: true });
        }
        drop(end);
        match started? {
            Started { run, status, created } if status.is_open() => {
                let left = if created { Duration::ZERO } else { at_most };
                let status = self.wait_ended(run, left).await?.unwrap_or(status);
                Ok(Started { run, status, created })
            }
            ended => Ok(ended),
        }
    }

    async fn start_as(&self, run: RunId, new: NewRun) -> Result<Started, StartError> {
        self.admit()?;
        if let Some(account) = &new.start.account {
            self.check_account(account).await?;
        }
        let request = new.request.as_ref().map(|request| request.id.clone());
        let origin = Origin {
            flow: new.flow,
            version: new.version,
            request: new.request,
            labels: new.labels,
            account: new.start.account.clone(),
            parent: None,
            schedule: new.schedule,
            created_at: self.clock().now(),
        };
        let start = self.complete(new.start, new.version).await?;
        let along = Along { create: Some(origin), ..Along::default() };
        match self.tell(run, Input::Start(Box::new(start)), along).await {
            Told::Taken(seen) => Ok(Started { run, status: seen.status, created: true }),
            Told::Existing { run: existing, same_request: true } => self.started_before(existing).await,
            Told::Existing { run: existing, same_request: false } => {
                Err(StartError::RequestTaken { request: request.unwrap_or_default(), existing })
            }
            Told::Refused(refusal) => Err(StartError::Refused(refusal)),
            Told::Outdated | Told::UnknownRun => Err(RuntimeError::Broken.into()),
            Told::Trouble(error) => Err(StartError::Runtime(error)),
        }
    }

    /// Refuses an account that nobody opened: what it is to pay for would fail at its first call.
    pub(crate) async fn check_account(&self, account: &str) -> Result<(), RuntimeError> {
        if self.needy().is_opened(account) {
            return Ok(());
        }
        match self.store().account(account).await? {
            Some(_) => {
                self.needy().note_opened(account);
                Ok(())
            }
            None => Err(StoreError::from(Forbidden::UnknownAccount(account.to_owned())).into()),
        }
    }

    async fn started_before(&self, run: RunId) -> Result<Started, StartError> {
        let row = self.store().run(RunRef::Id(run)).await.map_err(RuntimeError::from)?;
        let status = row.map_or(RunStatus::Pending, |row| row.standing.status);
        Ok(Started { run, status, created: false })
    }

    /// Adds what the server gives to every run of this version: all prices, and of all settings those that it can need.
    pub(crate) async fn complete(&self, mut start: Start, version: VersionId) -> Result<Start, RuntimeError> {
        start.call_timeout_ms = u64::try_from(self.settings().call_timeout.as_millis()).unwrap_or(u64::MAX);
        let rechecks = self.rechecks().read().unwrap_or_else(PoisonError::into_inner).clone();
        if !rechecks.is_empty() {
            let plan = self.plan(version).await?;
            start.rechecks = those_of(&rechecks, plan.services().as_ref());
        }
        if start.account.is_some() {
            // The run keeps those of what it can call.
            start.prices = self.price_list().await?;
        }
        Ok(start)
    }

    /// Takes an input to a run; answered when what was decided is durable.
    pub async fn submit(&self, run: RunId, input: Input) -> Result<Seen, SubmitError> {
        self.submit_with(run, input, Log::default()).await
    }

    /// The same of the end of a call with what it wrote, which is kept if the end is taken.
    pub async fn submit_with(&self, run: RunId, mut input: Input, log: Log) -> Result<Seen, SubmitError> {
        self.admit()?;
        let mut along = Along::default();
        if let Input::CallEnded { node, fence, outcome, .. } = &mut input {
            crate::call::unhurry(outcome);
            along.log = Some(Wrote { node: node.clone(), fence: *fence, log });
        }
        self.submit_along(run, input, along).await
    }

    /// Waits until the run has ended, but no longer than that; answers with its status either way. `None` = there is
    /// no such run.
    pub async fn wait_ended(&self, run: RunId, at_most: Duration) -> Result<Option<RunStatus>, RuntimeError> {
        let mut end = self.feed().end_of(run);
        let row = self.store().run(RunRef::Id(run)).await?;
        let status = row.map(|row| row.standing.status);
        if status.is_none_or(|status| !status.is_open()) {
            return Ok(status);
        }
        if let Some(status) = end.within(at_most).await {
            return Ok(Some(status));
        }
        Ok(self.store().run(RunRef::Id(run)).await?.map(|row| row.standing.status))
    }

    /// Everything that becomes durable from now on.
    pub fn changes(&self) -> Changes {
        self.feed().subscribe()
    }
}

/// What is set for these services; for all of them where nobody knows which are called. Costs what is called.
fn those_of<T: Clone>(all: &BTreeMap<String, T>, called: Option<&BTreeSet<&str>>) -> BTreeMap<String, T> {
    match called {
        Some(called) => {
            let found = called.iter().filter_map(|service| all.get_key_value(*service));
            found.map(|(service, one)| (service.clone(), one.clone())).collect()
        }
        None => all.clone(),
    }
}
