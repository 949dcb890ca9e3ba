//! Leases are signed with a key of the store: they outlive a server, count at every server of the store, and the key
//! is seen nowhere.

use serde_json::{Value, json};
use windlass_conformance::postgres_server::shared;
use windlass_sdk::Client;

use crate::http::{ask, ends, get, post, seen, start};
use crate::server::{Server, TempDir, publish};
use crate::shell::TestShell;
use crate::store::Store;

fn flow() -> Value {
    json!({"start": "a", "nodes": {"a": {"service": "s", "exec_type": "queue", "post": {"output_key": "out"}}},
        "edges": []})
}

async fn claim(client: &Client) -> Value {
    let claim = json!({"worker_id": "hand", "services": ["s"], "wait_ms": 20_000, "lease_ms": 600_000});
    post(client, "/api/v1/jobs/claim", claim).await["jobs"][0].clone()
}

async fn finish(client: &Client, job: &Value, outcome: &str) -> Value {
    let end = json!({"id": job["id"], "lease": job["lease"], "outcome": outcome});
    post(client, "/api/v1/jobs/finish", json!({"results": [end]})).await["results"][0]["verdict"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lease_and_a_call_of_before_a_restart_count_after_it() {
    let mut server = Server::start(&[]).await;
    let client = server.client();
    publish(&client, "f", flow()).await;
    let runs = [start(&client, "f", json!({})).await, start(&client, "f", json!({})).await];
    let jobs = [claim(&client).await, claim(&client).await];
    assert_eq!(finish(&client, &jobs[0], "suspended").await, "ok");
    server.kill();
    server.spawn();
    server.ready().await;
    let report = format!("/api/v1/calls/{}/report", jobs[0]["call"].as_str().unwrap());
    assert_eq!(post(&client, &report, json!({"result": 1})).await["verdict"], "ok");
    assert_eq!(finish(&client, &jobs[1], "done").await, "ok");
    for run in runs {
        ends(&client, &run, "completed").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_of_one_database_take_each_others_leases() {
    let store = Store::Database(tokio::task::block_in_place(|| shared().create_migrated()));
    let address = store.address();
    // Both start on a store that has no key yet.
    let (one, two) = tokio::join!(Server::start_on(&address, &[]), Server::start_on(&address, &[]));
    let (first, second) = (one.client(), two.client());
    publish(&first, "f", flow()).await;
    for (grants, takes) in [(&first, &second), (&second, &first)] {
        let run = start(grants, "f", json!({})).await;
        let job = claim(grants).await;
        let extended = post(takes, "/api/v1/jobs/extend", json!({"leases": [job["lease"]]})).await;
        assert_eq!(extended["results"][0]["verdict"], "ok", "{extended}");
        assert_eq!(finish(takes, &job, "done").await, "ok");
        ends(grants, &run, "completed").await;
    }
    drop((one, two));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_the_store_is_in_no_answer_and_no_log() {
    let dir = TempDir::new();
    let store = Store::File(dir.path().join("store.db"));
    let server = Server::start_at(dir, store, &["env", "RUST_LOG=trace"], &[]).await;
    let client = server.client();
    publish(&client, "f", flow()).await;
    start(&client, "f", json!({})).await;
    let job = claim(&client).await;
    assert_eq!(finish(&client, &job, "done").await, "ok");
    let key = server.store().ask("SELECT lower(hex(bytes)) FROM store_keys WHERE name = 'grants'");
    let key = key.trim();
    assert_eq!(key.len(), 64, "{key}");
    let bytes: Vec<u8> =
        (0..32).map(|at| u8::from_str_radix(&key[2 * at..2 * at + 2], 16).unwrap()).collect();
    let spellings = [key.to_owned(), key.to_uppercase(), format!("{bytes:?}"), format!("{bytes:x?}")];
    let mut seen_texts = vec![("the log".to_owned(), server.log())];
    let document = get(&client, "/openapi.json").await;
    for (path, methods) in document["paths"].as_object().unwrap() {
        // Streams do not end.
        if methods.get("get").is_some() && !path.contains('{') && !path.ends_with("/events") {
            let (_, answer) = ask(&client, "GET", path, None).await;
            seen_texts.push((path.clone(), answer.to_string()));
        }
    }
    assert!(seen_texts.len() > 20, "{}", seen_texts.len());
    for (place, text) in &seen_texts {
        assert!(spellings.iter().all(|spelling| !text.contains(spelling)), "the key is in {place}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_worker_with_the_same_id_ends_the_first() {
    let shell = TestShell::open().await;
    let client = shell.server.client();
    let known = async |url_of_other: Option<&str>| {
        seen("the worker", async || {
            let workers = get(&client, "/api/v1/workers").await;
            let url = workers["workers"][0]["url"].as_str()?.to_owned();
            (Some(url.as_str()) != url_of_other).then_some(url)
        })
        .await
    };
    let mut first = shell.worker(&["--id", "twin", "--services", "upper"]);
    let url = known(None).await;
    let mut second = shell.worker(&["--id", "twin", "--services", "upper"]);
    known(Some(&url)).await;
    let ended = seen("the end of the first", || std::future::ready(first.0.try_wait().unwrap())).await;
    assert_eq!(ended.code(), Some(1), "it ends with an error");
    assert!(second.0.try_wait().unwrap().is_none(), "the second goes on");
    let audit = get(&client, "/api/v1/audit?what=worker.takeover").await;
    assert_eq!(audit["items"][0]["subject"], "twin", "{audit}");
}
