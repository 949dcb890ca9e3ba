//! Lists by name, a page at a time, and the deletion of names that nothing uses.

use windlass_engine::counter::Revision;
use windlass_engine::id::ScheduleId;
use windlass_engine::job::{JobInput, JobSpec};
use windlass_engine::project::Project;
use windlass_store::Store;
use windlass_store::commit::{Commit, ScheduleChange};
use windlass_store::page::{EXAMINED_MAX, NameRange, Order, Part};
use windlass_store::queue::{QueueLimits, QueueSettings};
use windlass_store::run::{RunQuery, RunStatus};
use windlass_store::service::{LiveService, ServiceRow, ServiceSettings, WaitingService};
use windlass_store::worker::{WorkerQuery, WorkerRow};

use crate::fixture::{StoreFixture, at, run_id, schedule_id, schedule_row};

const PROJECT: &Project = &Project::DEFAULT;

fn after(name: Option<&str>, limit: usize) -> NameRange {
    NameRange::After { name: name.map(str::to_owned), limit }
}

fn worker(id: &str, services: &[&str], beat_at: i64) -> WorkerRow {
    WorkerRow {
        id: id.to_owned(),
        name: id.to_owned(),
        url: String::new(),
        kind: "async".to_owned(),
        services: services.iter().map(|&name| name.to_owned()).collect(),
        queues: Vec::new(),
        load: 0,
        capacity: 1,
        is_draining: false,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: at(1),
        beat_at: at(beat_at),
    }
}

fn settings(name: &str, is_paused: bool, limits: QueueLimits, updated_at: i64) -> QueueSettings {
    QueueSettings { name: name.to_owned(), is_paused, limits, updated_at: at(updated_at) }
}

async fn queues(store: &dyn Store, names: NameRange) -> Vec<String> {
    let found = store.queues(PROJECT, names, at(9)).await.unwrap();
    found.into_iter().map(|queue| queue.name).collect()
}

async fn workers(store: &dyn Store, query: WorkerQuery) -> Vec<String> {
    store.workers(PROJECT, query).await.unwrap().into_iter().map(|worker| worker.id).collect()
}

async fn live(store: &dyn Store, since: i64, names: NameRange) -> Vec<(String, u64)> {
    let found = store.live_services(PROJECT, at(since), names).await.unwrap();
    found.into_iter().map(|LiveService { name, n_workers, .. }| (name, n_workers)).collect()
}

pub async fn queues_are_listed_a_page_at_a_time(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    // Some have jobs, some have settings, one has both, and one had a job.
    for (n, queue) in [(1, "b"), (2, "d"), (3, "c"), (4, "gone"), (5, "Z")] {
        fixture.create_job(n, JobSpec::new("demo", queue), at(2)).await.unwrap();
    }
    fixture.submit(4, JobInput::Cancel, at(3)).await.unwrap();
    for queue in ["a", "c", "e"] {
        store.save_queue(PROJECT, settings(queue, true, QueueLimits::default(), 1)).await.unwrap();
    }
    assert_eq!(queues(store, NameRange::All).await, ["Z", "a", "b", "c", "d", "e"]);
    assert_eq!(queues(store, after(None, 3)).await, ["Z", "a", "b"]);
    assert_eq!(queues(store, after(Some("b"), 2)).await, ["c", "d"]);
    assert_eq!(queues(store, after(Some("d"), 2)).await, ["e"]);
    assert!(queues(store, after(Some("e"), 2)).await.is_empty());
    let one = store.queues(PROJECT, NameRange::One("c".to_owned()), at(9)).await.unwrap();
    assert_eq!(
        (one.len(), one[0].is_paused, one[0].open.len(), one[0].oldest_due_at),
        (1, true, 1, Some(at(2)))
    );
    assert!(queues(store, NameRange::One("gone".to_owned())).await.is_empty());
}

pub async fn workers_are_listed_a_page_at_a_time(store: &dyn Store) {
    for (id, beat_at) in [("d", 4), ("a", 1), ("c", 3), ("b", 2), ("B", 5)] {
        store.save_worker(PROJECT, worker(id, &["sum"], beat_at)).await.unwrap();
    }
    let page = |ids, alive_since| WorkerQuery { ids, alive_since, ..WorkerQuery::default() };
    assert_eq!(workers(store, page(after(None, 2), None)).await, ["B", "a"]);
    assert_eq!(workers(store, page(after(Some("a"), 2), None)).await, ["b", "c"]);
    assert_eq!(workers(store, page(after(Some("c"), 2), None)).await, ["d"]);
    // The limit counts workers that match.
    assert_eq!(workers(store, page(after(Some("B"), 2), Some(at(3)))).await, ["c", "d"]);
    assert!(workers(store, page(NameRange::One("a".to_owned()), Some(at(3)))).await.is_empty());
}

pub async fn workers_of_a_service_are_listed_without_the_rest(store: &dyn Store) {
    for (id, services) in
        [("a", &["sum", "sum"][..]), ("b", &["route"]), ("c", &["route", "sum"]), ("d", &["sum"])]
    {
        store.save_worker(PROJECT, worker(id, services, 1)).await.unwrap();
    }
    let page = |ids, service: &str| WorkerQuery { ids, service: Some(service.to_owned()), alive_since: None };
    assert_eq!(workers(store, page(NameRange::All, "sum")).await, ["a", "c", "d"]);
    assert_eq!(workers(store, page(after(Some("a"), 1), "sum")).await, ["c"]);
    assert_eq!(workers(store, page(NameRange::One("b".to_owned()), "route")).await, ["b"]);
    assert!(workers(store, page(NameRange::One("b".to_owned()), "sum")).await.is_empty());
}

pub async fn services_are_listed_a_page_at_a_time(store: &dyn Store) {
    for name in ["tts", "audio", "video"] {
        let settings = ServiceSettings { recheck_ms: Some(1_000), ..ServiceSettings::default() };
        let row = ServiceRow { name: name.to_owned(), settings, updated_at: at(1) };
        store.save_service(PROJECT, row).await.unwrap();
    }
    let names = |rows: Vec<ServiceRow>| rows.into_iter().map(|row| row.name).collect::<Vec<_>>();
    assert_eq!(names(store.services(PROJECT, after(None, 2)).await.unwrap()), ["audio", "tts"]);
    assert_eq!(names(store.services(PROJECT, after(Some("tts"), 2)).await.unwrap()), ["video"]);
    let one = NameRange::One("tts".to_owned());
    assert_eq!(names(store.services(PROJECT, one).await.unwrap()), ["tts"]);

    store.save_worker(PROJECT, worker("a", &["sum", "route", "sum"], 5)).await.unwrap();
    store.save_worker(PROJECT, worker("b", &["sum"], 6)).await.unwrap();
    store.save_worker(PROJECT, worker("dead", &["sum", "old"], 1)).await.unwrap();
    let pairs =
        |list: &[(&str, u64)]| list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
    assert_eq!(live(store, 5, NameRange::All).await, pairs(&[("route", 1), ("sum", 2)]));
    assert_eq!(live(store, 5, after(None, 1)).await, pairs(&[("route", 1)]));
    assert_eq!(live(store, 5, after(Some("route"), 1)).await, pairs(&[("sum", 2)]));
    assert_eq!(live(store, 6, NameRange::One("sum".to_owned())).await, pairs(&[("sum", 1)]));
    assert!(live(store, 5, NameRange::One("old".to_owned())).await.is_empty());
}

pub async fn supply_is_added_up_by_service(store: &dyn Store) {
    let save = async |id: &str, services: &[&str], (capacity, load, is_draining)| {
        let row = WorkerRow { capacity, load, ..worker(id, services, 5) };
        store.save_worker(PROJECT, row).await.unwrap();
        store.drain_worker(PROJECT, id, is_draining).await.unwrap();
    };
    save("a", &["sum", "route"], (4, 3, false)).await;
    save("b", &["sum"], (8, 1, false)).await;
    // It finishes its calls, and takes no more.
    save("c", &["sum"], (16, 2, true)).await;
    // It told no capacity.
    save("d", &["route"], (0, -1, false)).await;
    let supply = |name: &str, n_workers, capacity, load| LiveService {
        name: name.to_owned(),
        n_workers,
        capacity,
        load,
    };
    let found = store.live_services(PROJECT, at(5), NameRange::All).await.unwrap();
    assert_eq!(found, [supply("route", 2, 4, 3), supply("sum", 3, 12, 6)]);
}

pub async fn waiting_jobs_are_counted_by_service(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let keyed = |name: &str| JobSpec { limit_key: "one".to_owned(), ..JobSpec::new(name, "q") };
    for (n, spec) in [
        (1, JobSpec::new("tts", "q")),
        (2, JobSpec::new("tts", "other")),
        (3, keyed("tts")),
        (4, keyed("only-keyed")),
        (5, JobSpec::new("gone", "q")),
        (6, JobSpec::new("Video", "q")),
    ] {
        fixture.create_job(n, spec, at(2)).await.unwrap();
    }
    fixture.create_job(7, JobSpec::new("later", "q"), at(20)).await.unwrap();
    fixture.submit(5, JobInput::Cancel, at(3)).await.unwrap();
    let waiting = async |names, now| -> Vec<(String, u64)> {
        let found = store.waiting_services(PROJECT, names, at(now)).await.unwrap();
        found.into_iter().map(|WaitingService { name, n_waiting }| (name, n_waiting)).collect()
    };
    let pairs =
        |list: &[(&str, u64)]| list.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect::<Vec<_>>();
    let all = pairs(&[("Video", 1), ("only-keyed", 1), ("tts", 3)]);
    assert_eq!(waiting(NameRange::All, 9).await, all);
    assert_eq!(waiting(after(None, 2), 9).await, all[..2]);
    assert_eq!(waiting(after(Some("Video"), 1), 9).await, all[1..2]);
    assert_eq!(waiting(NameRange::One("tts".to_owned()), 9).await, all[2..]);
    assert!(waiting(NameRange::One("gone".to_owned()), 9).await.is_empty());
    assert!(waiting(NameRange::One("later".to_owned()), 9).await.is_empty());
    assert_eq!(waiting(NameRange::One("later".to_owned()), 20).await, pairs(&[("later", 1)]));
}

pub async fn schedules_are_listed_a_page_at_a_time(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    // Two of them were created in the same millisecond.
    for (n, created_at) in [(3, 1), (1, 2), (2, 2), (4, 3)] {
        let row = schedule_row(n, Some(at(99)), at(created_at));
        let schedules = vec![ScheduleChange { expected_rev: Revision(0), row, delete: false }];
        let commit = Commit { schedules, ..Commit::new(PROJECT, fixture.command(), at(4)) };
        fixture.commit(commit).await.unwrap();
    }
    let (mut seen, mut part) =
        (Vec::<ScheduleId>::new(), Part { order: Order::Oldest, limit: 3, ..Part::default() });
    let first = store.schedules(PROJECT, part.clone()).await.unwrap();
    seen.extend(first.items.iter().map(|scheduled| scheduled.row.id()));
    part.cursor = first.next;
    let last = store.schedules(PROJECT, part).await.unwrap();
    seen.extend(last.items.iter().map(|scheduled| scheduled.row.id()));
    assert_eq!(seen, [3, 1, 2, 4].map(schedule_id));
    assert!(last.next.is_none());
    assert_eq!(store.schedule(PROJECT, schedule_id(2)).await.unwrap().unwrap().row.id(), schedule_id(2));
    assert!(store.schedule(PROJECT, schedule_id(9)).await.unwrap().is_none());
}

pub async fn a_worker_that_registers_again_changes_its_services(store: &dyn Store) {
    store.save_worker(PROJECT, worker("a", &["sum", "route"], 1)).await.unwrap();
    store.save_worker(PROJECT, worker("a", &["route", "tts"], 2)).await.unwrap();
    let names: Vec<String> = live(store, 0, NameRange::All).await.into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["route", "tts"]);
    assert_eq!(store.delete_workers(at(9), 10).await.unwrap(), 1);
    assert!(live(store, 0, NameRange::All).await.is_empty());
    // Nothing of the deleted worker is found under its id.
    store.save_worker(PROJECT, worker("a", &["sum"], 3)).await.unwrap();
    assert_eq!(live(store, 0, NameRange::All).await, [("sum".to_owned(), 1)]);
}

pub async fn empty_queues_without_settings_are_deleted(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let limited = QueueLimits { concurrency: Some(2), ..QueueLimits::default() };
    for row in [
        settings("idle-1", false, QueueLimits::default(), 1),
        settings("idle-2", false, QueueLimits::default(), 2),
        settings("recent", false, QueueLimits::default(), 50),
        settings("paused", true, QueueLimits::default(), 1),
        settings("limited", false, limited, 1),
        settings("busy", false, QueueLimits::default(), 1),
    ] {
        store.save_queue(PROJECT, row).await.unwrap();
    }
    fixture.create_job(1, JobSpec::new("demo", "busy"), at(2)).await.unwrap();
    fixture.create_job(2, JobSpec::new("demo", "idle-1"), at(2)).await.unwrap();
    fixture.submit(2, JobInput::Cancel, at(3)).await.unwrap();
    let other = Project::new("other").unwrap();
    store.save_queue(&other, settings("idle-3", false, QueueLimits::default(), 1)).await.unwrap();
    assert_eq!(store.delete_queues(at(10), 2).await.unwrap(), 2);
    assert_eq!(store.delete_queues(at(10), 2).await.unwrap(), 1);
    assert_eq!(store.delete_queues(at(10), 2).await.unwrap(), 0);
    assert_eq!(queues(store, NameRange::All).await, ["busy", "limited", "paused", "recent"]);
    assert!(store.queues(&other, NameRange::All, at(9)).await.unwrap().is_empty());
}

pub async fn a_rare_match_is_found_by_following_the_pages(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    // The oldest run has the label; a page examines fewer runs than there are.
    let n_runs = EXAMINED_MAX + 20;
    for first in (0..n_runs).step_by(500) {
        let group = (first..n_runs.min(first + 500)).map(|n| {
            let mut commit = fixture.entry(n as u64, 0, RunStatus::Completed, at(n as i64));
            if n == 0 {
                let change = commit.run.as_mut().unwrap();
                change.create.as_mut().unwrap().labels.insert("team".to_owned(), "blue".to_owned());
            }
            commit
        });
        for answer in store.commit(group.collect()).await {
            answer.unwrap();
        }
    }
    let mut query = RunQuery { label: Some(("team".to_owned(), None)), ..RunQuery::default() };
    let mut found = Vec::new();
    for _ in 0..3 {
        let page = store.runs(PROJECT, query.clone()).await.unwrap();
        found.extend(page.items.into_iter().map(|row| row.id));
        match page.next {
            Some(next) => query.part.cursor = Some(next),
            None => break,
        }
    }
    assert_eq!(found, [run_id(0)]);
    // With an index, the first page has it.
    let query = RunQuery { statuses: vec![RunStatus::Completed], until: Some(at(1)), ..RunQuery::default() };
    let page = store.runs(PROJECT, query).await.unwrap();
    assert_eq!((page.items.len(), page.next), (1, None));
}
