//! Peak memory of a real server under hostile bodies and answers. The address space is limited only to protect the
//! machine.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::http::{ends, post, start};
use crate::server::{PATIENCE, Server, TempDir, publish};
use crate::store::Store;

/// Bytes of address space of the server.
pub(crate) const ADDRESS_SPACE: &str = "--as=8589934592";

async fn server() -> Server {
    let dir = TempDir::new();
    let store = Store::fresh(&dir);
    Server::start_at(dir, store, &["prlimit", ADDRESS_SPACE], &[]).await
}

/// A field of `/proc/<pid>/status` in bytes.
pub(crate) fn read_status(server: &Server, field: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').trim().trim_end_matches(" kB").parse::<usize>().unwrap() << 10
}

/// The peak of the server's memory above its memory now, after the work is done.
pub(crate) async fn growth<T>(server: &Server, work: impl Future<Output = T>) -> (usize, T) {
    // Sets `VmHWM` to the memory of now.
    std::fs::write(format!("/proc/{}/clear_refs", server.pid()), "5").unwrap();
    let before = read_status(server, "VmRSS");
    let done = work.await;
    (read_status(server, "VmHWM").saturating_sub(before), done)
}

/// Sends a body; the status and the answer.
pub(crate) async fn send(address: &str, path: &str, body: &[u8]) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "POST {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    (answer[9..12].parse().unwrap(), answer)
}

/// `begin`, then `item` as often as it takes to have so many bytes, then `end`.
pub(crate) fn filled(begin: &str, item: &str, end: &str, bytes: usize) -> Vec<u8> {
    format!("{begin}{}{end}", item.repeat(bytes / item.len())).into_bytes()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refused_body_takes_less_than_ten_times_its_bytes() {
    const BYTES: usize = 12 << 20;
    let server = server().await;
    let job = r#"{"name":"n","queue":"q","payload":["#;
    let bodies = [
        // Items that cannot be read at all, and one job with a payload of very many values.
        ("/api/v1/jobs", filled("[", "{\"a\":0},", "0]", BYTES)),
        ("/api/v1/jobs", filled(&format!("[{job}"), "{\"a\":0},", "0]}]", BYTES)),
        ("/api/v1/tasks/batch", filled("[", "0,", "0]", BYTES)),
        ("/api/v1/tasks/batch", filled(&format!("[{job}"), "{},", "0]}]", BYTES)),
        ("/api/v1/jobs", filled(&format!("[{job}"), "\"\",", "0]}]", BYTES)),
        ("/api/v1/jobs/finish", filled("{\"results\":[", "{\"id\":\"\"},", "0]}", BYTES)),
        ("/api/v1/jobs", filled("[", "[[[[0]]]],", "0]", BYTES)),
    ];
    for (path, body) in bodies {
        assert_refused(&server, path, &body).await;
    }
    // The largest body that the server reads.
    assert_refused(&server, "/api/v1/jobs", &filled("[", "{\"a\":0},", "0]", 56 << 20)).await;
}

async fn assert_refused(server: &Server, path: &str, body: &[u8]) {
    let (grown, (status, answer)) = growth(server, send(&server.address(), path, body)).await;
    assert_eq!(status, 413, "{answer}");
    assert!(answer.contains("too_many_values"), "{answer}");
    assert!(grown <= 10 * body.len(), "{path}: {grown} bytes for {}", body.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_text_of_a_definition_takes_less_than_ten_times_its_bytes() {
    let server = server().await;
    let client = server.client();
    let flow = post(&client, "/api/flows", json!({"Name": "text"})).await["id"].clone();
    let text = |item: &str| String::from_utf8(filled("[", item, "0]", 3_200_000)).unwrap();
    for text in [text("{\"a\": 0},"), text("{a: 0},"), text("0,"), text("[],")] {
        let bodies = [
            ("/api/v1/flows/validate", json!({ "yaml": text }), 200),
            ("/api/v1/flows/expand", json!({ "yaml": text }), 422),
            ("/api/v1/flows", json!({ "name": "t", "yaml": text }), 422),
            ("/api/flows/version", json!({ "FlowID": flow, "DefinitionJSON": text }), 400),
            ("/api/flows/version", json!({ "FlowID": flow, "DefinitionYAML": text }), 400),
        ];
        for (path, body, expected) in bodies {
            let body = body.to_string();
            let address = server.address();
            let sending = send(&address, path, body.as_bytes());
            let (grown, (status, answer)) = growth(&server, sending).await;
            assert_eq!(status, expected, "{path}: {answer}");
            let is_bounded = answer.contains("bytes of memory") || answer.contains("too many values");
            assert!(is_bounded, "{path}: {answer}");
            assert!(grown <= 10 * body.len(), "{path} {}: {grown} bytes for {}", &text[..9], body.len());
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_is_taken_takes_less_than_ten_times_its_bytes_beside_its_plan() {
    let server = server().await;
    let taken = async |path: &str, body: Vec<u8>, expected: u16, compile_bytes: usize| {
        let (grown, (status, answer)) = growth(&server, send(&server.address(), path, &body)).await;
        assert_eq!(status, expected, "{answer}");
        let most = 10 * body.len() + compile_bytes;
        assert!(grown <= most, "{path}: {grown} bytes for {}", body.len());
    };
    let text = format!("\"{}\",", "x".repeat(40));
    let compile_bytes =
        |text: &[u8]| windlass_engine::definition::compile_bytes(std::str::from_utf8(text).unwrap());
    let list = filled("{\"definition\":{\"list\":[", &text, "0]}}", 3_900_000);
    taken("/api/v1/flows/validate", list.clone(), 200, compile_bytes(&list) / 2).await;
    let job = format!("{{\"name\":\"n\",\"queue\":\"q\",\"payload\":\"{}\"}},", "x".repeat(4_000));
    taken("/api/v1/jobs", filled("[", &job, "{\"name\":\"n\",\"queue\":\"q\"}]", 16 << 20), 201, 0).await;
    // Almost as many values as a definition of this size may have.
    let begin = "{\"name\":\"dense\",\"definition\":{\"start\":\"a\",\"nodes\":{\"a\":{\"service\":\"s\",\"params\":{\"list\":[";
    let item = format!("{{\"a\":0,\"b\":\"{}\"}},", "x".repeat(260));
    let dense = filled(begin, &item, "0]}}}}}", 3_900_000);
    // The values, the plan and the text that is stored are in memory together for a moment.
    taken("/api/v1/flows", dense.clone(), 201, compile_bytes(&dense) / 2).await;
    let weight = windlass_engine::json::check_json(&dense).unwrap();
    assert!(weight > 4 * dense.len(), "{weight} bytes of values in {}", dense.len());
}

#[tokio::test(flavor = "multi_thread")]
async fn large_results_take_less_than_ten_times_their_bytes() {
    const RESULTS: usize = 4;
    let server = server().await;
    let client = server.client();
    let node = json!({"service": "press", "exec_type": "queue"});
    publish(&client, "press", json!({"start": "p", "nodes": {"p": node}})).await;
    let mut runs = Vec::new();
    for _ in 0..RESULTS {
        runs.push(start(&client, "press", json!({})).await);
    }
    let mut results = Vec::new();
    while results.len() < RESULTS {
        let claim = json!({"worker_id": "w", "services": ["press"], "wait_ms": 20_000, "max": RESULTS});
        let claimed = post(&client, "/api/v1/jobs/claim", claim).await;
        for job in claimed["jobs"].as_array().unwrap() {
            let result = "x".repeat((8 << 20) - 100);
            results
                .push(json!({"id": job["id"], "lease": job["lease"], "outcome": "done", "result": result}));
        }
    }
    let body = json!({ "results": results }).to_string();
    drop(results);
    let work = async {
        let sent = send(&server.address(), "/api/v1/jobs/finish", body.as_bytes()).await;
        for run in &runs {
            client.runs().wait(run, Some(PATIENCE)).await.unwrap();
        }
        sent
    };
    let (grown, (status, answer)) = growth(&server, work).await;
    assert_eq!(status, 200, "{answer}");
    assert_eq!(answer.matches("\"ok\"").count(), RESULTS, "{answer}");
    assert!(grown <= 10 * body.len(), "{grown} bytes for {}", body.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn all_bodies_in_flight_take_less_than_512_mb() {
    let server = std::sync::Arc::new(server().await);
    // As many values as a body of this size may have.
    let item = format!("{{\"a\":0,\"b\":\"{}\"}},", "x".repeat(170));
    let body = filled("{\"definition\":[", &item, "0]}", 3 << 20);
    let body = std::sync::Arc::new(body);
    let work = async {
        let mut sending = tokio::task::JoinSet::new();
        for _ in 0..60 {
            let (server, body) = (server.clone(), body.clone());
            sending.spawn(async move { send(&server.address(), "/api/v1/flows/validate", &body).await });
        }
        sending.join_all().await
    };
    let (grown, answers) = growth(&server, work).await;
    for (status, answer) in answers {
        assert!(matches!(status, 200 | 408 | 422 | 429), "{answer}");
        assert!(status != 429 || answer.contains("retry-after: 1"), "{answer}");
    }
    eprintln!("all bodies in flight take {} MB", grown / 1_000_000);
    assert!(grown <= 512_000_000, "{grown} bytes");
}

/// A push worker that answers every call with this body.
pub(crate) async fn answer_with(body: String) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut head = [0; 16 << 10];
            drop(stream.read(&mut head).await);
            let mut answer = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: ".to_owned();
            write!(answer, "{}\r\n\r\n{body}", body.len()).unwrap();
            drop(stream.write_all(answer.as_bytes()).await);
            drop(stream.shutdown().await);
            // The rest of the request is read, so that the answer arrives.
            drop(tokio::time::timeout(Duration::from_secs(5), stream.read(&mut head)).await);
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn the_answer_of_a_worker_takes_less_than_ten_times_its_bytes() {
    let server = server().await;
    let client = server.client();
    let body = String::from_utf8(filled("{\"result\":[", "{\"a\":0},", "0]}", 7_000_000)).unwrap();
    let n_bytes = body.len();
    let worker = json!({"id": "w", "url": answer_with(body).await, "services": ["press"], "type": "http"});
    post(&client, "/api/workers/register", worker).await;
    let node = json!({"service": "press", "exec_type": "http"});
    publish(&client, "press", json!({"start": "p", "nodes": {"p": node}})).await;
    let work = async {
        let run = start(&client, "press", json!({})).await;
        ends(&client, &run, "failed").await
    };
    let (grown, run) = growth(&server, work).await;
    assert!(run.to_string().contains("bytes of memory"), "{run}");
    assert!(grown <= 10 * n_bytes, "{grown} bytes for {n_bytes}");
}
