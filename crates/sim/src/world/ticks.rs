//! What a server does because time passes: it says that it lives, wakes what is due, delivers messages, and takes
//! over from the dead.

use std::collections::BTreeSet;

use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Outcome};
use windlass_engine::recovery::{self, Recovery};
use windlass_store::outbox::{Message, Party};
use windlass_store::record::{Record, RecordQuery, Records};
use windlass_store::server::ServerRow;

use super::{Boxed, Happening, World};
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
            self.reap(wake.id)?;
        }
        Ok(())
    }

    fn deliver(&mut self, server: usize) -> Result<(), Violation> {
        for message in self.disk.outbox(self.now) {
            if !self.servers[server].is_up {
                return Ok(());
            }
            self.deliver_one(server, &message)?;
        }
        Ok(())
    }

    fn deliver_one(&mut self, server: usize, message: &Message) -> Result<(), Violation> {
        let runs: Vec<RunId> = match &message.to {
            Party::Run(run) => vec![*run],
            Party::Account(account) => {
                let rows = self.disk.rows().into_iter();
                rows.filter(|row| row.origin.account.as_ref() == Some(account)).map(|row| row.id).collect()
            }
        };
        let input = message.note.input();
        let one = matches!(message.to, Party::Run(_));
        let along = |delivered: bool| Along {
            delivered: if delivered { vec![message.id.clone()] } else { Vec::new() },
            ..Along::default()
        };
        for run in runs {
            let said = self.submit(server, run, &input, &along(one))?;
            if one && matches!(said, crate::server::Said::Refused(_)) {
                self.forget(message);
            }
        }
        if !one {
            self.forget(message);
        }
        Ok(())
    }

    /// A message that nobody wants any more, or that all have heard.
    fn forget(&mut self, message: &Message) {
        let mut commit = windlass_store::commit::Commit::new(self.disk.command(), self.now);
        commit.delivered.push(message.id.clone());
        self.disk.commit(commit, &mut self.faults, &mut self.rng);
    }

    /// Calls whose maker is dead get another one.
    fn recover(&mut self, server: usize) -> Result<(), Violation> {
        if self.bug == Some(Bug::NoRecovery) {
            return Ok(());
        }
        let dead = self.dead_lives();
        for row in self.disk.rows().into_iter().filter(|row| row.standing.status.is_open()) {
            let Some(plan) = self.plan_of(row.id) else { continue };
            let entries = self.disk.entries(row.id);
            let events = entries.iter().flat_map(|entry| entry.events.iter().map(|event| (entry.at, event)));
            let run = windlass_engine::run::Run::replay(row.id, &plan, events);
            for recovery in recovery::plan(&run, &plan, &dead) {
                if !self.servers[server].is_up {
                    return Ok(());
                }
                self.take_over(server, row.id, &run, &plan, recovery)?;
            }
        }
        Ok(())
    }

    fn take_over(
        &mut self,
        server: usize,
        id: RunId,
        run: &windlass_engine::run::Run,
        plan: &windlass_engine::plan::Plan,
        recovery: Recovery,
    ) -> Result<(), Violation> {
        match recovery {
            Recovery::ReportLost { node, fence } => {
                let input = Input::CallEnded { node, fence, outcome: Outcome::ServerLost, worker: None };
                self.submit(server, id, &input, &Along::default()).map(|_| ())
            }
            Recovery::EnsureChild { node, child, .. } => {
                if self.disk.row(child).is_none()
                    && let Some(order) = run.order_again(plan, &node)
                {
                    self.after(1, Happening::Child { parent: Boxed(Box::new(order)) });
                }
                Ok(())
            }
        }
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
