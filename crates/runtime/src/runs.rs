//! Runs: starting them, submitting inputs, reading their state, and waiting for their end.

pub mod flow;

pub(crate) mod cached_run;
mod effect;
pub(crate) mod mailbox;
mod open_runs;
pub(crate) mod outbox;
mod own_inputs;
mod round;
pub(crate) mod submit;
mod timer;
mod tree;

mod report;
mod search;
mod start;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::event::Start;
use windlass_engine::id::{FlowId, RunId, ScheduleId, VersionId};
use windlass_engine::input::{CallOutcome, Input, Refusal};
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::run::Run;
use windlass_store::commit::{Commit, JobChange, ScheduleChange};
use windlass_store::outbox::{Message, MessageId};
use windlass_store::run::{Origin, Request, RunRef, RunRow, RunStatus};
use windlass_store::schedule::FiringRow;

use crate::RuntimeError;
use crate::calls::log::AttemptLog;
use crate::feed::RunUpdates;
use crate::part::{RuntimePart, part};
use crate::runs::flow::Plans;
use crate::runs::mailbox::{Envelope, InputPermit, Mailboxes, SubmitReply};
use crate::runs::open_runs::{OpenRuns, RunLimits};
use crate::runs::outbox::{Outbox, OutboxDelivery};
use crate::runs::timer::RunTimers;
use crate::runs::tree::Trees;

pub use submit::SubmitOptions;

/// How often idle runs are dropped from memory.
const EVICT_INTERVAL: Duration = Duration::from_secs(1);
/// How long a run rests after its actor panicked: the next one may panic for the same reason.
const REVIVE_DELAY: Duration = Duration::from_secs(5);
/// Runs that cannot be read, of which the log tells.
const UNREADABLE_MAX: usize = 1_000;

pub use report::{CallEnd, ReportError};
pub use search::{RunCount, RunFinder, RunSelection, SelectError};
pub use start::{FlowStart, FlowStarted, VersionChoiceError};

/// A run to be started.
#[derive(Debug, Clone)]
pub struct RunSpec {
    pub flow: FlowId,
    pub version: VersionId,
    /// Makes creating again create nothing.
    pub request: Option<Request>,
    pub labels: BTreeMap<String, String>,
    pub schedule: Option<ScheduleId>,
    /// The input of the run. The server adds prices and time limits.
    pub start: Start,
}

/// The result of a request to start a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartedRun {
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
    Version(#[from] VersionChoiceError),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

/// Where a run stands after an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmitAck {
    pub status: RunStatus,
    /// Entries in its journal.
    pub len: Seq,
}

/// Rows that are written in the commit of an input.
#[derive(Debug, Default, Clone)]
pub struct ExtraWrites {
    pub create: Option<Origin>,
    pub jobs: Vec<JobChange>,
    pub delivered: Vec<MessageId>,
    pub schedules: Vec<ScheduleChange>,
    pub firings: Vec<FiringRow>,
    /// The log of the attempt that ends with this input.
    pub(crate) log: Option<AttemptLog>,
}

impl ExtraWrites {
    /// Whether there is something that is not about the run itself.
    pub(crate) fn touches_other_rows(&self) -> bool {
        let ExtraWrites { create: _, jobs, delivered, schedules, firings, log: _ } = self;
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

/// The state of `Runs`.
#[derive(Default)]
pub(crate) struct RunsState {
    plans: Plans,
    mailboxes: Mailboxes,
    timers: RunTimers,
    outbox: Outbox,
    /// Runs that cannot be read, which the log has told.
    unreadable: Mutex<BTreeSet<RunId>>,
    trees: Trees,
    open_runs: OpenRuns,
}

part! {
    /// The owner of runs: mailboxes, actors, timers, the outbox, and the flows that they execute.
    pub Runs, runs: RunsState
}

impl Runs {
    /// Refuses work from outside while the server drains or too many inputs from outside wait.
    pub(crate) fn admit(&self) -> Result<(), RuntimeError> {
        self.admit_input().map(drop)
    }

    /// Refuses work from outside while the server drains: for requests that stop work, which no load keeps out.
    pub(crate) fn admit_control(&self) -> Result<(), RuntimeError> {
        if self.is_draining() { Err(RuntimeError::Draining) } else { Ok(()) }
    }

    /// The right to send an input from outside, until the permit is dropped.
    fn admit_input(&self) -> Result<InputPermit, RuntimeError> {
        self.admit_control()?;
        let permit = self.state().mailboxes.admit(self.settings().inputs_max);
        permit.ok_or(RuntimeError::Busy { retry_after: Duration::from_secs(1) })
    }

    /// Whether this error of a run does not go away by trying again: its stored rows cannot be read. The log tells it once;
    /// other runs go on.
    pub(crate) fn is_set_aside(&self, run: RunId, error: &RuntimeError) -> bool {
        if !error.is_of_one_run() {
            return false;
        }
        let mut unreadable = self.state().unreadable.lock().unwrap_or_else(PoisonError::into_inner);
        if unreadable.len() < UNREADABLE_MAX && unreadable.insert(run) {
            tracing::error!(%run, %error, "a run cannot be read and is set aside: run `windlass doctor`");
        }
        true
    }

    /// Finds runs by queries.
    pub fn finder(&self) -> RunFinder<'_> {
        RunFinder::of(self)
    }

    /// The number of runs in memory.
    pub(crate) fn n_cached(&self) -> usize {
        self.state().mailboxes.len()
    }

    /// The number of inputs that wait or are being decided.
    pub(crate) fn n_waiting(&self) -> usize {
        self.state().mailboxes.n_waiting()
    }

    /// Reads due wake-ups from the store now.
    pub(crate) fn poll_due_soon(&self) {
        self.state().timers.look.notify_one();
    }

    /// Delivers a message that has just become durable.
    pub(crate) fn deliver_soon(&self, message: Message) {
        OutboxDelivery::of(&self.inner).deliver_soon(message);
    }

    /// Reads undelivered messages from the store soon.
    pub(crate) fn poll_outbox_soon(&self) {
        self.state().outbox.look.notify_one();
    }

    /// Another server wrote to these runs and keeps their wake-ups.
    pub(crate) fn on_foreign_commits<'r>(&self, runs: impl IntoIterator<Item = &'r RunId>) {
        self.state().timers.forget_written(runs);
    }

    /// Drops runs from memory that nothing happened to for a while.
    pub(crate) async fn evict_idle_runs(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(EVICT_INTERVAL) => {}
                () = self.stopped() => return,
            }
            let settings = self.settings();
            let is_full = self.n_cached() > settings.hot_runs_max;
            self.state().mailboxes.passivate(if is_full { Duration::ZERO } else { settings.hot_run_idle });
        }
    }

    /// Starts a run; answered when its first entry is durable.
    pub async fn start(&self, new: RunSpec) -> Result<StartedRun, StartError> {
        self.start_as(RunId::new(Uuid::now_v7()), new).await
    }

    /// Starts a run and waits until it has ended, but no longer than that; answers with its status either way.
    /// `on_taken` runs between the start and the wait.
    pub async fn start_and_wait(
        &self,
        new: RunSpec,
        at_most: Duration,
        on_taken: impl Fn(),
    ) -> Result<StartedRun, StartError> {
        let run = RunId::new(Uuid::now_v7());
        // Asked for before it can come.
        let mut end = self.feed().end_of(run);
        let started = self.start_as(run, new).await;
        on_taken();
        let waits = matches!(&started, Ok(started) if started.created && started.status.is_open());
        if waits && let Some(status) = end.within(at_most).await {
            return Ok(StartedRun { run, status, created: true });
        }
        drop(end);
        match started? {
            StartedRun { run, status, created } if status.is_open() => {
                let left = if created { Duration::ZERO } else { at_most };
                let status = self.wait_ended(run, left).await?.unwrap_or(status);
                Ok(StartedRun { run, status, created })
            }
            ended => Ok(ended),
        }
    }

    async fn start_as(&self, run: RunId, mut new: RunSpec) -> Result<StartedRun, StartError> {
        let permit = self.admit_input()?;
        new.start.account = self.money().payer(new.start.account, new.version).await?;
        if let Some(missing) = self.money().missing_payer(new.start.account.as_deref()) {
            return Err(StartError::Refused(Refusal::Bad(vec![missing])));
        }
        if let Some(account) = &new.start.account {
            self.money().check_account(account).await?;
        }
        let flow = new.flow;
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
        let extra = ExtraWrites { create: Some(origin), ..ExtraWrites::default() };
        RunLimits::of(&self.inner).admit_open(flow, 0).await.map_err(RuntimeError::from)?;
        let reply = self.submit_admitted(run, Input::Start(Box::new(start)), extra, Some(permit)).await;
        if !matches!(reply, SubmitReply::Taken(_)) {
            OutboxDelivery::of(&self.inner).on_closed(flow);
        }
        match reply {
            SubmitReply::Taken(seen) => Ok(StartedRun { run, status: seen.status, created: true }),
            SubmitReply::Existing { run: existing, same_request: true } => {
                self.started_before(existing).await
            }
            SubmitReply::Existing { run: existing, same_request: false } => {
                Err(StartError::RequestTaken { request: request.unwrap_or_default(), existing })
            }
            SubmitReply::Refused(refusal) => Err(StartError::Refused(refusal)),
            SubmitReply::Outdated | SubmitReply::UnknownRun => Err(RuntimeError::Broken.into()),
            SubmitReply::Trouble(error) => Err(StartError::Runtime(error)),
        }
    }

    /// Starts the run of a firing, unless as many runs are open as may be.
    pub(crate) async fn start_from_schedule(
        &self,
        run: RunId,
        flow: FlowId,
        start: Start,
        extra: ExtraWrites,
    ) -> Result<SubmitReply, RuntimeError> {
        RunLimits::of(&self.inner).admit_open(flow, 0).await?;
        let reply = self.submit_for_reply(run, Input::Start(Box::new(start)), extra).await;
        if !matches!(reply, SubmitReply::Taken(_)) {
            OutboxDelivery::of(&self.inner).on_closed(flow);
        }
        Ok(reply)
    }

    async fn started_before(&self, run: RunId) -> Result<StartedRun, StartError> {
        let row = self.store().run(self.project(), RunRef::Id(run)).await.map_err(RuntimeError::from)?;
        let status = row.map_or(RunStatus::Pending, |row| row.projection.status);
        Ok(StartedRun { run, status, created: false })
    }

    /// Adds the settings that every run of this version carries: the prices, and the settings of its services.
    pub(crate) async fn complete(&self, mut start: Start, version: VersionId) -> Result<Start, RuntimeError> {
        start.call_timeout_ms = u64::try_from(self.settings().call_timeout.as_millis()).unwrap_or(u64::MAX);
        let terms = self.calls().service_terms();
        if !terms.is_empty() {
            let plan = self.plan(version).await?;
            start.services = those_of(&terms, plan.services().as_ref());
        }
        if start.account.is_some() {
            // The run keeps the prices of the services that it can call.
            start.prices = self.money().price_list().await?;
        }
        Ok(start)
    }

    /// Waits until the run has ended, but no longer than that; answers with its status either way. `None` = there is
    /// no such run.
    pub async fn wait_ended(&self, run: RunId, at_most: Duration) -> Result<Option<RunStatus>, RuntimeError> {
        let mut end = self.feed().end_of(run);
        let row = self.store().run(self.project(), RunRef::Id(run)).await?;
        let status = row.map(|row| row.projection.status);
        if status.is_none_or(|status| !status.is_open()) {
            return Ok(status);
        }
        if let Some(status) = end.within(at_most).await {
            return Ok(Some(status));
        }
        Ok(self.store().run(self.project(), RunRef::Id(run)).await?.map(|row| row.projection.status))
    }

    /// Everything that becomes durable from now on.
    pub fn changes(&self) -> RunUpdates {
        self.feed().subscribe()
    }
}

/// The entries of these services; all entries if the called services are unknown. Costs one lookup per called service.
fn those_of<T: Clone>(all: &BTreeMap<String, T>, called: Option<&BTreeSet<&str>>) -> BTreeMap<String, T> {
    match called {
        Some(called) => {
            let found = called.iter().filter_map(|service| all.get_key_value(*service));
            found.map(|(service, one)| (service.clone(), one.clone())).collect()
        }
        None => all.clone(),
    }
}

impl Runs {
    /// Restarts a run after its actor panicked: answers on their way to it are lost, so its calls count as lost too.
    pub(crate) async fn revive(self, run: RunId) {
        tokio::select! {
            () = tokio::time::sleep(REVIVE_DELAY) => {}
            () = self.stopped() => return,
        }
        let Ok(Some(cached)) = self.load(run).await else { return };
        self.state().timers.set(run, cached.run.wake_at(), self.clock().now());
        let calls = cached.run.granted_calls(&cached.plan).into_iter();
        let ours = calls.filter(|(_, fence, exec, by)| {
            let is_direct = !matches!(exec, Exec::Queue | Exec::Flow { .. });
            is_direct && *by == self.epoch() && !self.calls().holds(run, *fence)
        });
        for (node, fence, ..) in ours {
            let outcome = CallOutcome::ServerLost;
            self.send(run, Envelope::of(Input::CallEnded { node, fence, outcome, worker: None }));
        }
    }
}
