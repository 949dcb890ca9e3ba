//! Schedules: made, shown, changed, triggered, deleted.

use serde_json::{Value, json};

use crate::support::{task, with};
use crate::test_server::{TestServer, upper};

const SCHEDULES: &str = "/api/v1/schedules";

fn daily(more: Value) -> Value {
    let mut body = json!({ "cron_expr": "0 9 * * *", "timezone": "Europe/Berlin" });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

async fn made(host: &TestServer, body: Value) -> (String, Value) {
    let response = host.post(SCHEDULES, body).await;
    assert_eq!(response.status, 201, "{}", response.json());
    (response.json()["id"].as_str().unwrap().to_owned(), response.json())
}

#[tokio::test]
async fn a_schedule_of_a_task_is_made_shown_changed_and_deleted() {
    let host = TestServer::new().await;
    let task = json!({ "name": "report", "queue_name": "default", "payload": { "k": 1 }, "max_retries": 5 });
    let (id, shown) =
        made(&host, daily(json!({ "task": task, "overlap": "queue", "catchup": "last" }))).await;
    assert_eq!((&shown["name"], &shown["enabled"]), (&json!("report"), &json!(true)));
    assert_eq!(
        (&shown["overlap"], &shown["catchup"], &shown["dst"]),
        (&json!("queue"), &json!("last"), &json!("shift"))
    );
    assert_eq!((&shown["task"]["payload"], &shown["task"]["max_retries"]), (&json!({ "k": 1 }), &json!(5)));
    assert_eq!(shown["next_runs"].as_array().unwrap().len(), 5);
    assert_eq!(host.get(&format!("{SCHEDULES}/{id}")).await.ok()["id"], id.as_str());
    let all = host.get(SCHEDULES).await.ok();
    assert_eq!((&all["count"], &all["schedules"][0]["id"]), (&json!(1), &json!(id)));
    let path = format!("{SCHEDULES}/{id}");
    let change =
        json!({ "name": "evening", "cron_expr": "30 0 18 * * *", "timezone": "UTC", "overlap": "cancel" });
    let response = host.raw("PATCH", &path, change.to_string()).await.ok();
    assert_eq!(
        (&response["name"], &response["cron_expr"], &response["catchup"]),
        (&json!("evening"), &json!("30 0 18 * * *"), &json!("last"))
    );
    assert!(response["next_runs"][0].as_str().unwrap().ends_with("T18:00:30.000Z"), "{response}");
    let response = host.post(&format!("{path}/toggle"), json!({})).await.ok();
    assert_eq!((&response["enabled"], &response["next_runs"]), (&json!(false), &json!([])));
    assert_eq!(
        host.post(&format!("{path}/toggle"), json!({ "enabled": false })).await.ok()["enabled"],
        false
    );
    assert_eq!(host.post(&format!("{path}/toggle"), json!({})).await.ok()["enabled"], true);
    assert_eq!(host.raw("DELETE", &path, "").await.ok(), json!({ "id": id, "deleted": true }));
    host.get(&path).await.no(404, "unknown_schedule");
}

#[tokio::test]
async fn a_schedule_is_triggered_and_starts_what_it_starts() {
    let host = TestServer::new().await;
    let (id, _) = made(&host, daily(json!({ "task": { "name": "report", "queue_name": "default" } }))).await;
    let response = host.post(&format!("{SCHEDULES}/{id}/trigger"), json!({})).await.ok();
    assert_eq!(response["schedule_id"], id.as_str());
    let task = response["task_id"].as_str().unwrap();
    let shown = host.task(task).await;
    assert_eq!((&shown["task"]["name"], &shown["task"]["schedule_id"]), (&json!("report"), &json!(id)));
    let running = host.get(&format!("{SCHEDULES}/{id}")).await.ok();
    assert_eq!(running["running"], json!([{ "task_id": task }]));
    let last = &running["last_run"];
    assert_eq!(
        (&last["task_id"], &last["manual"], &running["fired"]),
        (&json!(task), &json!(true), &json!(1))
    );
    let listed = host.get(&format!("/api/v1/tasks?schedule={id}")).await.ok();
    assert_eq!((&listed["count"], &listed["tasks"][0]["id"]), (&json!(1), &json!(task)));
    host.publish("greet", upper()).await;
    let body = daily(json!({ "flow": "greet", "params": { "text": "hello" } }));
    let (id, shown) = made(&host, body).await;
    assert_eq!(
        (&shown["name"], &shown["flow"], &shown["params"]),
        (&json!("greet"), &json!("greet"), &json!({ "text": "hello" }))
    );
    let response = host.post(&format!("{SCHEDULES}/{id}/trigger"), json!({})).await.ok();
    let run = host.ended(response["run_id"].as_str().unwrap()).await;
    assert_eq!(run["shared"]["loud"], "HELLO");
}

#[tokio::test]
async fn a_task_is_the_template_of_others() {
    let host = TestServer::new().await;
    let body = json!({
        "name": "report", "type": "scheduled", "queue_name": "default", "run_at": "2199-01-01T00:00:00Z", "priority": 4
    });
    let id = host.create(body).await;
    let (schedule, shown) = made(&host, daily(json!({ "task_template_id": id }))).await;
    assert_eq!((&shown["task"]["priority"], &shown["task"]["run_at"]), (&json!(4), &Value::Null));
    let response = host.post(&format!("{SCHEDULES}/{schedule}/trigger"), json!({})).await.ok();
    let made = host.task(response["task_id"].as_str().unwrap()).await;
    assert_eq!(made["display_status"], "queued");
}

#[tokio::test]
async fn slots_can_be_seen_before_they_come() {
    let host = TestServer::new().await;
    let (id, _) =
        made(&host, daily(json!({ "task": { "name": "a", "queue_name": "default" }, "enabled": false })))
            .await;
    let response = host.get(&format!("{SCHEDULES}/{id}/next?count=3")).await.ok();
    assert_eq!((&response["count"], &response["timezone"]), (&json!(3), &json!("Europe/Berlin")));
    assert!(response["local"][0].as_str().unwrap().contains("T09:00:00+0"), "{response}");
    assert_eq!(host.get(&format!("{SCHEDULES}/{id}/next?count=0")).await.no(400, "bad_query"), ["?count"]);
    let preview = async |body: Value| host.post(&format!("{SCHEDULES}/preview"), body).await;
    let response = preview(json!({ "cron_expr": "0 0 29 2 *", "count": 2 })).await.ok();
    assert!(
        response["next_runs"]
            .as_array()
            .unwrap()
            .iter()
            .all(|slot| slot.as_str().unwrap().contains("-02-29T00:00:00"))
    );
    assert_eq!(
        preview(json!({ "cron_expr": "61 * * * *" })).await.no(400, "invalid_fields"),
        ["$.cron_expr"]
    );
    let bad = json!({ "cron_expr": "* * *", "timezone": "Mars/Base", "dst": "never" });
    assert_eq!(preview(bad).await.no(400, "invalid_fields"), ["$.dst", "$.cron_expr", "$.timezone"]);
    assert_eq!(preview(json!({ "count": 0 })).await.no(400, "invalid_fields"), ["$.count", "$.cron_expr"]);
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_schedule_is_named() {
    let host = TestServer::new().await;
    let refused = async |body: Value| host.post(SCHEDULES, body).await.no(400, "invalid_fields");
    assert_eq!(refused(json!({})).await, ["$", "$.cron_expr"]);
    let task = task("a");
    assert_eq!(refused(json!({ "cron_expr": "* * *", "task": task })).await, ["$.cron_expr"]);
    assert_eq!(refused(json!({ "cron_expr": "0 0 30 2 *", "task": task })).await, ["$.cron_expr"]);
    assert_eq!(refused(daily(json!({ "task": task, "timezone": "Mars/Base" }))).await, ["$.timezone"]);
    assert_eq!(refused(daily(json!({ "task": task, "flow": "a" }))).await, ["$.flow"]);
    assert_eq!(refused(daily(json!({ "flow": "nowhere" }))).await, ["$.flow"]);
    assert_eq!(refused(daily(json!({ "task_template_id": "x" }))).await, ["$.task_template_id"]);
    assert_eq!(refused(daily(json!({ "task": task, "params": {} }))).await, ["$.params"]);
    let body = daily(
        json!({ "task": task, "overlap": "skp", "catchup": 1, "dst": "", "enabled": 1, "window_ms": -1, "crn": 1 }),
    );
    assert_eq!(refused(body).await, ["$.catchup", "$.dst", "$.enabled", "$.overlap", "$.window_ms"]);
    let body = daily(
        json!({ "task": { "name": "", "queue_name": "a b", "prio": 1, "run_at": "2199-01-01T00:00:00Z" } }),
    );
    assert_eq!(refused(body).await, ["$.task.run_at", "$.task.name", "$.task.queue_name"]);
    let body = json!({ "cron_expr": "* * *", "timezone": "Mars/Base", "task": task, "enabled": "yes" });
    assert_eq!(refused(body).await, ["$.enabled", "$.cron_expr", "$.timezone"]);
    let unknown = "00000000-0000-0000-0000-000000000001";
    for id in [unknown, "x", "%00"] {
        host.get(&format!("{SCHEDULES}/{id}")).await.no(404, "unknown_schedule");
        host.get(&format!("{SCHEDULES}/{id}/next")).await.no(404, "unknown_schedule");
        host.raw("PATCH", &format!("{SCHEDULES}/{id}"), "{}").await.no(404, "unknown_schedule");
        host.raw("DELETE", &format!("{SCHEDULES}/{id}"), "").await.no(404, "unknown_schedule");
        host.post(&format!("{SCHEDULES}/{id}/toggle"), json!({})).await.no(404, "unknown_schedule");
        host.post(&format!("{SCHEDULES}/{id}/trigger"), json!({})).await.no(404, "unknown_schedule");
    }
    assert_eq!(host.get(SCHEDULES).await.ok()["count"], 0);
}

#[tokio::test]
async fn a_scheduled_task_without_a_time_is_a_template_for_schedules() {
    let host = TestServer::new().await;
    let template =
        with("report", json!({ "type": "scheduled", "payload": { "k": 1 }, "dedup_key": "monthly" }));
    let response = host.post("/api/v1/tasks", template.clone()).await;
    assert_eq!((response.status.as_u16(), &response.json()["status"]), (201, &json!("pending")));
    let id = response.json()["task_id"].as_str().unwrap().to_owned();
    let shown = host.task(&id).await;
    assert_eq!((&shown["task"]["type"], &shown["task"]["run_at"]), (&json!("scheduled"), &Value::Null));
    assert_eq!(host.get("/api/v1/tasks").await.ok()["tasks"][0]["next_run_at"], Value::Null);
    let again = host.post("/api/v1/tasks", template).await;
    assert_eq!(again.json()["task_id"], id.as_str(), "its key holds");

    let (schedule, shown) = made(&host, daily(json!({ "task_template_id": id }))).await;
    assert_eq!((&shown["schedule_id"], &shown["task"]["payload"]), (&json!(schedule), &json!({ "k": 1 })));
    let mut started = Vec::new();
    for _ in 0..2 {
        let response = host.post(&format!("{SCHEDULES}/{schedule}/trigger"), json!({})).await.ok();
        let task = response["task_id"].as_str().unwrap().to_owned();
        assert_eq!(host.task(&task).await["display_status"], "queued");
        started.push(task);
    }
    assert!(started[0] != started[1] && !started.contains(&id), "each is a task of its own");
    let listed = host.get(SCHEDULES).await.ok();
    assert_eq!(listed["schedules"][0]["schedule_id"], schedule.as_str());
    let task = with("a", json!({ "type": "scheduled" }));
    made(&host, daily(json!({ "task": task }))).await;
}
