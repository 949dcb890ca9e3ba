//! Lists of queues, workers, schedules and services, a page at a time.

use serde_json::{Value, json};
use windlass_engine::project::Project;
use windlass_sdk::contract::PageQuery;
use windlass_store::page::PAGE_MAX;
use windlass_store::queue::{QueueLimits, QueueSettings};
use windlass_store::worker::{WorkerQuery, WorkerRow};

use crate::client::connected_to;
use crate::support::with;
use crate::test_server::TestServer;

const N: usize = 7;

/// Reads a list in pages of three, and returns the names in order.
async fn names(host: &TestServer, path: &str, list: &str, name: &str) -> Vec<String> {
    let (mut names, mut cursor) = (Vec::new(), String::new());
    for n_pages in 1.. {
        let page = host.get(&format!("{path}?limit=3{cursor}")).await.ok();
        let items = page[list].as_array().unwrap();
        names.extend(items.iter().map(|item| item[name].as_str().unwrap().to_owned()));
        if list != "items" {
            assert_eq!(page["count"], items.len(), "{page}");
        }
        match &page["next"] {
            Value::String(next) => cursor = format!("&cursor={next}"),
            _ => {
                assert_eq!(n_pages, N.div_ceil(3), "{path}");
                return names;
            }
        }
        assert_eq!(items.len(), 3, "{page}");
    }
    names
}

async fn fill(host: &TestServer) {
    for n in 0..N {
        host.create(with("a", json!({ "queue_name": format!("q{n}") }))).await;
        let worker =
            json!({ "id": format!("w{n}"), "type": "async", "services": [format!("s{n}"), "shared"] });
        host.post("/api/workers/register", worker).await.ok();
        let task = json!({ "name": "a", "queue_name": "q0" });
        let schedule = json!({ "name": format!("n{n}"), "cron_expr": "@daily", "task": task });
        assert_eq!(host.post("/api/v1/schedules", schedule).await.status, 201);
    }
}

#[tokio::test]
async fn lists_are_read_in_pages_without_gaps_and_repetitions() {
    let host = TestServer::new().await;
    fill(&host).await;
    let all = |letter: &str| (0..N).map(|n| format!("{letter}{n}")).collect::<Vec<_>>();
    assert_eq!(names(&host, "/api/v1/queues", "queues", "name").await, all("q"));
    assert_eq!(names(&host, "/api/v1/workers", "workers", "id").await, all("w"));
    assert_eq!(names(&host, "/api/v1/schedules", "schedules", "name").await, all("n"));
    // The first service has jobs and no worker; the one of the setting is among the others; the last one has all workers.
    host.put("/api/v1/services/s5", json!({ "recheck_ms": 1_000 })).await.ok();
    let services = host.get("/api/v1/services?cursor=s4").await.ok();
    let known: Vec<_> = services["items"].as_array().unwrap().iter().collect();
    assert_eq!(known.len(), 3, "{services}");
    assert_eq!(
        (&known[0]["name"], &known[0]["n_workers"], &known[0]["recheck_ms"]),
        (&json!("s5"), &json!(1), &json!(1_000))
    );
    assert_eq!((&known[2]["name"], &known[2]["n_workers"]), (&json!("shared"), &json!(N)));
    assert_eq!(host.get("/api/v1/services?limit=9").await.ok()["next"], Value::Null);
    assert_eq!(host.get("/api/v1/services?limit=8").await.ok()["next"], json!("s6"));
}

#[tokio::test]
async fn a_list_of_document_002_has_no_new_field_while_it_fits_on_a_page() {
    let host = TestServer::new().await;
    fill(&host).await;
    for path in ["queues", "workers", "schedules"] {
        let list = host.get(&format!("/api/v1/{path}")).await.ok();
        let fields: Vec<&String> = list.as_object().unwrap().keys().collect();
        assert_eq!(fields, ["count", path], "{list}");
        assert_eq!(list["count"], N);
    }
}

#[tokio::test]
async fn a_page_of_nothing_or_of_too_much_is_refused() {
    let host = TestServer::new().await;
    for path in ["queues", "workers", "schedules"] {
        for limit in ["0", "1001", "-1", "x"] {
            host.get(&format!("/api/v1/{path}?limit={limit}")).await.no(400, "bad_query");
        }
        host.get(&format!("/api/v1/{path}?colour=red")).await.no(400, "bad_query");
    }
    host.get("/api/v1/schedules?cursor=nonsense").await.no(400, "bad_cursor");
}

#[tokio::test]
async fn the_client_follows_the_pages() {
    let host = TestServer::new().await;
    fill(&host).await;
    let (runtime, now) = (host.runtime.clone(), host.runtime.clock().now());
    let worker = host.runtime.workers().list(WorkerQuery::default()).await.unwrap().remove(0);
    let client = connected_to(host).await;
    let page = PageQuery { cursor: Some("q1".to_owned()), limit: Some(2) };
    let queues = client.queues().list(&page).await.unwrap();
    assert_eq!((queues.count, queues.queues[0].name.as_str(), queues.next.as_deref()), (2, "q2", Some("q3")));
    let limits = QueueLimits::default();
    for n in 0..=PAGE_MAX {
        let settings =
            QueueSettings { name: format!("x{n}"), is_paused: true, limits: limits.clone(), updated_at: now };
        runtime.store().save_queue(&Project::DEFAULT, settings).await.unwrap();
        let row = WorkerRow { id: format!("x{n}"), services: vec![format!("x{n}")], ..worker.clone() };
        runtime.store().save_worker(&Project::DEFAULT, row).await.unwrap();
    }
    assert_eq!(client.queues().all().await.unwrap().len(), N + PAGE_MAX + 1);
    assert_eq!(client.workers().all().await.unwrap().len(), N + PAGE_MAX + 1);
    assert_eq!(
        client.services().all().await.unwrap().len(),
        N + 2 + PAGE_MAX + 1,
        "and the one whose jobs wait"
    );
    assert_eq!(client.schedules().all().await.unwrap().len(), N);
}
