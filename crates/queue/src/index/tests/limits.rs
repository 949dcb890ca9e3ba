//! Queues with limits against a store in memory that is searched from front to back.

mod model;
mod steps;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_engine::id::CommandId;
use windlass_store::Memory;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobQuery, KeyQuery, ReadyQuery};
use windlass_store::page::Part;
use windlass_store::queue::QueueLimits;
use windlass_store::record::{RecordQuery, Records};

use super::*;
use model::Model;
use steps::{Step, limits, steps};

/// One key is passed by another at most so often while it could have a turn: once in their order, once because it
/// was only in the store, and once for each of the two ways to ask.
const PASSES_MAX: usize = 4;

/// Something that was read and not told yet.
enum Told {
    Lists(Query, u64, Vec<JobRow>, usize),
    Class(Vec<JobRow>, usize),
    View(Want, Heard),
    Held(Want, windlass_store::queue::Held),
}

struct World {
    store: Memory,
    index: Index,
    model: Model,
    taken: Vec<Arc<JobRow>>,
    running: Vec<JobId>,
    reading: Vec<Told>,
    /// How often a key was passed by another.
    passes: HashMap<(String, String), usize>,
    /// Turns of jobs of runs, and those that they left to lower classes.
    n_runs: usize,
    n_lower: usize,
    n_made: u128,
    n_commands: u128,
    now: i64,
}

const QUEUES: [&str; 2] = ["a", "b"];
const SERVICES: [&str; 2] = ["s", "t"];

impl World {
    fn new() -> Self {
        World {
            store: Memory::new(),
            index: Index::new(LIMITS, true),
            model: Model { limits: QueueLimits::default(), bucket: None, keys: HashMap::new() },
            taken: Vec::new(),
            running: Vec::new(),
            reading: Vec::new(),
            passes: HashMap::new(),
            n_runs: 0,
            n_lower: 0,
            n_made: 0,
            n_commands: 0,
            now: 0,
        }
    }

    fn row(&self, id: JobId) -> JobRow {
        self.store.job_now(id).unwrap().unwrap()
    }

    fn write(&mut self, row: JobRow) {
        self.n_commands += 1;
        let command = CommandId::new(Uuid::from_u128(self.n_commands));
        let change =
            JobChange { expected_rev: row.rev - 1, job: row.job.clone(), origin: row.origin.clone() };
        let commit = Commit { jobs: vec![change], ..Commit::new(command, Timestamp(self.now)) };
        self.store.commit_now(vec![commit]).pop().unwrap().unwrap();
        if row.job.is_open() {
            self.index.offer(Arc::new(row));
        } else {
            self.index.forget(row.id(), row.rev);
        }
    }

    /// The limit keys of jobs of `a` that somebody has.
    fn held(&self) -> Vec<String> {
        let taken = self.taken.iter().map(|row| (**row).clone());
        let all = taken.chain(self.running.iter().map(|id| self.row(*id)));
        all.filter(|row| row.job.spec.queue == "a").map(|row| row.job.spec.limit_key.clone()).collect()
    }

    /// What could be handed out now.
    fn claimable(&self, query: &Query) -> Vec<JobRow> {
        let (taken, held) = (self.taken.iter().map(|row| row.id()).collect::<BTreeSet<_>>(), self.held());
        let part = Part { limit: 1_000, ..Part::default() };
        let all = self.store.jobs_now(JobQuery { part, ..JobQuery::default() }).unwrap().items;
        let can_be = |row: &JobRow| {
            let spec = &row.job.spec;
            matches!(row.job.state, State::Queued { .. })
                && (query.queues.contains(&spec.queue) || query.services.contains(&spec.name))
                && !taken.contains(&row.id())
                && !self.index.paused.contains(&spec.queue)
                && (spec.queue != "a" || self.model.allows(&spec.limit_key, &held, Timestamp(self.now)))
        };
        all.into_iter().filter(can_be).collect()
    }

    fn begin_reading(&mut self, query: &Query, n: usize) -> bool {
        let now = Timestamp(self.now);
        let wants = self.index.begin_filling(query, n);
        let is_any = !wants.is_empty();
        for want in wants {
            let told = match &want {
                Want::Lists { query: Query { queues, services }, except, from, limit, begun, .. } => {
                    let (queues, services) = (queues.clone(), services.clone());
                    let query = Query { queues: queues.clone(), services: services.clone() };
                    let (except, limit) = (except.clone(), *limit);
                    let ready = ReadyQuery {
                        queues,
                        services,
                        except,
                        from: *from,
                        now,
                        limit,
                        ..ReadyQuery::default()
                    };
                    Told::Lists(query, *begun, self.store.ready_now(ready).unwrap(), limit)
                }
                Want::Class { query: Query { queues, services }, except, from, limit } => {
                    let (queues, services, except) = (queues.clone(), services.clone(), except.clone());
                    let (from, limit, is_of_runs) = (Some(*from), *limit, true);
                    let pairs = Vec::new();
                    let ready = ReadyQuery {
                        queues,
                        services,
                        pairs,
                        ids: Vec::new(),
                        except,
                        is_of_runs,
                        portion: None,
                        from,
                        now,
                        limit,
                    };
                    Told::Class(self.store.ready_now(ready).unwrap(), limit)
                }
                Want::View(filling) => {
                    let heard = match filling.question() {
                        Asked::InOrder(query) => {
                            Heard::InOrder(self.store.ready_now(ReadyQuery { now, ..query }).unwrap())
                        }
                        Asked::ByKey(query) => {
                            Heard::ByKey(self.store.ready_by_key_now(KeyQuery { now, ..query }).unwrap())
                        }
                    };
                    Told::View(want, heard)
                }
                Want::Held(counting) => {
                    let query = RecordQuery::Held { queue: counting.queue.clone() };
                    let Records::Held(held) = self.store.records_now(query).unwrap() else { panic!() };
                    Told::Held(want, held)
                }
            };
            self.reading.push(told);
        }
        is_any
    }

    fn end_reading(&mut self) {
        for told in std::mem::take(&mut self.reading) {
            match told {
                Told::Lists(query, begun, rows, limit) => {
                    self.index.filled(&query, begun, None, Some((rows, limit)));
                }
                Told::Class(rows, limit) => self.index.filled_class(Some((rows, limit))),
                Told::View(Want::View(filling), heard) => self.index.heard(&filling, Some(heard)),
                Told::Held(Want::Held(counting), held) => self.index.counted(&counting, Some(held)),
                Told::View(..) | Told::Held(..) => panic!("it was asked otherwise"),
            }
        }
    }

    /// Takes as a claim does, and checks each job that it got.
    fn take(&mut self, query: &Query, max: usize) {
        self.end_reading();
        self.index.open(Timestamp(self.now));
        let mut rows = Vec::new();
        for _ in 0..100 {
            let is_read = self.begin_reading(query, 1);
            self.end_reading();
            rows = self.index.take(query, max, Timestamp(self.now));
            if !rows.is_empty() || !is_read {
                break;
            }
        }
        if rows.is_empty() {
            let left = self.claimable(query);
            assert!(left.is_empty(), "nothing was handed out, but {left:#?} could be");
        }
        for row in rows {
            self.check(query, &row);
            self.model_grant(&row);
        }
    }

    fn model_grant(&mut self, row: &Arc<JobRow>) {
        if row.job.spec.queue == "a" {
            self.model.spend(&row.job.spec.limit_key, Timestamp(self.now));
        }
        self.taken.push(row.clone());
    }

    fn check(&mut self, query: &Query, row: &JobRow) {
        let (claimable, spec) = (self.claimable(query), &row.job.spec);
        assert!(claimable.iter().any(|one| one.id() == row.id()), "{row:?} must not be handed out");
        let highest = claimable.iter().map(|one| one.job.spec.priority).max();
        if Some(spec.priority) < highest {
            return self.check_lower(&claimable, row);
        }
        let takes_turns = spec.queue == "a" && self.model.takes_turns();
        // Whoever asks by service is given the first of each key and service.
        let by_service = takes_turns && !query.queues.contains(&spec.queue);
        let is_alike = |one: &&JobRow| {
            one.job.spec.queue == spec.queue
                && (!takes_turns || one.job.spec.limit_key == spec.limit_key)
                && (!by_service || one.job.spec.name == spec.name)
        };
        let first = claimable.iter().filter(is_alike).map(Key::of).min();
        if spec.run.is_none() && first.is_some_and(|first| first.is_run && first < Key::of(row)) {
            return self.check_lower(&claimable, row);
        }
        self.n_runs += usize::from(spec.run.is_some());
        assert_eq!(first, Some(Key::of(row)), "something came earlier");
        if !takes_turns {
            return self.passes.clear();
        }
        let waiting: BTreeSet<String> = claimable
            .iter()
            .filter(|one| one.job.spec.queue == "a" && one.job.spec.priority == spec.priority)
            .map(|one| one.job.spec.limit_key.clone())
            .filter(|key| *key != spec.limit_key)
            .collect();
        self.passes.retain(|(key, _), _| waiting.contains(key));
        for key in waiting {
            let n = self.passes.entry((key.clone(), spec.limit_key.clone())).or_default();
            *n += 1;
            assert!(*n <= PASSES_MAX, "`{}` passed `{key}` {n} times", spec.limit_key);
        }
    }

    /// A job had the turn of one that is before it: that is a run's, and had four before. It is of a lower class, or
    /// plain.
    fn check_lower(&mut self, claimable: &[JobRow], row: &JobRow) {
        let spec = &row.job.spec;
        let is_above = |one: &JobRow| one.job.spec.run.is_some() && Key::of(one) < Key::of(row);
        assert!(claimable.iter().any(is_above), "nobody gave {row:?} a turn");
        let is_alike = |one: &&JobRow| {
            let other = &one.job.spec;
            (&other.queue, &other.name, other.priority) == (&spec.queue, &spec.name, spec.priority)
                && (other.run.is_some(), &other.limit_key) == (spec.run.is_some(), &spec.limit_key)
        };
        let first = claimable.iter().filter(is_alike).map(Key::of).min();
        assert!(spec.queue != "a" || first == Some(Key::of(row)), "something of its class came earlier");
        self.n_lower += 1;
        assert!(self.n_lower * 4 <= self.n_runs, "{} turns of {} were given", self.n_lower, self.n_runs);
        self.passes.clear();
    }

    fn step(&mut self, step: &Step) {
        self.now += 1;
        let now = Timestamp(self.now);
        match step {
            Step::Make { queue, service, key, priority, is_run } => {
                self.n_made += 1;
                let limit_key = if *key == 0 { String::new() } else { format!("k{key}") };
                let (priority, id) = (*priority, JobId::new(Uuid::from_u128(self.n_made)));
                let spec =
                    JobSpec { priority, limit_key, ..JobSpec::new(SERVICES[*service], QUEUES[*queue]) };
                let (mut job, _) = Job::create(id, spec, now).unwrap();
                if *is_run && *key == 0 {
                    Arc::make_mut(&mut job.spec).run = Some(RunId::new(Uuid::from_u128(self.n_made)));
                }
                self.write(JobRow { rev: 1, job, origin: Default::default() });
            }
            Step::Take { queues, services, max } => self.take(&asked(*queues, *services), *max),
            Step::Read { queues, services } => {
                if self.reading.is_empty() {
                    self.begin_reading(&asked(*queues, *services), 3);
                }
            }
            Step::Tell => self.end_reading(),
            Step::PutBack => self.index.put_back(&std::mem::take(&mut self.taken)),
            Step::Claim => {
                for row in std::mem::take(&mut self.taken) {
                    let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 };
                    self.running.push(row.id());
                    self.write(moved(&row, claim, now));
                }
            }
            Step::Finish { done } => {
                let Some(id) = self.running.pop() else { return };
                let row = self.row(id);
                let input = if *done {
                    JobInput::Finish { fence: row.job.fence, outcome: Outcome::Done { result: 1.into() } }
                } else {
                    JobInput::Release { fence: row.job.fence }
                };
                self.write(moved(&row, input, now));
            }
            Step::Wait { ms } => self.now += ms,
            Step::Limit(limits) => {
                self.passes.clear();
                self.index.limit("a", limits.clone(), now);
                self.model.set(limits.clone(), now);
            }
            Step::Forget => {
                // As after a restart: what was handed out and did not become durable is nobody's.
                self.reading.clear();
                self.taken.clear();
                self.passes.clear();
                self.index = Index::new(LIMITS, true);
                self.model.bucket = None;
                self.model.keys.clear();
                let limits = std::mem::take(&mut self.model.limits);
                self.index.limit("a", limits.clone(), now);
                self.model.set(limits, now);
                self.index.doubt_queues(&QUEUES.map(str::to_owned));
            }
            Step::Doubt => self.index.doubt(),
        }
        let n_slots = self.held().len();
        let counts = self.index.gates.get("a").is_some_and(|gate| gate.counts() && gate.is_counted);
        assert!(!counts || self.index.slots.len() == n_slots, "{n_slots} are held: {:?}", self.index.slots);
        assert!(self.index.is_consistent(), "after {step:?}");
    }
}

fn asked(queues: u8, services: u8) -> Query {
    let named = |names: &[&str], bits: u8| -> Vec<String> {
        let chosen = names.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
        chosen.map(|(_, name)| (*name).to_owned()).collect()
    };
    Query { queues: named(&QUEUES, queues), services: named(&SERVICES, services) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn limits_are_never_exceeded_and_nothing_that_may_be_handed_out_is_kept_back(
        first in limits(), steps in proptest::collection::vec(steps(), 1..200)
    ) {
        let mut world = World::new();
        world.step(&Step::Limit(first));
        for step in &steps {
            world.step(step);
        }
    }
}

#[test]
fn a_key_with_many_jobs_waits_for_its_turn() {
    let mut world = World::new();
    world.step(&Step::Limit(QueueLimits { fair: true, ..QueueLimits::default() }));
    for key in [1; 30].into_iter().chain([2; 3]).chain([0; 2]) {
        world.step(&Step::Make { queue: 0, service: 0, key, priority: 0, is_run: false });
    }
    for _ in 0..8 {
        world.step(&Step::Take { queues: 1, services: 0, max: 1 });
    }
    let counts = world.taken.iter().fold(BTreeMap::new(), |mut counts, row| {
        *counts.entry(row.job.spec.limit_key.as_str()).or_insert(0) += 1;
        counts
    });
    assert_eq!(counts, BTreeMap::from([("", 2), ("k1", 3), ("k2", 3)]));
}

#[test]
fn plain_jobs_between_two_classes_take_the_turns_that_are_kept() {
    let mut world = World::new();
    world.index = Index::new(Limits { rows: 64, fill_rows: 32, ..LIMITS }, true);
    world.step(&Step::Limit(QueueLimits { fair: true, ..QueueLimits::default() }));
    let runs = |n, priority| vec![Step::Make { queue: 0, service: 0, key: 0, priority, is_run: true }; n];
    let plain = [0, 1].map(|key| Step::Make { queue: 0, service: 0, key, priority: 1, is_run: false });
    for step in runs(10, 2).into_iter().chain(plain).chain(runs(3, -2)) {
        world.step(&step);
    }
    for _ in 0..15 {
        world.step(&Step::Take { queues: 1, services: 0, max: 1 });
    }
    let given: Vec<i32> = world.taken.iter().map(|row| row.job.spec.priority).collect();
    assert_eq!(given, [2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, -2, -2, -2]);
}
