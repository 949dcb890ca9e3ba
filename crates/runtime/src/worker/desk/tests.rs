use super::*;

const NOW: Timestamp = Timestamp(1_000_000);
const LIMITS: Limits = Limits { service_calls: 100, worker_calls: 10, ttl_ms: 15_000, n_servers: 1 };

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
        registered_at: NOW,
        beat_at: NOW,
    }
}

fn wish(service: &str) -> Wish {
    let service = service.to_owned();
    Wish { service, priority: Priority::Medium, avoid: Vec::new(), by_load: false }
}

fn desk(limits: Limits, rows: impl IntoIterator<Item = WorkerRow>) -> Desk {
    let mut desk = Desk::new(limits);
    for row in rows {
        assert!(desk.put(row, NOW));
    }
    desk
}

struct Asked {
    ticket: u64,
    told: oneshot::Receiver<Told>,
}

impl Asked {
    /// The worker it has been told.
    fn worker(&mut self) -> Option<String> {
        self.told.try_recv().ok().map(|told| told.unwrap().id)
    }
}

fn ask(desk: &mut Desk, wish: Wish) -> Asked {
    let (ticket, told) = desk.ask(wish, NOW).unwrap();
    Asked { ticket, told }
}

/// Asks, and gives the place back at once.
fn pass(desk: &mut Desk, wish: Wish) -> String {
    let service = wish.service.clone();
    let mut asked = ask(desk, wish);
    let worker = asked.worker().expect("a worker is free");
    desk.leave(&service, asked.ticket, NOW);
    worker
}

#[test]
fn workers_take_turns() {
    let mut desk = desk(LIMITS, ["a", "b", "c"].map(|id| row(id, &["s"])));
    let turns: Vec<String> = (0..6).map(|_| pass(&mut desk, wish("s"))).collect();
    assert_eq!(turns, ["a", "b", "c", "a", "b", "c"]);
}

#[test]
fn a_service_nobody_has_is_refused() {
    let mut desk =
        desk(LIMITS, [row("a", &["s"]), WorkerRow { kind: "async".to_owned(), ..row("p", &["pull"]) }]);
    assert_eq!(desk.ask(wish("t"), NOW).unwrap_err(), Nobody::Alive);
    assert_eq!(desk.ask(wish("pull"), NOW).unwrap_err(), Nobody::Alive, "it claims and is not called");
    assert_eq!(desk.ask(wish("s"), NOW.after(15_001)).unwrap_err(), Nobody::Alive);
    assert!(desk.ask(wish("s"), NOW.after(15_000)).is_ok());
    desk.put(WorkerRow { url: String::new(), ..row("u", &["u"]) }, NOW);
    assert_eq!(desk.ask(wish("u"), NOW).unwrap_err(), Nobody::Alive, "it has no address");
}

#[test]
fn workers_that_failed_are_avoided_unless_all_did() {
    let mut desk = desk(LIMITS, ["a", "b", "c"].map(|id| row(id, &["s"])));
    let avoid = |ids: &[&str]| Wish { avoid: ids.iter().map(|id| (*id).to_owned()).collect(), ..wish("s") };
    for _ in 0..5 {
        assert_eq!(pass(&mut desk, avoid(&["a", "c"])), "b");
    }
    assert_eq!(pass(&mut desk, avoid(&["a", "b", "c"])), "c", "it is simply c's turn");
}

#[test]
fn a_call_waits_for_somebody_else_rather_than_for_who_failed() {
    let limits = Limits { worker_calls: 1, ..LIMITS };
    let mut desk = desk(limits, ["a", "b"].map(|id| row(id, &["s"])));
    let mut first = ask(&mut desk, wish("s"));
    let mut second = ask(&mut desk, wish("s"));
    assert_eq!((first.worker().as_deref(), second.worker().as_deref()), (Some("a"), Some("b")));
    let mut picky = ask(&mut desk, Wish { avoid: vec!["a".to_owned()], ..wish("s") });
    let mut plain = ask(&mut desk, wish("s"));
    desk.leave("s", first.ticket, NOW);
    assert_eq!((picky.worker(), plain.worker().as_deref()), (None, Some("a")), "the next in line takes it");
    desk.leave("s", second.ticket, NOW);
    assert_eq!(picky.worker().as_deref(), Some("b"));
}

#[test]
fn the_least_loaded_gets_the_call() {
    let loaded = |id, load| WorkerRow { load, ..row(id, &["s"]) };
    let mut desk = desk(LIMITS, [loaded("a", 5), loaded("b", 1), loaded("c", i64::MAX)]);
    let by_load = || Wish { by_load: true, ..wish("s") };
    let mut asked: Vec<Asked> = (0..6).map(|_| ask(&mut desk, by_load())).collect();
    let workers: Vec<String> = asked.iter_mut().map(|asked| asked.worker().unwrap()).collect();
    // What we have them do counts: b is at five after four calls, and the tie goes to a.
    assert_eq!(workers, ["b", "b", "b", "b", "a", "b"]);
    desk.put(WorkerRow { beat_at: NOW.after(1), ..loaded("b", i64::MIN) }, NOW.after(1));
    desk.put(WorkerRow { beat_at: NOW.after(1), ..loaded("a", 100) }, NOW.after(1));
    assert_eq!(ask(&mut desk, by_load()).worker().as_deref(), Some("b"), "less than nothing is nothing");
}

#[test]
fn allocation_spreads_over_equals_and_sees_those_that_claim() {
    let mut desk = desk(LIMITS, [row("a", &["s"]), row("b", &["s"])]);
    let ids: Vec<String> = (0..4).map(|_| desk.allocate("s", NOW).unwrap().id).collect();
    assert_eq!(ids, ["a", "b", "a", "b"]);
    let pull = WorkerRow { kind: "async".to_owned(), url: String::new(), ..row("p", &["q"]) };
    desk.put(pull, NOW);
    assert_eq!(desk.allocate("q", NOW).unwrap().id, "p");
    assert_eq!(desk.allocate("s", NOW.after(15_001)), None);
    assert_eq!(desk.allocate("unknown", NOW), None);
}

#[test]
fn a_worker_gets_no_more_than_it_can_bear() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 2, ..row("a", &["s"]) }]);
    let mut asked: Vec<Asked> = (0..3).map(|_| ask(&mut desk, wish("s"))).collect();
    let told: Vec<bool> = asked.iter_mut().map(|asked| asked.worker().is_some()).collect();
    assert_eq!(told, [true, true, false]);
    desk.leave("s", asked[0].ticket, NOW);
    assert_eq!(asked[2].worker().as_deref(), Some("a"));
}

#[test]
fn a_service_gets_no_more_than_its_share_and_others_go_on() {
    let limits = Limits { service_calls: 2, ..LIMITS };
    let mut desk = desk(limits, [row("a", &["slow", "fast"])]);
    let mut slow: Vec<Asked> = (0..3).map(|_| ask(&mut desk, wish("slow"))).collect();
    let told: Vec<bool> = slow.iter_mut().map(|asked| asked.worker().is_some()).collect();
    assert_eq!(told, [true, true, false]);
    assert_eq!(pass(&mut desk, wish("fast")), "a");
    desk.leave("slow", slow[1].ticket, NOW);
    assert!(slow[2].worker().is_some());
}

#[test]
fn one_service_does_not_fill_a_worker_that_has_others() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 8, ..row("a", &["slow", "fast"]) }]);
    let mut slow: Vec<Asked> = (0..8).map(|_| ask(&mut desk, wish("slow"))).collect();
    assert_eq!(slow.iter_mut().filter_map(Asked::worker).count(), 6);
    assert_eq!(pass(&mut desk, wish("fast")), "a");
}

#[test]
fn the_more_urgent_get_a_free_place_first_but_not_always() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let mut holder = ask(&mut desk, wish("s"));
    assert!(holder.worker().is_some());
    let with = |priority| Wish { priority, ..wish("s") };
    let mut lowest = ask(&mut desk, with(Priority::Lowest));
    let mut highest: Vec<Asked> = (0..6).map(|_| ask(&mut desk, with(Priority::Highest))).collect();
    let mut order = Vec::new();
    let mut ticket = holder.ticket;
    for _ in 0..7 {
        desk.leave("s", ticket, NOW);
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
fn whoever_stops_waiting_takes_no_place() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let first = ask(&mut desk, wish("s"));
    let second = ask(&mut desk, wish("s"));
    let mut third = ask(&mut desk, wish("s"));
    desk.leave("s", second.ticket, NOW);
    desk.leave("s", first.ticket, NOW);
    assert!(third.worker().is_some());
    desk.leave("s", third.ticket, NOW);
    desk.leave("s", third.ticket, NOW);
    assert_eq!(desk.workers["a"].n_calls, 0);
    assert!(desk.working.is_empty());
    assert_eq!(desk.services["s"].n_calls, 0);
}

#[test]
fn a_worker_that_comes_takes_those_who_wait() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let _first = ask(&mut desk, wish("s"));
    let mut second = ask(&mut desk, wish("s"));
    assert_eq!(second.worker(), None);
    desk.put(row("b", &["s"]), NOW);
    assert_eq!(second.worker().as_deref(), Some("b"));
}

#[test]
fn a_worker_of_several_services_goes_first_to_the_one_that_went_without() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["busy", "quiet"]) }]);
    let first = ask(&mut desk, wish("busy"));
    let mut busy = ask(&mut desk, wish("busy"));
    let mut quiet = ask(&mut desk, wish("quiet"));
    desk.leave("busy", first.ticket, NOW);
    assert_eq!((busy.worker(), quiet.worker().as_deref()), (None, Some("a")));
}

#[test]
fn those_who_wait_for_the_dead_are_told() {
    let mut desk = desk(LIMITS, [WorkerRow { capacity: 1, ..row("a", &["s"]) }]);
    let working = ask(&mut desk, wish("s"));
    let mut waiting = ask(&mut desk, wish("s"));
    let later = NOW.after(15_001);
    desk.tidy(NOW);
    assert!(waiting.told.try_recv().is_err(), "it lives");
    desk.tidy(later);
    assert_eq!(waiting.told.try_recv(), Ok(Err(Nobody::Alive)));
    assert!(desk.worker("a").is_some(), "somebody still has a place there");
    desk.leave("s", working.ticket, later);
    desk.leave("s", waiting.ticket, later);
    desk.tidy(later);
    assert!(desk.workers.is_empty() && desk.services.is_empty() && desk.working.is_empty());
}

#[test]
fn a_worker_may_change_what_it_does_and_older_news_is_no_news() {
    let mut desk = desk(LIMITS, [row("a", &["s", "t"])]);
    let later = NOW.after(5);
    assert!(desk.put(WorkerRow { beat_at: later, ..row("a", &["t", "u"]) }, later));
    assert!(desk.put(row("a", &["s"]), later));
    assert_eq!(desk.ask(wish("s"), later).unwrap_err(), Nobody::Alive);
    assert_eq!(pass(&mut desk, wish("t")), "a");
    assert_eq!(pass(&mut desk, wish("u")), "a");
}

#[test]
fn there_is_room_for_so_many_and_the_dead_make_room() {
    let mut desk = Desk::new(LIMITS);
    for n in 0..WORKERS_MAX {
        assert!(desk.put(row(&format!("w{n}"), &["s"]), NOW));
    }
    assert!(!desk.put(row("one more", &["s"]), NOW));
    assert!(desk.put(row("w7", &["s"]), NOW), "it is there already");
    let later = NOW.after(20_000);
    assert!(desk.put(WorkerRow { beat_at: later, ..row("one more", &["s"]) }, later));
    assert_eq!(desk.workers.len(), 1);
}

#[test]
fn a_call_waits_for_workers_that_could_not_say_that_they_live() {
    let silent = WorkerRow { beat_at: Timestamp(NOW.0 - 60_000), ..row("a", &["s"]) };
    let pull = WorkerRow { kind: "async".to_owned(), ..row("p", &["pull"]) };
    let mut desk = desk(LIMITS, []);
    desk.expect(&[silent.clone(), pull], NOW.after(100));
    assert_eq!(desk.ask(wish("t"), NOW).unwrap_err(), Nobody::Alive, "nobody ever had it");
    assert_eq!(desk.ask(wish("pull"), NOW).unwrap_err(), Nobody::Alive, "it claims and is not called");
    let mut asked = ask(&mut desk, wish("s"));
    desk.put(silent, NOW);
    desk.tidy(NOW.after(99));
    assert_eq!(asked.worker(), None, "it may be dead");
    desk.put(WorkerRow { beat_at: NOW.after(99), ..row("a", &["s"]) }, NOW.after(99));
    assert_eq!(asked.worker().as_deref(), Some("a"));
}

#[test]
fn workers_that_stay_silent_are_not_waited_for_longer_than_they_live() {
    let mut desk = desk(LIMITS, []);
    desk.expect(&[row("a", &["s"])], NOW.after(100));
    let mut asked = ask(&mut desk, wish("s"));
    desk.tidy(NOW.after(100));
    assert_eq!(asked.told.try_recv(), Ok(Err(Nobody::Alive)));
    assert_eq!(desk.ask(wish("s"), NOW.after(100)).unwrap_err(), Nobody::Alive);
    assert!(desk.services.is_empty());
}
