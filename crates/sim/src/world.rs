//! A world: servers, their store, calls to push and pull workers, and a clock. It has no clients and no plain jobs; a
//! [`crate::simulation::Simulation`] adds them.

mod accounts;
mod clocks;
mod deliver;
mod effects;
mod flows;
mod pull_workers;
mod stored;
mod ticks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use windlass_engine::counter::Epoch;
use windlass_engine::id::RunId;
use windlass_engine::limits::SLICE_STEPS;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;

use crate::bug::PlantedBug;
use crate::checker::Checker;
use crate::event::SimEvent;
use crate::fault::SimFaults;
use crate::plans;
use crate::rng::SimRng;
use crate::server::SimServer;
use crate::store::SimStore;
use crate::trace::SimTrace;

use clocks::SimClocks;
pub(crate) use clocks::moment_of;
pub(crate) use ticks::end_tick;

pub(crate) use clocks::BEGIN;
pub(crate) use flows::CALL_TIMEOUT_MS;
pub(crate) use pull_workers::moved;

/// The setup of a world. The seed decides the rest.
#[derive(Debug, Clone)]
pub struct SimSetup {
    pub seed: u64,
    pub n_runs: usize,
    pub n_servers: usize,
    /// When all faults end, as time that passes.
    pub heal_at: Timestamp,
    pub faults: SimFaults,
    pub bug: Option<PlantedBug>,
}

pub struct SimWorld {
    /// Server time.
    pub now: Timestamp,
    clocks: SimClocks,
    pub rng: SimRng,
    pub faults: SimFaults,
    pub bug: Option<PlantedBug>,
    pub store: SimStore,
    pub servers: Vec<SimServer>,
    pub checker: Checker,
    /// The end of the last look at the clock, if nothing disturbed it; in time that passes.
    undisturbed_since: Option<Timestamp>,
    pub story: Vec<String>,
    pub trace: SimTrace,
    /// The budget of a decision.
    pub slice_steps: u64,
    /// Set while another server writes first, so that it is not interrupted in turn.
    pub is_interleaving: bool,
    /// A planted bug is about to overdraw an account.
    pub overdraw: bool,
    plans: BTreeMap<RunId, Arc<Plan>>,
    leaf: Arc<Plan>,
    queue: BinaryHeap<Reverse<(Timestamp, u64, SimEvent)>>,
    n_queued: u64,
    last_epoch: Epoch,
}

/// Half of the worlds decide in slices that are so small that most inputs take several.
fn slice_steps(seed: u64) -> u64 {
    match seed % 4 {
        0 => 50,
        1 => 200,
        _ => SLICE_STEPS,
    }
}

impl SimWorld {
    /// A world in which servers run and pull workers ask for jobs.
    pub(crate) fn new(setup: &SimSetup) -> SimWorld {
        let mut rng = SimRng::new(setup.seed);
        let leaf = plans::compiled(&plans::leaf(&mut rng.fork()));
        let mut world = SimWorld {
            now: BEGIN,
            clocks: SimClocks::new(),
            faults: setup.faults.clone(),
            bug: setup.bug,
            store: SimStore::default(),
            servers: (0..setup.n_servers as u64).map(SimServer::new).collect(),
            checker: Checker::default(),
            undisturbed_since: None,
            story: Vec::new(),
            trace: SimTrace::default(),
            slice_steps: slice_steps(setup.seed),
            is_interleaving: false,
            overdraw: false,
            plans: BTreeMap::new(),
            leaf,
            queue: BinaryHeap::new(),
            n_queued: 0,
            last_epoch: Epoch::ZERO,
            rng,
        };
        world.read_clocks();
        world.publish();
        world.open_accounts();
        for server in 0..setup.n_servers {
            world.start(server);
        }
        for worker in 0..2 {
            world.after(10, SimEvent::Poll(worker));
        }
        world
    }

    pub(crate) fn after(&mut self, ms: u64, what: SimEvent) {
        self.n_queued += 1;
        self.queue.push(Reverse((self.passed().after(ms), self.n_queued, what)));
    }

    /// Takes the next event before a time, and lets time pass until then.
    pub(crate) fn next_event(&mut self, before: Timestamp) -> Option<SimEvent> {
        self.queue.peek().filter(|Reverse((at, ..))| *at < before)?;
        let Reverse((at, _, what)) = self.queue.pop()?;
        self.pass_until(at);
        Some(what)
    }

    /// The servers that are up.
    pub(crate) fn servers_up(&self) -> Vec<usize> {
        (0..self.servers.len()).filter(|at| self.servers[*at].is_up).collect()
    }

    /// A random server that is up.
    pub(crate) fn any_server(&mut self) -> Option<usize> {
        let up = self.servers_up();
        self.rng.pick(&up).copied()
    }

    /// Stops a server: its memory and connections are lost.
    pub(crate) fn crash(&mut self, server: usize) {
        let ms = self.rng.between(100, 20_000);
        self.crash_for(server, ms);
    }

    pub(crate) fn crash_for(&mut self, server: usize, ms: u64) {
        self.story.push(format!("{} server {server} dies", self.now.0));
        self.servers[server].die();
        self.after(ms, SimEvent::Start(server));
    }

    pub(crate) fn start(&mut self, server: usize) {
        if self.servers[server].is_up {
            return;
        }
        self.last_epoch = self.last_epoch.next();
        let (epoch, now) = (self.last_epoch, self.now);
        let it = &mut self.servers[server];
        (it.epoch, it.is_up, it.last_beat) = (epoch, true, now);
        self.beat(server);
        self.after(1, SimEvent::Tick(server));
    }
}
