//! A world with its clients, plain jobs and schedules, played to its end. One event is handled at a time, in an order
//! that only the seed decides.

mod client;
mod plain;
mod schedules;
mod settle;

use std::collections::BTreeMap;

use windlass_engine::time::Timestamp;

use crate::bug::PlantedBug;
use crate::checker::Violation;
use crate::event::SimEvent;
use crate::fault::SimFault;
use crate::world::{BEGIN, SimSetup, SimWorld, end_tick};

use client::SimClient;
use plain::PlainJobs;
use schedules::SimSchedules;

/// The result of playing a world.
#[derive(Debug, Clone, PartialEq)]
pub struct SimReport {
    pub violation: Option<Violation>,
    /// A hash of all commits in order.
    pub trace: u64,
    pub n_events: u64,
    pub simulated_ms: u64,
    pub hits: BTreeMap<SimFault, u64>,
    pub story: Vec<String>,
}

pub struct Simulation {
    world: SimWorld,
    clients: Vec<SimClient>,
    plain: PlainJobs,
    schedules: SimSchedules,
    heal_at: Timestamp,
}

impl Simulation {
    /// Plays the world of a setup to its end.
    pub fn play(setup: &SimSetup) -> SimReport {
        let mut simulation = Simulation::new(setup);
        let violation = simulation.run_until_healed().err();
        let passed = simulation.world.passed();
        let SimWorld { faults, trace, mut story, .. } = simulation.world;
        story.extend(violation.iter().map(|violation| format!("{violation:?}")));
        SimReport {
            violation,
            trace: trace.hash(),
            n_events: trace.n_commits(),
            simulated_ms: passed.since(BEGIN),
            hits: faults.hits,
            story,
        }
    }

    fn new(setup: &SimSetup) -> Self {
        let mut world = SimWorld::new(setup);
        let clients = (0..setup.n_runs).map(|number| SimClient::new(number, &mut world)).collect();
        let mut plain = PlainJobs::new(setup.seed);
        plain.begin_clients(&mut world);
        let schedules = SimSchedules::begin(&mut plain, &mut world);
        plain.begin_workers(&mut world);
        Simulation { world, clients, plain, schedules, heal_at: setup.heal_at }
    }

    fn run_until_healed(&mut self) -> Result<(), Violation> {
        while self.world.passed() < self.heal_at
            && let Some(what) = self.world.next_event(self.heal_at)
        {
            self.handle(what)?;
        }
        self.settle()
    }

    fn handle(&mut self, what: SimEvent) -> Result<(), Violation> {
        let world = &mut self.world;
        match what {
            SimEvent::Tick(server) => self.tick(server),
            SimEvent::Start(server) => {
                world.start(server);
                Ok(())
            }
            SimEvent::Client(number) => self.clients[number].act(world),
            SimEvent::Arrive { by, order } => world.arrive(by, *order.0),
            SimEvent::Return { run, node, fence, attempt, by, outcome } => {
                world.returned(run, &node, fence, attempt, by, *outcome.0)
            }
            SimEvent::Poll(worker) => world.poll(worker),
            SimEvent::Extend { job, fence } => {
                world.extend(job, fence);
                Ok(())
            }
            SimEvent::Finish { job, fence, outcome } => world.finish(job, fence, *outcome.0),
            SimEvent::Plain(action) => self.plain.act(world, action),
        }
    }

    /// Does the periodic work of a server.
    fn tick(&mut self, server: usize) -> Result<(), Violation> {
        let n_disturbed = self.world.faults.n_disturbed();
        if !self.world.begin_tick(server) {
            return Ok(());
        }
        self.world.wake_runs(server)?;
        self.wake_jobs(server)?;
        self.schedules.fire(server, &mut self.plain, &mut self.world)?;
        self.world.deliver(server)?;
        self.world.recover(server)?;
        let is_disturbed = !self.world.servers[server].is_up || self.world.faults.n_disturbed() > n_disturbed;
        end_tick(&mut self.world, is_disturbed)
    }

    fn wake_jobs(&mut self, server: usize) -> Result<(), Violation> {
        let world = &mut self.world;
        if world.bug == Some(PlantedBug::NoReaper) {
            return Ok(());
        }
        for wake in world.store.due(world.now).jobs {
            if !world.servers[server].is_up {
                return Ok(());
            }
            let Some(row) = world.store.job(wake.id) else { continue };
            if row.origin.call.is_some() {
                world.reap(&row)?;
            } else {
                self.plain.reap(world, server, wake.id)?;
            }
        }
        Ok(())
    }
}
