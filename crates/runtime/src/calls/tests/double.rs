//! A push worker for tests: a socket and its answer. It speaks just enough HTTP.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::io::{
    AsyncBufRead, AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use windlass_tls::rustls::ServerConfig;

/// One request as it came.
#[derive(Debug, Clone)]
pub(super) struct Request {
    pub(super) line: String,
    pub(super) headers: Vec<(String, String)>,
    pub(super) body: serde_json::Value,
    /// Which connection it came through.
    pub(super) connection: usize,
}

impl Request {
    pub(super) fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(key, _)| key == name);
        found.map_or("", |(_, value)| value)
    }
}

/// A worker; its sockets close when it is dropped.
pub(super) struct Double {
    pub(super) address: SocketAddr,
    /// The request that it received.
    pub(super) asked: mpsc::UnboundedReceiver<Request>,
    /// Connections that their other end closed.
    pub(super) hung_up: mpsc::UnboundedReceiver<usize>,
    scheme: &'static str,
    _tasks: JoinSet<()>,
}

impl Double {
    pub(super) fn url(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }
}

/// A whole response with a JSON body.
pub(super) fn answer(status: u16, body: &str) -> String {
    let length = body.len();
    format!("HTTP/1.1 {status} x\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Starts a worker that answers so.
pub(super) async fn double<F, R>(answer: F) -> Double
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = String> + Send,
{
    double_over(None, answer).await
}

/// Starts a worker with this certificate, or without one.
pub(super) async fn double_over<F, R>(tls: Option<Arc<ServerConfig>>, answer: F) -> Double
where
    F: Fn(Request) -> R + Send + Sync + 'static,
    R: Future<Output = String> + Send,
{
    let scheme = if tls.is_some() { "https" } else { "http" };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (asking, asked) = mpsc::unbounded_channel();
    let (hanging_up, hung_up) = mpsc::unbounded_channel();
    let answer = Arc::new(answer);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let mut connections = JoinSet::new();
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else { return };
            let (answer, asking, hanging_up) = (answer.clone(), asking.clone(), hanging_up.clone());
            let tls = tls.clone().map(TlsAcceptor::from);
            connections.spawn(async move {
                match tls {
                    None => serve(stream, connection, &*answer, &asking).await,
                    Some(tls) => {
                        if let Ok(stream) = tls.accept(stream).await {
                            serve(stream, connection, &*answer, &asking).await;
                        }
                    }
                }
                let _ = hanging_up.send(connection);
            });
        }
    });
    Double { address, asked, hung_up, scheme, _tasks: tasks }
}

async fn serve<F, R>(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    connection: usize,
    answer: &F,
    asking: &mpsc::UnboundedSender<Request>,
) where
    F: Fn(Request) -> R,
    R: Future<Output = String>,
{
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream, connection).await {
        let _ = asking.send(request.clone());
        let text = tokio::select! {
            text = answer(request) => text,
            _ = stream.fill_buf() => return,
        };
        if stream.write_all(text.as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut (impl AsyncBufRead + Unpin), connection: usize) -> Option<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            break;
        }
        lines.push(line.trim().to_owned());
    }
    let line = lines.remove(0);
    let split = |line: &String| line.split_once(": ").map(|(key, value)| (key.to_owned(), value.to_owned()));
    let headers: Vec<(String, String)> = lines.iter().filter_map(split).collect();
    let length = headers.iter().find(|(key, _)| key == "content-length").map_or("0", |(_, value)| value);
    let mut body = vec![0; length.parse().ok()?];
    stream.read_exact(&mut body).await.ok()?;
    Some(Request { line, headers, body: serde_json::from_slice(&body).ok()?, connection })
}
