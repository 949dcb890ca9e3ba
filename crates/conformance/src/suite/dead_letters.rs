//! Dead letters, their groups, and the jobs that workers hold.

use windlass_engine::counter::Fence;
use windlass_engine::job::{JobInput, JobOutcome, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_store::Store;
use windlass_store::job::{DeadLetterGroup, JobQuery};
use windlass_store::page::{Order, Part};

use crate::fixture::{StoreFixture, at, job_id};

fn claim(worker: &str) -> JobInput {
    JobInput::Claim { worker: worker.to_owned(), lease_ms: 1_000 }
}

fn fault(message: &str) -> Fault {
    Fault::new(FaultKind::Error, message)
}

/// Makes a dead letter with this fault.
async fn die(fixture: &StoreFixture<'_>, n: u64, queue: &str, message: &str, now: i64) {
    let spec = JobSpec { max_retries: 1, ..JobSpec::new("demo", queue) };
    fixture.create_job(n, spec, at(now)).await.unwrap();
    fixture.submit(n, claim("w"), at(now)).await.unwrap();
    let outcome = JobOutcome::Failed { fault: fault(message), retry_after_ms: None };
    fixture.submit(n, JobInput::Finish { fence: Fence(1), outcome }, at(now + 1)).await.unwrap();
}

async fn found(store: &dyn Store, query: JobQuery) -> Vec<u64> {
    let part = Part { order: Order::Oldest, count: true, ..Part::default() };
    let page = store.jobs(&Project::DEFAULT, JobQuery { part, ..query }).await.unwrap();
    assert_eq!(page.total, Some(page.items.len() as u64));
    let number = |n: &u64| page.items.iter().any(|row| row.id() == job_id(*n));
    let all: Vec<u64> = (1..=20).filter(number).collect();
    assert_eq!(all.len(), page.items.len());
    page.items.iter().map(|row| *all.iter().find(|n| job_id(**n) == row.id()).unwrap()).collect()
}

pub async fn dead_letters_are_grouped_by_their_fault(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    die(&fixture, 1, "q", "user 17 not found", 10).await;
    die(&fixture, 2, "q", "disk full", 20).await;
    die(&fixture, 3, "q", "user 99 not found", 30).await;
    die(&fixture, 4, "other", "user 5 not found", 40).await;
    die(&fixture, 5, "q", "disk slow", 50).await;
    let group = |n, message: &str, latest, first, last| DeadLetterGroup {
        fingerprint: fault(message).fingerprint(),
        n,
        reason: fault(message),
        latest: job_id(latest),
        first_at: at(first),
        last_at: at(last),
    };
    let expected = [
        group(2, "user 99 not found", 3, 11, 31),
        group(1, "disk slow", 5, 51, 51),
        group(1, "disk full", 2, 21, 21),
    ];
    assert_eq!(store.dead_letter_groups(&Project::DEFAULT, "q".to_owned()).await.unwrap(), expected);
    let nothing = store.dead_letter_groups(&Project::DEFAULT, "unknown".to_owned()).await.unwrap();
    assert_eq!(nothing, []);
}

pub async fn replayed_and_discarded_dead_letters_leave_their_group(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=3 {
        die(&fixture, n, "q", "no", 10).await;
    }
    let replay = JobInput::Replay { replay_id: "r".to_owned(), priority: None, patch: None, due: None };
    fixture.submit(1, replay, at(20)).await.unwrap();
    fixture.submit(2, JobInput::Discard { reason: "enough".to_owned() }, at(20)).await.unwrap();
    let groups = store.dead_letter_groups(&Project::DEFAULT, "q".to_owned()).await.unwrap();
    assert_eq!((groups.len(), groups[0].n, groups[0].latest), (1, 1, job_id(3)));
    let of_group = JobQuery { fingerprint: Some(fault("no").fingerprint()), ..JobQuery::default() };
    assert_eq!(found(store, of_group.clone()).await, [3]);
    // It fails for good again, with another fault.
    fixture.submit(1, claim("w"), at(30)).await.unwrap();
    let outcome = JobOutcome::Failed { fault: fault("never"), retry_after_ms: None };
    fixture.submit(1, JobInput::Finish { fence: Fence(2), outcome }, at(40)).await.unwrap();
    assert_eq!(store.dead_letter_groups(&Project::DEFAULT, "q".to_owned()).await.unwrap().len(), 2);
    assert_eq!(found(store, of_group).await, [3]);
}

pub async fn dead_letters_of_a_group_come_in_order_of_creation(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, now) in [(3, 10), (1, 20), (2, 15)] {
        die(&fixture, n, "q", &format!("attempt {n} failed"), now).await;
    }
    die(&fixture, 4, "q", "another thing", 12).await;
    die(&fixture, 5, "r", "attempt 5 failed", 5).await;
    let fingerprint = Some(fault("attempt 1 failed").fingerprint());
    let letters = JobQuery { is_dead_letter: Some(true), queue: Some("q".to_owned()), ..JobQuery::default() };
    assert_eq!(found(store, letters.clone()).await, [3, 4, 2, 1]);
    assert_eq!(found(store, JobQuery { fingerprint: fingerprint.clone(), ..letters }).await, [3, 2, 1]);
    assert_eq!(found(store, JobQuery { fingerprint, ..JobQuery::default() }).await, [5, 3, 2, 1]);
}

pub async fn jobs_are_found_by_their_worker(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=4 {
        fixture.create_job(n, JobSpec::new("demo", "q"), at(1)).await.unwrap();
    }
    for (n, worker) in [(1, "a"), (2, "b"), (3, "a")] {
        fixture.submit(n, claim(worker), at(2)).await.unwrap();
    }
    let of = |worker: &str| JobQuery { worker: Some(worker.to_owned()), ..JobQuery::default() };
    assert_eq!(found(store, of("a")).await, [1, 3]);
    fixture.submit(1, JobInput::Release { fence: Fence(1) }, at(3)).await.unwrap();
    assert_eq!(found(store, of("a")).await, [3]);
    assert_eq!(found(store, of("b")).await, [2]);
    assert_eq!(found(store, of("c")).await, [] as [u64; 0]);
}
