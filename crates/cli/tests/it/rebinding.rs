//! DNS rebinding: a page of evil.example points its name at 127.0.0.1 and then counts as the server's own origin. The
//! requests of such a page are sent here as bytes, to `windlass serve` and to `windlass dev`.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use windlass_sdk::Client;

use crate::dev::DevServer;
use crate::http::{ask, get};
use crate::server::{Server, TempDir};

/// The flow that the page wants to run: a command on the machine.
fn script_flow() -> Value {
    let node = json!({"exec_type": "local_script", "script": {"cmd": "touch", "args": ["owned"]}});
    json!({"name": "owned", "definition": {"start": "a", "nodes": {"a": node}, "edges": []}})
}

/// One server under attack.
struct Target {
    address: String,
    client: Client,
}

impl Target {
    fn new(url: &str) -> Self {
        let address = url.trim_start_matches("http://").to_owned();
        Target { address, client: Client::new(url).unwrap() }
    }

    /// Sends a request with these lines between the request line and the body; the status and the rest of the answer.
    async fn send(&self, method: &str, target: &str, headers: &[String], body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let lines: String = headers.iter().map(|line| format!("{line}\r\n")).collect();
        let length = body.len();
        let request = format!(
            "{method} {target} HTTP/1.1\r\n{lines}connection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok());
        (status.unwrap_or_else(|| panic!("{method} {target} {headers:?}: {answer:?}")), answer)
    }

    /// Every route of every surface: the method, a path, and a body that the route would take.
    async fn routes(&self) -> Vec<(String, String, String)> {
        let document = get(&self.client, "/openapi.json").await;
        let mut routes = Vec::new();
        for (path, methods) in document["paths"].as_object().unwrap() {
            for method in methods.as_object().unwrap().keys() {
                let path = path.replace("{flow}", "flow").replace("{id}", "flow").replace("{name}", "flow");
                let body = if path.ends_with("/flows") { script_flow() } else { json!({}) };
                routes.push((method.to_uppercase(), path, body.to_string()));
            }
        }
        assert!(routes.len() > 80, "{}", routes.len());
        routes
    }

    /// Everything that a request could have left behind.
    async fn contents(&self) -> Vec<(u16, Value)> {
        let mut found = Vec::new();
        for noun in ["flows", "runs", "jobs", "queues", "schedules", "accounts", "prices", "workers", "audit"]
        {
            let (status, mut list) = ask(&self.client, "GET", &format!("/api/v1/{noun}"), None).await;
            // A live worker says so every few seconds.
            for worker in list["workers"].as_array_mut().into_iter().flatten() {
                worker["heartbeat_at"] = Value::Null;
            }
            found.push((status, list));
        }
        found
    }

    async fn is_attacked_in_vain(&self) {
        let before = self.contents().await;
        self.every_route_is_closed().await;
        self.every_spelling_is_refused().await;
        self.request_lines_and_streams_are_refused().await;
        assert_eq!(self.contents().await, before);
        // The same flow under the name of the server: the attack fails because of its host and nothing else.
        let known = [format!("host: {}", self.address)];
        let (status, answer) = self.send("POST", "/api/v1/flows", &known, &script_flow().to_string()).await;
        assert_eq!(status, 201, "{answer}");
        let hosts = [self.address.clone(), "LOCALHOST".into(), "localhost.:80".into(), "[::1]:1".into()];
        for host in hosts {
            let (status, answer) = self.send("GET", "/healthz", &[format!("host: {host}")], "").await;
            assert_eq!(status, 200, "{host}: {answer}");
        }
    }

    async fn every_route_is_closed(&self) {
        let port = self.address.rsplit_once(':').unwrap().1;
        // As a browser sends it: the page and the server have the same origin.
        let page = [
            format!("host: evil.example:{port}"),
            format!("origin: http://evil.example:{port}"),
            "sec-fetch-site: same-origin".to_owned(),
        ];
        for (method, path, body) in self.routes().await {
            let (status, answer) = self.send(&method, &path, &page, &body).await;
            assert_eq!(status, 421, "{method} {path}: {answer}");
        }
        for method in ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PURGE"] {
            let (status, _) = self.send(method, "/api/v1/flows", &page, &script_flow().to_string()).await;
            assert_eq!(status, 421, "{method}");
        }
        let (_, answer) = self.send("POST", "/api/v1/flows", &page, &script_flow().to_string()).await;
        assert!(answer.contains("unknown_host") && answer.contains("--host evil.example"), "{answer}");
    }

    async fn every_spelling_is_refused(&self) {
        let unknown = [
            "evil.example",
            "EVIL.EXAMPLE.:80",
            "evil.example.",
            "localhost.evil.example",
            "localhost..",
            "127.0.0.1.evil.example",
            "127.0.0.1.",
            "2130706433",
            "0x7f000001",
            "127.1",
            "localhost.localdomain",
            "xn--localhost-9za",
        ];
        for host in unknown {
            let (status, answer) = self.post(&[format!("host: {host}")]).await;
            assert_eq!(status, 421, "{host}: {answer}");
        }
        let broken: [&[&str]; 9] = [
            &[],
            &["host:"],
            &["host: localhost", "host: localhost"],
            &["host: localhost", "host: evil.example"],
            &["host: evil.example", "host: localhost"],
            &["host: localhost, evil.example"],
            &["host: evil.example@localhost"],
            &["host: localhost/evil.example"],
            &["host: [::1].evil.example"],
        ];
        for lines in broken {
            let lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
            let (status, answer) = self.post(&lines).await;
            assert_eq!(status, 400, "{lines:?}: {answer}");
        }
    }

    async fn post(&self, headers: &[String]) -> (u16, String) {
        self.send("POST", "/api/v1/flows", headers, &script_flow().to_string()).await
    }

    async fn request_lines_and_streams_are_refused(&self) {
        let body = script_flow().to_string();
        let known = [format!("host: {}", self.address)];
        let evil = ["host: evil.example".to_owned()];
        for (target, headers) in [
            ("http://evil.example/api/v1/flows", &known),
            ("http://EVIL.example.:80/api/v1/flows", &known),
            ("http://localhost/api/v1/flows", &evil),
            ("http://evil.example/api/v1/flows", &evil),
        ] {
            let (status, answer) = self.send("POST", target, headers, &body).await;
            assert_eq!(status, 421, "{target} {headers:?}: {answer}");
        }
        let upgrade = ["connection: upgrade", "upgrade: websocket", "sec-websocket-version: 13"];
        let stream = ["accept: text/event-stream"];
        let sends = [(&upgrade[..], "/api/v1/runs/flow/events"), (&stream[..], "/api/v1/runs/flow/events")];
        for (lines, path) in sends.into_iter().chain([(&stream[..], "/api/v1/runs/flow/logs?follow=true")]) {
            let mut headers = evil.to_vec();
            headers.extend(lines.iter().map(|line| (*line).to_owned()));
            let (status, answer) = self.send("GET", path, &headers, "").await;
            assert_eq!(status, 421, "{headers:?}: {answer}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebound_name_reaches_nothing_of_a_server() {
    let server = Server::start(&["--allow-scripts"]).await;
    Target::new(&server.url()).is_attacked_in_vain().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rebound_name_reaches_nothing_of_a_developers_server() {
    let dev = DevServer::start_in(TempDir::new()).await;
    Target::new(&dev.url()).is_attacked_in_vain().await;
}
