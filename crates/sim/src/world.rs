//! A world: clients, servers, workers, a store and a clock. One event is handled at a time, in an order that only the
//! seed decides.

mod client;
mod deliver;
mod effects;
mod plain;
mod pull_workers;
mod schedules;
mod settle;
mod ticks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use windlass_engine::counter::{Epoch, Fence};
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::effect::Order;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::input::CallOutcome;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;

use crate::bug::PlantedBug;
use crate::checker::{Checker, Violation};
use crate::fault::SimFaults;
use crate::plans;
use crate::rng::SimRng;
use crate::server::SimServer;
use crate::store::SimStore;

/// The setup of a world. The seed decides the rest.
#[derive(Debug, Clone)]
pub struct SimSetup {
    pub seed: u64,
    pub n_runs: usize,
    pub n_servers: usize,
    /// When all faults end.
    pub heal_at: Timestamp,
    pub faults: SimFaults,
    pub bug: Option<PlantedBug>,
}

/// The result of playing a world.
#[derive(Debug, Clone, PartialEq)]
pub struct SimReport {
    pub violation: Option<Violation>,
    /// A hash of all commits in order.
    pub trace: u64,
    pub n_events: u64,
    pub simulated_ms: u64,
    pub hits: BTreeMap<crate::fault::SimFault, u64>,
    pub story: Vec<String>,
}

pub struct SimWorld {
    pub now: Timestamp,
    pub rng: SimRng,
    pub faults: SimFaults,
    pub bug: Option<PlantedBug>,
    pub store: SimStore,
    pub servers: Vec<SimServer>,
    pub checker: Checker,
    pub story: Vec<String>,
    /// Set while another server writes first, so that it is not interrupted in turn.
    pub is_interleaving: bool,
    /// A planted bug is about to overdraw an account.
    pub overdraw: bool,
    plans: BTreeMap<RunId, Arc<Plan>>,
    leaf: Arc<Plan>,
    queue: BinaryHeap<Reverse<(Timestamp, u64, SimEvent)>>,
    n_queued: u64,
    last_epoch: Epoch,
    trace: u64,
    n_bytes: u64,
    heal_at: Timestamp,
    clients: Vec<client::SimClient>,
    plain: plain::PlainJobs,
}

/// An event at a time. The order of variants is only a tie-breaker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SimEvent {
    /// A server checks the clock.
    Tick(usize),
    /// A server starts again.
    Start(usize),
    /// A client takes its next action.
    Client(usize),
    /// A call reaches its worker.
    Arrive { by: (usize, Epoch), order: Unordered<Order> },
    /// An answer arrives. `by`: over the connection of this epoch of a server; else through the API.
    Return {
        run: RunId,
        node: NodePath,
        fence: Fence,
        attempt: u32,
        by: Option<(usize, Epoch)>,
        outcome: Unordered<CallOutcome>,
    },
    /// A pull worker asks for a job.
    Poll(usize),
    /// A pull worker extends its lease.
    Extend { job: JobId, fence: Fence },
    /// A pull worker reports its result.
    Finish { job: JobId, fence: Fence, outcome: Unordered<CallOutcome> },
    /// An action on plain jobs.
    Plain(plain::PlainAction),
}

/// A value that takes no part in the order.
#[derive(Debug, Clone)]
struct Unordered<T>(Box<T>);

impl<T> PartialEq for Unordered<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unordered<T> {}

impl<T> PartialOrd for Unordered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Unordered<T> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl SimWorld {
    /// Plays the world to its end.
    pub fn play(setup: &SimSetup) -> SimReport {
        let mut world = SimWorld::new(setup);
        let violation = world.run_until_healed().err();
        let mut story = std::mem::take(&mut world.story);
        story.extend(violation.iter().map(|violation| format!("{violation:?}")));
        SimReport {
            violation,
            trace: world.trace,
            n_events: world.n_bytes,
            simulated_ms: world.now.since(Timestamp(0)),
            hits: world.faults.hits,
            story,
        }
    }

    fn new(setup: &SimSetup) -> SimWorld {
        let mut rng = SimRng::new(setup.seed);
        let leaf = compiled(&plans::leaf(&mut rng.fork()));
        let mut world = SimWorld {
            now: Timestamp(1_000_000),
            faults: setup.faults.clone(),
            bug: setup.bug,
            store: SimStore::default(),
            servers: (0..setup.n_servers as u64).map(SimServer::new).collect(),
            checker: Checker::default(),
            story: Vec::new(),
            is_interleaving: false,
            overdraw: false,
            plans: BTreeMap::new(),
            leaf,
            queue: BinaryHeap::new(),
            n_queued: 0,
            last_epoch: Epoch::ZERO,
            trace: 0xcbf2_9ce4_8422_2325,
            n_bytes: 0,
            heal_at: setup.heal_at,
            clients: Vec::new(),
            plain: plain::PlainJobs::new(setup.seed),
            rng,
        };
        world.publish();
        world.open_accounts();
        for server in 0..setup.n_servers {
            world.start(server);
        }
        for worker in 0..2 {
            world.after(10, SimEvent::Poll(worker));
        }
        for number in 0..setup.n_runs {
            world.new_client(number);
        }
        world.begin_plain();
        world
    }

    fn run_until_healed(&mut self) -> Result<(), Violation> {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && self.now.max(*at) < self.heal_at
        {
            let Some(Reverse((at, _, what))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            self.handle(what)?;
        }
        self.settle()
    }

    fn handle(&mut self, what: SimEvent) -> Result<(), Violation> {
        match what {
            SimEvent::Tick(server) => self.tick(server),
            SimEvent::Start(server) => {
                self.start(server);
                Ok(())
            }
            SimEvent::Client(number) => self.client_acts(number),
            SimEvent::Arrive { by, order } => self.arrive(by, *order.0),
            SimEvent::Return { run, node, fence, attempt, by, outcome } => {
                self.returned(run, &node, fence, attempt, by, *outcome.0)
            }
            SimEvent::Poll(worker) => self.poll(worker),
            SimEvent::Extend { job, fence } => {
                self.extend(job, fence);
                Ok(())
            }
            SimEvent::Finish { job, fence, outcome } => self.finish(job, fence, *outcome.0),
            SimEvent::Plain(action) => self.do_plain(action),
        }
    }

    fn after(&mut self, ms: u64, what: SimEvent) {
        self.n_queued += 1;
        self.queue.push(Reverse((self.now.after(ms), self.n_queued, what)));
    }

    /// A random server that is up.
    pub(crate) fn any_server(&mut self) -> Option<usize> {
        let up: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].is_up).collect();
        self.rng.pick(&up).copied()
    }

    /// Stops a server: its memory and connections are lost.
    pub(crate) fn crash(&mut self, server: usize) {
        let ms = self.rng.between(100, 20_000);
        self.crash_for(server, ms);
    }

    fn crash_for(&mut self, server: usize, ms: u64) {
        self.story.push(format!("{} server {server} dies", self.now.0));
        self.servers[server].die();
        self.after(ms, SimEvent::Start(server));
    }

    fn start(&mut self, server: usize) {
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

    pub(crate) fn plan_of(&self, run: RunId) -> Option<Arc<Plan>> {
        self.plans.get(&run).cloned()
    }

    /// Mixes a commit into the trace.
    pub(crate) fn trace(&mut self, bytes: &[u8]) {
        self.n_bytes += 1;
        for byte in bytes.iter().chain(&self.now.0.to_le_bytes()) {
            self.trace = (self.trace ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}

fn compiled(definition: &serde_json::Value) -> Arc<Plan> {
    let compiled = compile_value(definition, Strictness::Strict);
    compiled.plan.unwrap_or_else(|| panic!("generated plans compile: {:?}\n{definition}", compiled.problems))
}
