//! Periodic work of a server for its runs: heartbeat, timers and takeover.

use std::collections::BTreeSet;

use windlass_engine::counter::Epoch;
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::recovery::{self, Recovery};
use windlass_store::server::ServerRow;

use super::SimWorld;
use super::clocks::moment_of;
use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::event::SimEvent;
use crate::fault::SimFault;
use crate::server::SimExtraWrites;

/// A server looks at the clock at least this often.
const TICK_MS_MAX: u64 = 1_000;

impl SimWorld {
    /// Begins the periodic work of a server; `false` if the server is down or dies.
    pub(crate) fn begin_tick(&mut self, server: usize) -> bool {
        if !self.servers[server].is_up {
            return false;
        }
        if self.faults.strikes(SimFault::Crash, 1, &mut self.rng) {
            self.crash(server);
            return false;
        }
        if self.faults.strikes(SimFault::ClockJump, 1, &mut self.rng) {
            self.jump_clock();
        }
        let ms = self.rng.between(50, TICK_MS_MAX);
        self.after(ms, SimEvent::Tick(server));
        if !self.faults.strikes(SimFault::MissedBeat, 60, &mut self.rng) {
            self.beat(server);
        }
        true
    }

    pub(super) fn beat(&mut self, server: usize) {
        let now = self.now;
        let it = &mut self.servers[server];
        it.last_beat = now;
        let (owner, name) = (it.owner(), format!("server{server}"));
        let (version, worker_ttl_ms) = ("sim".to_owned(), 15_000);
        let row = ServerRow { owner, name, version, started_at: now, beat_at: now, worker_ttl_ms };
        self.store.memory.save_server_now(row).expect("epochs only grow");
    }

    pub(crate) fn wake_runs(&mut self, server: usize) -> Result<(), Violation> {
        let ahead = if self.bug == Some(PlantedBug::EarlyTimer) { 500 } else { 0 };
        for wake in self.store.due(self.now.after(ahead)).runs {
            if !self.servers[server].is_up {
                return Ok(());
            }
            if self.bug == Some(PlantedBug::WakeLost) && wake.at.0 % 3 == 0 {
                continue;
            }
            self.submit(server, wake.id, &Input::TimePassed, &SimExtraWrites::default())?;
        }
        Ok(())
    }

    /// Reports calls of dead servers as lost, so that they are made again.
    pub(crate) fn recover(&mut self, server: usize) -> Result<(), Violation> {
        if self.bug == Some(PlantedBug::NoRecovery) {
            return Ok(());
        }
        let dead = dead_epochs(self);
        for run in self.orphaned_runs(server, &dead) {
            let Some(cached) = self.load_current(server, run) else { continue };
            for Recovery::ReportLost { node, fence } in recovery::plan(&cached.run, &cached.plan, &dead) {
                if !self.servers[server].is_up {
                    return Ok(());
                }
                let input = Input::CallEnded { node, fence, outcome: CallOutcome::ServerLost, worker: None };
                self.submit(server, run, &input, &SimExtraWrites::default())?;
            }
        }
        Ok(())
    }

    /// Runs whose owner is dead, and cached runs with calls of dead servers: the server that writes to a run owns it,
    /// including calls that earlier owners made.
    fn orphaned_runs(&self, server: usize, dead: &BTreeSet<Epoch>) -> BTreeSet<RunId> {
        let orphans = self.store.orphans(self.now).into_iter().map(|row| row.id);
        let cached = self.servers[server].cached.iter();
        let taken_over =
            cached.filter(|(_, cached)| !recovery::plan(&cached.run, &cached.plan, dead).is_empty());
        orphans.chain(taken_over.map(|(id, _)| *id)).collect()
    }
}

/// Epochs that are over: all that were given out, except those of servers with a recent heartbeat.
fn dead_epochs(world: &SimWorld) -> BTreeSet<Epoch> {
    let rows = world.store.memory.servers_now().unwrap_or_default();
    let alive: BTreeSet<Epoch> = rows
        .iter()
        .filter(|row| !recovery::is_dead(row.beat_at, world.now))
        .map(|row| row.owner.epoch)
        .collect();
    (1..=world.last_epoch.0).map(Epoch).filter(|epoch| !alive.contains(epoch)).collect()
}

/// Ends the periodic work of a server. Time counts towards lateness while servers that nothing disturbs look at the
/// clock.
pub(crate) fn end_tick(world: &mut SimWorld, is_disturbed: bool) -> Result<(), Violation> {
    let moment = moment_of(world);
    let since = world.undisturbed_since.take();
    if is_disturbed {
        return Ok(());
    }
    world.undisturbed_since = Some(moment.passed);
    // After a pause of all servers, only the time of one look counts.
    let ms = since.map_or(0, |since| moment.passed.since(since)).min(TICK_MS_MAX);
    world.checker.late.undisturbed(ms, moment)
}
