use serde_json::json;

use crate::support::{Client, clients};

async fn register(client: &Client, path: &str, id: &str, services: &[&str]) {
    let body = json!({"id": id, "url": "http://127.0.0.1:9", "services": services, "type": "http"});
    assert_eq!(client.posted(path, body).await, json!({"ok": "1"}));
}

#[tokio::test]
async fn workers_register_and_are_listed() {
    for client in clients().await {
        register(&client, "/workers/register", "w1", &["transform", "sum"]).await;
        register(&client, "/register", "w2", &["route"]).await;
        for path in ["/workers/list", "/list", "/workers"] {
            let workers = client.got(path).await;
            let ids: Vec<_> = workers.as_array().unwrap().iter().map(|w| client.field(w, "id")).collect();
            assert_eq!(ids, ["w1", "w2"], "{path}");
        }
        let workers = client.got("/workers/list?service=sum&ttl=60").await;
        let [worker] = &workers.as_array().unwrap()[..] else { panic!("{workers}") };
        assert_eq!(client.field(worker, "url"), "http://127.0.0.1:9");
        assert_eq!(client.field(worker, "services"), &json!(["transform", "sum"]));
        assert_eq!(client.field(worker, "status"), "online");
        assert!(client.field(worker, "last_heartbeat").as_i64().unwrap() > 1_700_000_000);
        let mut keys: Vec<&str> = worker.as_object().unwrap().keys().map(String::as_str).collect();
        keys.sort_unstable();
        if client.is_first() {
            assert_eq!(keys, ["ID", "LastHeartbeat", "Load", "Services", "Status", "URL"]);
        } else {
            assert_eq!(keys, ["id", "last_heartbeat", "load", "services", "status", "type", "url"]);
        }
    }
}

#[tokio::test]
async fn the_least_loaded_worker_is_allocated() {
    for client in clients().await {
        let none = client.get("/workers/allocate?service=sum").await;
        assert_eq!((none.status, none.body), (404, json!({"error": "no worker"})));
        register(&client, "/register", "busy", &["sum"]).await;
        register(&client, "/register", "free", &["sum"]).await;
        for (path, id, load) in [("/workers/heartbeat", "busy", 9), ("/heartbeat", "free", 1)] {
            let body = json!({"id": id, "url": "http://127.0.0.1:9", "load": load});
            assert_eq!(client.posted(path, body).await, json!({"ok": "1"}));
        }
        for path in ["/workers/allocate?service=sum", "/allocate?service=sum"] {
            let worker = client.got(path).await;
            assert_eq!(client.field(&worker, "id"), "free");
            assert_eq!(client.field(&worker, "load"), 1);
        }
        assert_eq!(client.get("/allocate").await.status, 400);
    }
}

#[tokio::test]
async fn an_unknown_worker_is_told_to_register_again() {
    for client in clients().await {
        for path in ["/workers/heartbeat", "/heartbeat"] {
            let answer = client.post(path, json!({"id": "ghost", "url": "", "load": 0})).await;
            assert_eq!((answer.status, answer.body), (404, json!({"error": "there is no worker `ghost`"})));
        }
    }
}

#[tokio::test]
async fn a_worker_that_makes_no_sense_is_refused() {
    for client in clients().await {
        for body in [
            json!({}),
            json!({"id": ""}),
            json!({"id": 7}),
            json!({"id": "w", "services": "transform"}),
            json!({"id": "w", "services": [1]}),
            json!({"id": "w", "type": "carrier-pigeon"}),
            json!({"id": "w", "type": "http"}),
            json!({"id": "w", "url": "http://169.254.169.254/", "type": "http"}),
            json!({"id": "x".repeat(300)}),
        ] {
            let answer = client.post("/workers/register", body.clone()).await;
            assert_eq!(answer.status, 400, "{body}: {answer:?}");
            assert!(answer.body["error"].is_string(), "{answer:?}");
        }
        assert_eq!(client.got("/workers/list").await, json!([]));
        assert_eq!(client.post("/heartbeat", json!({"load": 1})).await.status, 400);
        assert_eq!(client.get("/workers/list?ttl=soon").await.status, 400);
    }
}

#[tokio::test]
async fn a_worker_may_have_an_https_url() {
    for client in clients().await {
        for path in ["/workers/register", "/register"] {
            let body =
                json!({"id": "w", "url": "https://127.0.0.1:9001", "services": ["press"], "type": "http"});
            assert_eq!(client.post(path, body).await.status, 200);
            assert_eq!(client.got("/workers/list").await.as_array().unwrap().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_refused_registration_names_the_setting_and_is_listed_until_it_succeeds() {
    for client in clients().await {
        let private = json!({"id": "w", "url": "http://10.0.0.5:9001", "services": ["press"]});
        let answer = client.post("/register", private.clone()).await;
        let error = answer.body["error"].as_str().unwrap();
        assert!(answer.status == 400 && error.contains("--allow-worker-net"), "{answer:?}");
        let listed = async || {
            let path = "/api/v1/workers";
            let listed = if client.is_first() { client.got(path).await } else { client.native(path).await };
            listed["refused"].as_array().cloned().unwrap_or_default()
        };
        let refused = listed().await;
        assert_eq!((&refused[0]["id"], &refused[0]["url"]), (&json!("w"), &private["url"]));
        assert!(refused[0]["reason"].as_str().unwrap().contains("--allow-worker-net"), "{refused:?}");
        register(&client, "/register", "w", &["press"]).await;
        assert!(listed().await.is_empty());
    }
}

#[tokio::test]
async fn a_worker_keeps_its_name() {
    for client in clients().await {
        let named = json!({"id": "w", "name": "press on floor 2", "services": ["press"], "type": "async"});
        client.posted("/register", named).await;
        register(&client, "/register", "x", &["press"]).await;
        let names: Vec<String> = client
            .runtime
            .workers()
            .list(windlass_store::worker::WorkerQuery::default())
            .await
            .unwrap()
            .into_iter()
            .map(|worker| worker.name)
            .collect();
        assert_eq!(names, ["press on floor 2", "x"]);
    }
}

#[tokio::test]
async fn a_worker_that_is_to_go_hears_it() {
    for client in clients().await {
        register(&client, "/workers/register", "w1", &["transform"]).await;
        let beat = || client.posted("/workers/heartbeat", json!({"id": "w1"}));
        assert_eq!(beat().await, json!({"ok": "1"}));
        client.runtime.workers().drain_worker("w1", true).await.unwrap();
        assert_eq!(beat().await, json!({"ok": "1", "draining": true}));
        let none = client.get("/workers/allocate?service=transform").await;
        assert_eq!((none.status, none.body), (404, json!({"error": "no worker"})));
        if client.is_first() {
            let claim = json!({"worker_id": "w1", "services": ["transform"], "wait_ms": 60_000});
            let claimed = client.posted("/api/v1/jobs/claim", claim).await;
            assert_eq!(claimed, json!({"jobs": [], "draining": true}));
        }
        register(&client, "/workers/register", "w1", &["transform"]).await;
        assert_eq!(beat().await, json!({"ok": "1"}));
    }
}
