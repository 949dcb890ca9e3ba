//! The index compared with a list that is searched from front to back, with limits so small that everything overflows.

mod limits;
mod servers;
mod share;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::{Job, JobInput, JobOutcome, JobSpec};
use windlass_engine::raw_json::RawJson;
use windlass_engine::share::Share;
use windlass_engine::time::Timestamp;
use windlass_store::job::{JobRow, ReadyCursor};

use super::*;
use crate::ready_list::ReadyList;

const LIMITS: DispatchLimits =
    DispatchLimits { rows: 6, bytes: 1 << 20, read_rows: 4, take_bytes: 1 << 20, timers: 9, waiters: 9 };

fn row(id: u128, queue: &str, service: &str, priority: i32, now: i64) -> JobRow {
    let spec = JobSpec { priority, ..JobSpec::new(service, queue) };
    let (job, _) = Job::create(JobId::new(Uuid::from_u128(id)), spec, Timestamp(now)).unwrap();
    JobRow { rev: Revision(1), job, origin: Default::default() }
}

/// The job of a run.
fn run_row(id: u128, queue: &str, service: &str, priority: i32, now: i64) -> JobRow {
    let mut row = row(id, queue, service, priority, now);
    Arc::make_mut(&mut row.job.spec).run = Some(RunId::new(Uuid::from_u128(id)));
    row
}

fn query(queues: &[&str], services: &[&str]) -> ClaimQuery {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ClaimQuery { queues: owned(queues), services: owned(services) }
}

fn moved(row: &JobRow, input: JobInput, now: Timestamp) -> JobRow {
    let mut job = row.job.clone();
    for event in row.job.decide(input, now).unwrap() {
        job.apply(&event, now);
    }
    JobRow { rev: row.rev.next(), job, origin: row.origin.clone() }
}

impl JobIndex {
    /// Whether the counts and the lists agree with the rows.
    fn is_consistent(&self) -> bool {
        let is_listed = |indexed: &IndexedJob| {
            let spec = &indexed.row.job.spec;
            let has = |list: Option<&ReadyList>| {
                list.is_some_and(|list| list.keys().any(|key| key == ReadyKey::of(&indexed.row)))
            };
            let is_ready = indexed.placement == JobPlacement::Ready;
            let by_service =
                is_ready && !self.lists.is_paused(&spec.queue) && !self.lists.limiters().has(&spec.queue);
            has(self.lists.queue(&spec.queue)) == is_ready
                && has(self.lists.service(&spec.name)) == by_service
        };
        self.jobs.is_consistent()
            && self.lists.n_ready() == self.jobs.ready().n
            && self.jobs.all().all(is_listed)
            && self.reads.is_consistent()
    }
}

/// A store as one list, and the index over it.
struct IndexTest {
    stored: BTreeMap<JobId, JobRow>,
    index: JobIndex,
    taken: Vec<Arc<JobRow>>,
    running: Vec<JobId>,
    /// A read of the store whose result has not been passed on yet.
    reading: Vec<(PlannedRead, Vec<JobRow>)>,
    /// The fair shares by list: of a queue (`true`) or of a service.
    shares: HashMap<(bool, String), Share<i32>>,
    n_made: u128,
    now: i64,
}

const QUEUES: [&str; 3] = ["a", "b", "c"];
const SERVICES: [&str; 2] = ["s", "t"];

impl IndexTest {
    /// A test with jobs that the index was not told of, for a server that is alone or not.
    fn new(n_before: u128, is_alone: bool) -> Self {
        let stored = (1..=n_before).map(|id| row(id, "a", "t", 0, 0)).map(|row| (row.id(), row)).collect();
        let mut index = JobIndex::new(LIMITS, is_alone);
        if is_alone && n_before > 0 {
            index.invalidate_queues(&["a".to_owned()]);
        }
        IndexTest {
            stored,
            index,
            taken: Vec::new(),
            running: Vec::new(),
            reading: Vec::new(),
            shares: HashMap::new(),
            n_made: n_before,
            now: 0,
        }
    }

    /// The ready jobs of the store, in order.
    fn ready(&self, query: &ClaimQuery) -> Vec<&JobRow> {
        let is_ready = |row: &&JobRow| {
            let spec = &row.job.spec;
            matches!(row.job.state, State::Queued { .. })
                && (query.queues.contains(&spec.queue) || query.services.contains(&spec.name))
                && !self.index.lists.is_paused(&spec.queue)
        };
        let mut rows: Vec<&JobRow> = self.stored.values().filter(is_ready).collect();
        rows.sort_by_key(|row| ReadyKey::of(row));
        rows
    }

    fn write(&mut self, row: JobRow) {
        self.stored.insert(row.id(), row.clone());
        if row.job.is_open() {
            self.index.offer(Arc::new(row));
        } else {
            self.index.forget(row.id(), row.rev);
        }
    }

    fn begin_limited_read(&mut self, query: &ClaimQuery, max: usize) {
        if self.reading.is_empty() {
            for read in self.index.begin_read(query, max) {
                let (query, from, limit, is_class) = match &read {
                    PlannedRead::Lists { query, from, limit, .. } => (query, *from, limit, false),
                    PlannedRead::Class { query, from, limit, .. } => (query, Some(*from), limit, true),
                    PlannedRead::LimitedList(_) | PlannedRead::Held(_) => panic!("nothing has limits"),
                };
                let ready = self.ready(query).into_iter();
                let is_before = |row: &&JobRow| {
                    let place = ReadyKey::of(row).position();
                    from.is_some_and(|from| {
                        let order = |at: ReadyCursor| (Reverse(at.priority), at.due_at, at.id);
                        order(place) < order(from)
                    })
                };
                let is_wanted = |row: &&JobRow| row.job.spec.run.is_some() || !is_class;
                let wanted = ready.skip_while(is_before).filter(is_wanted);
                let rows = wanted.take(*limit).cloned().collect();
                self.reading.push((read, rows));
            }
        }
    }

    fn close_read(&mut self) {
        for (read, rows) in std::mem::take(&mut self.reading) {
            match read {
                PlannedRead::Lists { query, limit, begun, .. } => {
                    self.index.add_list_rows(&query, begun, None, Some((rows, limit)));
                }
                PlannedRead::Class { limit, .. } => self.index.add_class_rows(Some((rows, limit))),
                PlannedRead::LimitedList(_) | PlannedRead::Held(_) => panic!("nothing has limits"),
            }
        }
    }

    /// The job that a search of the store would dispatch next, with the turn that it takes: the first of all or, if the
    /// turn is reserved, the first of a lower class of runs or a plain job before that one.
    fn next<'a>(&self, query: &ClaimQuery, ready: &[&'a JobRow]) -> Option<(&'a JobRow, ExpectedTurn<'a>)> {
        let top = *ready.first()?;
        let spec = &top.job.spec;
        let by_queue = query.queues.contains(&spec.queue);
        let list = (by_queue, if by_queue { spec.queue.clone() } else { spec.name.clone() });
        let share = self.shares.get(&list).copied().unwrap_or_default();
        let lower = |below: i32| {
            let runs = ready.iter().filter(|row| row.job.spec.run.is_some() && row.job.spec.priority < below);
            runs.min_by_key(|row| ReadyKey::of(row)).copied()
        };
        let is_kept = spec.run.is_some() && share.is_kept();
        let kept = is_kept.then(|| share.below(spec.priority).into_iter().find_map(lower)).flatten();
        let plain = ready.iter().find(|row| row.job.spec.run.is_none()).copied();
        let kept =
            kept.map(|lower| plain.into_iter().chain([lower]).min_by_key(|row| ReadyKey::of(row)).unwrap());
        Some((kept.unwrap_or(top), ExpectedTurn { top, list, is_kept }))
    }

    /// Checks a dispatched job and counts it.
    fn check(&mut self, query: &ClaimQuery, row: &Arc<JobRow>, is_known: bool) {
        let taken: Vec<JobId> = self.taken.iter().map(|row| row.id()).collect();
        let ready =
            self.ready(query).into_iter().filter(|row| !taken.contains(&row.id())).collect::<Vec<_>>();
        let (expected, ExpectedTurn { top, list, is_kept }) = self.next(query, &ready).unwrap();
        let (given, urgent) = (&row.job.spec, &top.job.spec);
        // A lower class behind the known range may have a known job later than its first.
        let is_lower = given.run.is_some() && given.priority < urgent.priority && is_kept;
        let is_comparable = |other: &JobSpec| {
            (&other.queue, &other.name, other.run) == (&given.queue, &given.name, given.run)
        };
        let first = ready.iter().find(|row| is_comparable(&row.job.spec)).map(|row| row.id());
        let is_plain = is_kept && given.run.is_none() && Some(row.id()) == first;
        let may_be = !is_known && (is_lower || is_plain || row.id() == top.id());
        assert!(row.id() == expected.id() || may_be, "{row:?} instead of {expected:?}");
        if urgent.run.is_some() && given.run.is_some() {
            let (top, given) = (urgent.priority, given.priority);
            self.shares.entry(list).or_default().gave(top, given);
        } else if urgent.run.is_some() {
            self.shares.entry(list).or_default().note_grant_by_other();
        }
        self.taken.push(row.clone());
    }

    /// Takes jobs as a claim does, and checks each of them.
    fn take(&mut self, query: &ClaimQuery, max: usize) {
        self.close_read();
        self.begin_limited_read(query, max);
        self.close_read();
        let taken: Vec<JobId> = self.taken.iter().map(|row| row.id()).collect();
        let free = |row: &&JobRow| !taken.contains(&row.id());
        let expected: Vec<JobId> = self.ready(query).into_iter().filter(free).map(JobRow::id).collect();
        let is_known = query.queues.iter().all(|name| self.index.lists.is_queue_known(name))
            && query.services.iter().all(|name| self.index.lists.is_service_known(name));
        let rows = self.index.take(query, max, Timestamp(self.now));
        assert_eq!(rows.is_empty(), expected.is_empty(), "{expected:?}");
        rows.iter().for_each(|row| self.check(query, row, is_known));
    }

    fn step(&mut self, step: &IndexStep) {
        self.now += 1;
        let now = Timestamp(self.now);
        match *step {
            IndexStep::Make { queue, service, priority, is_run } => {
                self.n_made += 1;
                let make = if is_run { run_row } else { row };
                self.write(make(self.n_made, QUEUES[queue], SERVICES[service], priority, self.now));
            }
            IndexStep::Take { queues, services, max } => {
                let named = |names: &[&str], bits: u8| -> Vec<String> {
                    let chosen = names.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
                    chosen.map(|(_, name)| (*name).to_owned()).collect()
                };
                let query =
                    ClaimQuery { queues: named(&QUEUES, queues), services: named(&SERVICES, services) };
                self.take(&query, max);
            }
            IndexStep::Read { queue } => self.begin_limited_read(&query(&[QUEUES[queue]], &SERVICES), 3),
            IndexStep::PutBack => self.index.put_back(&std::mem::take(&mut self.taken)),
            IndexStep::Claim => {
                for row in std::mem::take(&mut self.taken) {
                    let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 };
                    self.running.push(row.id());
                    self.write(moved(&row, claim, now));
                }
            }
            IndexStep::Finish { done } => {
                let Some(id) = self.running.pop() else { return };
                let row = self.stored[&id].clone();
                let input = if done {
                    JobInput::Finish {
                        fence: row.job.fence,
                        outcome: JobOutcome::Done { result: RawJson::default() },
                    }
                } else {
                    JobInput::Release { fence: row.job.fence }
                };
                self.write(moved(&row, input, now));
            }
            IndexStep::Pause { queue, is_paused } => self.index.pause(QUEUES[queue], is_paused),
            IndexStep::Invalidate => self.index.invalidate(),
        }
        assert!(self.index.is_consistent(), "after {step:?}");
    }
}

/// The turn that a dispatched job takes.
struct ExpectedTurn<'a> {
    top: &'a JobRow,
    list: (bool, String),
    is_kept: bool,
}

#[derive(Debug, Clone)]
enum IndexStep {
    Make { queue: usize, service: usize, priority: i32, is_run: bool },
    Take { queues: u8, services: u8, max: usize },
    Read { queue: usize },
    PutBack,
    Claim,
    Finish { done: bool },
    Pause { queue: usize, is_paused: bool },
    Invalidate,
}

fn steps() -> impl Strategy<Value = IndexStep> {
    let make = (0..3usize, 0..2usize, -2..3i32, any::<bool>());
    prop_oneof![
        6 => make.prop_map(|(queue, service, priority, is_run)| IndexStep::Make { queue, service, priority, is_run }),
        4 => (0..8u8, 0..4u8, 1..4usize).prop_map(|(queues, services, max)| IndexStep::Take { queues, services, max }),
        1 => (0..3usize).prop_map(|queue| IndexStep::Read { queue }),
        1 => Just(IndexStep::PutBack),
        2 => Just(IndexStep::Claim),
        3 => any::<bool>().prop_map(|done| IndexStep::Finish { done }),
        1 => (0..3usize, any::<bool>()).prop_map(|(queue, is_paused)| IndexStep::Pause { queue, is_paused }),
        1 => Just(IndexStep::Invalidate),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn it_dispatches_the_jobs_that_a_search_of_the_store_would(
        steps in proptest::collection::vec(steps(), 1..120), n_before in 0..20u128, is_alone in any::<bool>()
    ) {
        let mut test = IndexTest::new(n_before, is_alone);
        for step in &steps {
            test.step(step);
        }
    }
}
