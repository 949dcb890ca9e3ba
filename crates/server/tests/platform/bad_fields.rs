//! An invalid body is refused as a whole, with all its problems.

use serde_json::{Value, json};

use crate::support::{task, with};
use crate::test_server::TestServer;

#[tokio::test]
async fn every_bad_field_of_a_task_is_named_with_what_is_allowed() {
    let host = TestServer::new().await;
    let cases: Vec<(Value, &str)> = vec![
        (json!({ "name": 5 }), "$.name"),
        (json!({ "name": "" }), "$.name"),
        (json!({ "name": "a\nb" }), "$.name"),
        (json!({ "name": "x".repeat(256) }), "$.name"),
        (json!({ "type": "imediate" }), "$.type"),
        (json!({ "type": null }), "$.type"),
        (json!({ "queue_name": [] }), "$.queue_name"),
        (json!({ "queue_name": "two words" }), "$.queue_name"),
        (json!({ "priority": "high" }), "$.priority"),
        (json!({ "priority": 2.5 }), "$.priority"),
        (json!({ "priority": 3_000_000_000_u64 }), "$.priority"),
        (json!({ "dedup_key": 5 }), "$.dedup_key"),
        (json!({ "max_retries": -1 }), "$.max_retries"),
        (json!({ "max_retries": 1_001 }), "$.max_retries"),
        (json!({ "max_retries": "3" }), "$.max_retries"),
        (json!({ "run_at": "2199-01-01T00:00:00Z" }), "$.run_at"),
        (json!({ "type": "scheduled", "account": "a" }), "$.account"),
        (json!({ "type": "scheduled", "run_at": "tomorrow" }), "$.run_at"),
        (json!({ "type": "scheduled", "run_at": 1_794_790_340_005_u64 }), "$.run_at"),
        (json!({ "timeout_ms": "1s" }), "$.timeout_ms"),
        (json!({ "timeout_ms": u64::MAX }), "$.timeout_ms"),
        (json!({ "unique_for_ms": 5 }), "$.unique_for_ms"),
        (json!({ "backoff": 5 }), "$.backoff"),
        (json!({ "backoff": { "kind": "linear" } }), "$.backoff.kind"),
        (json!({ "backoff": { "base_ms": -5 } }), "$.backoff.base_ms"),
        (json!({ "limit_key": {} }), "$.limit_key"),
        (json!({ "account": "nobody" }), "$.account"),
        (json!({ "payload": (0..70).fold(json!(1), |inner, _| json!([inner])) }), "$.payload"),
    ];
    for (more, place) in cases {
        let body = with("a", more);
        let response = host.post("/api/v1/tasks", body.clone()).await;
        assert_eq!(response.no(400, "invalid_fields"), [place], "{body}");
        assert!(response.json()["error"].as_str().unwrap().starts_with(place), "{body}");
        let response = host.post("/api/v1/tasks/batch", json!([task("fine"), body])).await;
        assert_eq!(response.no(400, "invalid_fields"), [place.replacen('$', "$[1]", 1)]);
    }
    assert_eq!(host.get("/api/v1/tasks").await.ok()["count"], 0);
}

#[tokio::test]
async fn all_mistakes_are_told_at_once() {
    let host = TestServer::new().await;
    let response = host.post("/api/v1/tasks", json!({})).await;
    assert_eq!(response.no(400, "invalid_fields"), ["$.name", "$.queue_name", "$.type"]);
    let body = json!({ "name": " ", "type": "soon", "queue_name": "a b", "priority": [], "paylod": 1 });
    let response = host.post("/api/v1/tasks", body).await;
    let expected = ["$.priority", "$.type", "$.name", "$.queue_name"];
    assert_eq!(response.no(400, "invalid_fields"), expected);
    let error = response.json();
    for place in expected {
        assert!(error["error"].as_str().unwrap().contains(place), "{error}");
    }
    assert_eq!(response.warnings(), ["299 windlass \"unknown field paylod\""]);
}

#[tokio::test]
async fn null_is_as_good_as_nothing() {
    let host = TestServer::new().await;
    let nulls = json!({
        "priority": null, "payload": null, "dedup_key": null, "max_retries": null, "run_at": null, "timeout_ms": null,
        "backoff": null, "unique_for_ms": null, "limit_key": null, "account": null
    });
    let id = host.create(with("a", nulls)).await;
    assert_eq!(host.task(&id).await["task"]["max_retries"], 3);
}

#[tokio::test]
async fn a_batch_is_an_array_of_some_objects() {
    let host = TestServer::new().await;
    let post = async |body: String| host.raw("POST", "/api/v1/tasks/batch", body).await;
    assert_eq!(post("{}".to_owned()).await.no(400, "invalid_fields"), ["$"]);
    assert_eq!(post("[]".to_owned()).await.no(400, "invalid_fields"), ["$"]);
    assert_eq!(post("[[], 5, {}]".to_owned()).await.no(400, "invalid_fields")[3..], ["$[0]", "$[1]"]);
    // The fields of a task in their order are no task.
    assert_eq!(post(r#"[["a","immediate","default"]]"#.to_owned()).await.no(400, "invalid_fields"), ["$[0]"]);
    let many = vec![task("a"); 10_001];
    let response = post(json!(many).to_string()).await;
    assert_eq!(response.no(400, "invalid_fields"), ["$"]);
    assert!(response.json()["error"].as_str().unwrap().contains("10001"));
    let wrong = vec![json!({}); 10_000];
    assert!(post(json!(wrong).to_string()).await.no(400, "invalid_fields").len() >= 200);
    post("[".to_owned()).await.no(400, "malformed_json");
    assert_eq!(host.get("/api/v1/tasks").await.ok()["count"], 0);
}

/// Hostile bodies.
fn bodies() -> Vec<Vec<u8>> {
    let texts = [
        "",
        " ",
        "{",
        "}",
        "[]",
        "null",
        "5",
        "\"a\"",
        "true",
        "{}{}",
        "[[]]",
        "{\"a\":1e999}",
        "\u{feff}{}",
        "{\"name\":\"\\u0000\"}",
        "{\"__proto__\":{}}",
        "{\"name\":\"x\",\"name\":\"y\"}",
        "{\"count\":0}",
        "{\"count\":-1}",
        "{\"count\":1e30}",
        "{\"ids\":[]}",
        "{\"ids\":[\"x\"]}",
        "{\"ids\":5}",
        "{\"limits\":5}",
        "{\"limits\":{\"rate\":{}}}",
        "{\"limits\":{\"concurrency\":0}}",
        "{\"paused\":1}",
        "{\"reason\":\"\"}",
        "{\"cron_expr\":\"\"}",
        "{\"cron_expr\":5}",
        "{\"cron_expr\":\"* * * * *\",\"task\":5}",
        "{\"cron_expr\":\"* * * * *\",\"flow\":\"nowhere\"}",
        "{\"enabled\":\"no\"}",
        "{\"override_priority\":\"x\"}",
        "{\"cron_expr\":\"* * * * *\",\"task\":{},\"flow\":\"a\"}",
        "{\"per_second\":0}",
        "{\"fingerprint\":5}",
    ];
    let mut bodies: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
    bodies.push(vec![0xff, 0xfe]);
    for n in [100, 200, 100_000] {
        bodies.push(format!("{{\"payload\":{}{}}}", "[".repeat(n), "]".repeat(n)).into_bytes());
    }
    bodies
}

#[tokio::test]
async fn no_body_makes_the_server_stumble() {
    let host = TestServer::new().await;
    let id = "00000000-0000-0000-0000-000000000001";
    let mut paths: Vec<(&str, String)> = ["tasks", "tasks/batch", "schedules", "schedules/preview"]
        .into_iter()
        .chain(["queues/a/pause", "queues/a/resume", "queues/a/dlq/replay", "queues/a/dlq/discard"])
        .map(|path| ("POST", path.to_owned()))
        .collect();
    for word in ["tasks/ID/cancel", "tasks/ID/retry", "schedules/ID/toggle", "schedules/ID/trigger"] {
        paths.push(("POST", word.replace("ID", id)));
        paths.push(("POST", word.replace("ID", "%00")));
    }
    for word in ["workers/x/drain", "workers/%F0%9F%9A%80/undrain", "queues/%00/pause", "queues/a%20b/pause"]
    {
        paths.push(("POST", word.to_owned()));
    }
    paths.extend([("PUT", "queues/a".to_owned()), ("PATCH", "queues/a".to_owned())]);
    paths.push(("PATCH", format!("schedules/{id}")));
    for (method, path) in paths {
        for body in bodies() {
            let response = host.raw(method, &format!("/api/v1/{path}"), body.clone()).await;
            let sent: String = String::from_utf8_lossy(&body).chars().take(80).collect();
            let shown = String::from_utf8_lossy(&response.body).into_owned();
            assert!(
                !response.status.is_server_error(),
                "{method} {path} {sent}: {} {shown}",
                response.status
            );
            assert_ne!(response.status, 422, "{method} {path} {sent}: {shown}");
            if !response.status.is_success() {
                let code = response.json()["code"].as_str().unwrap().to_owned();
                response.no(response.status.as_u16(), &code);
            }
        }
    }
}

#[tokio::test]
async fn no_query_makes_the_server_stumble() {
    let host = TestServer::new().await;
    let queries = [
        "?x=1",
        "?limit=0",
        "?limit=x",
        "?cursor=%00",
        "?cursor=n5.job_x",
        "?status=x",
        "?since=x",
        "?count=0",
        "?count=x",
        "?count=99999999999999999999",
        "?after=x",
        "?format=x",
        "?worker=%FF",
        "?schedule=x",
        "?&&",
        "?=",
    ];
    let lists = [
        "tasks",
        "queues",
        "queues/a",
        "queues/a/dlq",
        "queues/a/dlq/groups",
        "schedules",
        "workers",
        "tasks/00000000-0000-0000-0000-000000000001/runs",
        "schedules/00000000-0000-0000-0000-000000000001/next",
    ];
    for list in lists {
        for query in queries {
            let response = host.get(&format!("/api/v1/{list}{query}")).await;
            assert!(!response.status.is_server_error(), "{list}{query}: {}", response.status);
        }
    }
    let response = host.get("/api/v1/tasks?statsu=failed").await;
    assert_eq!(response.no(400, "bad_query"), ["?statsu"]);
    assert_eq!(response.json()["errors"][0]["hint"], "did you mean `status`?");
    assert_eq!(host.get("/api/v1/tasks?status=faild").await.no(400, "bad_query"), ["?status"]);
    assert_eq!(host.get("/api/v1/queues?verbose=1").await.no(400, "bad_query"), ["?verbose"]);
}

#[tokio::test]
async fn unknown_fields_are_ignored_with_a_warning() {
    let host = TestServer::new().await;
    let unknown = |name: &str| format!("299 windlass \"unknown field {name}\"");
    let body = with("a", json!({ "prioriti": 1, "run": "x", "backoff": { "jiter": true } }));
    let response = host.post("/api/v1/tasks", body.clone()).await;
    assert_eq!(response.status, 201, "{}", response.json());
    assert_eq!(response.warnings(), [unknown("backoff.jiter"), unknown("prioriti"), unknown("run")]);
    let response = host.post("/api/v1/tasks/batch", json!([task("b"), with("c", json!({ "x": 1 }))])).await;
    assert_eq!((response.status.as_u16(), response.warnings()), (201, vec![unknown("[1].x")]));
    let large = with("d", json!({ "payload": "x".repeat(600_000), "y": 1 }));
    let response = host.post("/api/v1/tasks/batch", json!([large])).await;
    assert_eq!((response.status.as_u16(), response.warnings()), (201, vec![unknown("[0].y")]));
    let body = json!({ "paused": true, "limits": { "concurency": 1, "rate": { "count": 1, "per_ms": 1, "brst": 1 } } });
    let response = host.put("/api/v1/queues/q", body).await;
    assert_eq!(response.status, 200, "{}", response.json());
    assert_eq!(response.warnings(), [unknown("limits.rate.brst"), unknown("limits.concurency")]);
    let schedule = json!({ "cron_expr": "0 9 * * *", "crn": 1, "task": with("e", json!({ "prio": 1 })) });
    let response = host.post("/api/v1/schedules", schedule).await;
    assert_eq!(response.status, 201, "{}", response.json());
    assert_eq!(response.warnings(), [unknown("task.prio"), unknown("crn")]);
    assert_eq!(host.post("/api/v1/tasks", task("f")).await.warnings(), [""; 0]);
    let native = json!({ "service": "s", "queue": "q", "unknwon": 1 });
    let response = host.post("/api/v1/jobs", native).await;
    assert!(response.status != 201 && response.warnings().is_empty(), "other surfaces refuse it");
}

#[tokio::test]
async fn an_action_takes_an_object_of_any_fields() {
    let host = TestServer::new().await;
    let id = host.create(task("a")).await;
    for action in [format!("tasks/{id}/cancel"), "queues/a/pause".to_owned(), "queues/a/resume".to_owned()] {
        let path = format!("/api/v1/{action}");
        let response = host.post(&path, json!({ "a": 1, "b": 2 })).await;
        assert_eq!((response.status.as_u16(), response.warnings().len()), (200, 2), "{action}");
        assert_eq!(host.post(&path, json!([])).await.no(400, "invalid_fields"), ["$"], "{action}");
    }
    let toggle = "/api/v1/schedules/3f1d2c9a-0000-7000-8000-000000000000/toggle";
    let response = host.post(toggle, json!({ "enabled": "yes", "enabld": true })).await;
    assert_eq!(response.no(400, "invalid_fields"), ["$.enabled"]);
}

#[tokio::test]
async fn a_time_zone_is_looked_at_without_a_cron_expression_too() {
    let host = TestServer::new().await;
    let path = "/api/v1/schedules/3f1d2c9a-0000-7000-8000-000000000000";
    let body = json!({ "dst": "never", "timezone": "Mars/Olympus" });
    let response = host.raw("PATCH", path, body.to_string()).await;
    assert_eq!(response.no(400, "invalid_fields"), ["$.dst", "$.timezone"]);
}
