//! Queues with limits compared with a store in memory that is searched from front to back.

mod model;
mod steps;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use windlass_engine::counter::Revision;
use windlass_engine::id::CommandId;
use windlass_engine::project::Project;
use windlass_store::Memory;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobQuery, KeyQuery, ReadyQuery};
use windlass_store::page::Part;
use windlass_store::queue::QueueLimits;

use super::*;
use model::LimitsModel;
use steps::{LimitStep, limits, steps};

/// How often one limit key may pass another that could have a turn: once by their order, once because it was only in
/// the store, and once for each of the two kinds of claims.
const PASSES_MAX: usize = 4;

/// A read whose result has not been passed on yet.
enum OpenRead {
    Lists(ClaimQuery, u64, Vec<JobRow>, usize),
    Class(Vec<JobRow>, usize),
    LimitedList(PlannedRead, LimitedListRows),
    Held(PlannedRead, windlass_store::queue::Held),
}

struct LimitsTest {
    store: Memory,
    index: JobIndex,
    model: LimitsModel,
    taken: Vec<Arc<JobRow>>,
    running: Vec<JobId>,
    reading: Vec<OpenRead>,
    /// How often a key was passed by another.
    passes: HashMap<(String, String), usize>,
    /// Turns of jobs of runs, and the turns that they left to lower classes.
    n_runs: usize,
    n_lower: usize,
    n_made: u128,
    n_commands: u128,
    now: i64,
}

const QUEUES: [&str; 2] = ["a", "b"];
const SERVICES: [&str; 2] = ["s", "t"];

impl LimitsTest {
    fn new() -> Self {
        LimitsTest {
            store: Memory::new(),
            index: JobIndex::new(LIMITS, true),
            model: LimitsModel { limits: QueueLimits::default(), bucket: None, keys: HashMap::new() },
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
        self.store.job_now(&Project::DEFAULT, id).unwrap().unwrap()
    }

    fn write(&mut self, row: JobRow) {
        self.n_commands += 1;
        let command = CommandId::new(Uuid::from_u128(self.n_commands));
        let change = JobChange {
            expected_rev: Revision(row.rev.0 - 1),
            job: row.job.clone(),
            origin: row.origin.clone(),
        };
        let commit =
            Commit { jobs: vec![change], ..Commit::new(&Project::DEFAULT, command, Timestamp(self.now)) };
        self.store.commit_now(vec![commit]).pop().unwrap().unwrap();
        if row.job.is_open() {
            self.index.offer(Arc::new(row));
        } else {
            self.index.forget(row.id(), row.rev);
        }
    }

    /// The limit keys of held jobs of `a`.
    fn held(&self) -> Vec<String> {
        let taken = self.taken.iter().map(|row| (**row).clone());
        let all = taken.chain(self.running.iter().map(|id| self.row(*id)));
        all.filter(|row| row.job.spec.queue == "a").map(|row| row.job.spec.limit_key.clone()).collect()
    }

    /// The jobs that may be dispatched now.
    fn claimable(&self, query: &ClaimQuery) -> Vec<JobRow> {
        let (taken, held) = (self.taken.iter().map(|row| row.id()).collect::<BTreeSet<_>>(), self.held());
        let part = Part { limit: 1_000, ..Part::default() };
        let all =
            self.store.jobs_now(&Project::DEFAULT, JobQuery { part, ..JobQuery::default() }).unwrap().items;
        let can_be = |row: &JobRow| {
            let spec = &row.job.spec;
            matches!(row.job.state, State::Queued { .. })
                && (query.queues.contains(&spec.queue) || query.services.contains(&spec.name))
                && !taken.contains(&row.id())
                && !self.index.lists.is_paused(&spec.queue)
                && (spec.queue != "a" || self.model.allows(&spec.limit_key, &held, Timestamp(self.now)))
        };
        all.into_iter().filter(can_be).collect()
    }

    fn begin_limited_read(&mut self, query: &ClaimQuery, n: usize) -> bool {
        let now = Timestamp(self.now);
        let reads = self.index.begin_read(query, n);
        let is_any = !reads.is_empty();
        for read in reads {
            let told = match &read {
                PlannedRead::Lists {
                    query: ClaimQuery { queues, services },
                    except,
                    from,
                    limit,
                    begun,
                    ..
                } => {
                    let (queues, services) = (queues.clone(), services.clone());
                    let query = ClaimQuery { queues: queues.clone(), services: services.clone() };
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
                    OpenRead::Lists(
                        query,
                        *begun,
                        self.store.ready_now(&Project::DEFAULT, ready).unwrap(),
                        limit,
                    )
                }
                PlannedRead::Class { query: ClaimQuery { queues, services }, except, from, limit } => {
                    let (queues, services, except) = (queues.clone(), services.clone(), except.clone());
                    let (from, limit, is_of_runs) = (Some(*from), *limit, true);
                    let ready = ReadyQuery {
                        queues,
                        services,
                        except,
                        is_of_runs,
                        from,
                        now,
                        limit,
                        ..ReadyQuery::default()
                    };
                    OpenRead::Class(self.store.ready_now(&Project::DEFAULT, ready).unwrap(), limit)
                }
                PlannedRead::LimitedList(filling) => {
                    let rows_read = match filling.query() {
                        LimitedListQuery::InOrder(query) => LimitedListRows::InOrder(
                            self.store.ready_now(&Project::DEFAULT, ReadyQuery { now, ..query }).unwrap(),
                        ),
                        LimitedListQuery::ByKey(query) => LimitedListRows::ByKey(
                            self.store
                                .ready_by_key_now(&Project::DEFAULT, KeyQuery { now, ..query })
                                .unwrap(),
                        ),
                    };
                    OpenRead::LimitedList(read, rows_read)
                }
                PlannedRead::Held(counting) => {
                    let held = self.store.held_now(&Project::DEFAULT, counting.queue().to_owned()).unwrap();
                    OpenRead::Held(read, held)
                }
            };
            self.reading.push(told);
        }
        is_any
    }

    fn close_read(&mut self) {
        for told in std::mem::take(&mut self.reading) {
            match told {
                OpenRead::Lists(query, begun, rows, limit) => {
                    self.index.add_list_rows(&query, begun, None, Some((rows, limit)));
                }
                OpenRead::Class(rows, limit) => self.index.add_class_rows(Some((rows, limit))),
                OpenRead::LimitedList(PlannedRead::LimitedList(filling), rows_read) => {
                    self.index.add_limited_rows(&filling, Some(rows_read))
                }
                OpenRead::Held(PlannedRead::Held(counting), held) => {
                    self.index.set_held(&counting, Some(held))
                }
                OpenRead::LimitedList(..) | OpenRead::Held(..) => panic!("it was asked otherwise"),
            }
        }
    }

    /// Takes jobs as a claim does, and checks each of them.
    fn take(&mut self, query: &ClaimQuery, max: usize) {
        self.close_read();
        self.index.refill(Timestamp(self.now));
        let mut rows = Vec::new();
        for _ in 0..100 {
            let is_read = self.begin_limited_read(query, 1);
            self.close_read();
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

    fn check(&mut self, query: &ClaimQuery, row: &JobRow) {
        let (claimable, spec) = (self.claimable(query), &row.job.spec);
        assert!(claimable.iter().any(|one| one.id() == row.id()), "{row:?} must not be handed out");
        let highest = claimable.iter().map(|one| one.job.spec.priority).max();
        if Some(spec.priority) < highest {
            return self.check_lower(&claimable, row);
        }
        let rotates_limit_keys = spec.queue == "a" && self.model.rotates_limit_keys();
        // A claim by service gets the first job of each key and service.
        let by_service = rotates_limit_keys && !query.queues.contains(&spec.queue);
        let is_comparable = |one: &&JobRow| {
            one.job.spec.queue == spec.queue
                && (!rotates_limit_keys || one.job.spec.limit_key == spec.limit_key)
                && (!by_service || one.job.spec.name == spec.name)
        };
        let first = claimable.iter().filter(is_comparable).map(ReadyKey::of).min();
        if spec.run.is_none() && first.is_some_and(|first| first.is_run && first < ReadyKey::of(row)) {
            return self.check_lower(&claimable, row);
        }
        self.n_runs += usize::from(spec.run.is_some());
        assert_eq!(first, Some(ReadyKey::of(row)), "something came earlier");
        if !rotates_limit_keys {
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

    /// Checks a job that got the turn of a job before it: the turn belonged to a run after four others, and the job is
    /// of a lower class or plain.
    fn check_lower(&mut self, claimable: &[JobRow], row: &JobRow) {
        let spec = &row.job.spec;
        let is_above = |one: &JobRow| one.job.spec.run.is_some() && ReadyKey::of(one) < ReadyKey::of(row);
        assert!(claimable.iter().any(is_above), "nobody gave {row:?} a turn");
        let is_comparable = |one: &&JobRow| {
            let other = &one.job.spec;
            (&other.queue, &other.name, other.priority) == (&spec.queue, &spec.name, spec.priority)
                && (other.run.is_some(), &other.limit_key) == (spec.run.is_some(), &spec.limit_key)
        };
        let first = claimable.iter().filter(is_comparable).map(ReadyKey::of).min();
        assert!(spec.queue != "a" || first == Some(ReadyKey::of(row)), "something of its class came earlier");
        self.n_lower += 1;
        assert!(self.n_lower * 4 <= self.n_runs, "{} turns of {} were given", self.n_lower, self.n_runs);
        self.passes.clear();
    }

    fn step(&mut self, step: &LimitStep) {
        self.now += 1;
        let now = Timestamp(self.now);
        match step {
            LimitStep::Make { queue, service, key, priority, is_run } => {
                self.n_made += 1;
                let limit_key = if *key == 0 { String::new() } else { format!("k{key}") };
                let (priority, id) = (*priority, JobId::new(Uuid::from_u128(self.n_made)));
                let spec =
                    JobSpec { priority, limit_key, ..JobSpec::new(SERVICES[*service], QUEUES[*queue]) };
                let (mut job, _) = Job::create(id, spec, now).unwrap();
                if *is_run && *key == 0 {
                    Arc::make_mut(&mut job.spec).run = Some(RunId::new(Uuid::from_u128(self.n_made)));
                }
                self.write(JobRow { rev: Revision(1), job, origin: Default::default() });
            }
            LimitStep::Take { queues, services, max } => self.take(&asked(*queues, *services), *max),
            LimitStep::Read { queues, services } => {
                if self.reading.is_empty() {
                    self.begin_limited_read(&asked(*queues, *services), 3);
                }
            }
            LimitStep::EndRead => self.close_read(),
            LimitStep::PutBack => self.index.put_back(&std::mem::take(&mut self.taken)),
            LimitStep::Claim => {
                for row in std::mem::take(&mut self.taken) {
                    let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 };
                    self.running.push(row.id());
                    self.write(moved(&row, claim, now));
                }
            }
            LimitStep::Finish { done } => {
                let Some(id) = self.running.pop() else { return };
                let row = self.row(id);
                let input = if *done {
                    JobInput::Finish {
                        fence: row.job.fence,
                        outcome: JobOutcome::Done { result: RawJson::default() },
                    }
                } else {
                    JobInput::Release { fence: row.job.fence }
                };
                self.write(moved(&row, input, now));
            }
            LimitStep::Wait { ms } => self.now += ms,
            LimitStep::Limit(limits) => {
                self.passes.clear();
                self.index.limit("a", limits.clone(), now);
                self.model.set(limits.clone(), now);
            }
            LimitStep::Forget => {
                // A restart: taken jobs whose claims did not become durable are ready again.
                self.reading.clear();
                self.taken.clear();
                self.passes.clear();
                self.index = JobIndex::new(LIMITS, true);
                self.model.bucket = None;
                self.model.keys.clear();
                let limits = std::mem::take(&mut self.model.limits);
                self.index.limit("a", limits.clone(), now);
                self.model.set(limits, now);
                self.index.invalidate_queues(&QUEUES.map(str::to_owned));
            }
            LimitStep::Invalidate => self.index.invalidate(),
        }
        let n_slots = self.held().len();
        let limiters = self.index.lists.limiters();
        let counts = limiters.named("a").is_some_and(|limiter| limiter.counts_held() && limiter.is_counted);
        let held = limiters.held_ids();
        assert!(!counts || held.len() == n_slots, "{n_slots} are held: {held:?}");
        assert!(self.index.is_consistent(), "after {step:?}");
    }
}

fn asked(queues: u8, services: u8) -> ClaimQuery {
    let named = |names: &[&str], bits: u8| -> Vec<String> {
        let chosen = names.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
        chosen.map(|(_, name)| (*name).to_owned()).collect()
    };
    ClaimQuery { queues: named(&QUEUES, queues), services: named(&SERVICES, services) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn limits_are_never_exceeded_and_no_allowed_job_is_kept_back(
        first in limits(), steps in proptest::collection::vec(steps(), 1..200)
    ) {
        let mut test = LimitsTest::new();
        test.step(&LimitStep::Limit(first));
        for step in &steps {
            test.step(step);
        }
    }
}

#[test]
fn a_key_with_many_jobs_waits_for_its_turn() {
    let mut test = LimitsTest::new();
    test.step(&LimitStep::Limit(QueueLimits { fair: true, ..QueueLimits::default() }));
    for key in [1; 30].into_iter().chain([2; 3]).chain([0; 2]) {
        test.step(&LimitStep::Make { queue: 0, service: 0, key, priority: 0, is_run: false });
    }
    for _ in 0..8 {
        test.step(&LimitStep::Take { queues: 1, services: 0, max: 1 });
    }
    let counts = test.taken.iter().fold(BTreeMap::new(), |mut counts, row| {
        *counts.entry(row.job.spec.limit_key.as_str()).or_insert(0) += 1;
        counts
    });
    assert_eq!(counts, BTreeMap::from([("", 2), ("k1", 3), ("k2", 3)]));
}

#[test]
fn plain_jobs_between_two_classes_take_the_reserved_turns() {
    let mut test = LimitsTest::new();
    test.index = JobIndex::new(DispatchLimits { rows: 64, read_rows: 32, ..LIMITS }, true);
    test.step(&LimitStep::Limit(QueueLimits { fair: true, ..QueueLimits::default() }));
    let runs =
        |n, priority| vec![LimitStep::Make { queue: 0, service: 0, key: 0, priority, is_run: true }; n];
    let plain = [0, 1].map(|key| LimitStep::Make { queue: 0, service: 0, key, priority: 1, is_run: false });
    for step in runs(10, 2).into_iter().chain(plain).chain(runs(3, -2)) {
        test.step(&step);
    }
    for _ in 0..15 {
        test.step(&LimitStep::Take { queues: 1, services: 0, max: 1 });
    }
    let given: Vec<i32> = test.taken.iter().map(|row| row.job.spec.priority).collect();
    assert_eq!(given, [2, 2, 2, 2, 1, 2, 2, 2, 2, 1, 2, 2, -2, -2, -2]);
}
