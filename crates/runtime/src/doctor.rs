//! Whether everything is as it must be: every open run has something that will wake it, what is listed is what the
//! journal says, balances are the sums of their ledgers, and every charge is open, settled or refunded.

mod fund;
mod money;

use std::collections::BTreeSet;
use std::sync::Arc;

use serde::Serialize;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::input::{Input, Outcome};
use windlass_engine::path::NodePath;
use windlass_engine::plan::Exec;
use windlass_engine::run::state::Status;
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::outbox::{Message, Note, Party};
use windlass_store::page::{Order, Part};
use windlass_store::project::status;
use windlass_store::run::{RunQuery, RunRef, RunStatus};

use crate::doctor::fund::Stuck;
use crate::mailbox::Letter;
use crate::run::RunView;
use crate::{Runtime, RuntimeError};

/// Runs read at once.
const AT_ONCE: usize = 500;
/// How late a wake-up may be before it counts as overslept.
const LATE_MS: u64 = 5_000;
/// Findings that are told; there may be more.
const FINDINGS: usize = 1_000;

/// What was looked at and what was found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Examination {
    pub n_runs: usize,
    pub n_accounts: usize,
    /// At most a thousand.
    pub findings: Vec<Finding>,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The id of the run or account.
    pub subject: String,
    pub node: Option<NodePath>,
    pub what: String,
    /// Whether something was done about it.
    pub repaired: bool,
}

/// Looks at every open run and every account of a store that no server uses, and writes nothing. Whatever should have
/// been woken meanwhile is no finding: the next server does so.
pub async fn examine_at_rest(store: Arc<dyn Store>) -> Result<Examination, RuntimeError> {
    Runtime::at_rest(store).await?.examine(false).await
}

impl Runtime {
    /// Looks at every open run and every account; with `repair`, wakes what would sleep for ever.
    pub async fn examine(&self, repair: bool) -> Result<Examination, RuntimeError> {
        let (mut found, mut stuck) = (Examination::default(), Vec::new());
        let open = RunStatus::ALL.into_iter().filter(|status| status.is_open()).collect();
        let part = Part { order: Order::Oldest, limit: AT_ONCE, ..Part::default() };
        let mut query = RunQuery { statuses: open, part, ..RunQuery::default() };
        loop {
            let page = self.store().runs(query.clone()).await?;
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
        self.examine_accounts(&mut found).await?;
        found.findings.truncate(FINDINGS);
        Ok(found)
    }

    /// Looks at one run; answers with it if it has to be looked at once more.
    async fn examine_run(
        &self,
        run: RunId,
        repair: bool,
        findings: &mut Vec<Finding>,
    ) -> Result<Option<Stuck>, RuntimeError> {
        // A run that moves is awake; one that ended meanwhile is none of ours.
        let view = match self.view(run).await {
            Ok(Some(view)) => view,
            Ok(None) => return Ok(None),
            Err(error @ (RuntimeError::Journal { .. } | RuntimeError::Definition(_))) => {
                let (subject, what) = (run.to_string(), error.to_string());
                findings.push(Finding { subject, node: None, what, repaired: false });
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        if view.state.status.is_ended() || findings.len() >= FINDINGS {
            return Ok(None);
        }
        if status(&view.state) != view.row.standing.status
            || view.state.wake_at() != view.row.standing.wake_at
        {
            findings.push(Finding {
                subject: run.to_string(),
                node: None,
                what: "its row does not say what its journal says".to_owned(),
                repaired: false,
            });
        }
        let (now, is_served) = (self.clock().now(), self.life_row().is_somebody());
        let is_late = |wake: &Timestamp| is_served && now.since(*wake) > LATE_MS;
        if let Some(wake) = view.state.wake_at().filter(is_late) {
            if repair {
                self.post(run, Letter::of(Input::TimePassed));
            }
            let what = format!("it should have been woken at {wake}");
            findings.push(Finding { subject: run.to_string(), node: None, what, repaired: repair });
        }
        let mut ends = BTreeSet::new();
        for (node, fence, exec, by) in view.state.granted_calls(&view.plan) {
            let Some(what) = self.forgotten(&view, fence, &exec, by, &mut ends).await? else { continue };
            let again = self.view(run).await?;
            if again.is_none_or(|again| again.row.len != view.row.len) {
                return Ok(None);
            }
            if repair {
                let (node, outcome) = (node.clone(), Outcome::ServerLost);
                self.post(run, Letter::of(Input::CallEnded { node, fence, outcome, worker: None }));
            }
            findings.push(Finding { subject: run.to_string(), node: Some(node), what, repaired: repair });
        }
        self.examine_rest(&view, findings);
        Ok(self.could_go(&view).await?.map(|_| Stuck { run, len: view.row.len }))
    }

    /// Why nobody will answer this call, if so.
    async fn forgotten(
        &self,
        view: &RunView,
        fence: u64,
        exec: &Exec,
        by: u64,
        ends: &mut BTreeSet<u64>,
    ) -> Result<Option<String>, RuntimeError> {
        let run = view.state.id;
        Ok(match exec {
            Exec::Queue => {
                let job = self.store().job(JobId::of_call(run, fence)).await?;
                let is_open = job.is_some_and(|row| row.job.is_open());
                (!is_open).then(|| "no open job carries its call".to_owned())
            }
            Exec::Flow { .. } => {
                let child = RunId::of_call(run, fence);
                let is_there = async || self.store().run(RunRef::Id(child)).await.map(|row| row.is_some());
                // It may have been created, and the message delivered, between the two questions.
                let is_made = is_there().await?
                    || self.has_message(child, run, fence, ends).await?
                    || is_there().await?;
                (!is_made).then(|| "no child run makes its call".to_owned())
            }
            Exec::Http | Exec::Func { .. } | Exec::Script(_) => {
                let is_ours = by == self.life();
                (is_ours && !self.calls().holds(run, fence)).then(|| "nobody makes its call".to_owned())
            }
        })
    }

    /// Whether a child is to be created, or what it came to is on its way. `ends` are the calls of the run whose ends
    /// are, as they were last read: a run may have very many. A call that is not among them may have come to its end
    /// since, so they are read anew before it counts as forgotten.
    async fn has_message(
        &self,
        child: RunId,
        run: RunId,
        fence: u64,
        ends: &mut BTreeSet<u64>,
    ) -> Result<bool, RuntimeError> {
        let sent = self.store().outbox_to(Party::Run(child)).await?;
        if sent.iter().any(|message| matches!(message.note, Note::StartChild(_))) || ends.contains(&fence) {
            return Ok(true);
        }
        let sent = self.store().outbox_to(Party::Run(run)).await?;
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
    fn examine_rest(&self, view: &RunView, findings: &mut Vec<Finding>) {
        let is_idle = view.state.status == Status::Running
            && view.state.n_granted == 0
            && view.state.wake_at().is_none()
            && view.state.why(&view.plan).is_empty();
        if is_idle {
            let what = "it waits for nothing that could come".to_owned();
            findings.push(Finding { subject: view.state.id.to_string(), node: None, what, repaired: false });
        }
    }
}
