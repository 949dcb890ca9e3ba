//! A minimal HTTP connection: the benchmark measures the server, not its client.

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

/// A connection that stays open.
pub(crate) struct HttpConnection {
    stream: BufReader<TcpStream>,
    host: String,
    line: String,
}

impl HttpConnection {
    /// Connects to a server such as `http://127.0.0.1:8070`.
    pub(crate) async fn to(url: &str) -> Result<HttpConnection> {
        let host = url.trim_start_matches("http://").to_owned();
        let stream = TcpStream::connect(&host).await.with_context(|| format!("{url} does not answer"))?;
        stream.set_nodelay(true)?;
        Ok(HttpConnection { stream: BufReader::with_capacity(64 << 10, stream), host, line: String::new() })
    }

    /// Posts a body and reads the response, which must be a success.
    pub(crate) async fn post(&mut self, path: &str, body: &[u8]) -> Result<Vec<u8>> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            self.host,
            body.len()
        );
        // One write, so that it is one packet where it fits into one.
        self.stream.get_mut().write_all(&[head.as_bytes(), body].concat()).await?;
        let (status, length) = self.head().await?;
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).await?;
        ensure!((200..300).contains(&status), "{path}: {status} {}", String::from_utf8_lossy(&answer));
        Ok(answer)
    }

    /// The same with JSON on both sides.
    pub(crate) async fn json(&mut self, path: &str, body: &Value) -> Result<Value> {
        Ok(serde_json::from_slice(&self.post(path, body.to_string().as_bytes()).await?)?)
    }

    /// The status of a response and the length of its body.
    async fn head(&mut self) -> Result<(u16, usize)> {
        let first = self.next_line().await?;
        let status = first.split(' ').nth(1).and_then(|word| word.parse().ok()).context("no status")?;
        let mut length = 0;
        loop {
            let line = self.next_line().await?;
            if line.is_empty() {
                return Ok((status, length));
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().context("no length")?;
            }
        }
    }

    async fn next_line(&mut self) -> Result<&str> {
        self.line.clear();
        ensure!(self.stream.read_line(&mut self.line).await? > 0, "the server hung up");
        Ok(self.line.trim_end())
    }
}
