//! Noisy neighbours: while one client does its worst, another client's runs start, end and stay quick, and no request of
//! it is refused. Each test measures the quiet client before and during the noise, in one run on one server.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use windlass_sdk::Client;

use crate::http::{ask, expect, get, seen, start};
use crate::memory::{answer_with, filled, send};
use crate::server::{Server, publish, with_params};

/// Runs that the quiet client starts for one measurement. A server without optimisation takes too long for as many as the
/// 99th percentile deserves.
const SAMPLES: usize = if cfg!(debug_assertions) { 60 } else { 200 };
/// Delays that are no harm, whatever the ratio. The goal is 25 ms for both; a server without optimisation, beside other
/// tests on the same processors, gets more.
const HARMLESS_P50: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_000 } else { 25 });
const HARMLESS_P99: Duration = Duration::from_millis(if cfg!(debug_assertions) { 10_000 } else { 25 });
/// The longest that a check of health may take at the median.
const HEALTH_P50: Duration = Duration::from_millis(if cfg!(debug_assertions) { 1_000 } else { 10 });

/// The delays of the quiet client.
#[derive(Debug, Clone, Copy)]
struct Delays {
    p50: Duration,
    p99: Duration,
}

impl Delays {
    fn of(mut all: Vec<Duration>) -> Self {
        all.sort();
        let at = |part: usize| all[(all.len() * part / 100).min(all.len() - 1)];
        Delays { p50: at(50), p99: at(99) }
    }

    fn assert_harmless(self, before: Delays, noise: &str) {
        eprintln!("{noise}: before {before:?}, during {self:?}");
        assert!(self.p50 <= HARMLESS_P50.max(before.p50 * 5), "{noise}: before {before:?}, during {self:?}");
        assert!(self.p99 <= HARMLESS_P99.max(before.p99 * 5), "{noise}: before {before:?}, during {self:?}");
    }
}

/// A server with the quiet client's flow.
async fn server(flags: &[&str]) -> Server {
    let server = Server::start(flags).await;
    let node = json!({"kind": "local", "func": "echo", "prep": {"input_key": "$params.x"}});
    publish(&server.client(), "quiet", json!({"start": "echo", "nodes": {"echo": node}})).await;
    server
}

/// Starts runs one after the other and waits for the end of each; none may be refused.
async fn quiet_runs(client: &Client) -> Delays {
    quiet_runs_by(|| client.clone()).await
}

/// The same, each by another client.
async fn quiet_runs_by(client: impl Fn() -> Client) -> Delays {
    let mut delays = Vec::with_capacity(SAMPLES);
    for x in 0..SAMPLES {
        let begun = Instant::now();
        let path = "/api/v1/flows/quiet/runs?wait_ms=30000";
        let run = expect(&client(), "POST", path, Some(json!({"params": {"x": x}})), 201).await;
        delays.push(begun.elapsed());
        assert_eq!(run["status"], "completed", "{run}");
    }
    Delays::of(delays)
}

async fn health(client: &Client) -> Delays {
    let mut delays = Vec::with_capacity(SAMPLES);
    for _ in 0..SAMPLES {
        let begun = Instant::now();
        expect(client, "GET", "/healthz", None, 200).await;
        delays.push(begun.elapsed());
    }
    Delays::of(delays)
}

/// Measures the quiet client and the checks of health beside noise that has begun.
async fn assert_others_go_on(client: &Client, before: Delays, noise: &str) {
    quiet_runs(client).await.assert_harmless(before, noise);
    let health = health(client).await;
    assert!(health.p50 <= HEALTH_P50, "{noise}: health {health:?}");
}

/// The noise was there during the whole measurement: a run that made it is open at its end.
async fn assert_open(client: &Client, run: &str) {
    let shown = get(client, &format!("/api/v1/runs/{run}")).await;
    let is_open = ["pending", "running", "waiting"].iter().any(|status| shown["status"] == *status);
    assert!(is_open, "the noise is over: {shown}");
}

async fn cancel(client: &Client, run: &str) {
    let (status, answer) = ask(client, "POST", &format!("/api/v1/runs/{run}/cancel"), Some(json!({}))).await;
    assert!(status == 200 || status == 202, "{status} {answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flow_that_starts_itself_twice_delays_no_other() {
    let server = server(&[]).await;
    let client = server.client();
    let before = quiet_runs(&client).await;
    let call = json!({"start": "again", "nodes": {"again": {"kind": "flow_ref", "flow": "double"}}});
    let twice = json!({"kind": "parallel", "parallel_mode": "concurrent",
        "parallel_execs": [{"name": "one", "subflow": call}, {"name": "two", "subflow": call}]});
    publish(&client, "double", json!({"start": "twice", "nodes": {"twice": twice}})).await;
    let root = start(&client, "double", json!({})).await;
    assert_others_go_on(&client, before, "a flow that starts itself twice").await;
    assert_open(&client, &root).await;
    cancel(&client, &root).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wide_foreach_over_params_delays_no_other() {
    let server = server(&[]).await;
    let client = server.client();
    let before = quiet_runs(&client).await;
    let leaf = json!({"kind": "local", "func": "echo", "prep": {"input_map": {"x": 1}}});
    publish(&client, "leaf", json!({"start": "echo", "nodes": {"echo": leaf}})).await;
    let wide = json!({"kind": "foreach", "parallel_mode": "concurrent", "prep": {"input_key": "$params.items"},
        "subflow": {"start": "c", "nodes": {"c": {"kind": "flow_ref", "flow": "leaf"}}, "edges": []}});
    // It begins again at its end, so that the noise lasts for the whole measurement.
    let again = json!([{"from": "all", "to": "all"}]);
    publish(&client, "wide", json!({"start": "all", "nodes": {"all": wide}, "edges": again})).await;
    let items: Vec<usize> = (0..20_000).collect();
    let run = start(&client, "wide", json!({ "items": items })).await;
    assert_others_go_on(&client, before, "child runs for 20,000 items in params").await;
    assert_open(&client, &run).await;
    cancel(&client, &run).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn decisions_without_end_delay_no_other() {
    let server = server(&[]).await;
    let client = server.client();
    let before = quiet_runs(&client).await;
    let spin = json!({"start": "look", "nodes": {"look": {"kind": "choice",
        "choice_cases": [{"action": "done", "expr": {"contains": ["$params.text", "needle"]}}],
        "default_action": "more"}},
        "edges": [{"from": "look", "action": "more", "to": "look"}, {"from": "look", "action": "done", "to": ""}]});
    publish(&client, "spin", spin).await;
    let mut starting = JoinSet::new();
    for _ in 0..50 {
        let (client, params) = (server.client(), json!({"text": "hay".repeat(30_000)}));
        starting.spawn(async move { start(&client, "spin", params).await });
    }
    let runs = starting.join_all().await;
    assert_others_go_on(&client, before, "50 endless decisions").await;
    for run in &runs {
        assert_open(&client, run).await;
    }
    for run in &runs {
        cancel(&client, run).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn heavy_bodies_delay_no_other() {
    let server = server(&[]).await;
    let client = server.client();
    let before = quiet_runs(&client).await;
    let body = Arc::new(filled("[", "{\"a\":0},", "0]", 12 << 20));
    let n_sent = Arc::new(AtomicUsize::new(0));
    let mut sending = JoinSet::new();
    for _ in 0..4 {
        let (address, body, n_sent) = (server.address(), body.clone(), n_sent.clone());
        sending.spawn(async move {
            loop {
                let (status, answer) = send(&address, "/api/v1/jobs", &body).await;
                assert!(matches!(status, 413 | 429), "{status} {answer}");
                n_sent.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
    seen("the first refusals", async || (n_sent.load(Ordering::Relaxed) >= 4).then_some(())).await;
    let sent_before = n_sent.load(Ordering::Relaxed);
    assert_others_go_on(&client, before, "heavy bodies that are refused").await;
    let n_sent = n_sent.load(Ordering::Relaxed) - sent_before;
    assert!(n_sent >= 4, "only {n_sent} heavy bodies were refused meanwhile");
    assert!(sending.try_join_next().is_none(), "the noise ended early");
    sending.abort_all();
}

/// A client behind the proxy that sends bodies slowly, each on a connection of its own, and begins again when the server
/// answers one.
async fn send_slowly(address: String, n_begun: Arc<AtomicUsize>, n_open: Arc<AtomicUsize>) {
    let head = format!(
        "POST /api/v1/jobs HTTP/1.1\r\nhost: {address}\r\nx-forwarded-for: 203.0.113.7\r\ncontent-length: 400000\r\n\r\n["
    );
    // Often and much enough for the body to be neither silent nor too slow for the server.
    let part = [b' '; 2_048];
    let mut pace = tokio::time::interval(Duration::from_millis(100));
    loop {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        n_begun.fetch_add(1, Ordering::Relaxed);
        n_open.fetch_add(1, Ordering::Relaxed);
        let mut is_open = stream.write_all(head.as_bytes()).await.is_ok();
        while is_open {
            let mut answer = [0; 64];
            tokio::select! {
                _ = pace.tick() => is_open = stream.write_all(&part).await.is_ok(),
                _ = stream.read(&mut answer) => is_open = false,
            }
        }
        n_open.fetch_sub(1, Ordering::Relaxed);
        drop(stream);
        pace.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_delay_no_other() {
    const SLOW: usize = 200;
    // Fewer connections than the noisy client wants: without a limit of its own it would take all of them.
    let flags =
        ["--connections-max", "128", "--connections-per-address-max", "40", "--trusted-proxies", "127.0.0.1"];
    let server = server(&flags).await;
    let client = server.client();
    let before = quiet_runs_by(|| server.client()).await;
    let address = server.address();
    let (n_begun, n_open) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let mut sending = JoinSet::new();
    for _ in 0..SLOW {
        sending.spawn(send_slowly(address.clone(), n_begun.clone(), n_open.clone()));
    }
    seen("slow bodies", async || (n_begun.load(Ordering::Relaxed) >= SLOW).then_some(())).await;
    let n_before = n_begun.load(Ordering::Relaxed);
    // Each run comes over a connection of its own, for which there must be room.
    quiet_runs_by(|| server.client()).await.assert_harmless(before, "200 slow bodies");
    assert_others_go_on(&client, before, "200 slow bodies").await;
    let (n_begun, n_open) = (n_begun.load(Ordering::Relaxed), n_open.load(Ordering::Relaxed));
    assert!(n_open >= 30, "{n_open} connections are open");
    assert!(n_begun > n_before, "no further slow body was sent");
    sending.abort_all();
}

/// Sends a head and most of a body, then a byte from time to time, until the server ends it.
async fn trickle(address: String, begun: Arc<AtomicUsize>) {
    const BYTES: usize = 256 << 10;
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!("POST /api/v1/jobs HTTP/1.1\r\nhost: {address}\r\ncontent-length: {BYTES}\r\n\r\n[");
    let sent = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(&vec![b' '; BYTES - 10_000]).await
    };
    let sent = sent.await;
    begun.fetch_add(1, Ordering::Relaxed);
    let mut ticks = tokio::time::interval(Duration::from_millis(500));
    let mut is_open = sent.is_ok();
    while is_open {
        ticks.tick().await;
        is_open = stream.write_all(b" ").await.is_ok();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_bodies_that_fill_the_memory_of_bodies_refuse_no_other() {
    const SLOW: usize = 250;
    let server = server(&[]).await;
    let client = server.client();
    // A push worker whose answers need memory, too.
    let answer = json!({"result": "x".repeat(100_000)}).to_string();
    let worker = json!({"id": "w", "url": answer_with(answer).await, "services": ["press"], "type": "http"});
    expect(&client, "POST", "/api/workers/register", Some(worker), 200).await;
    let press = json!({"start": "p", "nodes": {"p": {"service": "press", "exec_type": "http"}}});
    publish(&client, "press", press).await;
    let wait = json!({"kind": "wait_event", "params": {"signal_key": "never"}});
    publish(&client, "wait", json!({"start": "wait", "nodes": {"wait": wait}})).await;
    let begun = Arc::new(AtomicUsize::new(0));
    let mut slow = JoinSet::new();
    for _ in 0..SLOW {
        slow.spawn(trickle(server.address(), begun.clone()));
    }
    // The others wait for memory, and do not read on.
    seen("the first slow bodies", async || (begun.load(Ordering::Relaxed) >= 50).then_some(())).await;
    for n in 0..10 {
        let begun = Instant::now();
        let waiting = start(&client, "wait", json!({"n": n})).await;
        cancel(&client, &waiting).await;
        assert!(begun.elapsed() < Duration::from_secs(60), "a small start and its cancel waited");
        // The body of this one needs memory itself.
        let params = json!({"params": {"text": "x".repeat(50_000)}});
        let path = "/api/v1/flows/press/runs?wait_ms=60000";
        let run = expect(&client, "POST", path, Some(params), 201).await;
        assert_eq!(run["status"], "completed", "{run}");
    }
    slow.abort_all();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fan_of_100_000_local_calls_delays_no_other() {
    let server = server(&[]).await;
    let client = server.client();
    let before = quiet_runs(&client).await;
    let fan = json!({"kind": "foreach", "exec_type": "local_func", "func": "echo", "service": "echo",
        "parallel_mode": "concurrent", "prep": {"input_key": "$shared.items"}});
    let wait =
        json!({"kind": "wait_event", "params": {"signal_key": "items"}, "post": {"output_key": "items"}});
    // It begins again at its end, so that the noise lasts for the whole measurement.
    let flow = json!({"start": "wait", "nodes": {"wait": wait, "fan": fan},
        "edges": [{"from": "wait", "to": "fan"}, {"from": "fan", "to": "fan"}]});
    publish(&client, "fan", flow).await;
    let run = client.runs().start("fan", &with_params(&json!({}))).await.unwrap().id;
    let items: Vec<usize> = (0..100_000).collect();
    let signal = json!({"key": "items", "value": items});
    let (status, answer) = ask(&client, "POST", &format!("/api/v1/runs/{run}/signal"), Some(signal)).await;
    assert!(status == 200 || status == 202, "{status} {answer}");
    assert_others_go_on(&client, before, "a fan of 100,000 local calls").await;
    assert_open(&client, &run).await;
    cancel(&client, &run).await;
}
