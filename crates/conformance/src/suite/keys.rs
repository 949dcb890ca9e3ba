//! Limit keys: jobs by key, by queue and service together, and the jobs that workers hold.

use std::collections::BTreeSet;

use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::{JobInput, JobOutcome, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::raw_json::RawJson;
use windlass_store::Store;
use windlass_store::commit::{Commit, QueueGuard};
use windlass_store::error::{StoreError, Subject};
use windlass_store::job::{JobRow, KeyQuery, KeyRows, Portion, ReadyCursor, ReadyQuery};
use windlass_store::queue::{QueueLimits, QueueSettings, Spent};

use crate::fixture::{StoreFixture, at, job_id};

fn keyed(key: &str, priority: i32) -> JobSpec {
    JobSpec { limit_key: key.to_owned(), priority, ..JobSpec::new("demo", "q") }
}

fn claim() -> JobInput {
    JobInput::Claim { worker: "w".to_owned(), lease_ms: 1_000 }
}

fn query(limit: usize) -> KeyQuery {
    KeyQuery { queue: "q".to_owned(), now: at(1_000), limit, ..KeyQuery::default() }
}

/// The key, the priority, the numbers of the jobs, and whether the key has no others.
fn told(rows: &KeyRows) -> Vec<(&str, i32, Vec<u64>, bool)> {
    let number = |id| (1..100).find(|n| job_id(*n) == id).unwrap();
    let turn = |turn: &windlass_store::job::KeyBatch| turn.rows.iter().map(|row| number(row.id())).collect();
    rows.turns.iter().map(|one| (one.key.as_str(), one.priority, turn(one), one.is_all)).collect()
}

async fn ready(store: &dyn Store, query: ReadyQuery) -> Vec<u64> {
    let rows =
        store.ready(&Project::DEFAULT, ReadyQuery { now: at(1_000), limit: 100, ..query }).await.unwrap();
    let number = |id| (1..100).find(|n| job_id(*n) == id).unwrap();
    rows.iter().map(|row| number(row.id())).collect()
}

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

pub async fn a_key_with_many_jobs_hides_no_other_key(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=20 {
        fixture.create_job(n, keyed("big", 0), at(1)).await.unwrap();
    }
    fixture.create_job(21, keyed("small", 0), at(2)).await.unwrap();
    fixture.create_job(22, keyed("", 0), at(3)).await.unwrap();
    fixture.create_job(23, keyed("urgent", 5), at(4)).await.unwrap();
    let rows = store.ready_by_key(&Project::DEFAULT, query(8)).await.unwrap();
    let expected = [
        ("urgent", 5, vec![23], true),
        ("", 0, vec![22], true),
        ("big", 0, vec![1, 2], false),
        ("small", 0, vec![21], true),
    ];
    assert_eq!((told(&rows), rows.rest), (expected.to_vec(), None));
    let without = KeyQuery { except: ["big", "urgent"].map(Into::into).into(), ..query(8) };
    let rows = store.ready_by_key(&Project::DEFAULT, without).await.unwrap();
    assert_eq!(told(&rows), [("", 0, vec![22], true), ("small", 0, vec![21], true)]);
}

pub async fn a_query_for_too_many_keys_continues_after_the_last_one(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, key) in (1..).zip(["a", "b", "c", "d", "e"]) {
        fixture.create_job(n, keyed(key, 0), at(1)).await.unwrap();
    }
    let first = store.ready_by_key(&Project::DEFAULT, query(2)).await.unwrap();
    assert_eq!((told(&first), first.rest), (vec![("a", 0, vec![1], true), ("b", 0, vec![2], true)], Some(0)));
    let on = |after: &str| KeyQuery { after: Some(after.into()), ..query(4) };
    let second = store.ready_by_key(&Project::DEFAULT, on("b")).await.unwrap();
    let keys = |rows: &KeyRows| rows.turns.iter().map(|turn| turn.key.clone()).collect::<Vec<_>>();
    assert_eq!((keys(&second), second.rest), (names(&["c", "d", "e", "a"]), Some(0)));
    let all = store.ready_by_key(&Project::DEFAULT, KeyQuery { limit: 5, ..on("d") }).await.unwrap();
    assert_eq!((keys(&all), all.rest), (names(&["e", "a", "b", "c", "d"]), None));
}

pub async fn only_jobs_that_can_be_claimed_are_found_by_key(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=4 {
        fixture.create_job(n, keyed("k", 0), at(1)).await.unwrap();
    }
    fixture.submit(1, claim(), at(2)).await.unwrap();
    fixture.create_job(5, JobSpec { run_at: Some(at(5_000)), ..keyed("later", 0) }, at(1)).await.unwrap();
    fixture.create_job(6, JobSpec { name: "else".to_owned(), ..keyed("k", 0) }, at(1)).await.unwrap();
    fixture.create_job(7, JobSpec { queue: "other".to_owned(), ..keyed("k", 0) }, at(1)).await.unwrap();
    let taken = KeyQuery { taken: [job_id(3)].into(), ..query(9) };
    let rows = store.ready_by_key(&Project::DEFAULT, taken.clone()).await.unwrap();
    assert_eq!(told(&rows), [("k", 0, vec![2, 4, 6], true)]);
    let rows = store
        .ready_by_key(&Project::DEFAULT, KeyQuery { service: Some("demo".to_owned()), ..taken })
        .await
        .unwrap();
    assert_eq!(told(&rows), [("k", 0, vec![2, 4], true)]);
    let settings = QueueSettings {
        name: "q".to_owned(),
        is_paused: true,
        limits: QueueLimits::default(),
        updated_at: at(1),
    };
    store.save_queue(&Project::DEFAULT, settings).await.unwrap();
    assert_eq!(store.ready_by_key(&Project::DEFAULT, query(9)).await.unwrap(), KeyRows::default());
}

pub async fn ready_jobs_match_by_queue_and_service_together(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let spec = |name: &str, queue: &str, key: &str| JobSpec {
        limit_key: key.to_owned(),
        ..JobSpec::new(name, queue)
    };
    fixture.create_job(1, spec("s", "a", ""), at(1)).await.unwrap();
    fixture.create_job(2, spec("t", "a", "k"), at(2)).await.unwrap();
    fixture.create_job(3, spec("s", "a", "k"), at(3)).await.unwrap();
    fixture.create_job(4, spec("s", "b", "k"), at(4)).await.unwrap();
    fixture.create_job(5, spec("s", "c", ""), at(5)).await.unwrap();
    let pairs = vec![("a".to_owned(), "s".to_owned())];
    assert_eq!(ready(store, ReadyQuery { pairs, ..ReadyQuery::default() }).await, [1, 3]);
    let services = ReadyQuery { services: names(&["s"]), ..ReadyQuery::default() };
    assert_eq!(ready(store, services.clone()).await, [1, 3, 4, 5]);
    let except = ReadyQuery { except: names(&["a", "x"]), ..services };
    assert_eq!(ready(store, except.clone()).await, [4, 5]);
    let and_queue = ReadyQuery { queues: names(&["a"]), ..except };
    assert_eq!(ready(store, and_queue).await, [1, 2, 3, 4, 5]);
}

pub async fn jobs_that_workers_hold_are_found_by_queue(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=4 {
        fixture.create_job(n, keyed("k", 0), at(1)).await.unwrap();
    }
    fixture.create_job(5, JobSpec { queue: "other".to_owned(), ..keyed("k", 0) }, at(1)).await.unwrap();
    for n in [1, 2, 5] {
        fixture.submit(n, claim(), at(2)).await.unwrap();
    }
    let done = JobInput::Finish { fence: Fence(1), outcome: JobOutcome::Done { result: RawJson::default() } };
    fixture.submit(2, done, at(3)).await.unwrap();
    fixture.submit(3, claim(), at(3)).await.unwrap();
    let held = store.held(&Project::DEFAULT, "q".to_owned()).await.unwrap();
    let held: BTreeSet<_> =
        held.jobs.iter().map(|row| (row.job, row.rev.0, row.limit_key.as_str())).collect();
    assert_eq!(held, BTreeSet::from([(job_id(1), 2, "k"), (job_id(3), 2, "k")]));
}

pub async fn a_turn_at_a_queue_is_had_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let settings =
        |limits| QueueSettings { name: "q".to_owned(), is_paused: false, limits, updated_at: at(1) };
    store.save_queue(&Project::DEFAULT, settings(QueueLimits::default())).await.unwrap();
    fixture.create_job(1, keyed("k", 0), at(1)).await.unwrap();
    let spent = |full_at| Spent { queue: "q".to_owned(), limit_key: "k".to_owned(), full_at: at(full_at) };
    let turn =
        |expected, full_at| QueueGuard { queue: "q".to_owned(), expected, spent: vec![spent(full_at)] };
    let commit =
        |turn| Commit { turns: vec![turn], ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) };
    store.commit_one(commit(turn(0, 50))).await.unwrap();
    let refused = store.commit_one(commit(turn(0, 90))).await.unwrap_err();
    let what = Subject::Queue("q".to_owned());
    assert!(
        matches!(&refused, StoreError::Conflict { what: found, expected: 0, found: 1 } if *found == what),
        "{refused}"
    );
    let held = store.held(&Project::DEFAULT, "q".to_owned()).await.unwrap();
    assert_eq!((held.turns, held.spent), (1, vec![spent(50)]), "a refused commit spends nothing");
    // Two commits of one group expect the same turn: the second is refused.
    let both = store.commit(vec![commit(turn(1, 60)), commit(turn(1, 70))]).await;
    assert_eq!(both.iter().filter(|answer| answer.is_ok()).count(), 1);
    store
        .save_queue(&Project::DEFAULT, settings(QueueLimits { fair: true, ..QueueLimits::default() }))
        .await
        .unwrap();
    assert_eq!(
        store.held(&Project::DEFAULT, "q".to_owned()).await.unwrap().turns,
        2,
        "settings do not take turns back"
    );
}

pub async fn a_spent_rate_is_kept_until_it_is_full_again(store: &dyn Store) {
    let spent = |queue: &str, limit_key: &str, full_at| Spent {
        queue: queue.to_owned(),
        limit_key: limit_key.to_owned(),
        full_at: at(full_at),
    };
    let save =
        async |spent: Vec<Spent>, now| store.save_spent(&Project::DEFAULT, spent, at(now)).await.unwrap();
    save(vec![spent("q", "", 50), spent("q", "k", 30), spent("p", "", 90)], 10).await;
    save(vec![spent("q", "", 40), spent("q", "k", 35)], 20).await;
    let expected = [spent("p", "", 90), spent("q", "", 50), spent("q", "k", 35)];
    assert_eq!(store.spent(&Project::DEFAULT).await.unwrap(), expected);
    save(Vec::new(), 50).await;
    assert_eq!(store.spent(&Project::DEFAULT).await.unwrap(), [spent("p", "", 90)]);
}

pub async fn ready_jobs_are_found_by_their_ids(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let spec = |queue: &str, priority| JobSpec { priority, ..JobSpec::new("resize", queue) };
    for (n, queue, priority) in [(1, "a", 0), (2, "b", 5), (3, "a", 0), (4, "paused", 9)] {
        fixture.create_job(n, spec(queue, priority), at(1)).await.unwrap();
    }
    fixture.create_job(5, JobSpec { run_at: Some(at(60)), ..spec("a", 7) }, at(1)).await.unwrap();
    let paused = QueueSettings {
        name: "paused".to_owned(),
        is_paused: true,
        limits: QueueLimits::default(),
        updated_at: at(4),
    };
    store.save_queue(&Project::DEFAULT, paused).await.unwrap();
    let asked = |now, limit| {
        // Some ids are named twice, and one does not exist; the other filters are ignored.
        let ids = [3, 1, 2, 9, 4, 5, 1].map(job_id).to_vec();
        ReadyQuery { ids, queues: vec!["a".to_owned()], now: at(now), limit, ..ReadyQuery::default() }
    };
    let ids = |rows: Vec<JobRow>| rows.iter().map(JobRow::id).collect::<Vec<_>>();
    assert_eq!(ids(store.ready(&Project::DEFAULT, asked(50, 9)).await.unwrap()), [2, 1, 3].map(job_id));
    assert_eq!(ids(store.ready(&Project::DEFAULT, asked(60, 2)).await.unwrap()), [5, 2].map(job_id));
    let whole = ReadyQuery {
        queues: vec!["a".to_owned(), "b".to_owned()],
        now: at(60),
        limit: 3,
        ..ReadyQuery::default()
    };
    for query in [asked(50, 9), asked(60, 2), whole] {
        let rows = store.ready(&Project::DEFAULT, query.clone()).await.unwrap();
        let places: Vec<ReadyCursor> = rows.iter().map(JobRow::ready_cursor).collect();
        assert!(!places.is_empty());
        assert_eq!(store.ready_cursors(&Project::DEFAULT, query).await.unwrap(), places);
    }
}

/// All jobs of a portion are found, in order; a store that is not shared may also return others.
pub async fn ready_jobs_are_found_portion_by_portion(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=20 {
        let spec = JobSpec { priority: (n % 2) as i32, ..JobSpec::new("resize", "images") };
        fixture.create_job(n, spec, at(1)).await.unwrap();
    }
    let query =
        ReadyQuery { queues: vec!["images".to_owned()], now: at(9), limit: 20, ..ReadyQuery::default() };
    let all = store.ready(&Project::DEFAULT, query.clone()).await.unwrap();
    let mut n_found = 0;
    for at in 0..3 {
        let portion = Portion { at, of: 3 };
        let rows = store
            .ready(&Project::DEFAULT, ReadyQuery { portion: Some(portion), ..query.clone() })
            .await
            .unwrap();
        let own = |rows: &[JobRow]| -> Vec<JobId> {
            rows.iter().map(JobRow::id).filter(|id| portion.has(*id)).collect()
        };
        assert_eq!(own(&rows), own(&all));
        n_found += own(&rows).len();
    }
    assert_eq!(n_found, 20);
}
