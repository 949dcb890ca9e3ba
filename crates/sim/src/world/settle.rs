//! The end of a world: after all faults have healed, all work must end, helped only by actions that a client could
//! take.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use windlass_engine::counter::Epoch;
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::journal::Entry;
use windlass_engine::money::Amount;
use windlass_engine::plan::Exec;
use windlass_engine::project::Project;
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_store::job::JobQuery;
use windlass_store::outbox::MessageId;
use windlass_store::page::Part;

use super::plain::QUEUE;
use super::{SimEvent, SimWorld};
use crate::checker::Violation;
use crate::server::SimExtraWrites;

/// The limit for all work to end, in simulated time.
const SETTLE_MS_MAX: u64 = 2 * 3_600_000;
/// The limit until no call waits for a dead server: less than the time limit of a call, which would hide a missing
/// takeover.
const TAKE_OVER_MS: u64 = 15_000;
/// How often open runs are helped.
const HELP_INTERVAL_MS: u64 = 60_000;

impl SimWorld {
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        self.faults.heal();
        for server in 0..self.servers.len() {
            self.start(server);
        }
        for account in ["account0", "account1"] {
            self.deposit(account, 1_000_000)?;
        }
        let end = self.now.after(SETTLE_MS_MAX);
        self.run_until(self.now.after(TAKE_OVER_MS))?;
        self.check_taken_over()?;
        self.end_schedules()?;
        while self.now < end
            && !(self.open_runs().is_empty() && self.undelivered().is_empty() && self.no_plain_is_open())
        {
            self.help()?;
            let until = self.now.after(HELP_INTERVAL_MS);
            self.run_until(until)?;
        }
        for run in self.open_runs() {
            if let (Some((state, _)), Some(plan)) = (self.replayed(run), self.plan_of(run)) {
                let why = serde_json::to_string(&state.why(&plan)).unwrap_or_default();
                self.story.push(format!("{run} still waits: {why}"));
                for (_, fence, _) in state.open_calls(&plan) {
                    let job = self.store.job(windlass_engine::id::JobId::of_call(run, fence));
                    self.story.push(format!("fence {fence}: {job:?}"));
                }
            }
        }
        self.checker.check_settled(&self.stored(), &self.undelivered())?;
        self.checker.jobs.check_settled(|job| self.store.job(job))?;
        let costs = self.store.rows().into_iter().map(|row| {
            let parent = row.origin.parent.as_ref().map(|parent| parent.run);
            (row.id, (parent, row.standing.cost.actual.0))
        });
        self.checker.money.rolled_up(&costs.collect())?;
        self.check_accounts()
    }

    fn run_until(&mut self, until: Timestamp) -> Result<(), Violation> {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && *at < until
        {
            let Some(Reverse((at, _, what))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            match what {
                // Clients start nothing new.
                SimEvent::Client(_) => {}
                SimEvent::Plain(action) if action.is_new_work() => {}
                other => self.handle(other)?,
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn open_runs(&self) -> Vec<RunId> {
        let rows = self.store.rows().into_iter();
        rows.filter(|row| row.standing.status.is_open()).map(|row| row.id).collect()
    }

    fn check_taken_over(&self) -> Result<(), Violation> {
        let alive: Vec<Epoch> = self.servers.iter().map(|server| server.epoch).collect();
        for run in self.open_runs() {
            let (Some((state, _)), Some(plan)) = (self.replayed(run), self.plan_of(run)) else { continue };
            for (node, fence, exec, by) in state.granted_calls(&plan) {
                let is_direct = matches!(exec, Exec::Http | Exec::Func { .. } | Exec::Script(_));
                if is_direct && !alive.contains(&by) {
                    let message =
                        format!("{run}: `{node}` fence {fence} still waits for a server that is dead");
                    return Err(Violation { invariant: "I15", message });
                }
            }
        }
        Ok(())
    }

    /// Messages that are not delivered.
    fn undelivered(&self) -> Vec<MessageId> {
        self.store.outbox(Timestamp(i64::MAX)).into_iter().map(|message| message.id).collect()
    }

    /// Sends signals, approvals, money, resumes and reports to open runs.
    fn help(&mut self) -> Result<(), Violation> {
        for run in self.open_runs() {
            let Some((state, _)) = self.replayed(run) else { continue };
            self.unblock(run, state.status)?;
            let Some(plan) = self.plan_of(run) else { continue };
            let granted = state.granted_calls(&plan);
            for (node, fence, _) in state.open_calls(&plan) {
                let is_granted = granted.iter().any(|(path, ..)| *path == node);
                let Some(server) = self.any_server().filter(|_| !is_granted) else { continue };
                let value = crate::worker::tag(&node, fence);
                self.submit(server, run, &Input::Continue { node, value }, &SimExtraWrites::default())?;
            }
        }
        Ok(())
    }

    /// Every run replayed from its journal, with the journal.
    fn stored(&self) -> BTreeMap<RunId, (Run, Vec<Entry>)> {
        let rows = self.store.rows().into_iter();
        rows.filter_map(|row| Some((row.id, self.replayed(row.id)?))).collect()
    }

    fn replayed(&self, run: RunId) -> Option<(Run, Vec<Entry>)> {
        let plan = self.plan_of(run)?;
        let entries = self.store.entries(run);
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = Run::replay(run, &plan, events);
        Some((state, entries))
    }

    fn check_accounts(&self) -> Result<(), Violation> {
        let rows = self.store.memory.accounts_now(&Project::DEFAULT).unwrap_or_default();
        rows.iter().try_for_each(|row| self.checker.money.agrees(&row.id, row.balance.0))
    }

    fn no_plain_is_open(&self) -> bool {
        let part = Part { limit: 500, ..Part::default() };
        let mut query = JobQuery { queue: Some(QUEUE.to_owned()), part, ..JobQuery::default() };
        loop {
            let Ok(page) = self.store.memory.jobs_now(&Project::DEFAULT, query.clone()) else { return false };
            if page.items.iter().any(|row| row.job.is_open()) {
                return false;
            }
            match page.next {
                Some(next) => query.part.cursor = Some(next),
                None => return true,
            }
        }
    }
}
