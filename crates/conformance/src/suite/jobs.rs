//! Jobs: keys, order, claims, time.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::job::{JobBackoff, JobInput, JobOutcome, JobSpec, REMEMBERED};
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::commit::Commit;
use windlass_store::error::Duplicate;
use windlass_store::job::{JobQuery, JobStatus, OUTLINE_PAYLOAD_MAX, OutlineQuery, ReadyCursor, ReadyQuery};
use windlass_store::page::NameRange;
use windlass_store::queue::{QueueLimits, QueueSettings};
use windlass_store::{Refusal, Store};

use crate::executor::side_by_side;
use crate::fixture::{StoreFixture, at, job_id, run_id};

fn keyed(queue: &str, key: &str) -> JobSpec {
    JobSpec { dedup_key: key.to_owned(), ..JobSpec::new("demo", queue) }
}

fn claim() -> JobInput {
    JobInput::Claim { worker: "w".to_owned(), lease_ms: 1_000 }
}

fn done(fence: u64) -> JobInput {
    JobInput::Finish { fence: Fence(fence), outcome: JobOutcome::Done { result: json!({"ok": true}).into() } }
}

fn failed(fence: u64) -> JobInput {
    let fault = Fault::new(FaultKind::Error, "boom");
    JobInput::Finish { fence: Fence(fence), outcome: JobOutcome::Failed { fault, retry_after_ms: None } }
}

fn is_duplicate_of<T>(answer: &Result<T, windlass_store::StoreError>, n: u64) -> bool {
    let refusal = answer.as_ref().err().and_then(windlass_store::StoreError::refusal);
    matches!(refusal, Some(Refusal::Duplicates(all)) if matches!(&all[..], [one] if one.existing == job_id(n)))
}

async fn ready(store: &dyn Store, queues: &[&str], services: &[&str], now: i64) -> Vec<u64> {
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let query = ReadyQuery {
        queues: words(queues),
        services: words(services),
        now: at(now),
        limit: 100,
        ..ReadyQuery::default()
    };
    let rows = store.ready(&Project::DEFAULT, query).await.unwrap();
    let number = |id| (1..100).find(|n| job_id(*n) == id).unwrap();
    rows.iter().map(|row| number(row.id())).collect()
}

pub async fn an_outline_has_the_beginning_of_a_large_payload(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let spec = |payload: serde_json::Value| JobSpec { payload: payload.into(), ..JobSpec::new("demo", "q") };
    let large = format!("\"{}", "ß\u{1f980}\n".repeat(2_000));
    let small = "x".repeat(OUTLINE_PAYLOAD_MAX - 2);
    fixture.create_job(1, spec(json!(large)), at(1)).await.unwrap();
    fixture.create_job(2, spec(json!(small)), at(2)).await.unwrap();
    fixture.create_job(3, spec(json!(format!("{small}x"))), at(3)).await.unwrap();
    let query = OutlineQuery::Ids(vec![job_id(3), job_id(1), job_id(9), job_id(2)]);
    let mut found = store.job_outlines(&Project::DEFAULT, query).await.unwrap();
    found.sort_by_key(|outline| outline.row.job.created_at);
    assert_eq!(found.iter().map(|outline| outline.is_cut).collect::<Vec<_>>(), [true, false, true]);
    for outline in found {
        let whole = store.job(&Project::DEFAULT, outline.row.id()).await.unwrap().unwrap();
        let payload = outline.row.job.spec.payload.value();
        if outline.is_cut {
            let beginning = payload.as_str().unwrap();
            assert!(beginning.len() >= OUTLINE_PAYLOAD_MAX && beginning.len() < 5 * OUTLINE_PAYLOAD_MAX);
            assert!(whole.job.spec.payload.as_str().starts_with(beginning));
        } else {
            assert_eq!(outline.row, whole);
        }
    }
}

pub async fn outlines_are_the_nearest_delayed_jobs_and_the_newest_dead_letters(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, due) in [(1, 300), (2, 100), (3, 200), (4, 50)] {
        let spec = JobSpec { run_at: Some(at(due)), ..JobSpec::new("demo", "q") };
        fixture.create_job(n, spec, at(1)).await.unwrap();
    }
    fixture
        .create_job(5, JobSpec { run_at: Some(at(70)), ..JobSpec::new("demo", "other") }, at(1))
        .await
        .unwrap();
    for n in 6..=8 {
        let spec = JobSpec { max_retries: 1, ..JobSpec::new("demo", "q") };
        fixture.create_job(n, spec, at(10 + i64::try_from(n).unwrap())).await.unwrap();
        fixture.submit(n, claim(), at(20)).await.unwrap();
        fixture.submit(n, failed(1), at(30)).await.unwrap();
    }
    let outlines = async |query: OutlineQuery| {
        let found = store.job_outlines(&Project::DEFAULT, query).await.unwrap();
        found.into_iter().map(|outline| outline.row.id()).collect::<Vec<_>>()
    };
    let (queue, now) = ("q".to_owned(), at(50));
    let delayed = outlines(OutlineQuery::Delayed { queue: queue.clone(), now, limit: 2 }).await;
    assert_eq!(delayed, [job_id(2), job_id(3)]);
    let dead = outlines(OutlineQuery::DeadLetters { queue, limit: 2 }).await;
    assert_eq!(dead, [job_id(8), job_id(7)]);
}

pub async fn a_job_reads_back_as_it_was_written(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let payload = json!({"text": "ß\u{1f980}", "n": [1, 2.5, null], "big": 9_007_199_254_740_993_i64});
    let spec = JobSpec { payload: payload.into(), priority: -7, timeout_ms: 5, ..keyed("default", "k") };
    let commit = fixture.job(1, spec, at(5));
    let written = commit.jobs[0].clone();
    fixture.commit(commit).await.unwrap();
    let row = store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap();
    assert_eq!((row.rev, row.job, row.origin), (Revision(1), written.job, written.origin));
    assert_eq!(store.job(&Project::DEFAULT, job_id(2)).await.unwrap(), None);
}

pub async fn a_job_change_needs_the_right_revision(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    assert!(fixture.create_job(1, JobSpec::new("demo", "default"), at(1)).await.unwrap_err().is_conflict());
    let mut change = fixture.change(1, claim(), at(2)).await;
    for wrong in [0, 2, 9] {
        change.expected_rev = Revision(wrong);
        let commit =
            Commit { jobs: vec![change.clone()], ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) };
        assert!(fixture.commit(commit).await.unwrap_err().is_conflict(), "{wrong}");
    }
    fixture.submit(1, claim(), at(2)).await.unwrap();
    assert_eq!(store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap().rev, Revision(2));
}

pub async fn an_active_key_makes_a_duplicate(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, keyed("default", "k"), at(1)).await.unwrap();
    assert!(is_duplicate_of(&fixture.create_job(2, keyed("default", "k"), at(2)).await, 1));
    fixture.submit(1, claim(), at(3)).await.unwrap();
    assert!(is_duplicate_of(&fixture.create_job(2, keyed("default", "k"), at(3)).await, 1));
    assert_eq!(store.job(&Project::DEFAULT, job_id(2)).await.unwrap(), None);
    for n in 3..5 {
        fixture.create_job(n, keyed("default", ""), at(3)).await.unwrap();
    }
}

pub async fn a_key_is_free_again_when_its_job_has_ended(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, keyed("default", "k"), at(1)).await.unwrap();
    fixture.submit(1, claim(), at(2)).await.unwrap();
    fixture.submit(1, done(1), at(3)).await.unwrap();
    fixture.create_job(2, keyed("default", "k"), at(3)).await.unwrap();
    fixture.submit(2, JobInput::Cancel, at(4)).await.unwrap();
    fixture.create_job(3, keyed("default", "k"), at(5)).await.unwrap();
    assert!(is_duplicate_of(&fixture.create_job(4, keyed("default", "k"), at(6)).await, 3));
}

pub async fn a_key_can_stay_taken_for_a_while(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec { unique_for_ms: 100, ..keyed("default", "k") }, at(0)).await.unwrap();
    fixture.submit(1, JobInput::Cancel, at(5)).await.unwrap();
    assert!(is_duplicate_of(&fixture.create_job(2, keyed("default", "k"), at(99)).await, 1));
    fixture.create_job(2, keyed("default", "k"), at(100)).await.unwrap();
}

pub async fn the_same_key_in_another_queue_is_another_key(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, keyed("default", "k"), at(1)).await.unwrap();
    fixture.create_job(2, keyed("other", "k"), at(1)).await.unwrap();
    fixture.create_job(3, keyed("default", "K"), at(1)).await.unwrap();
}

pub async fn two_jobs_of_one_commit_cannot_share_a_key(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut commit = fixture.job(1, keyed("default", "k"), at(1));
    commit.jobs.extend(fixture.job(2, keyed("default", "k"), at(1)).jobs);
    assert!(is_duplicate_of(&fixture.commit(commit).await, 1));
    assert_eq!(store.job(&Project::DEFAULT, job_id(1)).await.unwrap(), None);
    // Two commits of one group: the first one wins.
    let group =
        vec![fixture.job(3, keyed("default", "k"), at(1)), fixture.job(4, keyed("default", "k"), at(1))];
    let answers = store.commit(group).await;
    assert!(answers[0].is_ok() && is_duplicate_of(&answers[1], 3));
}

pub async fn all_duplicates_of_a_commit_are_told_at_once(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, keyed("default", "a"), at(1)).await.unwrap();
    fixture.submit(1, claim(), at(2)).await.unwrap();
    let later = JobSpec { run_at: Some(at(900)), ..keyed("default", "b") };
    let mut commit = fixture.job(2, later, at(3));
    for (n, key) in [(3, "a"), (4, "b"), (5, ""), (6, "c"), (7, "a")] {
        commit.jobs.extend(fixture.job(n, keyed("default", key), at(3)).jobs);
    }
    let refused = fixture.commit(commit.clone()).await.unwrap_err();
    let duplicate = |n, key: &str, existing, status| Duplicate {
        job: job_id(n),
        queue: "default".to_owned(),
        key: key.to_owned(),
        existing: job_id(existing),
        status,
    };
    let expected = vec![
        duplicate(3, "a", 1, JobStatus::Running),
        duplicate(4, "b", 2, JobStatus::Pending),
        duplicate(7, "a", 1, JobStatus::Running),
    ];
    assert_eq!(refused.refusal(), Some(&Refusal::Duplicates(expected)));
    commit.jobs.retain(|change| [2, 5, 6].map(job_id).contains(&change.job.id));
    fixture.commit(Commit { command: fixture.command(), ..commit }).await.unwrap();
    assert_eq!(store.jobs(&Project::DEFAULT, JobQuery::default()).await.unwrap().items.len(), 4);
}

pub async fn a_replayed_job_takes_its_key_back_only_if_it_is_free(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec { max_retries: 1, ..keyed("default", "k") }, at(1)).await.unwrap();
    fixture.submit(1, claim(), at(2)).await.unwrap();
    fixture.submit(1, failed(1), at(3)).await.unwrap();
    fixture.create_job(2, keyed("default", "k"), at(4)).await.unwrap();
    let replay = || JobInput::Replay { replay_id: "r".to_owned(), priority: None, patch: None, due: None };
    assert!(is_duplicate_of(&fixture.submit(1, replay(), at(5)).await, 2));
    fixture.submit(2, JobInput::Cancel, at(6)).await.unwrap();
    fixture.submit(1, replay(), at(7)).await.unwrap();
    assert!(is_duplicate_of(&fixture.create_job(3, keyed("default", "k"), at(8)).await, 1));
}

pub async fn hundred_concurrent_creates_with_one_dedup_key_make_one_job(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let creates: Vec<_> = (1..=100).map(|n| fixture.create_job(n, keyed("default", "k"), at(1))).collect();
    let answers = side_by_side(creates).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    let winner = (1..=100).find(|n| answers[*n - 1].is_ok()).unwrap() as u64;
    assert_eq!(answers.iter().filter(|answer| is_duplicate_of(answer, winner)).count(), 99);
    assert_eq!(store.jobs(&Project::DEFAULT, JobQuery::default()).await.unwrap().items.len(), 1);
}

pub async fn ready_jobs_come_by_priority_then_due_time_then_id(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let spec = |priority| JobSpec { priority, ..JobSpec::new("demo", "default") };
    for (n, priority, now) in [(5, 0, 10), (4, 0, 20), (3, 9, 30), (2, -1, 5), (1, 0, 20)] {
        fixture.create_job(n, spec(priority), at(now)).await.unwrap();
    }
    assert_eq!(ready(store, &["default"], &[], 50).await, [3, 5, 1, 4, 2]);
    let query = ReadyQuery {
        queues: vec!["default".to_owned()],
        services: vec![],
        now: at(50),
        limit: 2,
        ..ReadyQuery::default()
    };
    assert_eq!(store.ready(&Project::DEFAULT, query.clone()).await.unwrap().len(), 2);
    let query = &query;
    let from = |priority, due, n| async move {
        let from = Some(ReadyCursor { priority, due_at: at(due), id: job_id(n) });
        let rows =
            store.ready(&Project::DEFAULT, ReadyQuery { from, limit: 9, ..query.clone() }).await.unwrap();
        rows.into_iter().map(|row| row.id()).collect::<Vec<_>>()
    };
    assert_eq!(from(0, 20, 1).await, [1, 4, 2].map(job_id), "the place itself belongs to it");
    assert_eq!(from(0, 15, 1).await, [1, 4, 2].map(job_id));
    assert_eq!(from(-1, 6, 1).await, []);
    assert_eq!(from(10, 0, 1).await, [3, 5, 1, 4, 2].map(job_id));
}

pub async fn ready_jobs_match_by_queue_or_by_service(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("resize", "images"), at(1)).await.unwrap();
    fixture.create_job(2, JobSpec::new("resize", "urgent"), at(1)).await.unwrap();
    fixture.create_job(3, JobSpec::new("mail", "images"), at(1)).await.unwrap();
    assert_eq!(ready(store, &["images"], &[], 1).await, [1, 3]);
    assert_eq!(ready(store, &[], &["resize"], 1).await, [1, 2]);
    assert_eq!(ready(store, &["images"], &["resize"], 1).await, [1, 2, 3]);
    assert_eq!(ready(store, &["resize"], &["images"], 1).await, [] as [u64; 0]);
    assert_eq!(ready(store, &[], &[], 1).await, [] as [u64; 0]);
}

pub async fn jobs_of_runs_are_found_behind_any_number_of_plain_ones(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let of_run =
        |queue: &str, priority| JobSpec { run: Some(run_id(1)), priority, ..JobSpec::new("resize", queue) };
    for n in 10..30 {
        fixture.create_job(n, JobSpec::new("resize", "images"), at(1)).await.unwrap();
    }
    fixture.create_job(1, of_run("images", 0), at(2)).await.unwrap();
    fixture.create_job(2, of_run("images", -1), at(2)).await.unwrap();
    fixture.create_job(3, of_run("urgent", 1), at(3)).await.unwrap();
    fixture.create_job(4, JobSpec { run_at: Some(at(500)), ..of_run("images", 2) }, at(2)).await.unwrap();
    fixture.create_job(5, JobSpec { limit_key: "k".to_owned(), ..of_run("images", 0) }, at(3)).await.unwrap();
    let found = |queues: &[&str], services: &[&str], from: Option<i32>, limit| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let from = from.map(|priority| ReadyCursor { priority, due_at: at(i64::MIN), id: job_id(1) });
        let (queues, services, except) = (words(queues), words(services), words(&["urgent"]));
        let query = ReadyQuery {
            queues,
            services,
            except,
            is_of_runs: true,
            from,
            now: at(50),
            limit,
            ..ReadyQuery::default()
        };
        async move {
            store
                .ready(&Project::DEFAULT, query)
                .await
                .unwrap()
                .iter()
                .map(|row| row.id())
                .collect::<Vec<_>>()
        }
    };
    assert_eq!(found(&["images"], &[], None, 9).await, [1, 5, 2].map(job_id));
    assert_eq!(found(&["images"], &[], None, 1).await, [job_id(1)]);
    assert_eq!(found(&["images"], &[], Some(-1), 9).await, [job_id(2)]);
    assert_eq!(found(&[], &["resize"], Some(0), 9).await, [1, 5, 2].map(job_id));
    assert_eq!(found(&["urgent"], &["resize"], None, 9).await, [3, 1, 5, 2].map(job_id));
    let paused = QueueSettings {
        name: "images".to_owned(),
        is_paused: true,
        limits: QueueLimits::default(),
        updated_at: at(4),
    };
    store.save_queue(&Project::DEFAULT, paused).await.unwrap();
    assert_eq!(found(&["images", "urgent"], &["resize"], None, 9).await, [job_id(3)]);
}

pub async fn a_job_is_not_ready_before_its_time(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let later = JobSpec { run_at: Some(at(500)), ..JobSpec::new("demo", "default") };
    fixture.create_job(1, later, at(1)).await.unwrap();
    let backoff = JobBackoff { base_ms: 1_000, jitter: false, ..JobBackoff::default() };
    fixture.create_job(2, JobSpec { backoff, ..JobSpec::new("demo", "default") }, at(1)).await.unwrap();
    fixture.submit(2, claim(), at(10)).await.unwrap();
    fixture.submit(2, failed(1), at(20)).await.unwrap();
    assert_eq!(ready(store, &["default"], &[], 499).await, [] as [u64; 0]);
    assert_eq!(ready(store, &["default"], &[], 500).await, [1]);
    assert_eq!(ready(store, &["default"], &[], 1_020).await, [1, 2]);
}

pub async fn a_claimed_job_is_not_ready(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    fixture.submit(1, claim(), at(2)).await.unwrap();
    assert_eq!(ready(store, &["default"], &[], 99_999).await, [] as [u64; 0]);
    fixture.submit(1, JobInput::Release { fence: Fence(1) }, at(3)).await.unwrap();
    assert_eq!(ready(store, &["default"], &[], 99_999).await, [1]);
    fixture.submit(1, JobInput::Cancel, at(4)).await.unwrap();
    assert_eq!(ready(store, &["default"], &[], 99_999).await, [] as [u64; 0]);
}

pub async fn one_of_two_claims_wins(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    let mut rivals = Vec::new();
    for _ in 0..10 {
        let jobs = vec![fixture.change(1, claim(), at(2)).await];
        rivals.push(
            fixture.commit(Commit { jobs, ..Commit::new(&Project::DEFAULT, fixture.command(), at(2)) }),
        );
    }
    let answers = side_by_side(rivals).await;
    assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
    assert_eq!(store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap().job.fence, Fence(1));
}

pub async fn a_paused_queue_hands_out_nothing(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    fixture.create_job(2, JobSpec::new("demo", "other"), at(1)).await.unwrap();
    let pause = |is_paused| {
        let settings = QueueSettings {
            name: "default".to_owned(),
            is_paused,
            limits: QueueLimits::default(),
            updated_at: at(1),
        };
        store.save_queue(&Project::DEFAULT, settings)
    };
    pause(true).await.unwrap();
    assert_eq!(ready(store, &["default", "other"], &[], 1).await, [2]);
    assert_eq!(ready(store, &[], &["demo"], 1).await, [2]);
    pause(false).await.unwrap();
    assert_eq!(ready(store, &["default", "other"], &[], 1).await, [1, 2]);
}

pub async fn overdue_leases_and_waits_are_found_oldest_first(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let later = JobSpec { run_at: Some(at(300)), ..JobSpec::new("demo", "default") };
    fixture.create_job(1, later, at(1)).await.unwrap();
    let quick = JobSpec { timeout_ms: 50, ..JobSpec::new("demo", "default") };
    fixture.create_job(2, quick, at(1)).await.unwrap();
    fixture.submit(2, claim(), at(100)).await.unwrap();
    for n in 3..=4 {
        fixture.create_job(n, JobSpec::new("demo", "default"), at(1)).await.unwrap();
        fixture.submit(n, JobInput::Claim { worker: "w".to_owned(), lease_ms: 150 }, at(100)).await.unwrap();
    }
    fixture.submit(4, done(1), at(110)).await.unwrap();
    fixture.create_job(5, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    let due = store.due(at(300), 100).await.unwrap().jobs;
    let due: Vec<_> = due.iter().map(|wake| (wake.at.0, wake.id)).collect();
    assert_eq!(due, [(150, job_id(2)), (250, job_id(3)), (300, job_id(1))]);
    assert_eq!(store.due(at(249), 100).await.unwrap().jobs.len(), 1);
    assert_eq!(store.due(at(300), 2).await.unwrap().jobs.len(), 2);
}

pub async fn attempts_are_kept_longer_than_the_job_remembers(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let n_attempts = u32::try_from(REMEMBERED).unwrap() + 5;
    let backoff = JobBackoff { base_ms: 0, jitter: false, ..JobBackoff::default() };
    let spec = JobSpec { max_retries: n_attempts, backoff, ..JobSpec::new("demo", "default") };
    fixture.create_job(1, spec, at(1)).await.unwrap();
    for fence in 1..=u64::from(n_attempts) {
        fixture.submit(1, claim(), at(2)).await.unwrap();
        fixture.submit(1, failed(fence), at(3)).await.unwrap();
    }
    let row = store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap();
    assert_eq!(row.job.attempts.len(), REMEMBERED);
    let all = store.attempts(&Project::DEFAULT, job_id(1), 0, 1_000).await.unwrap();
    assert_eq!(
        all.iter().map(|attempt| attempt.number).collect::<Vec<_>>(),
        (1..=n_attempts).collect::<Vec<_>>()
    );
    assert!(all.iter().all(|attempt| attempt.error.is_some()));
    let part = store.attempts(&Project::DEFAULT, job_id(1), 3, 2).await.unwrap();
    assert_eq!(part.iter().map(|attempt| attempt.number).collect::<Vec<_>>(), [4, 5]);
    assert!(store.attempts(&Project::DEFAULT, job_id(2), 0, 10).await.unwrap().is_empty());
}

pub async fn depths_count_open_jobs_and_dead_letters(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=4 {
        let spec = JobSpec { max_retries: 1, ..JobSpec::new("demo", "busy") };
        fixture.create_job(n, spec, at(i64::try_from(n).unwrap())).await.unwrap();
    }
    fixture.submit(1, claim(), at(5)).await.unwrap();
    fixture.submit(1, failed(1), at(6)).await.unwrap();
    fixture.submit(2, claim(), at(5)).await.unwrap();
    let later = JobSpec { run_at: Some(at(900)), ..JobSpec::new("demo", "busy") };
    fixture.create_job(5, later, at(1)).await.unwrap();
    let idle = QueueSettings {
        name: "idle".to_owned(),
        is_paused: true,
        limits: QueueLimits::default(),
        updated_at: at(1),
    };
    store.save_queue(&Project::DEFAULT, idle).await.unwrap();
    let depths = store.queues(&Project::DEFAULT, NameRange::All, at(10)).await.unwrap();
    assert_eq!(depths.iter().map(|depth| depth.name.as_str()).collect::<Vec<_>>(), ["busy", "idle"]);
    let counts = [(JobStatus::Pending, 1), (JobStatus::Queued, 2), (JobStatus::Running, 1)];
    assert_eq!(depths[0].open, BTreeMap::from(counts));
    assert_eq!((depths[0].n_dead_letters, depths[0].oldest_due_at), (1, Some(at(3))));
    assert!(!depths[0].is_paused && depths[1].is_paused && depths[1].open.is_empty());
}
