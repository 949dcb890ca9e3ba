//! How full queues are, and how they went lately.

use super::*;
use crate::stats::{EventCounts, WindowStats};

impl Runtime {
    async fn last_minute(&self, queue: &str) -> WindowStats {
        self.jobs().queue(queue).await.unwrap().activity.last_minute
    }
}

/// Created, started, succeeded, failed, dead.
fn counts(window: &WindowStats) -> [u64; 5] {
    let EventCounts { created, started, succeeded, failed, dead, suspended: _ } = window.counts;
    [created, started, succeeded, failed, dead]
}

#[tokio::test]
async fn every_event_of_a_job_is_counted_once() {
    let server = on_disk().await;
    assert_eq!(server.last_minute("q").await, WindowStats::default());
    server.jobs().create_job(impatient("q")).await.unwrap();
    server.jobs().create_jobs(vec![impatient("q"), impatient("q")]).await.unwrap();
    let duplicate = JobSpec { dedup_key: "k".to_owned(), ..spec("r") };
    server.jobs().create_jobs(vec![duplicate.clone(), duplicate]).await.unwrap();
    assert_eq!(counts(&server.last_minute("r").await), [1, 0, 0, 0, 0]);
    let claimed = server.take("q", 3).await;
    assert_eq!(counts(&server.last_minute("q").await), [3, 3, 0, 0, 0]);
    server.keep(&claimed[0], 2 * LEASE).await;
    server.say(done(&claimed[0], json!(1))).await;
    server.say(done(&claimed[0], json!(1))).await;
    let failed = CallOutcome::Failed(Fault::new(FaultKind::Error, "no"));
    server.say(end(&claimed[1], failed.clone())).await;
    let terminal = CallOutcome::Failed(Fault::new(FaultKind::Error, "never").permanent());
    server.say(end(&claimed[2], terminal)).await;
    assert_eq!(counts(&server.last_minute("q").await), [3, 3, 1, 2, 1]);
    // The second try of the one that failed, which is then canceled.
    let again = server.take_one("q").await;
    server.jobs().cancel_job(again.job).await.unwrap();
    server.say(end(&again, failed)).await;
    server
        .jobs()
        .dead_letters()
        .replay(ReplayRequest {
            queue: "q".to_owned(),
            letters: DeadLetterSelector::Oldest(1),
            id: "r".to_owned(),
            priority: None,
            patch: None,
            per_second: None,
        })
        .await
        .unwrap();
    let view = server.jobs().queue("q").await.unwrap();
    assert_eq!(counts(&view.activity.last_minute), [3, 4, 1, 2, 1]);
    assert_eq!(view.activity.last_10s, view.activity.last_minute);
    assert_eq!(view.activity.last_hour, view.activity.last_minute);
}

#[tokio::test]
async fn a_lost_lease_counts_as_a_failure_and_waits_are_measured_from_when_a_job_could_be_had() {
    let server = on_disk().await;
    let run_at = Some(server.clock().now().after(120));
    server.jobs().create_job(JobSpec { run_at, ..spec("q") }).await.unwrap();
    let short = ClaimRequest { lease: Duration::from_millis(20), ..claim_of("q", 1, PATIENCE) };
    server.jobs().claim(short).await.unwrap().pop().unwrap();
    let waited = server.last_minute("q").await.wait_ms.max.unwrap();
    assert!(waited < 120, "the time before it was due is no wait, but {waited} ms were counted");
    server.take_one("q").await;
    let window = server.last_minute("q").await;
    assert_eq!(counts(&window), [1, 2, 0, 1, 0]);
    assert!(window.work_ms.max.unwrap() >= 20);
}

#[tokio::test]
async fn queues_are_listed_with_their_jobs() {
    let server = on_disk().await;
    server
        .jobs()
        .create_jobs(vec![spec("b"), spec("b"), JobSpec { max_retries: 1, ..spec("a") }])
        .await
        .unwrap();
    server.jobs().pause_queue("c", true).await.unwrap();
    let dies = server.take_one("a").await;
    server.say(end(&dies, CallOutcome::Failed(Fault::new(FaultKind::Error, "no")))).await;
    server.take_one("b").await;
    let queues = server.jobs().queues(windlass_store::page::NameRange::All).await.unwrap();
    assert_eq!(queues.iter().map(|view| view.depth.name.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
    assert_eq!((queues[0].depth.n_dead_letters, queues[0].activity.last_hour.counts.dead), (1, 1));
    assert_eq!(queues[1].depth.open, [(JobStatus::Queued, 1), (JobStatus::Running, 1)].into());
    assert!(queues[1].depth.oldest_due_at.is_some());
    assert!(queues[2].depth.is_paused && server.jobs().queue("c").await.unwrap().depth.is_paused);
    let unused = server.jobs().queue("unused").await.unwrap();
    assert_eq!((unused.depth.name.as_str(), unused.depth.open.len()), ("unused", 0));
}
