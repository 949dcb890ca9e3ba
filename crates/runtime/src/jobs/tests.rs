//! Plain jobs on real stores. Those of runs are in `tests/jobs.rs`.

mod act;
mod create;
mod dead_letters;
mod poll;
mod queues;
mod retries;
mod time;
mod workers;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::task::Poll;

use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::job::{JobBackoff, JobInput, JobSpec};
use windlass_engine::project::Project;
use windlass_engine::retry::{Backoff, Fault, FaultKind};
use windlass_store::Memory;
use windlass_store::job::JobStatus;
use windlass_store::sqlite::{Durability, Sqlite};

use super::*;
use crate::{Runtime, Settings};

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);
const LEASE: Duration = Duration::from_secs(30);

async fn server() -> Runtime {
    Runtime::start_up(Arc::new(Memory::new()), Settings::default()).await.unwrap()
}

async fn on_disk() -> Runtime {
    let store = Sqlite::temporary(Durability::Fast).unwrap();
    Runtime::start_up(Arc::new(store), Settings::default()).await.unwrap()
}

fn spec(queue: &str) -> JobSpec {
    JobSpec { payload: json!({"n": 1}).into(), ..JobSpec::new("work", queue) }
}

/// A job that is tried again at once.
fn impatient(queue: &str) -> JobSpec {
    let backoff = JobBackoff { kind: Backoff::Fixed, base_ms: 0, cap_ms: 0, jitter: false };
    JobSpec { backoff, ..spec(queue) }
}

fn claim_of(queue: &str, max: usize, wait: Duration) -> ClaimRequest {
    let worker = "w".to_owned();
    ClaimRequest { worker, queues: vec![queue.to_owned()], services: Vec::new(), max, wait, lease: LEASE }
}

fn done(claimed: &LeasedJob, value: Value) -> JobEnd {
    end(claimed, CallOutcome::Done(value.into()))
}

fn end(claimed: &LeasedJob, outcome: CallOutcome<RawJson>) -> JobEnd {
    JobEnd {
        job: claimed.job,
        fence: claimed.fence,
        outcome,
        worker: None,
        log: Log::default(),
        retry_after_ms: None,
    }
}

impl Runtime {
    async fn add(&self, specs: impl IntoIterator<Item = JobSpec>) -> Vec<JobId> {
        let now = self.clock().now();
        let make = |spec| {
            let (job, _) = Job::create(JobId::new(Uuid::now_v7()), spec, now).unwrap();
            JobChange { expected_rev: Revision(0), job, origin: Default::default() }
        };
        let changes: Vec<JobChange> = specs.into_iter().map(make).collect();
        let ids = changes.iter().map(|change| change.job.id).collect();
        for answer in self.jobs().commit_jobs(changes).await {
            answer.unwrap();
        }
        ids
    }

    async fn take(&self, queue: &str, max: usize) -> Vec<LeasedJob> {
        self.jobs().claim(claim_of(queue, max, Duration::ZERO)).await.unwrap()
    }

    async fn take_one(&self, queue: &str) -> LeasedJob {
        let mut claimed = self.jobs().claim(claim_of(queue, 1, PATIENCE)).await.unwrap();
        claimed.pop().expect("there was no job within the time of the test")
    }

    async fn say(&self, end: JobEnd) -> ClaimVerdict {
        self.jobs().finish(vec![end]).await.pop().unwrap().unwrap()
    }

    async fn keep(&self, claimed: &LeasedJob, lease: Duration) -> ClaimVerdict {
        self.jobs().extend(vec![(claimed.job, claimed.fence)], lease).await.pop().unwrap().unwrap()
    }

    async fn status(&self, job: JobId) -> JobStatus {
        JobStatus::of(&self.store().job(self.project(), job).await.unwrap().unwrap().job)
    }

    /// Changes the job without telling the index, as another server would.
    async fn behind_its_back(&self, job: JobId, input: JobInput) {
        let row = self.store().job(self.project(), job).await.unwrap().unwrap();
        let now = self.clock().now();
        let change = super::change::moved(&row, input, now).unwrap().unwrap();
        let command = windlass_engine::id::CommandId::new(Uuid::now_v7());
        let commit = windlass_store::commit::Commit {
            jobs: vec![change],
            ..windlass_store::commit::Commit::new(&Project::DEFAULT, command, now)
        };
        self.store().commit_one(commit).await.unwrap();
    }
}

#[tokio::test]
async fn jobs_come_by_priority_and_then_in_order() {
    let server = on_disk().await;
    let priorities = [0, 5, -3, 5, 0];
    let ids = server.add(priorities.map(|priority| JobSpec { priority, ..spec("q") })).await;
    let claimed: Vec<JobId> = server.take("q", 9).await.iter().map(|claimed| claimed.job).collect();
    assert_eq!(claimed, [1, 3, 0, 4, 2].map(|at: usize| ids[at]));
    assert!(server.take("q", 9).await.is_empty());
}

#[tokio::test]
async fn a_claimed_job_has_everything_its_worker_needs() {
    let server = on_disk().await;
    let ids = server.add([JobSpec { timeout_ms: 5_000, ..spec("q") }]).await;
    let claimed = server.take_one("q").await;
    assert_eq!((claimed.job, claimed.fence, claimed.attempt), (ids[0], Fence(1), 1));
    assert_eq!((claimed.queue.as_str(), claimed.service.as_str()), ("q", "work"));
    assert_eq!((claimed.input.value(), claimed.params.is_empty()), (json!({"n": 1}), true));
    assert_eq!(claimed.key, ids[0].to_string());
    assert_eq!(claimed.lease_until, claimed.started_at.after(30_000));
    assert_eq!(claimed.deadline, Some(claimed.started_at.after(5_000)));
    assert_eq!((claimed.memo, claimed.call), (None, None));
}

#[tokio::test]
async fn a_job_matches_by_its_service_too() {
    let server = server().await;
    server.add([spec("q"), JobSpec::new("other", "q")]).await;
    let services = vec!["work".to_owned()];
    let claim = ClaimRequest { queues: Vec::new(), services, ..claim_of("", 9, Duration::ZERO) };
    assert_eq!(server.jobs().claim(claim).await.unwrap().len(), 1);
    assert_eq!(server.take("q", 9).await.len(), 1);
}

#[tokio::test]
async fn a_waiting_claim_is_woken_by_a_new_job() {
    let server = server().await;
    let waiting = {
        let server = server.clone();
        tokio::spawn(async move { server.take_one("q").await.job })
    };
    let ids = server.add([spec("q")]).await;
    assert_eq!(waiting.await.unwrap(), ids[0]);
}

#[tokio::test]
async fn a_claim_that_times_out_gets_nothing() {
    let server = server().await;
    let begun = std::time::Instant::now();
    let wait = Duration::from_millis(30);
    assert!(server.jobs().claim(claim_of("q", 1, wait)).await.unwrap().is_empty());
    assert!(begun.elapsed() >= wait);
    assert!(
        server
            .jobs()
            .claim(ClaimRequest { queues: Vec::new(), ..claim_of("", 1, wait) })
            .await
            .unwrap()
            .is_empty()
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sixteen_workers_never_get_the_same_job() {
    let server = on_disk().await;
    let ids = server.add((0..2_000).map(|_| spec("q"))).await;
    let worker = |n: usize| {
        let server = server.clone();
        async move {
            let mut got = Vec::new();
            loop {
                let claimed = server.take("q", 1 + n * 3).await;
                if claimed.is_empty() {
                    return got;
                }
                let ends = claimed.iter().map(|claimed| done(claimed, json!(n))).collect();
                assert!(
                    server
                        .jobs()
                        .finish(ends)
                        .await
                        .into_iter()
                        .all(|answer| answer.unwrap() == ClaimVerdict::Ok)
                );
                got.extend(claimed.iter().map(|claimed| claimed.job));
            }
        }
    };
    let workers: Vec<_> = (0..16).map(|n| tokio::spawn(worker(n))).collect();
    let mut got = Vec::new();
    for worker in workers {
        got.extend(worker.await.unwrap());
    }
    assert_eq!(got.len(), ids.len());
    assert_eq!(got.into_iter().collect::<BTreeSet<_>>(), ids.iter().copied().collect());
    for id in ids {
        assert_eq!(server.status(id).await, JobStatus::Completed);
    }
}

#[tokio::test]
async fn a_paused_queue_hands_out_nothing() {
    let server = on_disk().await;
    server.jobs().pause_queue("q", true).await.unwrap();
    let ids = server.add([spec("q")]).await;
    assert!(server.take("q", 9).await.is_empty());
    let waiting = {
        let server = server.clone();
        tokio::spawn(async move { server.take_one("q").await.job })
    };
    server.jobs().pause_queue("q", false).await.unwrap();
    assert_eq!(waiting.await.unwrap(), ids[0]);
}

#[tokio::test]
async fn jobs_from_before_the_start_are_handed_out_in_order_too() {
    let store = Arc::new(Memory::new());
    let before = Runtime::start_up(store.clone(), Settings::default()).await.unwrap();
    let ids = before.add([0, 7, 3].map(|priority| JobSpec { priority, ..spec("q") })).await;
    before.jobs().pause_queue("paused", true).await.unwrap();
    before.add([spec("paused")]).await;
    before.shut_down(Duration::ZERO).await;
    let server = Runtime::start_up(store, Settings::default()).await.unwrap();
    let new = server.add([JobSpec { priority: 5, ..spec("q") }]).await;
    let claimed: Vec<JobId> = server.take("q", 9).await.iter().map(|claimed| claimed.job).collect();
    assert_eq!(claimed, [ids[1], new[0], ids[2], ids[0]]);
    assert!(server.take("paused", 9).await.is_empty());
}

#[tokio::test]
async fn a_conflict_on_one_job_spoils_no_other_claim() {
    let server = on_disk().await;
    let ids = server.add([spec("q"), spec("q"), spec("q")]).await;
    server.behind_its_back(ids[1], JobInput::Cancel).await;
    let claimed: Vec<JobId> = server.take("q", 9).await.iter().map(|claimed| claimed.job).collect();
    assert_eq!(claimed, [ids[0], ids[2]]);
    assert!(server.take("q", 9).await.is_empty());
}

#[tokio::test]
async fn a_claim_without_a_listening_worker_is_released() {
    let server = server().await;
    server.add([spec("q")]).await;
    let mut gone = Box::pin(server.jobs().claim(claim_of("q", 1, PATIENCE)));
    let begun = std::future::poll_fn(|context| Poll::Ready(gone.as_mut().poll(context)));
    assert!(begun.await.is_pending(), "its commit is on its way");
    drop(gone);
    let claimed = server.take_one("q").await;
    assert_eq!((claimed.attempt, claimed.fence), (1, Fence(2)), "it was claimed twice and cost no attempt");
}

#[tokio::test]
async fn a_server_that_shuts_down_hands_out_no_job() {
    let server = server().await;
    server.add([spec("q")]).await;
    let waiting = {
        let server = server.clone();
        tokio::spawn(async move { server.jobs().claim(claim_of("other", 1, PATIENCE)).await })
    };
    tokio::task::yield_now().await;
    server.shut_down(Duration::ZERO).await;
    assert!(matches!(waiting.await.unwrap(), Err(RuntimeError::Draining)));
    let late = server.jobs().claim(claim_of("q", 1, PATIENCE)).await;
    assert!(matches!(late, Err(RuntimeError::Draining)));
}
