//! Creating, changing, deleting and triggering schedules.

use std::collections::BTreeSet;

use super::*;

async fn problems(server: &Runtime, draft: ScheduleDraft) -> Vec<String> {
    match server.schedules().create_schedule(draft).await {
        Err(ScheduleError::Problems(problems)) => problems.into_iter().map(|one| one.path).collect(),
        Err(error) => panic!("{error}"),
        Ok(made) => panic!("{made:?}"),
    }
}

#[tokio::test]
async fn everything_that_is_wrong_is_named_at_once() {
    let server = server().await;
    let spec = JobSpec { max_retries: 5_000, run_at: Some(start()), ..JobSpec::new("", "two words") };
    let draft = ScheduleDraft {
        name: "a\u{7}b".to_owned(),
        cron_expr: "every now and then".to_owned(),
        timezone: "Mars/Olympus".to_owned(),
        window_ms: u64::MAX,
        target: FiringTarget::Job(Box::new(spec)),
        ..hourly()
    };
    let expected = [
        "$.cron_expr",
        "$.name",
        "$.task.max_retries",
        "$.task.name",
        "$.task.queue_name",
        "$.task.run_at",
        "$.timezone",
        "$.window_ms",
    ];
    assert_eq!(problems(&server, draft).await, expected);
    let never = ScheduleDraft { cron_expr: "0 0 30 2 *".to_owned(), ..hourly() };
    assert_eq!(problems(&server, never).await, ["$.cron_expr"]);
    let nowhere = ScheduleDraft { timezone: "Europe/Bonn".to_owned(), ..hourly() };
    assert_eq!(problems(&server, nowhere).await, ["$.timezone"]);
    assert!(server.schedules().list(Part::default()).await.unwrap().items.is_empty());
}

#[tokio::test]
async fn a_flow_that_cannot_be_started_is_not_scheduled() {
    let server = server().await;
    let flow = FlowId::new(Uuid::now_v7());
    let target = FiringTarget::Flow { flow, version: None, params: Map::new(), account: None };
    assert_eq!(problems(&server, ScheduleDraft { target, ..hourly() }).await, ["$.flow"]);
    let empty = crate::runs::flow::FlowSpec { name: "empty".to_owned(), ..Default::default() };
    let flow = server.runs().publish_flow(empty, None).await.unwrap().published.flow;
    for (version, path) in [(None, "$.flow"), (Some(3), "$.version")] {
        let target = FiringTarget::Flow { flow, version, params: Map::new(), account: None };
        assert_eq!(problems(&server, ScheduleDraft { target, ..hourly() }).await, [path]);
    }
}

#[tokio::test]
async fn a_draft_comes_back_as_it_was_made() {
    let server = server().await;
    let draft = ScheduleDraft {
        dst: Dst::Twice,
        overlap: Overlap::Queue,
        catchup: Catchup::All,
        window_ms: 5,
        ..hourly()
    };
    let made = server.schedules().create_schedule(draft.clone()).await.unwrap();
    assert_eq!(draft_of(&made), draft);
    assert_eq!(server.schedule_seen(made.row.id()).await, made);
    let nameless =
        server.schedules().create_schedule(ScheduleDraft { name: String::new(), ..draft }).await.unwrap();
    assert_eq!(nameless.row.name, "tick");
}

#[tokio::test]
async fn a_change_owes_nothing_to_the_past() {
    let server = server().await;
    let made = server
        .schedules()
        .create_schedule(ScheduleDraft { catchup: Catchup::All, ..hourly() })
        .await
        .unwrap();
    let id = made.row.id();
    let now = server.clock().now();
    server
        .rewrite_schedule(id, |row| {
            row.schedule.enabled = false;
            row.progress.last_slot = Some(Timestamp(now.0 - 20 * 3_600_000));
            row.next_at = None;
        })
        .await;
    let changed = server
        .schedules()
        .change_schedule(id, |draft| ScheduleDraft { enabled: true, ..draft })
        .await
        .unwrap();
    assert_eq!(changed.row.next_at, changed.row.schedule.cron.next_after(changed.row.updated_at));
    let faster = |draft| ScheduleDraft { cron_expr: "*/10 * * * *".to_owned(), ..draft };
    let changed = server.schedules().change_schedule(id, faster).await.unwrap();
    assert!(changed.row.next_at.unwrap().since(changed.row.updated_at) <= 10 * MINUTE);
    server.schedules().fire(id, server.clock().wall()).await.unwrap();
    assert!(server.scheduled_jobs(id).await.is_empty(), "what passed while it slept has passed");
    let refused = server
        .schedules()
        .change_schedule(id, |draft| ScheduleDraft { cron_expr: String::new(), ..draft })
        .await;
    assert!(matches!(refused, Err(ScheduleError::Problems(_))));
    assert_eq!(server.schedule_seen(id).await, changed);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn changes_at_the_same_time_are_all_made() {
    let servers = servers(on_disk(), 2).await;
    let id = servers[0]
        .schedules()
        .create_schedule(ScheduleDraft { window_ms: 0, ..hourly() })
        .await
        .unwrap()
        .row
        .id();
    let changes: Vec<_> = (0..8_usize)
        .map(|n| {
            let server = servers[n % 2].clone();
            tokio::spawn(async move {
                let longer = |draft: ScheduleDraft| ScheduleDraft { window_ms: draft.window_ms + 1, ..draft };
                server.schedules().change_schedule(id, longer).await.unwrap()
            })
        })
        .collect();
    for change in changes {
        change.await.unwrap();
    }
    assert_eq!(servers[0].schedule_seen(id).await.row.schedule.window_ms, 8);
}

#[tokio::test]
async fn a_deleted_schedule_fires_no_more_and_its_runs_go_on() {
    let server = server().await;
    let id = server.schedule_from(hourly(), start()).await;
    assert!(fire_at(&server, start().after(HOUR)).await);
    server.schedules().delete_schedule(id).await.unwrap();
    assert!(fire_at(&server, start().after(2 * HOUR)).await);
    let jobs = server.scheduled_jobs(id).await;
    assert_eq!((jobs.len(), jobs[0].job.is_open()), (1, true));
    assert!(matches!(server.schedules().delete_schedule(id).await, Err(ScheduleError::Unknown(_))));
    assert!(matches!(server.schedules().trigger_schedule(id).await, Err(ScheduleError::Unknown(_))));
    let change = server.schedules().change_schedule(id, |draft| draft).await;
    assert!(matches!(change, Err(ScheduleError::Unknown(_))));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_trigger_starts_one_run_and_leaves_the_slots() {
    let servers = servers(Arc::new(Memory::shared()), 2).await;
    let id = servers[0].schedule_from(ScheduleDraft { enabled: false, ..hourly() }, start()).await;
    let before = servers[0].schedule_seen(id).await.row;
    let asked: Vec<_> = (0..5_usize)
        .map(|n| {
            let server = servers[n % 2].clone();
            tokio::spawn(async move { server.schedules().trigger_schedule(id).await.unwrap() })
        })
        .collect();
    let mut started = BTreeSet::new();
    for one in asked {
        started.insert(one.await.unwrap());
    }
    let jobs: BTreeSet<Started> =
        servers[0].scheduled_jobs(id).await.iter().map(|row| Started::Job(row.id())).collect();
    assert_eq!((started.len(), &started), (5, &jobs));
    let after = servers[0].schedule_seen(id).await.row;
    assert_eq!((after.progress, after.next_at), (before.progress, before.next_at));
    assert_eq!(after.history.n_fired, 5);
}
