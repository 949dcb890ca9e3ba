//! Checks of a store: every open run has something that will wake it, every row agrees with its journal, balances are
//! the sums of their ledgers, and every charge is open, settled or refunded.

mod fund;
mod money;
mod rows;
mod set_back;
mod store_watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use windlass_engine::counter::{Epoch, Fence};
use windlass_engine::id::{JobId, RunId};
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_engine::run::state::Status;
use windlass_engine::time::Timestamp;
use windlass_store::outbox::{Message, Note, Party};
use windlass_store::page::{Order, Part};
use windlass_store::projection::status;
use windlass_store::run::{RunQuery, RunRef, RunStatus};
use windlass_store::{Store, StoreError};

pub use set_back::{SetBackReport, set_back_at_rest};

use crate::doctor::fund::StuckRun;
pub(crate) use crate::doctor::store_watch::StoreWatch;
use crate::part::{RuntimePart, part};
use crate::runs::mailbox::Envelope;
use crate::runs::{ExtraWrites, RunView};
use crate::{Runtime, RuntimeError};

/// Runs read at once.
const PAGE_SIZE: usize = 500;
/// How late a wake-up may be before it counts as overslept.
const LATE_MS: u64 = 5_000;
/// Findings in one report; there may be more.
const FINDINGS_MAX: usize = 1_000;

/// The number of examined runs and accounts, and the findings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct DoctorReport {
    pub n_runs: usize,
    pub n_accounts: usize,
    /// At most a thousand.
    pub findings: Vec<DoctorFinding>,
    pub pages: PageCheck,
}

/// The tables whose pages were checked, within some seconds. The next check goes on with the others.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PageCheck {
    pub n_checked: usize,
    /// None if the database checks its own pages.
    pub n_tables: usize,
    /// Reasons why tables could not be checked.
    pub failures: Vec<String>,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DoctorFinding {
    /// The id of the run or account.
    pub subject: String,
    pub node: Option<NodePath>,
    pub what: String,
    /// Whether something was done about it.
    pub repaired: bool,
    /// The action of a person, if `repair` cannot help.
    pub remedy: Option<String>,
}

impl DoctorFinding {
    /// A finding about this run, account or row.
    fn about(subject: impl ToString, what: impl Into<String>) -> Self {
        DoctorFinding {
            subject: subject.to_string(),
            node: None,
            what: what.into(),
            repaired: false,
            remedy: None,
        }
    }
}

/// Examines every open run and every account of a store that no server uses, and writes nothing. An overdue wake-up is
/// no finding: the next server wakes the run.
pub async fn examine_at_rest(store: Arc<dyn Store>) -> Result<DoctorReport, RuntimeError> {
    Runtime::at_rest(store).await?.doctor().examine(false).await
}

part! {
    /// Checks of everything that is stored. It keeps no state; it reads the store and asks the owners.
    pub Doctor
}

impl Doctor {
    /// Examines every open run and every account; with `repair`, wakes runs that would never wake.
    pub async fn examine(&self, repair: bool) -> Result<DoctorReport, RuntimeError> {
        // Rows are read again, so that those which can be read by now are forgotten.
        self.store().forget_set_aside();
        let mut found = DoctorReport::default();
        match self.examine_work(repair, &mut found).await {
            // The check of the pages names the table.
            Err(RuntimeError::Store(error @ StoreError::Damaged(_))) => {
                found.findings.push(rows::damage(error.to_string()));
            }
            done => done?,
        }
        self.examine_rows(&mut found).await?;
        found.findings.truncate(FINDINGS_MAX);
        Ok(found)
    }

    async fn examine_work(&self, repair: bool, found: &mut DoctorReport) -> Result<(), RuntimeError> {
        let mut stuck = Vec::new();
        let open = RunStatus::ALL.into_iter().filter(|status| status.is_open()).collect();
        let part = Part { order: Order::Oldest, limit: PAGE_SIZE, ..Part::default() };
        let mut query = RunQuery { statuses: open, part, ..RunQuery::default() };
        loop {
            let page = self.store().runs(self.project(), query.clone()).await?;
            for row in page.items {
                found.n_runs += 1;
                stuck.extend(self.examine_run(row.id, repair, &mut found.findings).await?);
            }
            match page.next {
                Some(next) => query.part.cursor = Some(next),
                None => break,
            }
        }
        self.examine_stuck(stuck, repair, &mut found.findings).await?;
        self.examine_accounts(found).await
    }

    /// Examines one run; returns it if it has to be examined once more.
    async fn examine_run(
        &self,
        run: RunId,
        repair: bool,
        findings: &mut Vec<DoctorFinding>,
    ) -> Result<Option<StuckRun>, RuntimeError> {
        // A run that moves is awake; one that ended meanwhile is none of ours.
        let view = match self.runs().view(run).await {
            Ok(Some(view)) => view,
            Ok(None) => return Ok(None),
            Err(error) if error.is_of_one_run() => {
                let remedy = Some(rows::RESTORE.to_owned());
                findings.push(DoctorFinding { remedy, ..DoctorFinding::about(run, error.to_string()) });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if view.state.status.is_ended() || findings.len() >= FINDINGS_MAX {
            return Ok(None);
        }
        if status(&view.state) != view.row.projection.status
            || view.state.wake_at() != view.row.projection.wake_at
        {
            findings.push(DoctorFinding::about(run, "its row differs from its journal"));
        }
        let (now, is_served) = (self.clock().now(), self.cluster().is_member());
        let is_late = |wake: &Timestamp| is_served && now.since(*wake) > LATE_MS;
        if let Some(wake) = view.state.wake_at().filter(is_late) {
            if repair {
                self.runs().send(run, Envelope::of(Input::TimePassed));
            }
            let what = format!("it should have been woken at {wake}");
            findings.push(DoctorFinding { repaired: repair, ..DoctorFinding::about(run, what) });
        }
        let mut ends = BTreeSet::new();
        for (node, fence, exec, by) in view.state.granted_calls(&view.plan) {
            // Its end is told soon, or the watchdog ends it.
            let is_ending =
                view.state.status == Status::Canceling || view.state.is_expiring(&view.plan, &node);
            if is_ending && exec == Exec::Queue {
                continue;
            }
            let Some(what) = self.forgotten(&view, fence, &exec, by, &mut ends).await? else { continue };
            let again = self.runs().view(run).await?;
            if again.is_none_or(|again| again.row.len != view.row.len) {
                return Ok(None);
            }
            if repair {
                let (node, outcome) = (node.clone(), CallOutcome::ServerLost);
                self.runs().send(run, Envelope::of(Input::CallEnded { node, fence, outcome, worker: None }));
            }
            let node = Some(node);
            findings.push(DoctorFinding { node, repaired: repair, ..DoctorFinding::about(run, what) });
        }
        self.examine_rest(&view, findings);
        Ok(self.could_go(&view).await?.map(|_| StuckRun { run, len: view.row.len }))
    }

    /// The reason why no answer to this call will come, if so.
    async fn forgotten(
        &self,
        view: &RunView,
        fence: Fence,
        exec: &Exec,
        by: Epoch,
        ends: &mut BTreeSet<Fence>,
    ) -> Result<Option<String>, RuntimeError> {
        let run = view.state.id;
        Ok(match exec {
            Exec::Queue => match self.store().job(self.project(), JobId::of_call(run, fence)).await {
                Ok(Some(row)) if row.job.is_open() => None,
                Ok(_) => Some("no open job carries its call".to_owned()),
                Err(StoreError::Corrupt(reason)) => {
                    Some(format!("the job that carries its call cannot be read: {reason}"))
                }
                Err(error) => return Err(error.into()),
            },
            Exec::Flow { .. } => {
                let child = RunId::of_call(run, fence);
                let is_there = async || {
                    self.store().run(self.project(), RunRef::Id(child)).await.map(|row| row.is_some())
                };
                // It may have been created, and the message delivered, between the two questions.
                let is_made = is_there().await?
                    || self.has_message(child, run, fence, ends).await?
                    || is_there().await?;
                (!is_made).then(|| "no child run makes its call".to_owned())
            }
            Exec::Http | Exec::Func { .. } | Exec::Script(_) => {
                let is_lost = || by == self.epoch() && !self.calls().holds(run, fence);
                if is_lost() {
                    // The actor of the run may be between the commit of the call and its begin. It answers an input
                    // after both.
                    self.runs().submit_for_reply(run, Input::TimePassed, ExtraWrites::default()).await;
                }
                is_lost().then(|| "no server makes its call".to_owned())
            }
        })
    }

    /// Whether a child is to be created, or its end is on its way. `ends` are the fences of the run's calls with an end
    /// on its way, as last read: a run may have very many. A call that is not among them may have ended since, so they
    /// are read again before it counts as forgotten.
    async fn has_message(
        &self,
        child: RunId,
        run: RunId,
        fence: Fence,
        ends: &mut BTreeSet<Fence>,
    ) -> Result<bool, RuntimeError> {
        let sent = self.store().outbox_to(self.project(), Party::Run(child)).await?;
        if sent.iter().any(|message| matches!(message.note, Note::StartChild(_))) || ends.contains(&fence) {
            return Ok(true);
        }
        let sent = self.store().outbox_to(self.project(), Party::Run(run)).await?;
        let ended = |message: &Message| match message.note {
            Note::CallEnded { fence, .. } => Some(fence),
            Note::BalanceChanged
            | Note::Billed { .. }
            | Note::CancelChild
            | Note::ReserveRaised { .. }
            | Note::StartChild(_) => None,
        };
        *ends = sent.iter().filter_map(ended).collect();
        Ok(ends.contains(&fence))
    }

    /// An open run waits for something that can be named.
    fn examine_rest(&self, view: &RunView, findings: &mut Vec<DoctorFinding>) {
        let is_idle = view.state.status == Status::Running
            && view.state.n_granted == 0
            && view.state.wake_at().is_none()
            && view.state.why(&view.plan).is_empty();
        if is_idle {
            findings.push(DoctorFinding::about(view.state.id, "it waits for nothing that could come"));
        }
    }
}
