//! The end of a world: after all faults have healed, all work must end, helped only by actions that a client could
//! take.

use serde_json::json;
use windlass_engine::counter::Epoch;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::input::Input;
use windlass_engine::money::Amount;
use windlass_engine::plan::Exec;
use windlass_engine::project::Project;
use windlass_engine::run::state::Status;
use windlass_engine::time::Timestamp;
use windlass_store::job::JobQuery;
use windlass_store::page::Part;

use super::Simulation;
use super::plain::QUEUE;
use crate::checker::Violation;
use crate::event::SimEvent;
use crate::server::SimExtraWrites;
use crate::world::SimWorld;

/// The limit for all work to end, in time that passes: server time runs at half pace while the wall clock is behind.
const SETTLE_MS_MAX: u64 = 4 * 3_600_000;
/// The limit until no call waits for a dead server, in server time: less than the time limit of a call, which would hide a missing
/// takeover.
const TAKE_OVER_MS: u64 = 15_000;
/// How often server time is looked at meanwhile.
const LOOK_MS: u64 = 500;
/// How often open runs are helped.
const HELP_INTERVAL_MS: u64 = 60_000;

impl Simulation {
    pub(super) fn settle(&mut self) -> Result<(), Violation> {
        self.world.faults.heal();
        for server in 0..self.world.servers.len() {
            self.world.start(server);
        }
        for account in ["account0", "account1"] {
            self.world.deposit(account, 1_000_000)?;
        }
        let end = self.world.passed().after(SETTLE_MS_MAX);
        let (taken_over, late) =
            (self.world.now.after(TAKE_OVER_MS), self.world.passed().after(2 * TAKE_OVER_MS));
        while self.world.now < taken_over && self.world.passed() < late {
            self.run_until(self.world.passed().after(LOOK_MS))?;
        }
        check_taken_over(&self.world)?;
        self.schedules.end(&mut self.world)?;
        while self.world.passed() < end && !self.has_ended() {
            help(&mut self.world)?;
            self.run_until(self.world.passed().after(HELP_INTERVAL_MS))?;
        }
        tell_open_runs(&mut self.world);
        check_settled(&self.world)
    }

    fn run_until(&mut self, until: Timestamp) -> Result<(), Violation> {
        while let Some(what) = self.world.next_event(until) {
            match what {
                // Clients start nothing new.
                SimEvent::Client(_) => {}
                SimEvent::Plain(action) if action.is_new_work() => {}
                other => self.handle(other)?,
            }
        }
        self.world.pass_until(until);
        Ok(())
    }

    /// Whether all work has ended.
    fn has_ended(&self) -> bool {
        let world = &self.world;
        world.open_runs().is_empty() && world.undelivered().is_empty() && no_plain_is_open(world)
    }
}

/// Adds the causes to the story that keep runs from ending.
fn tell_open_runs(world: &mut SimWorld) {
    for run in world.open_runs() {
        if let (Some((state, _)), Some(plan)) = (world.replayed(run), world.plan_of(run)) {
            let why = serde_json::to_string(&state.why(&plan)).unwrap_or_default();
            world.story.push(format!("{run} still waits: {why}"));
            for (_, fence, _) in state.open_calls(&plan) {
                let job = world.store.job(JobId::of_call(run, fence));
                world.story.push(format!("fence {fence}: {job:?}"));
            }
        }
    }
}

fn check_settled(world: &SimWorld) -> Result<(), Violation> {
    world.checker.check_settled(&world.stored(), &world.undelivered())?;
    world.checker.jobs.check_settled(|job| world.store.job(job))?;
    let costs = world.store.rows().into_iter().map(|row| {
        let parent = row.origin.parent.as_ref().map(|parent| parent.run);
        (row.id, (parent, row.projection.cost.actual.0))
    });
    world.checker.money.rolled_up(&costs.collect())?;
    let accounts = world.store.memory.accounts_now(&Project::DEFAULT).unwrap_or_default();
    accounts.iter().try_for_each(|row| world.checker.money.agrees(&row.id, row.balance.0))
}

fn check_taken_over(world: &SimWorld) -> Result<(), Violation> {
    let alive: Vec<Epoch> = world.servers.iter().map(|server| server.epoch).collect();
    for run in world.open_runs() {
        let (Some((state, _)), Some(plan)) = (world.replayed(run), world.plan_of(run)) else { continue };
        let is_due = world.store.row(run).is_some_and(|row| row.projection.wake_at.is_some());
        if state.is_unfinished() && !is_due {
            let message = format!("{run}: no server goes on with its open agenda");
            return Err(Violation { invariant: "I15", message });
        }
        for (node, fence, exec, by) in state.granted_calls(&plan) {
            let is_direct = matches!(exec, Exec::Http | Exec::Func { .. } | Exec::Script(_));
            if is_direct && !alive.contains(&by) {
                let message = format!("{run}: `{node}` fence {fence} still waits for a server that is dead");
                return Err(Violation { invariant: "I15", message });
            }
        }
    }
    Ok(())
}

/// Sends signals, approvals, money, resumes and reports to open runs.
fn help(world: &mut SimWorld) -> Result<(), Violation> {
    for run in world.open_runs() {
        let Some((state, _)) = world.replayed(run) else { continue };
        unblock(world, run, state.status)?;
        let Some(plan) = world.plan_of(run) else { continue };
        let granted = state.granted_calls(&plan);
        for (node, fence, _) in state.open_calls(&plan) {
            let is_granted = granted.iter().any(|(path, ..)| *path == node);
            let Some(server) = world.any_server().filter(|_| !is_granted) else { continue };
            let value = crate::worker::tag(&node, fence);
            // A call that was suspended may wait for its next attempt by now; the report ends that wait too.
            world.checker.reporting(run, Some(&node));
            world.submit(server, run, &Input::Continue { node, value }, &SimExtraWrites::default())?;
            world.checker.reporting(run, None);
        }
    }
    Ok(())
}

/// Removes the cause that keeps an open run from ending.
fn unblock(world: &mut SimWorld, run: RunId, status: Status) -> Result<(), Violation> {
    let Some(server) = world.any_server() else { return Ok(()) };
    // A run in manual mode may have hundreds of nodes to enter.
    let mut inputs = vec![Input::Step; 200];
    if status == Status::Paused {
        inputs.push(Input::Resume);
    }
    for key in ["go0", "go1", "ok0", "ok1"] {
        inputs.push(Input::Signal { id: None, key: key.to_owned(), value: json!(true), by: None });
    }
    inputs.push(Input::BalanceChanged { budget: Some(Amount(1_000_000)), balance: None });
    for input in inputs {
        world.submit(server, run, &input, &SimExtraWrites::default())?;
    }
    Ok(())
}

fn no_plain_is_open(world: &SimWorld) -> bool {
    let part = Part { limit: 500, ..Part::default() };
    let mut query = JobQuery { queue: Some(QUEUE.to_owned()), part, ..JobQuery::default() };
    loop {
        let Ok(page) = world.store.memory.jobs_now(&Project::DEFAULT, query.clone()) else { return false };
        if page.items.iter().any(|row| row.job.is_open()) {
            return false;
        }
        match page.next {
            Some(next) => query.part.cursor = Some(next),
            None => return true,
        }
    }
}
