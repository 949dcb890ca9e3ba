use super::*;

const NOW: Timestamp = Timestamp(1_000_000);
const LIMITS: PoolLimits = PoolLimits { service_calls: 100, worker_calls: 10, ttl_ms: 15_000, n_servers: 1 };

fn row(id: &str, services: &[&str]) -> WorkerRow {
    WorkerRow {
        id: id.to_owned(),
        name: String::new(),
        url: format!("http://127.0.0.1:9/{id}"),
        kind: "http".to_owned(),
        services: services.iter().map(|service| (*service).to_owned()).collect(),
        queues: Vec::new(),
        load: 0,
        capacity: 0,
        is_draining: false,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: NOW,
        beat_at: NOW,
    }
}

fn wish(service: &str) -> WorkerRequest {
    let service = service.to_owned();
    WorkerRequest { service, priority: Priority::Medium, stays_with: None, avoid: Vec::new(), by_load: false }
}

fn pool(limits: PoolLimits, rows: impl IntoIterator<Item = WorkerRow>) -> WorkerPool {
    let mut pool = WorkerPool::new(limits);
    for row in rows {
        assert!(pool.put(row, NOW));
    }
    pool
}

struct PendingWorker {
    ticket: u64,
    reply: oneshot::Receiver<WorkerReply>,
}

impl PendingWorker {
    /// The worker it has been told.
    fn worker(&mut self) -> Option<String> {
        self.reply.try_recv().ok().map(|reply| reply.unwrap().id)
    }
}

fn ask(pool: &mut WorkerPool, wish: WorkerRequest) -> PendingWorker {
    let (ticket, reply) = pool.ask(wish, NOW).unwrap();
    PendingWorker { ticket, reply }
}

/// Asks, and gives the place back at once.
fn pass(pool: &mut WorkerPool, wish: WorkerRequest) -> String {
    let service = wish.service.clone();
    let mut asked = ask(pool, wish);
    let worker = asked.worker().expect("a worker is free");
    pool.leave(&service, asked.ticket, NOW);
    worker
}

#[test]
fn workers_take_turns() {
    let mut pool = pool(LIMITS, ["a", "b", "c"].map(|id| row(id, &["s"])));
    let turns: Vec<String> = (0..6).map(|_| pass(&mut pool, wish("s"))).collect();
    assert_eq!(turns, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn a_service_without_workers_is_refused() {
    let mut pool =
        pool(LIMITS, [row("a", &["s"]), WorkerRow { kind: "async".to_owned(), ..row("p", &["pull"]) }]);
    assert_eq!(pool.ask(wish("t"), NOW).unwrap_err(), NoWorker::NoneAlive);
    assert_eq!(pool.ask(wish("pull"), NOW).unwrap_err(), NoWorker::NoneAlive, "it claims and is not called");
    assert_eq!(pool.ask(wish("s"), NOW.after(15_001)).unwrap_err(), NoWorker::NoneAlive);
    assert!(pool.ask(wish("s"), NOW.after(15_000)).is_ok());
    pool.put(WorkerRow { url: String::new(), ..row("u", &["u"]) }, NOW);
    assert_eq!(pool.ask(wish("u"), NOW).unwrap_err(), NoWorker::NoneAlive, "it has no address");
}

#[test]
fn workers_that_failed_are_avoided_unless_all_did() {
    let mut pool = pool(LIMITS, ["a", "b", "c"].map(|id| row(id, &["s"])));
    let avoid =
        |ids: &[&str]| WorkerRequest { avoid: ids.iter().map(|id| (*id).to_owned()).collect(), ..wish("s") };
    for _ in 0..5 {
        assert_eq!(pass(&mut pool, avoid(&["a", "c"])), "b");
    }
    assert_eq!(pass(&mut pool, avoid(&["a", "b", "c"])), "c", "it is simply c's turn");
}

#[test]
fn a_retry_waits_for_a_worker_that_has_not_failed() {
    let limits = PoolLimits { worker_calls: 1, ..LIMITS };
    let mut pool = pool(limits, ["a", "b"].map(|id| row(id, &["s"])));
    let mut first = ask(&mut pool, wish("s"));
    let mut second = ask(&mut pool, wish("s"));
    assert_eq!((first.worker().as_deref(), second.worker().as_deref()), (Some("a"), Some("b")));
    let mut picky = ask(&mut pool, WorkerRequest { avoid: vec!["a".to_owned()], ..wish("s") });
    let mut plain = ask(&mut pool, wish("s"));
    pool.leave("s", first.ticket, NOW);
    assert_eq!((picky.worker(), plain.worker().as_deref()), (None, Some("a")), "the next in line takes it");
    pool.leave("s", second.ticket, NOW);
    assert_eq!(picky.worker().as_deref(), Some("b"));
}

#[test]
fn a_call_stays_with_its_worker_as_long_as_that_one_can_be_called() {
    let limits = PoolLimits { worker_calls: 1, ..LIMITS };
    let mut pool = pool(limits, ["a", "b"].map(|id| row(id, &["s"])));
    let faithful = || WorkerRequest { stays_with: Some("a".to_owned()), ..wish("s") };
    for _ in 0..3 {
        assert_eq!(pass(&mut pool, faithful()), "a");
    }
    let first = ask(&mut pool, faithful());
    let (mut waiting, mut plain) = (ask(&mut pool, faithful()), ask(&mut pool, wish("s")));
    assert_eq!((waiting.worker(), plain.worker().as_deref()), (None, Some("b")), "it holds up no other call");
    pool.leave("s", first.ticket, NOW);
    assert_eq!(waiting.worker().as_deref(), Some("a"));
    pool.leave("s", waiting.ticket, NOW);
    pool.leave("s", plain.ticket, NOW);
    pool.drain("a", true, NOW);
    assert_eq!(pass(&mut pool, faithful()), "b");
}

#[test]
fn another_worker_is_one_that_can_be_called_and_was_not() {
    let mut pool = pool(LIMITS, ["a", "b", "c"].map(|id| row(id, &["s"])));
    assert!(pool.has_other("s", &["a"], NOW) && pool.has_other("s", &["a", "b"], NOW));
    assert!(!pool.has_other("s", &["a", "b", "c"], NOW) && !pool.has_other("t", &[], NOW));
    pool.drain("c", true, NOW);
    assert!(!pool.has_other("s", &["a", "b"], NOW));
    assert!(!pool.has_other("s", &["a"], NOW.after(LIMITS.ttl_ms + 1)), "all of them are dead");
}

#[test]
fn the_least_loaded_gets_the_call() {
    let loaded = |id, load| WorkerRow { load, ..row(id, &["s"]) };
    let mut pool = pool(LIMITS, [loaded("a", 5), loaded("b", 1), loaded("c", i64::MAX)]);
    let by_load = || WorkerRequest { by_load: true, ..wish("s") };
    let mut asked: Vec<PendingWorker> = (0..6).map(|_| ask(&mut pool, by_load())).collect();
    let workers: Vec<String> = asked.iter_mut().map(|asked| asked.worker().unwrap()).collect();
    // The calls of this server count: b is at five after four calls, and the tie goes to a.
    assert_eq!(workers, ["b", "b", "b", "b", "a", "b"]);
    pool.put(WorkerRow { beat_at: NOW.after(1), ..loaded("b", i64::MIN) }, NOW.after(1));
    pool.put(WorkerRow { beat_at: NOW.after(1), ..loaded("a", 100) }, NOW.after(1));
    assert_eq!(ask(&mut pool, by_load()).worker().as_deref(), Some("b"), "less than nothing is nothing");
}

#[test]
fn allocation_spreads_over_equals_and_sees_those_that_claim() {
    let mut pool = pool(LIMITS, [row("a", &["s"]), row("b", &["s"])]);
    let ids: Vec<String> = (0..4).map(|_| pool.allocate("s", NOW).unwrap().id).collect();
    assert_eq!(ids, ["a", "b", "a", "b"]);
    let pull = WorkerRow { kind: "async".to_owned(), url: String::new(), ..row("p", &["q"]) };
    pool.put(pull, NOW);
    assert_eq!(pool.allocate("q", NOW).unwrap().id, "p");
    assert_eq!(pool.allocate("s", NOW.after(15_001)), None);
    assert_eq!(pool.allocate("unknown", NOW), None);
}

#[test]
fn a_worker_gets_no_more_than_it_can_bear() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 2, ..row("a", &["s"]) }]);
    let mut asked: Vec<PendingWorker> = (0..3).map(|_| ask(&mut pool, wish("s"))).collect();
    let reply: Vec<bool> = asked.iter_mut().map(|asked| asked.worker().is_some()).collect();
    assert_eq!(reply, [true, true, false]);
    pool.leave("s", asked[0].ticket, NOW);
    assert_eq!(asked[2].worker().as_deref(), Some("a"));
}

#[test]
fn a_service_gets_no_more_than_its_share_and_others_go_on() {
    let limits = PoolLimits { service_calls: 2, ..LIMITS };
    let mut pool = pool(limits, [row("a", &["slow", "fast"])]);
    let mut slow: Vec<PendingWorker> = (0..3).map(|_| ask(&mut pool, wish("slow"))).collect();
    let reply: Vec<bool> = slow.iter_mut().map(|asked| asked.worker().is_some()).collect();
    assert_eq!(reply, [true, true, false]);
    assert_eq!(pass(&mut pool, wish("fast")), "a");
    pool.leave("slow", slow[1].ticket, NOW);
    assert!(slow[2].worker().is_some());
}

#[test]
fn a_service_with_a_limit_of_its_own_has_a_pool_of_its_own() {
    let rows = || ["a", "b"].map(|id| WorkerRow { capacity: 8, ..row(id, &["slow", "quick"]) });
    let mut pool = pool(LIMITS, rows());
    pool.limit_services(HashMap::from([("slow".to_owned(), 2)]), NOW);
    let mut slow: Vec<PendingWorker> = (0..4).map(|_| ask(&mut pool, wish("slow"))).collect();
    let got: Vec<bool> = slow.iter_mut().map(|call| call.worker().is_some()).collect();
    assert_eq!(got, [true, true, false, false]);
    // The slots that it may not have are there for the others.
    let mut quick: Vec<PendingWorker> = (0..12).map(|_| ask(&mut pool, wish("quick"))).collect();
    assert_eq!(quick.iter_mut().filter_map(PendingWorker::worker).count(), 12);
    assert_eq!(pool.waiting(), BTreeMap::from([("slow".to_owned(), 2)]));
    // A larger limit holds at once, and without one the limit of every service does.
    pool.limit_services(HashMap::from([("slow".to_owned(), 3)]), NOW);
    assert!(slow[2].worker().is_some() && slow[3].worker().is_none());
    pool.limit_services(HashMap::new(), NOW);
    assert!(slow[3].worker().is_some());
}

#[test]
fn servers_share_the_limit_of_a_service() {
    let limits = PoolLimits { n_servers: 2, ..LIMITS };
    let mut pool = pool(limits, [row("a", &["slow"])]);
    pool.limit_services(HashMap::from([("slow".to_owned(), 3)]), NOW);
    let mut calls: Vec<PendingWorker> = (0..3).map(|_| ask(&mut pool, wish("slow"))).collect();
    assert_eq!(calls.iter_mut().filter_map(PendingWorker::worker).count(), 2);
}

#[test]
fn one_service_does_not_fill_a_worker_that_has_others() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 8, ..row("a", &["slow", "fast"]) }]);
    let mut slow: Vec<PendingWorker> = (0..8).map(|_| ask(&mut pool, wish("slow"))).collect();
    assert_eq!(slow.iter_mut().filter_map(PendingWorker::worker).count(), 6);
    assert_eq!(pass(&mut pool, wish("fast")), "a");
}

#[test]
fn higher_priorities_get_a_free_worker_first_but_not_always() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let mut holder = ask(&mut pool, wish("s"));
    assert!(holder.worker().is_some());
    let with = |priority| WorkerRequest { priority, ..wish("s") };
    let mut lowest = ask(&mut pool, with(Priority::Lowest));
    let mut highest: Vec<PendingWorker> = (0..6).map(|_| ask(&mut pool, with(Priority::Highest))).collect();
    let mut order = Vec::new();
    let mut ticket = holder.ticket;
    for _ in 0..7 {
        pool.leave("s", ticket, NOW);
        let all = highest.iter_mut().chain([&mut lowest]);
        ticket = all.filter_map(|asked| asked.worker().map(|_| asked.ticket)).next().unwrap();
        order.push(ticket == lowest.ticket);
    }
    assert_eq!(
        order.iter().position(|is_lowest| *is_lowest),
        Some(3),
        "the fifth place of the service: {order:?}"
    );
}

#[test]
fn a_call_that_stops_waiting_takes_no_worker() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let first = ask(&mut pool, wish("s"));
    let second = ask(&mut pool, wish("s"));
    let mut third = ask(&mut pool, wish("s"));
    pool.leave("s", second.ticket, NOW);
    pool.leave("s", first.ticket, NOW);
    assert!(third.worker().is_some());
    pool.leave("s", third.ticket, NOW);
    pool.leave("s", third.ticket, NOW);
    assert_eq!(pool.workers["a"].n_calls, 0);
    assert!(pool.working.is_empty());
    assert_eq!(pool.services["s"].n_calls, 0);
}

#[test]
fn a_new_worker_takes_waiting_calls() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let _first = ask(&mut pool, wish("s"));
    let mut second = ask(&mut pool, wish("s"));
    assert_eq!(second.worker(), None);
    pool.put(row("b", &["s"]), NOW);
    assert_eq!(second.worker().as_deref(), Some("b"));
}

#[test]
fn a_worker_of_several_services_goes_first_to_the_one_that_went_without() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["busy", "quiet"]) }]);
    let first = ask(&mut pool, wish("busy"));
    let mut busy = ask(&mut pool, wish("busy"));
    let mut quiet = ask(&mut pool, wish("quiet"));
    pool.leave("busy", first.ticket, NOW);
    assert_eq!((busy.worker(), quiet.worker().as_deref()), (None, Some("a")));
}

#[test]
fn calls_that_wait_for_dead_workers_are_answered() {
    let mut pool = pool(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let working = ask(&mut pool, wish("s"));
    let mut waiting = ask(&mut pool, wish("s"));
    let later = NOW.after(15_001);
    pool.tidy(NOW);
    assert!(waiting.reply.try_recv().is_err(), "it lives");
    pool.tidy(later);
    assert_eq!(waiting.reply.try_recv(), Ok(Err(NoWorker::NoneAlive)));
    assert!(pool.worker("a").is_some(), "somebody still has a place there");
    pool.leave("s", working.ticket, later);
    pool.leave("s", waiting.ticket, later);
    pool.tidy(later);
    assert!(pool.workers.is_empty() && pool.services.is_empty() && pool.working.is_empty());
}

#[test]
fn a_worker_may_change_its_services_and_older_rows_are_ignored() {
    let mut pool = pool(LIMITS, [row("a", &["s", "t"])]);
    let later = NOW.after(5);
    assert!(pool.put(WorkerRow { beat_at: later, ..row("a", &["t", "u"]) }, later));
    assert!(pool.put(row("a", &["s"]), later));
    assert_eq!(pool.ask(wish("s"), later).unwrap_err(), NoWorker::NoneAlive);
    assert_eq!(pass(&mut pool, wish("t")), "a");
    assert_eq!(pass(&mut pool, wish("u")), "a");
}

#[test]
fn there_is_room_for_so_many_and_the_dead_make_room() {
    let mut pool = WorkerPool::new(LIMITS);
    for n in 0..WORKERS_MAX {
        assert!(pool.put(row(&format!("w{n}"), &["s"]), NOW));
    }
    assert!(!pool.put(row("one more", &["s"]), NOW));
    assert!(pool.put(row("w7", &["s"]), NOW), "it is there already");
    let later = NOW.after(20_000);
    assert!(pool.put(WorkerRow { beat_at: later, ..row("one more", &["s"]) }, later));
    assert_eq!(pool.workers.len(), 1);
}

#[test]
fn a_call_waits_for_workers_that_could_not_say_that_they_live() {
    let silent = WorkerRow { beat_at: Timestamp(NOW.0 - 60_000), ..row("a", &["s"]) };
    let pull = WorkerRow { kind: "async".to_owned(), ..row("p", &["pull"]) };
    let mut pool = pool(LIMITS, []);
    pool.expect(&[silent.clone(), pull], NOW.after(100));
    assert_eq!(pool.ask(wish("t"), NOW).unwrap_err(), NoWorker::NoneAlive, "nobody ever had it");
    assert_eq!(pool.ask(wish("pull"), NOW).unwrap_err(), NoWorker::NoneAlive, "it claims and is not called");
    let mut asked = ask(&mut pool, wish("s"));
    pool.put(silent, NOW);
    pool.tidy(NOW.after(99));
    assert_eq!(asked.worker(), None, "it may be dead");
    pool.put(WorkerRow { beat_at: NOW.after(99), ..row("a", &["s"]) }, NOW.after(99));
    assert_eq!(asked.worker().as_deref(), Some("a"));
}

#[test]
fn workers_that_stay_silent_are_not_waited_for_longer_than_they_live() {
    let mut pool = pool(LIMITS, []);
    pool.expect(&[row("a", &["s"])], NOW.after(100));
    let mut asked = ask(&mut pool, wish("s"));
    pool.tidy(NOW.after(100));
    assert_eq!(asked.reply.try_recv(), Ok(Err(NoWorker::NoneAlive)));
    assert_eq!(pool.ask(wish("s"), NOW.after(100)).unwrap_err(), NoWorker::NoneAlive);
    assert!(pool.services.is_empty());
}
