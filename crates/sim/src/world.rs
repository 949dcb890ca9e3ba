//! The world: clients, servers, workers, a store and a clock, one thing at a time, in an order that only the seed
//! decides.

mod client;
mod deliver;
mod effects;
mod jobs;
mod plain;
mod rest;
mod schedules;
mod ticks;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::sync::Arc;

use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::effect::Order;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::input::Outcome;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::time::Timestamp;

use crate::bug::Bug;
use crate::checker::{Checker, Violation};
use crate::disk::Disk;
use crate::fault::Faults;
use crate::plans;
use crate::rng::Rng;
use crate::server::Server;

/// How a world is made. A seed decides the rest.
#[derive(Debug, Clone)]
pub struct Setup {
    pub seed: u64,
    pub n_runs: usize,
    pub n_servers: usize,
    /// When the last fault heals.
    pub heal_at: Timestamp,
    pub faults: Faults,
    pub bug: Option<Bug>,
}

/// What came of a world.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcomes {
    pub violation: Option<Violation>,
    /// Of everything that was committed, in order.
    pub trace: u64,
    pub n_events: u64,
    pub simulated_ms: u64,
    pub hits: BTreeMap<crate::fault::Fault, u64>,
    pub story: Vec<String>,
}

pub struct World {
    pub now: Timestamp,
    pub rng: Rng,
    pub faults: Faults,
    pub bug: Option<Bug>,
    pub disk: Disk,
    pub servers: Vec<Server>,
    pub checker: Checker,
    pub notes: Vec<String>,
    /// While another server writes in between, nobody writes in between that.
    pub meddling: bool,
    /// A planted bug is about to let an account go short.
    pub overdraw: bool,
    plans: BTreeMap<RunId, Arc<Plan>>,
    leaf: Arc<Plan>,
    queue: BinaryHeap<Reverse<(Timestamp, u64, Happening)>>,
    n_queued: u64,
    n_lives: u64,
    trace: u64,
    n_bytes: u64,
    heal_at: Timestamp,
    clients: Vec<client::Client>,
    plain: plain::Plain,
}

/// Something that happens at a time. The order of variants is only a tie-breaker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    /// A server looks at the clock.
    Tick(usize),
    /// A server comes up again.
    Start(usize),
    /// A client does what it does next.
    Client(usize),
    /// A call reaches whoever makes it.
    Arrive { by: (usize, u64), order: Boxed<Order> },
    /// An answer comes back; `by` = over the connection of this life of a server, else through the API.
    Return {
        run: RunId,
        node: NodePath,
        fence: u64,
        attempt: u32,
        by: Option<(usize, u64)>,
        outcome: Boxed<Outcome>,
    },
    /// A pull worker looks for work.
    Poll(usize),
    /// A pull worker says that it lives.
    Extend { job: JobId, fence: u64 },
    /// A pull worker is done.
    Finish { job: JobId, fence: u64, outcome: Boxed<Outcome> },
    /// Something happens to plain jobs.
    Plain(plain::Deed),
}

/// Something that is carried along and does not take part in the order.
#[derive(Debug, Clone)]
struct Boxed<T>(Box<T>);

impl<T> PartialEq for Boxed<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Boxed<T> {}

impl<T> PartialOrd for Boxed<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Boxed<T> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}

impl World {
    /// Plays the world to its end.
    pub fn play(setup: &Setup) -> Outcomes {
        let mut world = World::new(setup);
        let violation = world.live().err();
        let mut story = std::mem::take(&mut world.notes);
        story.extend(violation.iter().map(|violation| format!("{violation:?}")));
        Outcomes {
            violation,
            trace: world.trace,
            n_events: world.n_bytes,
            simulated_ms: world.now.since(Timestamp(0)),
            hits: world.faults.hits,
            story,
        }
    }

    fn new(setup: &Setup) -> World {
        let mut rng = Rng::new(setup.seed);
        let leaf = compiled(&plans::leaf(&mut rng.fork()));
        let mut world = World {
            now: Timestamp(1_000_000),
            faults: setup.faults.clone(),
            bug: setup.bug,
            disk: Disk::default(),
            servers: (0..setup.n_servers as u64).map(Server::new).collect(),
            checker: Checker::default(),
            notes: Vec::new(),
            meddling: false,
            overdraw: false,
            plans: BTreeMap::new(),
            leaf,
            queue: BinaryHeap::new(),
            n_queued: 0,
            n_lives: 0,
            trace: 0xcbf2_9ce4_8422_2325,
            n_bytes: 0,
            heal_at: setup.heal_at,
            clients: Vec::new(),
            plain: plain::Plain::new(setup.seed),
            rng,
        };
        world.publish();
        world.open_accounts();
        for server in 0..setup.n_servers {
            world.start(server);
        }
        for worker in 0..2 {
            world.after(10, Happening::Poll(worker));
        }
        for number in 0..setup.n_runs {
            world.new_client(number);
        }
        world.begin_plain();
        world
    }

    fn live(&mut self) -> Result<(), Violation> {
        while let Some(Reverse((at, _, _))) = self.queue.peek()
            && self.now.max(*at) < self.heal_at
        {
            let Some(Reverse((at, _, what))) = self.queue.pop() else { break };
            self.now = self.now.max(at);
            self.happen(what)?;
        }
        self.come_to_rest()
    }

    fn happen(&mut self, what: Happening) -> Result<(), Violation> {
        match what {
            Happening::Tick(server) => self.tick(server),
            Happening::Start(server) => {
                self.start(server);
                Ok(())
            }
            Happening::Client(number) => self.client_acts(number),
            Happening::Arrive { by, order } => self.arrive(by, *order.0),
            Happening::Return { run, node, fence, attempt, by, outcome } => {
                self.returned(run, &node, fence, attempt, by, *outcome.0)
            }
            Happening::Poll(worker) => self.poll(worker),
            Happening::Extend { job, fence } => {
                self.extend(job, fence);
                Ok(())
            }
            Happening::Finish { job, fence, outcome } => self.finish(job, fence, *outcome.0),
            Happening::Plain(deed) => self.do_plain(deed),
        }
    }

    fn after(&mut self, ms: u64, what: Happening) {
        self.n_queued += 1;
        self.queue.push(Reverse((self.now.after(ms), self.n_queued, what)));
    }

    /// A server that is up, chosen by chance.
    pub(crate) fn any_server(&mut self) -> Option<usize> {
        let up: Vec<usize> = (0..self.servers.len()).filter(|at| self.servers[*at].is_up).collect();
        self.rng.pick(&up).copied()
    }

    /// A server dies: its memory and its connections are gone.
    pub(crate) fn crash(&mut self, server: usize) {
        let ms = self.rng.between(100, 20_000);
        self.crash_for(server, ms);
    }

    fn crash_for(&mut self, server: usize, ms: u64) {
        self.notes.push(format!("{} server {server} dies", self.now.0));
        self.servers[server].die();
        self.after(ms, Happening::Start(server));
    }

    fn start(&mut self, server: usize) {
        if self.servers[server].is_up {
            return;
        }
        self.n_lives += 1;
        let (life, now) = (self.n_lives, self.now);
        let it = &mut self.servers[server];
        (it.life, it.is_up, it.last_beat) = (life, true, now);
        self.beat(server);
        self.after(1, Happening::Tick(server));
    }

    pub(crate) fn plan_of(&self, run: RunId) -> Option<Arc<Plan>> {
        self.plans.get(&run).cloned()
    }

    /// Mixes what was committed into the trace.
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
