//! The typed client and the server understand each other.

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::client::Registration;
use windlass_sdk::contract::{
    CallOutcome, ClaimRequest, DeadLettersQuery, DiscardDeadLetters, FinishRequest, JobResult, JobRetry,
    JobStatus, JobsQuery, NewJob, NewSchedule, NewTask, PageQuery, QueueLimitSettings, RateLimit,
    ReplayDeadLetters, SchedulePatch, SchedulePreviewRequest, StartedId,
};
use windlass_server::Options;

use crate::test_server::TestServer;

async fn connected() -> Client {
    connected_to(TestServer::new().await).await
}

/// A client of this server.
pub(crate) async fn connected_to(host: TestServer) -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let served = windlass_server::serve(listener, host.runtime, Options::default(), CancellationToken::new());
    tokio::spawn(served);
    client
}

/// An id without its prefix, as document 002 writes it.
fn bare_uuid(id: &str) -> String {
    let (_, digits) = id.split_once('_').unwrap();
    uuid::Uuid::parse_str(digits).unwrap().hyphenated().to_string()
}

async fn fail_one(client: &Client) {
    let claim = ClaimRequest {
        worker_id: "w-1".to_owned(),
        queues: vec!["default".to_owned()],
        wait_ms: Some(20_000),
        ..ClaimRequest::default()
    };
    let job = client.jobs().claim(&claim).await.unwrap().jobs.remove(0);
    let (outcome, error) = (CallOutcome::Failed, Some("no row 7".to_owned()));
    let result = JobResult { id: job.id, lease: job.lease, outcome, error, ..JobResult::default() };
    client.jobs().finish(&FinishRequest { results: vec![result] }).await.unwrap();
}

#[tokio::test]
async fn jobs_and_dead_letters() {
    let client = connected().await;
    let job = NewJob {
        retry: Some(JobRetry { max: Some(0), ..JobRetry::default() }),
        dedup_key: "one".to_owned(),
        ..NewJob::new("press", "default", json!({ "n": 1 }))
    };
    let created = client.jobs().create(&job).await.unwrap();
    assert!(!created.duplicate && client.jobs().create(&job).await.unwrap().duplicate);
    let later = NewJob::new("press", "later", json!(2)).at("2199-01-01T00:00:00Z".parse().unwrap());
    let batch = client.jobs().create_batch(&[later.clone(), later]).await.unwrap();
    assert_eq!((batch.len(), batch[0].status), (2, JobStatus::Queued));
    assert_eq!(client.jobs().cancel(&batch[0].id).await.unwrap().summary.status, JobStatus::Canceled);
    assert_eq!(client.jobs().retry(&batch[1].id).await.unwrap().summary.due_at, None);
    let query = JobsQuery { status: Some("open".to_owned()), ..JobsQuery::default() };
    assert_eq!(client.jobs().list(&query).await.unwrap().items.len(), 2);
    let registration =
        Registration { id: "w-1".to_owned(), kind: "async".to_owned(), ..Registration::default() };
    client.workers().register(&registration).await.unwrap();
    fail_one(&client).await;
    let id = created.id;
    assert_eq!(client.jobs().show(&id).await.unwrap().summary.error.unwrap().message, "no row 7");
    assert_eq!(client.jobs().attempts(&id, &PageQuery::default()).await.unwrap().items.len(), 1);
    let letters = client.dead_letters().list("default", &DeadLettersQuery::default()).await.unwrap();
    assert_eq!(letters.items[0].task_id, bare_uuid(&id));
    let group = client.dead_letters().groups("default").await.unwrap().groups.remove(0);
    assert_eq!(group.fingerprint, letters.items[0].fingerprint);
    let replay = ReplayDeadLetters { fingerprint: Some(group.fingerprint), ..ReplayDeadLetters::default() };
    assert_eq!(client.dead_letters().replay("default", &replay).await.unwrap().moved, 1);
    fail_one(&client).await;
    let discard =
        DiscardDeadLetters { reason: "old".to_owned(), ids: Some(vec![id]), ..DiscardDeadLetters::default() };
    assert_eq!(client.dead_letters().discard("default", &discard).await.unwrap().moved, 1);
    let worker = client.workers().drain("w-1").await.unwrap();
    assert!(worker.is_draining && !client.workers().undrain("w-1").await.unwrap().is_draining);
    let refused = client.jobs().create(&NewJob::default()).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (Some(422), "invalid_body"));
    assert_eq!(refused.errors.len(), 2);
}

#[tokio::test]
async fn queues_and_schedules() {
    let client = connected().await;
    assert!(client.queues().pause("a").await.unwrap().paused);
    assert!(!client.queues().resume("a").await.unwrap().paused);
    let rate = Some(RateLimit { count: 5, per_ms: 1_000, burst: None });
    let limits = QueueLimitSettings { concurrency: Some(2), rate, ..QueueLimitSettings::default() };
    assert_eq!(client.queues().set_limits("a", &limits).await.unwrap().limits, limits);
    assert_eq!(client.queues().show("a").await.unwrap().limits, limits);
    assert_eq!(client.queues().all().await.unwrap().len(), 1);
    let schedule = NewSchedule {
        cron_expr: "@daily".to_owned(),
        task: Some(NewTask::new("report", "default", json!({}))),
        ..NewSchedule::default()
    };
    let made = client.schedules().create(&schedule).await.unwrap();
    let triggered = client.schedules().trigger(&made.id).await.unwrap();
    let StartedId::TaskId(task) = &triggered.started else { panic!("{triggered:?}") };
    let schedule = client.jobs().show(task).await.unwrap().summary.schedule.unwrap();
    assert_eq!(bare_uuid(&schedule), made.id);
    let shown = client.schedules().show(&made.id).await.unwrap();
    assert_eq!(shown.last_run.unwrap().started, triggered.started);
    let change = SchedulePatch { name: Some("other".to_owned()), ..SchedulePatch::default() };
    assert_eq!(client.schedules().edit(&made.id, &change).await.unwrap().name, "other");
    assert!(!client.schedules().toggle(&made.id, None).await.unwrap().enabled);
    assert_eq!(client.schedules().next(&made.id, Some(2)).await.unwrap().count, 2);
    let preview =
        SchedulePreviewRequest { cron_expr: "0 9 * * *".to_owned(), ..SchedulePreviewRequest::default() };
    assert_eq!(client.schedules().preview(&preview).await.unwrap().count, 5);
    assert_eq!(client.schedules().all().await.unwrap().len(), 1);
    client.schedules().delete(&made.id).await.unwrap();
    assert!(client.schedules().show(&made.id).await.unwrap_err().is_not_found());
}
