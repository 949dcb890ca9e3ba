//! The index against a list that is searched from front to back, with limits so small that everything overflows.

mod limits;
mod servers;
mod share;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use proptest::prelude::*;
use uuid::Uuid;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::{Job, JobInput, JobSpec, Outcome};
use windlass_engine::share::Share;
use windlass_engine::time::Timestamp;
use windlass_store::job::{JobRow, ReadyPlace};

use super::*;
use crate::list::List;

const LIMITS: Limits =
    Limits { rows: 6, bytes: 1 << 20, fill_rows: 4, take_bytes: 1 << 20, timers: 9, waiters: 9 };

fn row(id: u128, queue: &str, service: &str, priority: i32, now: i64) -> JobRow {
    let spec = JobSpec { priority, ..JobSpec::new(service, queue) };
    let (job, _) = Job::create(JobId::new(Uuid::from_u128(id)), spec, Timestamp(now)).unwrap();
    JobRow { rev: 1, job, origin: Default::default() }
}

/// The job of a run, as its queue and its service are named.
fn run_row(id: u128, queue: &str, service: &str, priority: i32, now: i64) -> JobRow {
    let mut row = row(id, queue, service, priority, now);
    Arc::make_mut(&mut row.job.spec).run = Some(RunId::new(Uuid::from_u128(id)));
    row
}

fn query(queues: &[&str], services: &[&str]) -> Query {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    Query { queues: owned(queues), services: owned(services) }
}

fn moved(row: &JobRow, input: JobInput, now: Timestamp) -> JobRow {
    let mut job = row.job.clone();
    for event in row.job.decide(input, now).unwrap() {
        job.apply(&event, now);
    }
    JobRow { rev: row.rev + 1, job, origin: row.origin.clone() }
}

impl Index {
    /// Whether the counts and the lists agree with the rows.
    fn is_consistent(&self) -> bool {
        let count = |place| self.rows.values().filter(|slot| slot.place == place).count();
        let is_listed = |slot: &Slot| {
            let spec = &slot.row.job.spec;
            let has = |list: Option<&List>| {
                list.is_some_and(|list| list.keys().any(|key| key == Key::of(&slot.row)))
            };
            let is_ready = slot.place == Place::Ready;
            let by_service =
                is_ready && !self.paused.contains(&spec.queue) && !self.gates.contains_key(&spec.queue);
            has(self.queues.named(&spec.queue)) == is_ready
                && has(self.services.named(&spec.name)) == by_service
        };
        let mut n_runs_ready = BTreeMap::new();
        for slot in self.rows.values().filter(|slot| slot.place == Place::Ready) {
            if slot.row.job.spec.run.is_some() {
                *n_runs_ready.entry(slot.row.job.spec.priority).or_default() += 1;
            }
        }
        let n_listed: usize = self.queues.all().map(|(_, list)| list.len()).sum();
        count(Place::Ready) == self.ready.n
            && count(Place::Held) == self.held.n
            && count(Place::Taken) == self.n_taken
            && n_listed == self.ready.n
            && n_runs_ready == self.n_runs_ready
            && self.rows.values().all(is_listed)
            && (self.n_filling > 0 || self.gone.is_empty())
    }
}

/// A store that is one list, and the index over it.
struct World {
    stored: BTreeMap<JobId, JobRow>,
    index: Index,
    taken: Vec<Arc<JobRow>>,
    running: Vec<JobId>,
    /// A reading of the store that has not been told yet.
    reading: Vec<(Want, Vec<JobRow>)>,
    /// Whose turn it is, by list: of a queue, or of a service.
    shares: HashMap<(bool, String), Share<i32>>,
    n_made: u128,
    now: i64,
}

const QUEUES: [&str; 3] = ["a", "b", "c"];
const SERVICES: [&str; 2] = ["s", "t"];

impl World {
    /// A world that begins with so many jobs which nobody told of, for somebody who is alone or not.
    fn new(n_before: u128, is_alone: bool) -> Self {
        let stored = (1..=n_before).map(|id| row(id, "a", "t", 0, 0)).map(|row| (row.id(), row)).collect();
        let mut index = Index::new(LIMITS, is_alone);
        if is_alone && n_before > 0 {
            index.doubt_queues(&["a".to_owned()]);
        }
        World {
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

    /// What a store would answer, in order.
    fn ready(&self, query: &Query) -> Vec<&JobRow> {
        let is_ready = |row: &&JobRow| {
            let spec = &row.job.spec;
            matches!(row.job.state, State::Queued { .. })
                && (query.queues.contains(&spec.queue) || query.services.contains(&spec.name))
                && !self.index.paused.contains(&spec.queue)
        };
        let mut rows: Vec<&JobRow> = self.stored.values().filter(is_ready).collect();
        rows.sort_by_key(|row| Key::of(row));
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

    fn begin_reading(&mut self, query: &Query, max: usize) {
        if self.reading.is_empty() {
            for want in self.index.begin_filling(query, max) {
                let (query, from, limit, is_class) = match &want {
                    Want::Lists { query, from, limit, .. } => (query, *from, limit, false),
                    Want::Class { query, from, limit, .. } => (query, Some(*from), limit, true),
                    Want::View(_) | Want::Held(_) => panic!("nothing has limits"),
                };
                let ready = self.ready(query).into_iter();
                let is_before = |row: &&JobRow| {
                    let place = Key::of(row).place();
                    from.is_some_and(|from| {
                        let order = |at: ReadyPlace| (Reverse(at.priority), at.due_at, at.id);
                        order(place) < order(from)
                    })
                };
                let is_wanted = |row: &&JobRow| row.job.spec.run.is_some() || !is_class;
                let wanted = ready.skip_while(is_before).filter(is_wanted);
                let rows = wanted.take(*limit).cloned().collect();
                self.reading.push((want, rows));
            }
        }
    }

    fn end_reading(&mut self) {
        for (want, rows) in std::mem::take(&mut self.reading) {
            match want {
                Want::Lists { query, limit, begun, .. } => {
                    self.index.filled(&query, begun, None, Some((rows, limit)));
                }
                Want::Class { limit, .. } => self.index.filled_class(Some((rows, limit))),
                Want::View(_) | Want::Held(_) => panic!("nothing has limits"),
            }
        }
    }

    /// What a search of the store would hand out next: the first of all, or, where the turn is kept, of a lower class
    /// of runs, unless a plain job is before that one. The first of all, and the list whose turn it is, as well.
    fn next<'a>(&self, query: &Query, ready: &[&'a JobRow]) -> Option<(&'a JobRow, Turn<'a>)> {
        let top = *ready.first()?;
        let spec = &top.job.spec;
        let by_queue = query.queues.contains(&spec.queue);
        let list = (by_queue, if by_queue { spec.queue.clone() } else { spec.name.clone() });
        let share = self.shares.get(&list).copied().unwrap_or_default();
        let lower = |below: i32| {
            let runs = ready.iter().filter(|row| row.job.spec.run.is_some() && row.job.spec.priority < below);
            runs.min_by_key(|row| Key::of(row)).copied()
        };
        let is_kept = spec.run.is_some() && share.is_kept();
        let kept = is_kept.then(|| share.below(spec.priority).into_iter().find_map(lower)).flatten();
        let plain = ready.iter().find(|row| row.job.spec.run.is_none()).copied();
        let kept = kept.map(|lower| plain.into_iter().chain([lower]).min_by_key(|row| Key::of(row)).unwrap());
        Some((kept.unwrap_or(top), Turn { top, list, is_kept }))
    }

    /// Checks a job that was handed out, and counts it.
    fn check(&mut self, query: &Query, row: &Arc<JobRow>, is_known: bool) {
        let taken: Vec<JobId> = self.taken.iter().map(|row| row.id()).collect();
        let ready =
            self.ready(query).into_iter().filter(|row| !taken.contains(&row.id())).collect::<Vec<_>>();
        let (expected, Turn { top, list, is_kept }) = self.next(query, &ready).unwrap();
        let (given, urgent) = (&row.job.spec, &top.job.spec);
        // Of a lower class that is behind more than is known, another one may be known than the first.
        let is_lower = given.run.is_some() && given.priority < urgent.priority && is_kept;
        let is_alike = |other: &JobSpec| {
            (&other.queue, &other.name, other.run) == (&given.queue, &given.name, given.run)
        };
        let first = ready.iter().find(|row| is_alike(&row.job.spec)).map(|row| row.id());
        let is_plain = is_kept && given.run.is_none() && Some(row.id()) == first;
        let may_be = !is_known && (is_lower || is_plain || row.id() == top.id());
        assert!(row.id() == expected.id() || may_be, "{row:?} instead of {expected:?}");
        if urgent.run.is_some() && given.run.is_some() {
            let (top, given) = (urgent.priority, given.priority);
            self.shares.entry(list).or_default().gave(top, given);
        } else if urgent.run.is_some() {
            self.shares.entry(list).or_default().gave_elsewhere();
        }
        self.taken.push(row.clone());
    }

    /// Takes as a claim does, and checks that it got what it should of what there is.
    fn take(&mut self, query: &Query, max: usize) {
        self.end_reading();
        self.begin_reading(query, max);
        self.end_reading();
        let taken: Vec<JobId> = self.taken.iter().map(|row| row.id()).collect();
        let free = |row: &&JobRow| !taken.contains(&row.id());
        let expected: Vec<JobId> = self.ready(query).into_iter().filter(free).map(JobRow::id).collect();
        let is_known = query.queues.iter().all(|name| self.index.queues.is_known(name))
            && query.services.iter().all(|name| self.index.services.is_known(name));
        let rows = self.index.take(query, max, Timestamp(self.now));
        assert_eq!(rows.is_empty(), expected.is_empty(), "{expected:?}");
        rows.iter().for_each(|row| self.check(query, row, is_known));
    }

    fn step(&mut self, step: &Step) {
        self.now += 1;
        let now = Timestamp(self.now);
        match *step {
            Step::Make { queue, service, priority, is_run } => {
                self.n_made += 1;
                let make = if is_run { run_row } else { row };
                self.write(make(self.n_made, QUEUES[queue], SERVICES[service], priority, self.now));
            }
            Step::Take { queues, services, max } => {
                let named = |names: &[&str], bits: u8| -> Vec<String> {
                    let chosen = names.iter().enumerate().filter(|(at, _)| bits & (1 << at) != 0);
                    chosen.map(|(_, name)| (*name).to_owned()).collect()
                };
                let query = Query { queues: named(&QUEUES, queues), services: named(&SERVICES, services) };
                self.take(&query, max);
            }
            Step::Read { queue } => self.begin_reading(&query(&[QUEUES[queue]], &SERVICES), 3),
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
                let row = self.stored[&id].clone();
                let input = if done {
                    JobInput::Finish { fence: row.job.fence, outcome: Outcome::Done { result: 1.into() } }
                } else {
                    JobInput::Release { fence: row.job.fence }
                };
                self.write(moved(&row, input, now));
            }
            Step::Pause { queue, is_paused } => self.index.pause(QUEUES[queue], is_paused),
            Step::Doubt => self.index.doubt(),
        }
        assert!(self.index.is_consistent(), "after {step:?}");
    }
}

/// Whose turn it would be.
struct Turn<'a> {
    top: &'a JobRow,
    list: (bool, String),
    is_kept: bool,
}

#[derive(Debug, Clone)]
enum Step {
    Make { queue: usize, service: usize, priority: i32, is_run: bool },
    Take { queues: u8, services: u8, max: usize },
    Read { queue: usize },
    PutBack,
    Claim,
    Finish { done: bool },
    Pause { queue: usize, is_paused: bool },
    Doubt,
}

fn steps() -> impl Strategy<Value = Step> {
    let make = (0..3usize, 0..2usize, -2..3i32, any::<bool>());
    prop_oneof![
        6 => make.prop_map(|(queue, service, priority, is_run)| Step::Make { queue, service, priority, is_run }),
        4 => (0..8u8, 0..4u8, 1..4usize).prop_map(|(queues, services, max)| Step::Take { queues, services, max }),
        1 => (0..3usize).prop_map(|queue| Step::Read { queue }),
        1 => Just(Step::PutBack),
        2 => Just(Step::Claim),
        3 => any::<bool>().prop_map(|done| Step::Finish { done }),
        1 => (0..3usize, any::<bool>()).prop_map(|(queue, is_paused)| Step::Pause { queue, is_paused }),
        1 => Just(Step::Doubt),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]
    #[test]
    fn it_hands_out_what_a_search_of_the_store_would(
        steps in proptest::collection::vec(steps(), 1..120), n_before in 0..20u128, is_alone in any::<bool>()
    ) {
        let mut world = World::new(n_before, is_alone);
        for step in &steps {
            world.step(step);
        }
    }
}
