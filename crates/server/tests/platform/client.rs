//! The typed client and the server understand each other.

use serde_json::json;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use windlass_sdk::Client;
use windlass_sdk::client::Registration;
use windlass_sdk::types::{
    Begun, Claim, DiscardLetters, Finish, JobResult, LettersQuery, NewSchedule, NewTask, Outcome, PageQuery,
    Preview, QueueLimits, Rate, ReplayLetters, ScheduleChange, TasksQuery,
};
use windlass_server::Options;

use crate::host::Host;

async fn connected() -> Client {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new(&format!("http://{}", listener.local_addr().unwrap())).unwrap();
    let runtime = Host::new().await.runtime;
    tokio::spawn(windlass_server::serve(listener, runtime, Options::default(), CancellationToken::new()));
    client
}

async fn fail_one(client: &Client) {
    let claim = Claim {
        worker_id: "w-1".to_owned(),
        queues: vec!["default".to_owned()],
        wait_ms: Some(20_000),
        ..Claim::default()
    };
    let job = client.claim(&claim).await.unwrap().jobs.remove(0);
    let (outcome, error) = (Outcome::Failed, Some("no row 7".to_owned()));
    let result = JobResult { id: job.id, lease: job.lease, outcome, error, ..JobResult::default() };
    client.finish(&Finish { results: vec![result] }).await.unwrap();
}

#[tokio::test]
async fn tasks_and_dead_letters() {
    let client = connected().await;
    let task = NewTask {
        max_retries: Some(1),
        dedup_key: "one".to_owned(),
        ..NewTask::new("press", "default", json!({ "n": 1 }))
    };
    let created = client.create_task(&task).await.unwrap();
    assert!(!created.duplicate && client.create_task(&task).await.unwrap().duplicate);
    let later = NewTask::new("press", "later", json!(2)).at("2199-01-01T00:00:00Z".parse().unwrap());
    let batch = client.create_tasks(&[later.clone(), later]).await.unwrap();
    assert_eq!((batch.count, batch.tasks[0].status.as_str()), (2, "pending"));
    assert_eq!(client.cancel_task(&batch.tasks[0].task_id).await.unwrap().display_status, "cancelled");
    assert_eq!(client.retry_task(&batch.tasks[1].task_id).await.unwrap().display_status, "queued");
    let query = TasksQuery { status: Some("open".to_owned()), ..TasksQuery::default() };
    assert_eq!(client.tasks(&query).await.unwrap().count, 2);
    let registration =
        Registration { id: "w-1".to_owned(), kind: "async".to_owned(), ..Registration::default() };
    client.register(&registration).await.unwrap();
    fail_one(&client).await;
    let id = created.task_id;
    assert_eq!(client.task(&id).await.unwrap().task.error.unwrap().message, "no row 7");
    assert_eq!(client.task_runs(&id, &PageQuery::default()).await.unwrap().count, 1);
    let letters = client.dead_letters("default", &LettersQuery::default()).await.unwrap();
    assert_eq!(letters.items[0].task_id, id);
    let group = client.letter_groups("default").await.unwrap().groups.remove(0);
    assert_eq!(group.fingerprint, letters.items[0].fingerprint);
    let replay = ReplayLetters { fingerprint: Some(group.fingerprint), ..ReplayLetters::default() };
    assert_eq!(client.replay("default", &replay).await.unwrap().moved, 1);
    fail_one(&client).await;
    let discard =
        DiscardLetters { reason: "old".to_owned(), ids: Some(vec![id]), ..DiscardLetters::default() };
    assert_eq!(client.discard("default", &discard).await.unwrap().moved, 1);
    let worker = client.drain_worker("w-1").await.unwrap();
    assert!(worker.is_draining && !client.undrain_worker("w-1").await.unwrap().is_draining);
    let refused = client.create_task(&NewTask::default()).await.unwrap_err();
    assert_eq!((refused.status, refused.code.as_str()), (Some(400), "invalid_fields"));
    assert_eq!(refused.errors.len(), 3);
}

#[tokio::test]
async fn queues_and_schedules() {
    let client = connected().await;
    assert!(client.pause_queue("a").await.unwrap().paused);
    assert!(!client.resume_queue("a").await.unwrap().paused);
    let rate = Some(Rate { count: 5, per_ms: 1_000, burst: None });
    let limits = QueueLimits { concurrency: Some(2), rate, ..QueueLimits::default() };
    assert_eq!(client.limit_queue("a", &limits).await.unwrap().limits, limits);
    assert_eq!(client.queue("a").await.unwrap().limits, limits);
    assert_eq!(client.queues().await.unwrap().count, 1);
    let schedule = NewSchedule {
        cron_expr: "@daily".to_owned(),
        task: Some(NewTask::new("report", "default", json!({}))),
        ..NewSchedule::default()
    };
    let made = client.create_schedule(&schedule).await.unwrap();
    let triggered = client.trigger_schedule(&made.id).await.unwrap();
    let Begun::TaskId(task) = &triggered.started else { panic!("{triggered:?}") };
    assert_eq!(client.task(task).await.unwrap().task.schedule_id, Some(made.id.clone()));
    let shown = client.schedule(&made.id).await.unwrap();
    assert_eq!(shown.last_run.unwrap().started, triggered.started);
    let change = ScheduleChange { name: Some("other".to_owned()), ..ScheduleChange::default() };
    assert_eq!(client.change_schedule(&made.id, &change).await.unwrap().name, "other");
    assert!(!client.toggle_schedule(&made.id, None).await.unwrap().enabled);
    assert_eq!(client.next_runs(&made.id, Some(2)).await.unwrap().count, 2);
    let preview = Preview { cron_expr: "0 9 * * *".to_owned(), ..Preview::default() };
    assert_eq!(client.preview_schedule(&preview).await.unwrap().count, 5);
    assert_eq!(client.schedules().await.unwrap().count, 1);
    client.delete_schedule(&made.id).await.unwrap();
    assert!(client.schedule(&made.id).await.unwrap_err().is_not_found());
}
