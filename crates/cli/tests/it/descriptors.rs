//! A real server with few descriptors, and with many connections of one client.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http::{ends, get, post, start};
use crate::server::{Server, TempDir, publish};
use crate::store::Store;

/// A push worker that answers every call.
async fn worker() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut bytes = vec![0; 8_192];
                let _ = stream.read(&mut bytes).await;
                let body = r#"{"result": 7}"#;
                let head =
                    format!("HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
                let _ = stream.write_all(format!("{head}{body}").as_bytes()).await;
            });
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_connections_keep_neither_calls_nor_health_from_working() {
    let dir = TempDir::new();
    let store = Store::fresh(&dir);
    let server = Server::start_at(dir, store, &["prlimit", "--nofile=128:256"], &["--allow-scripts"]).await;
    let log = server.log();
    assert!(log.contains("256: 128 for connections, 128 for calls, scripts and the store"), "{log}");
    assert!(log.contains("connections_max is 128 and not 10000"), "{log}");
    let mut idle = Vec::new();
    for _ in 0..300 {
        idle.push(TcpStream::connect(server.url().strip_prefix("http://").unwrap()).await.unwrap());
    }
    let (client, begun) = (server.client(), Instant::now());
    get(&client, "/healthz").await;
    assert!(begun.elapsed() < Duration::from_secs(20), "health took {:?}", begun.elapsed());
    let registration = json!({"id": "w", "url": worker().await, "services": ["seven"], "type": "http"});
    post(&client, "/api/workers/register", registration).await;
    let calls = json!({"kind": "foreach", "service": "seven", "exec_type": "http", "parallel_mode": "concurrent",
        "prep": {"input_key": "$params.items"}, "post": {"output_key": "out"}});
    let script = json!({"exec_type": "local_script", "script": {"cmd": "echo", "args": ["8"]},
        "post": {"output_key": "script"}});
    let nodes = json!({"a": calls, "b": script});
    publish(&client, "calls", json!({"start": "a", "nodes": nodes, "edges": [{"from": "a", "to": "b"}]}))
        .await;
    let items: Vec<u32> = (0..40).collect();
    let run = start(&client, "calls", json!({"items": items})).await;
    let done = ends(&client, &run, "completed").await;
    assert_eq!(done["shared"]["out"], json!(vec![7; 40]), "{done}");
    assert_eq!(done["shared"]["script"], 8);
    drop(idle);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_too_few_descriptors_says_so() {
    let dir = TempDir::new();
    let ended = Command::new("prlimit")
        .args(["--nofile=100:100", env!("CARGO_BIN_EXE_windlass"), "serve", "--listen", "127.0.0.1:0"])
        .args(["--store", &format!("sqlite:{}", dir.path().join("windlass.db").display())])
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(!ended.status.success());
    assert!(said.contains("may open 100 files and needs at least 160: raise the limit"), "{said}");
}
