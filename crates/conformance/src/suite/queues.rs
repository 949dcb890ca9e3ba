//! Depths of queues after every kind of change to their jobs.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::job::{JobBackoff, JobInput, JobOutcome, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::time::Timestamp;
use windlass_store::Store;
use windlass_store::commit::Commit;
use windlass_store::job::{JobQuery, JobStatus, due_at};
use windlass_store::page::{NameRange, Part};
use windlass_store::queue::QueueDepth;
use windlass_store::run::RunStatus;

use crate::fixture::{StoreFixture, at, job_id, run_id};

/// The depths, counted job by job.
async fn counted(store: &dyn Store, now: Timestamp) -> Vec<QueueDepth> {
    let part = Part { limit: 1_000, ..Part::default() };
    let rows = store.jobs(&Project::DEFAULT, JobQuery { part, ..JobQuery::default() }).await.unwrap().items;
    let mut depths: BTreeMap<String, QueueDepth> = BTreeMap::new();
    for job in rows.iter().map(|row| &row.job).filter(|job| job.is_open() || job.is_dead_letter()) {
        let name = job.spec.queue.clone();
        let depth =
            depths.entry(name.clone()).or_insert_with(|| QueueDepth { name, ..QueueDepth::default() });
        if job.is_dead_letter() {
            depth.n_dead_letters += 1;
            continue;
        }
        *depth.open.entry(JobStatus::of(job)).or_default() += 1;
        let due = due_at(job).filter(|due| *due <= now);
        depth.oldest_due_at = [depth.oldest_due_at, due].into_iter().flatten().min();
    }
    depths.into_values().collect()
}

/// One of the inputs of a job, chosen by a number.
fn input(n: u64, fence: Fence) -> JobInput {
    let finish = |outcome| JobInput::Finish { fence, outcome };
    let fault = || Fault::new(FaultKind::Error, "no");
    match n % 10 {
        0..=2 => JobInput::Claim { worker: "w".to_owned(), lease_ms: 1_000 },
        3 => finish(JobOutcome::Done { result: json!(1).into() }),
        4 => finish(JobOutcome::Failed { fault: fault(), retry_after_ms: None }),
        5 => finish(JobOutcome::Failed { fault: fault().permanent(), retry_after_ms: None }),
        6 => finish(JobOutcome::Suspended { memo: json!(1), recheck_ms: 5_000 }),
        7 => JobInput::Cancel,
        8 => JobInput::Replay {
            replay_id: n.to_string(),
            priority: Some(3),
            patch: None,
            due: Some(at(9_999)),
        },
        _ => JobInput::Discard { reason: "enough".to_owned() },
    }
}

pub async fn depths_follow_every_change_of_jobs(store: &dyn Store) {
    const JOBS: u64 = 12;
    let fixture = StoreFixture::new(store).await;
    let backoff = JobBackoff { base_ms: 50, ..JobBackoff::default() };
    for n in 1..=JOBS {
        let run_at = (n % 4 == 0).then(|| at(300));
        let spec = JobSpec { run_at, backoff, ..JobSpec::new("demo", format!("q{}", n % 3)) };
        fixture.create_job(n, spec, at(1)).await.unwrap();
    }
    let (mut n, mut seen) = (12_345u64, 0);
    for now in 2..400 {
        // Each commit of the group succeeds or fails by itself.
        let mut group = Vec::new();
        for _ in 0..4 {
            n = n.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let (job, choice) = (1 + (n >> 33) % JOBS, n >> 40);
            let mut row = store.job(&Project::DEFAULT, job_id(job)).await.unwrap().unwrap();
            let due = row.job.overdue(at(now));
            let asked = due.unwrap_or_else(|| input(choice, row.job.fence));
            let Ok(events) = row.job.decide(asked, at(now)) else { continue };
            events.iter().for_each(|event| row.job.apply(event, at(now)));
            // One in eight has an outdated revision.
            let expected_rev = if choice % 8 == 0 { Revision(row.rev.0.saturating_sub(1)) } else { row.rev };
            let change = windlass_store::commit::JobChange { expected_rev, job: row.job, origin: row.origin };
            group.push(Commit {
                jobs: vec![change],
                ..Commit::new(&Project::DEFAULT, fixture.command(), at(now))
            });
        }
        store.commit(group).await;
        let depths = store.queues(&Project::DEFAULT, NameRange::All, at(now)).await.unwrap();
        assert_eq!(depths, counted(store, at(now)).await, "at {now}");
        seen |= depths
            .iter()
            .flat_map(|depth| depth.open.keys())
            .fold(0, |all, status| all | 1 << *status as u32);
        seen |= depths.iter().fold(0, |all, depth| all | u32::from(depth.n_dead_letters > 0) << 31);
    }
    assert_eq!(seen.count_ones(), 6, "some statuses were never reached: {seen:b}");
}

pub async fn a_queue_with_nothing_in_it_is_not_counted(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create_job(1, JobSpec::new("demo", "q"), at(1)).await.unwrap();
    fixture.create(1, RunStatus::Completed, at(2), |_, _| {}).await.unwrap();
    // A job of a run that has ended.
    let spec = JobSpec { run: Some(run_id(1)), ..JobSpec::new("demo", "calls") };
    fixture.create_job(2, spec, at(2)).await.unwrap();
    assert_eq!(store.queues(&Project::DEFAULT, NameRange::All, at(3)).await.unwrap().len(), 2);
    fixture.submit(1, JobInput::Cancel, at(3)).await.unwrap();
    store.retain(at(10), 10).await.unwrap();
    assert_eq!(store.queues(&Project::DEFAULT, NameRange::All, at(3)).await.unwrap(), []);
}
