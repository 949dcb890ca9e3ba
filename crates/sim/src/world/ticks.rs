//! What a server does because time passes: it says that it lives, wakes what is due, and takes over from the dead.

use std::collections::BTreeSet;

use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::recovery::{self, Recovery};
use windlass_store::record::{Record, RecordQuery, Records};
use windlass_store::server::ServerRow;

use super::{Happening, World};
use crate::bug::Bug;
use crate::checker::Violation;
use crate::fault::Fault;
use crate::server::Along;

impl World {
    pub(super) fn tick(&mut self, server: usize) -> Result<(), Violation> {
        if !self.servers[server].is_up {
            return Ok(());
        }
        if self.faults.strikes(Fault::Crash, 1, &mut self.rng) {
            self.crash(server);
            return Ok(());
        }
        if self.faults.strikes(Fault::ClockJump, 1, &mut self.rng) {
            self.now = self.now.after(self.rng.between(1_000, 120_000));
        }
        let ms = self.rng.between(50, 1_000);
        self.after(ms, Happening::Tick(server));
        if !self.faults.strikes(Fault::MissedBeat, 60, &mut self.rng) {
            self.beat(server);
        }
        self.wake_runs(server)?;
        self.wake_jobs(server)?;
        self.fire_schedules(server)?;
        self.deliver(server)?;
        self.recover(server)
    }

    pub(super) fn beat(&mut self, server: usize) {
        let now = self.now;
        let it = &mut self.servers[server];
        it.last_beat = now;
        let (owner, name) = (it.owner(), format!("server{server}"));
        let row = ServerRow { owner, name, version: "sim".to_owned(), started_at: now, beat_at: now };
        self.disk.memory.save_now(Record::Server(row)).expect("epochs only grow");
    }

    fn wake_runs(&mut self, server: usize) -> Result<(), Violation> {
        let ahead = if self.bug == Some(Bug::EarlyTimer) { 500 } else { 0 };
        for wake in self.disk.due(self.now.after(ahead)).runs {
            if !self.servers[server].is_up {
                return Ok(());
            }
            if self.bug == Some(Bug::WakeLost) && wake.at.0 % 3 == 0 {
                continue;
            }
            self.submit(server, wake.id, &Input::TimePassed, &Along::default())?;
        }
        Ok(())
    }

    fn wake_jobs(&mut self, server: usize) -> Result<(), Violation> {
        if self.bug == Some(Bug::NoReaper) {
            return Ok(());
        }
        for wake in self.disk.due(self.now).jobs {
            if !self.servers[server].is_up {
                return Ok(());
            }
            self.reap(server, wake.id)?;
        }
        Ok(())
    }

    /// Calls whose maker is dead get another one.
    fn recover(&mut self, server: usize) -> Result<(), Violation> {
        if self.bug == Some(Bug::NoRecovery) {
            return Ok(());
        }
        let dead = self.dead_lives();
        for run in self.left_behind(server, &dead) {
            let Some(hot) = self.load_anew(server, run) else { continue };
            for Recovery::ReportLost { node, fence } in recovery::plan(&hot.run, &hot.plan, &dead) {
                if !self.servers[server].is_up {
                    return Ok(());
                }
                let input = Input::CallEnded { node, fence, outcome: Outcome::ServerLost, worker: None };
                self.submit(server, run, &input, &Along::default())?;
            }
        }
        Ok(())
    }

    /// Runs whose owner is dead; and of those in memory, runs whose owner lives although the maker of one of their
    /// calls does not: whoever writes to a run owns it, and with it the calls of those before.
    fn left_behind(&self, server: usize, dead: &BTreeSet<u64>) -> BTreeSet<RunId> {
        let orphans = self.disk.orphans(self.now).into_iter().map(|row| row.id);
        let hot = self.servers[server].hot.iter();
        let taken_over = hot.filter(|(_, hot)| !recovery::plan(&hot.run, &hot.plan, dead).is_empty());
        orphans.chain(taken_over.map(|(id, _)| *id)).collect()
    }

    /// Lives that are over: every number that was given out and is not that of a server heard of lately.
    fn dead_lives(&self) -> BTreeSet<u64> {
        let rows = match self.disk.memory.records_now(RecordQuery::Servers) {
            Ok(Records::Servers(rows)) => rows,
            Ok(_) | Err(_) => Vec::new(),
        };
        let alive: BTreeSet<u64> = rows
            .iter()
            .filter(|row| !recovery::is_dead(row.beat_at, self.now))
            .map(|row| row.owner.epoch)
            .collect();
        (1..=self.n_lives).filter(|life| !alive.contains(life)).collect()
    }
}
