//! Limits of queues under many workers, on a real store: never more than allowed, and never stuck below it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::sync::Barrier;
use tokio::time::Instant;
use windlass_conformance::backend::fresh;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::input::CallOutcome;
use windlass_engine::job::{JobBackoff, JobSpec, LOSSES_MAX};
use windlass_engine::retry::Backoff;
use windlass_engine::time::Timestamp;
use windlass_runtime::calls::log::Log;
use windlass_runtime::jobs::LimitError;
use windlass_runtime::jobs::{ClaimRequest, ClaimVerdict, JobEnd, LeasedJob};
use windlass_runtime::{Runtime, Settings};
use windlass_store::Store;
use windlass_store::queue::{QueueLimits, Rate};

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(60);
const LEASE: Duration = Duration::from_secs(30);
const N_WORKERS: usize = 16;

async fn on(store: Arc<dyn Store>) -> Runtime {
    let settings = Settings::default();
    Runtime::start_up(store, settings).await.unwrap()
}

/// A job that is tried again at once, however often it is lost.
fn spec(queue: &str, limit_key: &str) -> JobSpec {
    let backoff = JobBackoff { kind: Backoff::Fixed, base_ms: 0, cap_ms: 0, jitter: false };
    let limit_key = limit_key.to_owned();
    JobSpec { limit_key, backoff, max_retries: 100, ..JobSpec::new("work", queue) }
}

async fn make(server: &Runtime, specs: impl IntoIterator<Item = JobSpec>) -> Vec<JobId> {
    let created = server.jobs().create_jobs(specs.into_iter().collect()).await.unwrap();
    created.into_iter().map(|created| created.job).collect()
}

fn claim(max: usize, wait: Duration) -> ClaimRequest {
    let (worker, queues) = ("w".to_owned(), vec!["q".to_owned()]);
    ClaimRequest { worker, queues, services: Vec::new(), max, wait, lease: LEASE }
}

async fn take(server: &Runtime, max: usize) -> Vec<LeasedJob> {
    server.jobs().claim(claim(max, Duration::ZERO)).await.unwrap()
}

fn done(claimed: &LeasedJob) -> JobEnd {
    let outcome = CallOutcome::Done(json!(1).into());
    JobEnd {
        job: claimed.job,
        fence: claimed.fence,
        outcome,
        worker: None,
        log: Log::default(),
        retry_after_ms: None,
    }
}

async fn finish(server: &Runtime, claimed: &[LeasedJob]) {
    for answer in server.jobs().finish(claimed.iter().map(done).collect()).await {
        assert_eq!(answer.unwrap(), ClaimVerdict::Ok);
    }
}

/// Running jobs as workers see them: from the answer to a claim until they report the end, or the lease ends.
#[derive(Default)]
struct LimitWatch {
    held: HashMap<(JobId, Fence), (String, Timestamp)>,
    n_max: usize,
    n_max_of_key: usize,
    n_done: usize,
    losses: HashMap<JobId, u32>,
}

impl LimitWatch {
    fn begin(&mut self, claimed: &LeasedJob, key: &str, now: Timestamp) {
        // A dead worker's slot is free when its lease has ended.
        self.held.retain(|_, (_, until)| *until > now);
        let held = (key.to_owned(), claimed.lease_until);
        assert!(self.held.keys().all(|(job, _)| *job != claimed.job), "two workers have the same job");
        self.held.insert((claimed.job, claimed.fence), held);
        self.n_max = self.n_max.max(self.held.len());
        let n_of_key = self.held.values().filter(|(held, _)| held == key).count();
        self.n_max_of_key = self.n_max_of_key.max(n_of_key);
    }

    /// One that keeps losing its workers is set aside.
    fn lose(&mut self, job: JobId) {
        let n = self.losses.entry(job).or_default();
        *n += 1;
        self.n_done += usize::from(*n == LOSSES_MAX);
    }
}

/// Holds on to a job for a moment, and until so many were held at once, if they ever are.
async fn hold(watch: &Mutex<LimitWatch>, n_wanted: usize) {
    let begun = Instant::now();
    tokio::time::sleep(Duration::from_millis(5)).await;
    while watch.lock().unwrap().n_max < n_wanted && begun.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Workers that do all jobs there are, as many at once as are wanted; every so-manieth dies over its job, and its lease
/// runs out.
async fn work(
    server: &Runtime,
    keys: HashMap<JobId, String>,
    die_every: usize,
    n_wanted: usize,
    claim: ClaimRequest,
) -> LimitWatch {
    let n_jobs = keys.len();
    let (watch, keys) = (Arc::new(Mutex::new(LimitWatch::default())), Arc::new(keys));
    let (deadline, start) = (Instant::now() + PATIENCE, Arc::new(Barrier::new(N_WORKERS)));
    let workers: Vec<_> = (0..N_WORKERS)
        .map(|at| {
            let (server, watch, keys, start) = (server.clone(), watch.clone(), keys.clone(), start.clone());
            let claim = claim.clone();
            tokio::spawn(async move {
                start.wait().await;
                for n in 0.. {
                    if watch.lock().unwrap().n_done == n_jobs {
                        return;
                    }
                    assert!(Instant::now() < deadline, "the work does not go on");
                    let dies = die_every > 0 && (n + at) % die_every == die_every - 1;
                    let lease = if dies { Duration::from_millis(60) } else { LEASE };
                    let claim = ClaimRequest { lease, wait: Duration::from_millis(500), ..claim.clone() };
                    let claimed = server.jobs().claim(claim).await.unwrap();
                    for one in &claimed {
                        watch.lock().unwrap().begin(one, &keys[&one.job], server.clock().now());
                    }
                    hold(&watch, n_wanted).await;
                    for one in claimed {
                        // Before the report: from then on another job may have the slot.
                        watch.lock().unwrap().held.remove(&(one.job, one.fence));
                        if dies {
                            watch.lock().unwrap().lose(one.job);
                        } else {
                            finish(&server, std::slice::from_ref(&one)).await;
                            watch.lock().unwrap().n_done += 1;
                        }
                    }
                }
            })
        })
        .collect();
    for worker in workers {
        worker.await.unwrap();
    }
    Arc::into_inner(watch).unwrap().into_inner().unwrap()
}

async fn jobs_of_keys(server: &Runtime, n: usize, n_keys: usize) -> HashMap<JobId, String> {
    let keys: Vec<String> = (0..n).map(|at| format!("k{}", at % n_keys)).collect();
    let jobs = make(server, keys.iter().map(|key| spec("q", key))).await;
    jobs.into_iter().zip(keys).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_than_the_limit_at_once_and_never_less_when_there_is_work() {
    let server = on(fresh().await).await;
    server
        .jobs()
        .limit_queue("q", QueueLimits { concurrency: Some(5), ..QueueLimits::default() })
        .await
        .unwrap();
    let jobs = jobs_of_keys(&server, 400, 3).await;
    let watch = work(&server, jobs, 7, 5, claim(2, LEASE)).await;
    assert_eq!((watch.n_max, watch.n_done), (5, 400));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn never_more_of_a_key_than_its_limit_and_all_keys_at_once() {
    let server = on(fresh().await).await;
    let limits = QueueLimits { key_concurrency: Some(2), ..QueueLimits::default() };
    server.jobs().limit_queue("q", limits).await.unwrap();
    let jobs = jobs_of_keys(&server, 300, 4).await;
    let watch = work(&server, jobs, 9, 8, claim(3, LEASE)).await;
    assert_eq!((watch.n_max_of_key, watch.n_done), (2, 300));
    assert!(watch.n_max > 2 && watch.n_max <= 8, "{}", watch.n_max);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn claims_by_service_obey_the_limits_of_the_queue() {
    let server = on(fresh().await).await;
    let limits = QueueLimits { concurrency: Some(3), key_concurrency: Some(2), ..QueueLimits::default() };
    server.jobs().limit_queue("q", limits).await.unwrap();
    let jobs = jobs_of_keys(&server, 200, 5).await;
    let by_service =
        ClaimRequest { queues: Vec::new(), services: vec!["work".to_owned()], ..claim(4, LEASE) };
    let watch = work(&server, jobs, 0, 3, by_service).await;
    assert_eq!((watch.n_max, watch.n_done), (3, 200));
    assert!(watch.n_max_of_key <= 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rate_is_kept_and_used_up() {
    let server = on(fresh().await).await;
    // Five at once, and then one every 10 ms.
    let rate = Rate { count: 20, per_ms: 200, burst: Some(5) };
    server.jobs().limit_queue("q", QueueLimits { rate: Some(rate), ..QueueLimits::default() }).await.unwrap();
    let jobs = jobs_of_keys(&server, 105, 3).await;
    let begun = Instant::now();
    let watch = work(&server, jobs, 0, 1, claim(4, LEASE)).await;
    let took = begun.elapsed();
    assert_eq!(watch.n_done, 105);
    assert!(took >= Duration::from_millis(990), "too fast: {took:?}");
    // Without a wake-up, each waiting claim would take half a second.
    assert!(took < Duration::from_secs(20), "too slow: {took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_key_has_its_own_rate() {
    let server = on(fresh().await).await;
    let rate = Rate { count: 2, per_ms: 400, burst: None };
    server
        .jobs()
        .limit_queue("q", QueueLimits { key_rate: Some(rate), ..QueueLimits::default() })
        .await
        .unwrap();
    jobs_of_keys(&server, 30, 3).await;
    make(&server, (0..5).map(|_| spec("q", ""))).await;
    let first = take(&server, 100).await;
    assert_eq!(first.len(), 3 * 2 + 5, "two of each key, and all without");
    let begun = Instant::now();
    let next = server.jobs().claim(claim(100, PATIENCE)).await.unwrap();
    assert!(!next.is_empty() && begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn a_key_with_many_jobs_does_not_delay_one_with_few() {
    let server = on(fresh().await).await;
    server.jobs().limit_queue("q", QueueLimits { fair: true, ..QueueLimits::default() }).await.unwrap();
    make(&server, (0..10_000).map(|_| spec("q", "many"))).await;
    let few = make(&server, (0..10).map(|_| spec("q", "few"))).await;
    let mut order = Vec::new();
    while order.len() < 22 {
        order.extend(server.jobs().claim(claim(3, PATIENCE)).await.unwrap());
    }
    let n_few = order.iter().take(22).filter(|claimed| few.contains(&claimed.job)).count();
    assert_eq!(n_few, 10);
}

#[tokio::test]
async fn the_limit_of_one_key_hides_no_other() {
    let server = on(fresh().await).await;
    let limits = QueueLimits { key_concurrency: Some(1), ..QueueLimits::default() };
    server.jobs().limit_queue("q", limits).await.unwrap();
    for _ in 0..2 {
        make(&server, (0..10_000).map(|_| spec("q", "blocked"))).await;
    }
    let others = ["a", "b", "c"].map(|key| spec("q", key));
    make(&server, others).await;
    assert_eq!(take(&server, 100).await.len(), 4, "one of each key");
    let urgent = make(&server, [JobSpec { priority: 5, ..spec("q", "d") }]).await;
    let taken = take(&server, 100).await;
    assert_eq!(taken.iter().map(|claimed| claimed.job).collect::<Vec<_>>(), urgent);
    assert!(take(&server, 100).await.is_empty());
}

#[tokio::test]
async fn limits_outlive_the_server_and_count_jobs_from_before() {
    let store = fresh().await;
    let before = on(store.clone()).await;
    let limits = QueueLimits { concurrency: Some(3), key_concurrency: Some(2), ..QueueLimits::default() };
    before.jobs().limit_queue("q", limits.clone()).await.unwrap();
    jobs_of_keys(&before, 30, 3).await;
    let held = take(&before, 2).await;
    assert_eq!(held.len(), 2);
    before.shut_down(Duration::ZERO).await;
    let after = on(store).await;
    assert_eq!(after.jobs().queue("q").await.unwrap().depth.limits, limits);
    let more = take(&after, 100).await;
    assert_eq!(more.len(), 1);
    assert!(take(&after, 100).await.is_empty());
    finish(&after, &held).await;
    assert_eq!(take(&after, 100).await.len(), 2);
}

#[tokio::test]
async fn a_rate_that_is_used_up_stays_so_over_a_restart() {
    let store = fresh().await;
    let before = on(store.clone()).await;
    let hourly = Rate { count: 3, per_ms: 3_600_000, burst: None };
    let limits = QueueLimits {
        rate: Some(Rate { count: 5, ..hourly }),
        key_rate: Some(hourly),
        ..QueueLimits::default()
    };
    before.jobs().limit_queue("q", limits).await.unwrap();
    jobs_of_keys(&before, 10, 1).await;
    make(&before, (0..10).map(|_| spec("q", ""))).await;
    make(&before, [JobSpec { priority: 9, ..spec("q", "k0") }]).await;
    assert_eq!(take(&before, 1).await.len(), 1);
    before.shut_down(Duration::ZERO).await;
    let after = on(store.clone()).await;
    let taken = take(&after, 100).await;
    let keys: Vec<JobId> = taken.iter().map(|claimed| claimed.job).collect();
    assert_eq!(keys.len(), 4, "one of five was used up");
    after.shut_down(Duration::ZERO).await;
    let last = on(store).await;
    assert!(take(&last, 100).await.is_empty());
}

#[tokio::test]
async fn limits_set_while_jobs_run_count_them() {
    let server = on(fresh().await).await;
    jobs_of_keys(&server, 30, 1).await;
    let held = take(&server, 4).await;
    let limits = |concurrency| QueueLimits { concurrency: Some(concurrency), ..QueueLimits::default() };
    server.jobs().limit_queue("q", limits(5)).await.unwrap();
    let more = take(&server, 100).await;
    assert_eq!(more.len(), 1);
    server.jobs().limit_queue("q", limits(2)).await.unwrap();
    finish(&server, &held).await;
    assert_eq!(take(&server, 100).await.len(), 1);
    server.jobs().limit_queue("q", QueueLimits::default()).await.unwrap();
    assert_eq!(take(&server, 100).await.len(), 30 - 4 - 2);
}

#[tokio::test]
async fn a_pause_keeps_the_limits_and_limits_keep_the_pause() {
    let server = on(fresh().await).await;
    let limits = QueueLimits { concurrency: Some(2), ..QueueLimits::default() };
    server.jobs().limit_queue("q", limits.clone()).await.unwrap();
    jobs_of_keys(&server, 10, 2).await;
    server.jobs().pause_queue("q", true).await.unwrap();
    assert!(take(&server, 100).await.is_empty());
    server.jobs().limit_queue("q", QueueLimits { fair: true, ..limits.clone() }).await.unwrap();
    let depth = server.jobs().queue("q").await.unwrap().depth;
    assert_eq!((depth.is_paused, depth.limits), (true, QueueLimits { fair: true, ..limits }));
    assert!(take(&server, 100).await.is_empty());
    let waits = tokio::spawn({
        let server = server.clone();
        async move { server.jobs().claim(claim(100, PATIENCE)).await.unwrap().len() }
    });
    server.jobs().pause_queue("q", false).await.unwrap();
    assert_eq!(waits.await.unwrap(), 2);
}

#[tokio::test]
async fn a_waiting_claim_is_woken_when_a_slot_is_free() {
    let server = on(fresh().await).await;
    server
        .jobs()
        .limit_queue("q", QueueLimits { concurrency: Some(1), ..QueueLimits::default() })
        .await
        .unwrap();
    jobs_of_keys(&server, 3, 3).await;
    let held = take(&server, 100).await;
    let begun = Instant::now();
    let waits = tokio::spawn({
        let server = server.clone();
        async move { server.jobs().claim(claim(100, PATIENCE)).await.unwrap() }
    });
    tokio::task::yield_now().await;
    finish(&server, &held).await;
    assert_eq!(waits.await.unwrap().len(), 1);
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn bad_limits_are_refused_with_the_field() {
    let server = on(fresh().await).await;
    let bad = QueueLimits { concurrency: Some(0), ..QueueLimits::default() };
    let paths: BTreeMap<String, String> = match server.jobs().limit_queue("q", bad).await.unwrap_err() {
        LimitError::Problems(problems) => problems.into_iter().map(|one| (one.path, one.reason)).collect(),
        LimitError::Runtime(error) => panic!("{error}"),
    };
    assert!(paths["$.concurrency"].contains("pause"), "{paths:?}");
    assert_eq!(server.jobs().queue("q").await.unwrap().depth.limits, QueueLimits::default());
}
