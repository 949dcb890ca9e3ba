//! Tests of connections: limits of time, number and size, and their end.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use windlass_conformance::backend::fresh;
use windlass_runtime::{Runtime, Settings};
use windlass_server::Options;

/// How long anything in these tests may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(60);

struct Host {
    at: SocketAddr,
    shutdown: CancellationToken,
    serving: JoinHandle<std::io::Result<()>>,
}

async fn host(options: Options) -> Host {
    host_at(Ipv4Addr::LOCALHOST, options).await
}

async fn host_at(address: Ipv4Addr, options: Options) -> Host {
    let settings = Settings::default();
    let runtime = Runtime::start_up(fresh().await, settings).await.unwrap();
    let listener = TcpListener::bind((address, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(windlass_server::serve(listener, runtime, options, shutdown.clone()));
    Host { at, shutdown, serving }
}

impl Host {
    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.at).await.unwrap()
    }
}

async fn write(stream: &mut TcpStream, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
}

/// Everything until the other side closes.
async fn read_all(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A connection that was reset has ended too: only the bytes before count.
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes));
    drop(read.await.expect("the connection never ended"));
    String::from_utf8(bytes).unwrap()
}

/// Reads until this has come.
async fn read_until(stream: &mut TcpStream, end: &str) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4_096];
    while !text.contains(end) {
        let n = tokio::time::timeout(PATIENCE, stream.read(&mut bytes)).await.expect("nothing came").unwrap();
        assert!(n > 0, "closed after: {text}");
        text.push_str(std::str::from_utf8(&bytes[..n]).unwrap());
    }
    text
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let host = host(Options::default()).await;
    let mut stream = host.connect().await;
    for _ in 0..3 {
        write(&mut stream, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        assert!(read_until(&mut stream, "}").await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn a_head_that_does_not_end_is_cut_off_sooner_than_an_idle_connection() {
    let options = Options { head_timeout: Duration::from_millis(50), ..Options::default() };
    let host = host(options).await;
    let (mut slow, mut idle) = (host.connect().await, host.connect().await);
    write(&mut slow, "GET /healthz HTTP/1.1\r\nhost:").await;
    assert!(!read_all(&mut slow).await.contains("200"));
    write(&mut idle, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(read_until(&mut idle, "}").await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_answer_that_takes_longer_than_a_head_may_keeps_its_connection() {
    let options = Options { head_timeout: Duration::from_millis(50), ..Options::default() };
    let host = host(options).await;
    let mut stream = host.connect().await;
    let body = r#"{"worker_id":"w","queues":["q"],"wait_ms":300}"#;
    for _ in 0..2 {
        let head = format!(
            "POST /api/v1/jobs/claim HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        write(&mut stream, &format!("{head}{body}")).await;
        assert!(read_until(&mut stream, "\"jobs\":[]}").await.starts_with("HTTP/1.1 200"));
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed_in_the_end() {
    let short = Duration::from_millis(50);
    let host = host(Options { head_timeout: short, idle_timeout: short, ..Options::default() }).await;
    let mut stream = host.connect().await;
    write(&mut stream, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    assert!(read_all(&mut stream).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn a_body_that_falls_silent_is_answered() {
    let host = host(Options { body_timeout: Duration::from_millis(50), ..Options::default() }).await;
    let mut stream = host.connect().await;
    write(
        &mut stream,
        "POST /api/v1/flows HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{\"name\":",
    )
    .await;
    let told = read_until(&mut stream, "slow_body").await;
    assert!(told.starts_with("HTTP/1.1 408"), "{told}");
}

#[tokio::test]
async fn a_body_that_comes_byte_by_byte_is_answered() {
    let short = Duration::from_millis(200);
    let of_rate = Options { body_timeout: short, body_rate_min: 1_000, ..Options::default() };
    let of_time = Options { body_total_timeout: short, ..Options::default() };
    for options in [of_rate, of_time] {
        let host = host(options).await;
        let (mut from, mut to) = host.connect().await.into_split();
        let head = "POST /api/v1/flows HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
        to.write_all(head.as_bytes()).await.unwrap();
        // A byte comes often enough for the body never to be silent.
        let trickling = tokio::spawn(async move {
            while to.write_all(b" ").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        });
        let mut bytes = [0; 1_024];
        let n = tokio::time::timeout(PATIENCE, from.read(&mut bytes))
            .await
            .expect("it was never answered")
            .unwrap();
        let told = String::from_utf8_lossy(&bytes[..n]).into_owned();
        assert!(told.starts_with("HTTP/1.1 408") && told.contains("slow_body"), "{told}");
        trickling.abort();
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_its_answers_is_cut_off() {
    let host = host(Options { write_timeout: Duration::from_millis(100), ..Options::default() }).await;
    let stream = host.connect().await;
    let (mut from, mut to) = stream.into_split();
    // Many large answers are asked for and none is read, until there is no room for another anywhere.
    let asked = "GET /openapi.json HTTP/1.1\r\nhost: localhost\r\n\r\n".repeat(64);
    let asking = async { while to.write_all(asked.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, asking).await.expect("it was never cut off");
    let mut bytes = Vec::new();
    drop(tokio::time::timeout(PATIENCE, from.read_to_end(&mut bytes)).await.expect("it was never cut off"));
}

#[tokio::test]
async fn a_body_that_is_too_large_is_refused_politely() {
    let host = host(Options::default()).await;
    let body = vec![b' '; 10 << 20];
    for head in ["content-length: 10485760\r\n\r\n", "transfer-encoding: chunked\r\n\r\n"] {
        let stream = host.connect().await;
        let (mut from, mut to) = stream.into_split();
        to.write_all(
            format!("POST /api/v1/flows HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{head}")
                .as_bytes(),
        )
        .await
        .unwrap();
        if head.contains("chunked") {
            to.write_all(format!("{:x}\r\n", body.len()).as_bytes()).await.unwrap();
        }
        // The whole body goes out before the answer is read, as many clients do it.
        to.write_all(&body).await.unwrap();
        if head.contains("chunked") {
            to.write_all(b"\r\n0\r\n\r\n").await.unwrap();
        }
        let mut told = String::new();
        tokio::time::timeout(PATIENCE, from.read_to_string(&mut told)).await.unwrap().unwrap();
        assert!(told.starts_with("HTTP/1.1 413") && told.contains("too_large"), "{told}");
    }
}

#[tokio::test]
async fn more_connections_than_there_is_room_for_wait() {
    let host = host(Options { connections_max: 1, ..Options::default() }).await;
    let mut first = host.connect().await;
    write(&mut first, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    read_until(&mut first, "}").await;
    let mut second = host.connect().await;
    write(&mut second, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    let mut byte = [0; 1];
    let early = tokio::time::timeout(Duration::from_millis(100), second.peek(&mut byte)).await;
    assert!(early.is_err(), "it was answered while there was no room");
    drop(first);
    assert!(read_all(&mut second).await.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn an_idle_connection_makes_room_for_one_that_waits() {
    let host = host(Options { connections_max: 2, ..Options::default() }).await;
    let mut streaming = host.connect().await;
    write(&mut streaming, "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    read_until(&mut streaming, "text/event-stream").await;
    let mut idle = host.connect().await;
    write(&mut idle, "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    read_until(&mut idle, "}").await;
    let mut late = host.connect().await;
    write(&mut late, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(read_all(&mut late).await.starts_with("HTTP/1.1 200"));
    assert_eq!(read_all(&mut idle).await, "", "it was closed");
    let mut byte = [0; 1];
    let streamed = tokio::time::timeout(Duration::from_millis(50), streaming.peek(&mut byte)).await;
    assert!(!matches!(streamed, Ok(Ok(0) | Err(_))), "the stream was closed");
}

#[tokio::test]
async fn the_slowest_body_makes_room_for_one_that_waits() {
    let host = host(Options { connections_max: 2, ..Options::default() }).await;
    let head = "POST /api/v1/flows HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    let (mut slower, mut slow) = (host.connect().await, host.connect().await);
    write(&mut slower, &format!("{head}{{")).await;
    write(&mut slow, &format!("{head}{}", " ".repeat(500_000))).await;
    let mut late = host.connect().await;
    write(&mut late, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    assert!(read_all(&mut late).await.starts_with("HTTP/1.1 200"));
    let told = read_all(&mut slower).await;
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("slow_body"), "{told}");
    // The place of the slower one was enough: the other goes on.
    write(&mut slow, &" ".repeat(500_000)).await;
    assert!(read_until(&mut slow, "missing").await.starts_with("HTTP/1.1 422"));
}

fn claim_of(client: &str, wait_ms: u64) -> String {
    let body = format!(r#"{{"worker_id":"w","queues":["q"],"wait_ms":{wait_ms}}}"#);
    format!(
        "POST /api/v1/jobs/claim HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{client}content-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[tokio::test]
async fn a_client_behind_a_trusted_proxy_has_so_many_requests() {
    let trusted_proxies = vec![windlass_server::Network::parse("127.0.0.0/8").unwrap()];
    let options = Options { connections_per_address_max: 1, trusted_proxies, ..Options::default() };
    let host = host(options).await;
    let of = |client: &str| format!("x-forwarded-for: {client}\r\n");
    let mut first = host.connect().await;
    write(&mut first, &claim_of(&of("203.0.113.7"), 60_000)).await;
    // The first is at work when one of its kind is refused; the client may claim any earlier address.
    let refused = async {
        loop {
            let mut second = host.connect().await;
            write(&mut second, &claim_of(&of("198.51.100.1, 203.0.113.7"), 1)).await;
            let told = read_all(&mut second).await;
            if told.starts_with("HTTP/1.1 429") {
                return told;
            }
        }
    };
    let told = tokio::time::timeout(PATIENCE, refused).await.expect("it was never refused");
    for part in ["retry-after: 1", "nosniff", "203.0.113.7 has too many open requests", "\"busy\""] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Others are not affected: another client, the proxy itself, and clients of this machine.
    for client in [of("203.0.113.8"), String::new(), of("127.0.0.9")] {
        for _ in 0..2 {
            let mut other = host.connect().await;
            write(&mut other, &claim_of(&client, 1)).await;
            assert!(read_all(&mut other).await.starts_with("HTTP/1.1 200"), "{client}");
        }
    }
    drop(first);
    let free = async {
        loop {
            let mut again = host.connect().await;
            write(&mut again, &claim_of(&of("203.0.113.7"), 1)).await;
            if read_all(&mut again).await.starts_with("HTTP/1.1 200") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("its slot was never free");
}

/// An address of this machine that is not loopback: the one from which it would send to another network. No packet is
/// sent.
fn own_address() -> IpAddr {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let routed = socket.connect((Ipv4Addr::new(198, 51, 100, 1), 9));
    let own = routed.and_then(|()| socket.local_addr()).map(|own| own.ip());
    own.ok().filter(|own| !own.is_loopback()).expect(
        "this machine has no route and no address but loopback: add a network, or leave the test out with --skip at_another_address",
    )
}

#[tokio::test]
async fn a_client_at_another_address_has_so_many_connections() {
    let own = own_address();
    let options = Options { connections_per_address_max: 2, ..Options::default() };
    let host = host_at(Ipv4Addr::UNSPECIFIED, options).await;
    let remote = SocketAddr::new(own, host.at.port());
    let alive = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut stream = TcpStream::connect(remote).await.unwrap();
        write(&mut stream, alive).await;
        assert!(read_until(&mut stream, "}").await.starts_with("HTTP/1.1 200"));
        open.push(stream);
    }
    // The refusal comes without a request, and the connection ends.
    let mut third = TcpStream::connect(remote).await.unwrap();
    let told = read_all(&mut third).await;
    assert!(told.starts_with("HTTP/1.1 429"), "{told}");
    assert!(told.contains("retry-after: 1"), "{told}");
    // The limit is of that address: loopback has none, and the open connections go on.
    for _ in 0..3 {
        let mut local = TcpStream::connect((Ipv4Addr::LOCALHOST, host.at.port())).await.unwrap();
        write(&mut local, alive).await;
        assert!(read_until(&mut local, "}").await.starts_with("HTTP/1.1 200"));
        open.push(local);
    }
    write(&mut open[0], alive).await;
    assert!(read_until(&mut open[0], "}").await.starts_with("HTTP/1.1 200"));
    drop(open.remove(1));
    let free = async {
        loop {
            let mut again = TcpStream::connect(remote).await.unwrap();
            // A refused connection may end before the request is sent.
            drop(
                again.write_all(alive.replace("\r\n\r\n", "\r\nconnection: close\r\n\r\n").as_bytes()).await,
            );
            if read_all(&mut again).await.starts_with("HTTP/1.1 200") {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, free).await.expect("its place was never free");
}

#[tokio::test]
async fn clients_of_this_machine_have_no_limit_and_their_header_does_not_count() {
    let host = host(Options { connections_per_address_max: 1, ..Options::default() }).await;
    let mut streams = Vec::new();
    for _ in 0..3 {
        let mut stream = host.connect().await;
        let head = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nx-forwarded-for: 203.0.113.7\r\n\r\n";
        write(&mut stream, head).await;
        assert!(read_until(&mut stream, "}").await.starts_with("HTTP/1.1 200"));
        streams.push(stream);
    }
}

#[tokio::test]
async fn a_server_that_stops_ends_streams_and_answers_what_it_has_begun() {
    let host = host(Options::default()).await;
    let (mut stream, mut asked) = (host.connect().await, host.connect().await);
    write(&mut stream, "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    read_until(&mut stream, "text/event-stream").await;
    let body = r#"{"worker_id":"w","queues":["q"],"wait_ms":300}"#;
    let head = format!(
        "POST /api/v1/jobs/claim HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    write(&mut asked, &format!("{head}{body}")).await;
    // The server has answered a later request, so it has read this one.
    let mut later = host.connect().await;
    write(&mut later, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    read_all(&mut later).await;
    host.shutdown.cancel();
    assert!(read_all(&mut asked).await.contains("\"jobs\":[]}"));
    read_all(&mut stream).await;
    tokio::time::timeout(PATIENCE, host.serving).await.expect("it never stopped").unwrap().unwrap();
    assert!(TcpStream::connect(host.at).await.is_err(), "it still listens");
}

#[tokio::test]
async fn calls_longer_than_the_grace_period_are_cut() {
    let host = host(Options { grace: Duration::from_millis(50), ..Options::default() }).await;
    let mut asked = host.connect().await;
    let body = r#"{"worker_id":"w","queues":["q"],"wait_ms":60000}"#;
    let head = format!(
        "POST /api/v1/jobs/claim HTTP/1.1\r\nhost: localhost\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    write(&mut asked, &format!("{head}{body}")).await;
    let mut later = host.connect().await;
    write(&mut later, "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n").await;
    read_all(&mut later).await;
    host.shutdown.cancel();
    tokio::time::timeout(PATIENCE, host.serving).await.expect("it never stopped").unwrap().unwrap();
    assert!(!read_all(&mut asked).await.contains("jobs"));
}

#[tokio::test]
async fn a_change_is_noted_with_its_origin_also_if_the_client_has_left() {
    let host = host(Options::default()).await;
    for n in 0..20 {
        let mut stream = host.connect().await;
        let head = format!(
            "POST /api/v1/queues/q{n}/pause HTTP/1.1\r\nhost: localhost\r\ncontent-length: 0\r\n\r\n"
        );
        write(&mut stream, &head).await;
        drop(stream);
    }
    let noted = async {
        loop {
            let mut stream = host.connect().await;
            let head =
                "GET /api/v1/audit?what=queue.pause HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";
            write(&mut stream, head).await;
            let told = read_all(&mut stream).await;
            let body: serde_json::Value =
                serde_json::from_str(told.split_once("\r\n\r\n").unwrap().1).unwrap();
            let items = body["items"].as_array().unwrap().clone();
            let mut queues = Vec::new();
            for n in 0..20 {
                let mut stream = host.connect().await;
                let ask = format!(
                    "GET /api/v1/queues/q{n} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
                );
                write(&mut stream, &ask).await;
                queues.extend(read_all(&mut stream).await.contains("\"paused\":true").then_some(n));
            }
            // Some may not have been read before their connection was gone; those that were are noted.
            if !items.is_empty() && items.len() == queues.len() {
                return items;
            }
        }
    };
    let items = tokio::time::timeout(PATIENCE, noted).await.expect("a change was never noted");
    assert!(items.iter().all(|line| line["ip"] == "127.0.0.1"), "{items:?}");
}
