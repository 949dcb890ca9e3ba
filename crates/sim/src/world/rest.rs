//! After the last fault has healed: everything has to come to an end by itself, helped only as a patient person would.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::journal::Entry;
use windlass_engine::plan::Exec;
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_store::job::JobQuery;
use windlass_store::outbox::MessageId;
use windlass_store::page::Part;
use windlass_store::record::{RecordQuery, Records};

use super::plain::QUEUE;
use super::{Happening, World};
use crate::checker::Violation;
use crate::server::Along;

/// How long everything may take to end, in simulated time.
const PATIENCE_MS: u64 = 2 * 3_600_000;
/// How long it may take until nothing waits for a dead server: less than the time limit of a call, which would hide
/// that nobody took over.
const TAKE_OVER_MS: u64 = 15_000;
/// How often somebody comes by and helps.
const ROUND_MS: u64 = 60_000;

impl World {
    pub(super) fn come_to_rest(&mut self) -> Result<(), Violation> {
        self.faults.heal();
        for server in 0..self.servers.len() {
            self.start(server);
        }
        for account in ["account0", "account1"] {
            self.deposit(account, 1_000_000)?;
        }
        let end = self.now.after(PATIENCE_MS);
        self.live_until(self.now.after(TAKE_OVER_MS))?;
        self.check_taken_over()?;
        self.end_schedules()?;
        while self.now < end
            && !(self.open_runs().is_empty() && self.unsaid().is_empty() && self.no_plain_is_open())
        {
            self.help()?;
            let until = self.now.after(ROUND_MS);
            self.live_until(until)?;
        }
        for run in self.open_runs() {
            if let (Some((state, _)), Some(plan)) = (self.folded(run), self.plan_of(run)) {
                let why = serde_json::to_string(&state.why(&plan)).unwrap_or_default();
                self.notes.push(format!("{run} still waits: {why}"));
                for (_, fence, _) in state.open_calls(&plan) {
                    let job = self.disk.job(windlass_engine::id::JobId::of_call(run, fence));
                    self.notes.push(format!("fence {fence}: {job:?}"));
                }
            }
        }
        self.checker.at_rest(&self.stored(), &self.unsaid())?;
        self.checker.jobs.at_rest(|job| self.disk.job(job))?;
        let costs = self.disk.rows().into_iter().map(|row| {
            let parent = row.origin.parent.as_ref().map(|parent| parent.run);
            (row.id, (parent, row.standing.cost.actual))
        });
        self.checker.money.rolled_up(&costs.collect())?;
        self.check_accounts()
    }

    fn live_until(&mut self, until: Timestamp) -> Result<(), Violation> {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && *at < until
        {
            let Some(Reverse((at, _, what))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            match what {
                // Clients have what they wanted.
                Happening::Client(_) => {}
                Happening::Plain(deed) if deed.is_wish() => {}
                other => self.happen(other)?,
            }
        }
        self.now = self.now.max(until);
        Ok(())
    }

    fn open_runs(&self) -> Vec<RunId> {
        let rows = self.disk.rows().into_iter();
        rows.filter(|row| row.standing.status.is_open()).map(|row| row.id).collect()
    }

    fn check_taken_over(&self) -> Result<(), Violation> {
        let alive: Vec<u64> = self.servers.iter().map(|server| server.life).collect();
        for run in self.open_runs() {
            let (Some((state, _)), Some(plan)) = (self.folded(run), self.plan_of(run)) else { continue };
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

    /// Messages that nobody has delivered yet.
    fn unsaid(&self) -> Vec<MessageId> {
        self.disk.outbox(Timestamp(i64::MAX)).into_iter().map(|message| message.id).collect()
    }

    /// Signals, approvals, money, resumes and reports for whatever is open.
    fn help(&mut self) -> Result<(), Violation> {
        for run in self.open_runs() {
            let Some((state, _)) = self.folded(run) else { continue };
            self.unblock(run, state.status)?;
            let Some(plan) = self.plan_of(run) else { continue };
            let granted = state.granted_calls(&plan);
            for (node, fence, _) in state.open_calls(&plan) {
                let is_granted = granted.iter().any(|(path, ..)| *path == node);
                let Some(server) = self.any_server().filter(|_| !is_granted) else { continue };
                let value = crate::worker::tag(&node, fence);
                self.submit(server, run, &Input::Continue { node, value }, &Along::default())?;
            }
        }
        Ok(())
    }

    /// Every run as its journal tells it, and that journal.
    fn stored(&self) -> BTreeMap<RunId, (Run, Vec<Entry>)> {
        let rows = self.disk.rows().into_iter();
        rows.filter_map(|row| Some((row.id, self.folded(row.id)?))).collect()
    }

    fn folded(&self, run: RunId) -> Option<(Run, Vec<Entry>)> {
        let plan = self.plan_of(run)?;
        let entries = self.disk.entries(run);
        let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
        let state = Run::replay(run, &plan, events);
        Some((state, entries))
    }

    fn check_accounts(&self) -> Result<(), Violation> {
        let Ok(Records::Accounts(rows)) = self.disk.memory.records_now(RecordQuery::Accounts(None)) else {
            return Ok(());
        };
        rows.iter().try_for_each(|row| self.checker.money.agrees(&row.id, row.balance))
    }

    fn no_plain_is_open(&self) -> bool {
        let part = Part { limit: 500, ..Part::default() };
        let mut query = JobQuery { queue: Some(QUEUE.to_owned()), part, ..JobQuery::default() };
        loop {
            let Ok(page) = self.disk.memory.jobs_now(query.clone()) else { return false };
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
