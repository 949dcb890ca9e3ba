//! Several servers that dispatch jobs of one store and are told nothing of one another.

use super::*;
use windlass_engine::counter::Revision;

const ROOMY: DispatchLimits = DispatchLimits {
    rows: 10_000,
    bytes: 1 << 26,
    read_rows: 120,
    take_bytes: 1 << 26,
    timers: 9,
    waiters: 9,
};
const JOBS: u128 = 1_500;

/// A store, and the indexes of its servers.
struct SharedStoreTest {
    stored: BTreeMap<JobId, JobRow>,
    servers: Vec<JobIndex>,
    /// Rows of all reads.
    n_read: usize,
    n_lost: usize,
    now: i64,
}

impl SharedStoreTest {
    /// `n_servers` servers and `n_jobs` jobs, one every `apart_ms` milliseconds.
    fn new(n_servers: usize, n_jobs: u128, apart_ms: i64) -> Self {
        let make = |n: u128| row(n * 7_919, "a", "s", 0, n as i64 * apart_ms);
        let stored = (1..=n_jobs).map(make).map(|row| (row.id(), row)).collect();
        let server = |at: usize| {
            let mut index = JobIndex::new(ROOMY, false);
            index.set_share(at, n_servers);
            index
        };
        let now = (n_jobs as i64 + 1) * apart_ms + 1_000;
        SharedStoreTest { stored, servers: (0..n_servers).map(server).collect(), n_read: 0, n_lost: 0, now }
    }

    fn fill(&mut self, at: usize, query: &ClaimQuery) -> bool {
        self.servers[at].pace(query, 1, Timestamp(self.now));
        let reads = self.servers[at].begin_read(query, 1);
        let is_any = !reads.is_empty();
        for read in reads {
            let PlannedRead::Lists { query, limit, begun, portion, .. } = read else { continue };
            let is_asked = |row: &&JobRow| portion.is_none_or(|portion| portion.has(row.id()));
            let mut rows: Vec<JobRow> = self.stored.values().filter(is_asked).cloned().collect();
            rows.sort_by_key(ReadyKey::of);
            rows.truncate(limit);
            self.n_read += rows.len();
            self.servers[at].add_list_rows(&query, begun, portion, Some((rows, limit)));
        }
        is_any
    }

    /// One claim at a server. Returns the number of its jobs.
    fn claim(&mut self, at: usize, max: usize) -> usize {
        let (asked, mut may_read) = (query(&["a"], &[]), true);
        loop {
            let now = Timestamp(self.now);
            if may_read {
                self.servers[at].invalidate_foreign(&asked, now);
                if self.fill(at, &asked) {
                    may_read = false;
                    continue;
                }
            }
            let taken = self.servers[at].take(&asked, max, now);
            if taken.is_empty() {
                if !may_read && !self.servers[at].lists.is_complete(&asked) {
                    may_read = true;
                    continue;
                }
                return 0;
            }
            let (mut n, index) = (0, &mut self.servers[at]);
            for row in taken {
                match self.stored.remove(&row.id()) {
                    Some(_) => n += 1,
                    None => self.n_lost += 1,
                }
                index.forget(row.id(), Revision(u64::MAX));
            }
            if n > 0 {
                return n;
            }
            may_read = true;
        }
    }
}

/// All servers in turn dispatch all jobs, at most `max` at a time.
fn drain(shared: &mut SharedStoreTest, max: usize) {
    let n_servers = shared.servers.len();
    let mut n_vain = 0;
    for turn in 0.. {
        shared.now += 5;
        n_vain = if shared.claim(turn % n_servers, max) == 0 { n_vain + 1 } else { 0 };
        if n_vain == n_servers {
            break;
        }
        if turn % 20 == 0 {
            assert!(shared.servers.iter().all(JobIndex::is_consistent));
        }
    }
    assert!(shared.stored.is_empty(), "{} are left", shared.stored.len());
}

#[test]
fn servers_that_empty_a_queue_together_seldom_take_the_same() {
    for (n_servers, max, apart_ms) in
        [(2, 20, 1), (3, 20, 1), (3, 1, 0), (2, 100, 0), (3, 2_000, 0), (3, 10, 100)]
    {
        let mut shared = SharedStoreTest::new(n_servers, JOBS, apart_ms);
        drain(&mut shared, max);
        let what = format!("{n_servers} servers, {max} at a time, {apart_ms} ms apart");
        assert!(shared.n_lost as u128 <= JOBS / 10, "{} of {JOBS} were lost: {what}", shared.n_lost);
        // With small claims, or where order counts, all shares are read, so that no job is overlooked for long.
        let most = if max == 1 || apart_ms > 1 { 4 } else { 2 } * JOBS as usize;
        assert!(shared.n_read <= most, "{} rows were read for {JOBS}: {what}", shared.n_read);
    }
}

#[test]
fn the_only_server_with_claims_gets_all_jobs_nearly_in_order() {
    let mut shared = SharedStoreTest::new(3, 600, 100);
    let mut order = Vec::new();
    while !shared.stored.is_empty() {
        let before: Vec<JobId> = shared.stored.keys().copied().collect();
        shared.now += 1_000;
        assert!(shared.claim(1, 10) > 0);
        let tombstones = before.into_iter().filter(|id| !shared.stored.contains_key(id));
        order.extend(tombstones.map(|id| id.uuid().as_u128() / 7_919));
    }
    assert_eq!(shared.n_lost, 0);
    for (at, n) in order.iter().enumerate() {
        // A job waits behind own jobs that are due up to an eighth of its age later.
        assert!((*n as usize).abs_diff(at) <= 200, "limiter_id {n} was handed out as limiter_id {at}");
    }
}

#[test]
fn a_change_during_a_read_is_not_dropped() {
    let mut shared = SharedStoreTest::new(2, 4, 0);
    let asked = query(&["a"], &[]);
    assert!(shared.fill(0, &asked));
    shared.servers[0].invalidate_foreign(&asked, Timestamp(shared.now));
    shared.servers[0].invalidate();
    let reads = shared.servers[0].begin_read(&asked, 10);
    // A local commit adds a job after the store has answered without any of the known jobs.
    let new = row(99, "a", "s", 0, 0);
    shared.servers[0].offer(Arc::new(new.clone()));
    for read in reads {
        let PlannedRead::Lists { query, limit, begun, .. } = read else { continue };
        shared.servers[0].add_list_rows(&query, begun, None, Some((Vec::new(), limit)));
    }
    let taken = shared.servers[0].take(&asked, 10, Timestamp(shared.now));
    assert_eq!(taken.iter().map(|row| row.id()).collect::<Vec<_>>(), [new.id()]);
}

#[test]
fn the_share_of_an_idle_server_is_dispatched_by_the_other() {
    // A long queue that a single server dispatches quickly; its own share would last forever.
    let mut shared = SharedStoreTest::new(2, 4_000, 0);
    let of_other = |shared: &SharedStoreTest| {
        let own = shared.servers[0].servers.own();
        shared.stored.values().filter(|row| !own.has(row.id())).count()
    };
    let before = of_other(&shared);
    let mut n_claimed = 0;
    while n_claimed < 1_600 {
        shared.now += 5;
        n_claimed += shared.claim(0, 10);
    }
    let n_of_other = before - of_other(&shared);
    assert!(n_of_other * 8 >= n_claimed, "{n_of_other} of {n_claimed} were of the other's share");
    // An urgent job does not wait long for its own server.
    let mut id = 0;
    let urgent = loop {
        id += 1;
        let urgent = row(1_000_000_007 * id, "a", "s", 9, shared.now);
        if !shared.servers[0].servers.own().has(urgent.id()) {
            break urgent;
        }
    };
    shared.stored.insert(urgent.id(), urgent.clone());
    let mut n_before = 0;
    while shared.stored.contains_key(&urgent.id()) {
        shared.now += 5;
        n_before += shared.claim(0, 10);
        assert!(n_before <= 8 * ROOMY.read_rows, "it still waits after {n_before} others");
    }
}

#[test]
fn a_local_job_is_dispatched_without_a_read() {
    let mut shared = SharedStoreTest::new(3, 0, 0);
    let asked = query(&["a"], &[]);
    shared.fill(0, &asked);
    let (n_read, now) = (shared.n_read, shared.now);
    for n in 1..=30 {
        let new = row(n * 7_919, "a", "s", 0, now);
        shared.stored.insert(new.id(), new.clone());
        shared.servers[0].offer(Arc::new(new));
    }
    shared.now += 300;
    assert_eq!(shared.claim(0, 100), 30);
    assert_eq!((shared.n_read, shared.n_lost), (n_read, 0));
}

#[test]
fn a_job_left_to_another_server_does_not_delay_the_jobs_behind_it() {
    let mut shared = SharedStoreTest::new(2, 40, 1);
    let own = shared.servers[0].servers.own();
    let mut ids = (1u128..).map(|n| row(1_000_000_007 * n, "a", "s", 9, shared.now));
    let urgent = ids.find(|row| !own.has(row.id())).unwrap();
    shared.stored.insert(urgent.id(), urgent.clone());
    assert_eq!(shared.claim(0, 10), 10);
    assert!(shared.stored.contains_key(&urgent.id()), "the other server has it");
    // The other server reports that no worker claims there.
    shared.servers[0].accept_foreign(&["a".to_owned()], Timestamp(shared.now));
    assert_eq!(shared.claim(0, 1), 1);
    assert!(!shared.stored.contains_key(&urgent.id()));
}

#[test]
fn jobs_that_others_write_to_a_paused_queue_are_read_when_it_is_resumed() {
    let mut shared = SharedStoreTest::new(2, 0, 0);
    let (asked, told) = (query(&["a"], &["s"]), ["a".to_owned()]);
    let now = Timestamp(shared.now);
    shared.fill(0, &asked);
    shared.servers[0].pause("a", true);
    shared.servers[0].accept_foreign(&told, now);
    shared.servers[0].invalidate_queues(&told);
    assert!(!shared.fill(0, &asked), "nothing of it can be handed out");
    // Another queue may have jobs.
    shared.servers[0].accept_foreign(&["a".to_owned(), "b".to_owned()], now);
    assert!(shared.fill(0, &asked));
    shared.servers[0].pause("a", false);
    assert!(shared.fill(0, &asked));
}
