//! Requests that make no sense: each is refused with a word about why, and nothing else changes.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_sdk::Client;

use crate::http::{ask, expect, get, start};
use crate::routes::graph;
use crate::server::Server;

/// Sends bytes that no well-meaning client would; the status and the body.
async fn send(server: &Server, method: &str, path: &str, body: &[u8]) -> (u16, String) {
    let host = server.url().trim_start_matches("http://").to_owned();
    let mut stream = TcpStream::connect(&host).await.unwrap();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let text = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{path}: {text}"));
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

/// Routes that take a body, each with a valid path.
async fn takers(server: &Server) -> Vec<String> {
    let document = get(&server.client(), "/openapi.json").await;
    let mut paths = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        if methods.get("post").is_some() {
            let path =
                path.replace("{id}", "run_00000000000000000000000000000000").replace("{flow}", "double");
            paths.push(path);
        }
    }
    assert!(paths.len() > 25, "{paths:?}");
    paths
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_that_is_sent_breaks_the_server() {
    let server = Server::start(&[]).await;
    let client = server.client();
    let body = json!({"name": "double", "definition": graph()});
    expect(&client, "POST", "/api/v1/flows", Some(body), 201).await;
    let before = start(&client, "double", json!({"x": 4})).await;
    let (deep, large) = ("[".repeat(100_000), format!("{{\"x\": \"{}\"}}", "y".repeat(5 << 20)));
    let deep_field = format!("{{\"params\": {}{}}}", "[".repeat(200), "]".repeat(200));
    let paths = takers(&server).await;
    for path in &paths {
        let is_native = path.starts_with("/api/v1/");
        for body in [
            "{",
            "{\"a\":}",
            "nonsense",
            "[1]",
            "7",
            "null",
            "{\"nobody_knows\": 1, \"id\": {\"a\": 1}}",
            &deep,
            &deep_field,
        ] {
            let (status, answer) = send(&server, "POST", path, body.as_bytes()).await;
            assert!((400..500).contains(&status), "{path} {body:.40}: {status} {answer}");
            let answer: Value = serde_json::from_str(&answer).unwrap();
            let said = if is_native { &answer["detail"] } else { &answer["error"] };
            assert!(said.as_str().is_some_and(|said| said.len() > 5), "{path} {body:.40}: {answer}");
        }
        assert_eq!(send(&server, "POST", path, deep.as_bytes()).await.0, 400, "{path}");
        assert_eq!(send(&server, "POST", path, b"\xff\xfe{").await.0, 400, "{path}");
        assert_eq!(send(&server, "DELETE", path, b"").await.0, 405, "{path}");
    }
    for path in ["/api/v1/flows/double/runs", "/api/tasks", "/tasks", "/api/v1/jobs/claim"] {
        assert_eq!(send(&server, "POST", path, large.as_bytes()).await.0, 413, "{path}");
    }
    // Results may be large, so this body is read and its unknown field is refused.
    assert_eq!(send(&server, "POST", "/api/v1/jobs/finish", large.as_bytes()).await.0, 422);
    wrong_types(&client).await;
    assert_eq!(get(&client, &format!("/api/v1/runs/{before}")).await["params"]["x"], 4);
    assert!(!server.log().contains("panicked"), "{}", server.log());
}

async fn wrong_types(client: &Client) {
    let run = "/api/v1/flows/double/runs";
    for (path, body, said) in [
        (run, json!({"params": 3}), "params"),
        (run, json!({"parms": {}}), "parms"),
        (run, json!({"priority": "urgent"}), "urgent"),
        (run, json!({"version": -1}), "version"),
        ("/api/v1/jobs/claim", json!({"worker_id": "w", "services": ["s"], "max": 0}), "max"),
        ("/api/v1/jobs/claim", json!({"services": ["s"]}), "worker_id"),
        ("/api/v1/jobs/extend", json!({"leases": "x"}), "leases"),
        ("/api/v1/jobs/finish", json!({"results": [{"id": "x", "lease": "y", "outcome": "won"}]}), "won"),
        ("/api/tasks", json!({"FlowID": 7}), "FlowID"),
        ("/tasks", json!({"FlowID": "flow-nobody"}), "flow-nobody"),
        ("/api/queue/complete", json!({"queue_id": "x"}), "x"),
    ] {
        let (status, answer) = ask(client, "POST", path, Some(body)).await;
        assert!((400..500).contains(&status), "{path}: {status} {answer}");
        assert!(answer.to_string().contains(said), "{path}: {answer}");
    }
    for path in [
        "/api/v1/runs/run_00000000000000000000000000000000",
        "/api/v1/runs/x/journal",
        "/api/v1/flows/nobody",
        "/api/v1/flows/double/versions/99",
        "/api/tasks/get?id=x",
        "/nowhere",
        "/api/v1/nowhere",
    ] {
        expect(client, "GET", path, None, 404).await;
    }
    for path in [
        "/api/v1/runs?limit=0",
        "/api/v1/runs?status=odd",
        "/api/v1/runs?cursor=odd",
        "/api/v1/runs?what=1",
        "/api/tasks?status=odd",
    ] {
        expect(client, "GET", path, None, 400).await;
    }
}
