//! Tests of the listener with a certificate.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use axum::body::Body;
use hyper::client::conn::http2;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_util::sync::CancellationToken;
use windlass_conformance::backend::fresh;
use windlass_conformance::certificates::TestAuthority;
use windlass_conformance::test_directory::TestDirectory;
use windlass_runtime::{Runtime, Settings};
use windlass_sdk::{Client, ClientTls, IdentityFiles};
use windlass_server::Options;
use windlass_tls::rustls::pki_types::ServerName;
use windlass_tls::{ServerTls, ServerTlsFiles};

/// How long anything in these tests may take before it counts as never.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server with a certificate for `localhost` and 127.0.0.1.
struct TlsHost {
    at: SocketAddr,
    authority: TestAuthority,
    directory: TestDirectory,
    ca: PathBuf,
}

impl TlsHost {
    async fn start(options: Options) -> TlsHost {
        TlsHost::start_asking(options, false).await
    }

    /// Starts a server; `asks_clients` = it wants certificates of the same authority.
    async fn start_asking(options: Options, asks_clients: bool) -> TlsHost {
        let (authority, directory) = (TestAuthority::new(), TestDirectory::create());
        let (cert, key) = authority.sign(&["localhost", "127.0.0.1"]).write(directory.path());
        let ca = authority.write(directory.path());
        let client_ca = asks_clients.then(|| ca.clone());
        let tls = ServerTls::open(ServerTlsFiles { cert, key, client_ca }).unwrap();
        let runtime = Runtime::start_up(fresh().await, Settings::default()).await.unwrap();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let at = listener.local_addr().unwrap();
        let options = Options { tls: Some(Arc::new(tls)), ..options };
        tokio::spawn(windlass_server::serve(listener, runtime, options, CancellationToken::new()));
        TlsHost { at, authority, directory, ca }
    }

    fn tls(&self) -> ClientTls {
        ClientTls { ca: Some(self.ca.clone()), identity: None }
    }

    /// A client with connections of its own.
    fn client(&self) -> Client {
        Client::new(&format!("https://{}", self.at)).unwrap().with_tls(&self.tls()).unwrap()
    }

    /// A connection that offers this protocol.
    async fn connect(&self, protocol: &[u8]) -> TlsStream<TcpStream> {
        let mut config = self.tls().config().unwrap();
        config.alpn_protocols = vec![protocol.to_vec()];
        let stream = TcpStream::connect(self.at).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, stream).await.unwrap()
    }

    /// The certificate that a new connection gets.
    async fn certificate(&self) -> Vec<u8> {
        let stream = self.connect(b"http/1.1").await;
        stream.get_ref().1.peer_certificates().unwrap()[0].to_vec()
    }
}

async fn is_healthy(client: &Client) -> bool {
    matches!(client.raw("GET", "/healthz", None).await, Ok((200, _)))
}

#[tokio::test(flavor = "multi_thread")]
async fn certificates_are_swapped_under_load_and_no_request_fails() {
    let host = Arc::new(TlsHost::start(Options::default()).await);
    let (stop, n_done) = (CancellationToken::new(), Arc::new(AtomicUsize::new(0)));
    let clients: Vec<_> = (0..4)
        .map(|_| {
            let (host, stop, n_done) = (host.clone(), stop.clone(), n_done.clone());
            tokio::spawn(async move {
                while !stop.is_cancelled() {
                    // New connections and kept ones.
                    let client = host.client();
                    for _ in 0..5 {
                        client.raw("GET", "/healthz", None).await.expect("a request failed");
                        n_done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            })
        })
        .collect();
    for _ in 0..3 {
        let (before, n_before) = (host.certificate().await, n_done.load(Ordering::Relaxed));
        host.authority.sign(&["localhost", "127.0.0.1"]).write(host.directory.path());
        let begun = Instant::now();
        while host.certificate().await == before || n_done.load(Ordering::Relaxed) < n_before + 20 {
            assert!(begun.elapsed() < PATIENCE, "the new certificate is not used");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    stop.cancel();
    for client in clients {
        client.await.unwrap();
    }
}

#[tokio::test]
async fn a_broken_pair_keeps_the_old_certificate() {
    let host = TlsHost::start(Options::default()).await;
    let before = host.certificate().await;
    std::fs::write(host.directory.join("key.pem"), "no key").unwrap();
    // Longer than the server takes to see it.
    tokio::time::sleep(Duration::from_millis(2_500)).await;
    assert_eq!(host.certificate().await, before);
    assert!(is_healthy(&host.client()).await);
}

#[tokio::test]
async fn clients_without_a_certificate_of_the_authority_are_refused() {
    let host = TlsHost::start_asking(Options::default(), true).await;
    assert!(!is_healthy(&host.client()).await);
    let directory = TestDirectory::create();
    let with = |authority: &TestAuthority| {
        let (cert, key) = authority.sign(&["ann"]).write(directory.path());
        let tls = ClientTls { ca: Some(host.ca.clone()), identity: Some(IdentityFiles { cert, key }) };
        Client::new(&format!("https://{}", host.at)).unwrap().with_tls(&tls).unwrap()
    };
    assert!(!is_healthy(&with(&TestAuthority::new())).await, "another authority");
    assert!(is_healthy(&with(&host.authority)).await);
}

#[tokio::test]
async fn a_server_of_an_unknown_authority_is_not_trusted() {
    let host = TlsHost::start(Options::default()).await;
    let stranger = Client::new(&format!("https://{}", host.at)).unwrap();
    let error = stranger.flows().list(&Default::default()).await.unwrap_err();
    assert!(error.detail.to_lowercase().contains("certificate"), "{}", error.detail);
}

#[tokio::test]
async fn a_client_that_speaks_plain_http_is_hung_up_on() {
    let host = TlsHost::start(Options::default()).await;
    let mut stream = TcpStream::connect(host.at).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let mut bytes = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("it stays open"));
    assert!(!String::from_utf8_lossy(&bytes).contains("200"), "{bytes:?}");
    assert!(is_healthy(&host.client()).await, "others are served");
}

#[tokio::test]
async fn a_handshake_that_takes_too_long_is_given_up() {
    let host =
        TlsHost::start(Options { head_timeout: Duration::from_millis(300), ..Options::default() }).await;
    let mut stream = TcpStream::connect(host.at).await.unwrap();
    // The first bytes of a handshake that never goes on.
    stream.write_all(&[22, 3, 1]).await.unwrap();
    let mut bytes = Vec::new();
    drop(tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("it stays open"));
    assert!(is_healthy(&host.client()).await);
}

#[tokio::test]
async fn http2_is_spoken_where_both_know_it() {
    let host = TlsHost::start(Options::default()).await;
    let stream = host.connect(b"h2").await;
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let (mut sender, connection) =
        http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let base = format!("https://{}", host.at);
    let mut ask = async |method: Method, path: &str, origin: &str, body: &'static str| {
        let request = Request::builder().method(method).uri(format!("{base}{path}"));
        let request = request.header("origin", origin).header("content-type", "application/json");
        let answer = sender.send_request(request.body(Body::from(body)).unwrap()).await.unwrap();
        answer.status()
    };
    assert_eq!(ask(Method::GET, "/healthz", &base, "").await, StatusCode::OK);
    // Its own origin is known by the host of the request line.
    let job = r#"{"name": "mail", "queue": "mail"}"#;
    assert_eq!(ask(Method::POST, "/api/v1/jobs", &base, job).await, StatusCode::CREATED);
    assert_eq!(ask(Method::POST, "/api/v1/jobs", "https://evil.example", job).await, StatusCode::FORBIDDEN);
    let elsewhere = Request::builder().uri("https://evil.example/healthz").body(Body::empty()).unwrap();
    let answer = sender.send_request(elsewhere).await.unwrap();
    assert_eq!(answer.status(), StatusCode::MISDIRECTED_REQUEST);
}

#[tokio::test]
async fn an_idle_http2_connection_is_closed() {
    let options = Options {
        head_timeout: Duration::from_millis(100),
        idle_timeout: Duration::from_millis(300),
        ..Options::default()
    };
    let host = TlsHost::start(options).await;
    let (_sender, connection) =
        http2::handshake::<_, _, Body>(TokioExecutor::new(), TokioIo::new(host.connect(b"h2").await))
            .await
            .unwrap();
    drop(tokio::time::timeout(PATIENCE, connection).await.expect("it stays open"));
}

#[tokio::test]
async fn a_client_that_does_not_take_a_response_of_http2_is_hung_up_on() {
    let host =
        TlsHost::start(Options { write_timeout: Duration::from_millis(300), ..Options::default() }).await;
    let stream = TokioIo::new(host.connect(b"h2").await);
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder.initial_stream_window_size(1_000);
    let (mut sender, connection) = builder.handshake::<_, Body>(stream).await.unwrap();
    let connection = tokio::spawn(connection);
    let base = format!("https://{}", host.at);
    let request = |path: &str| Request::builder().uri(format!("{base}{path}")).body(Body::empty()).unwrap();
    // Short responses fit into the window; the document of the API does not.
    assert_eq!(sender.send_request(request("/healthz")).await.unwrap().status(), StatusCode::OK);
    let _unread = sender.send_request(request("/openapi.json")).await.unwrap();
    drop(tokio::time::timeout(PATIENCE, connection).await.expect("it stays open"));
}
