//! Workers: registering, signs of life, who is there. These routes are those of the scheduler surface.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Client, Repeat};
use crate::error::ClientError;

/// What a worker tells about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    pub id: String,
    /// Where it is called; empty = it only pulls.
    pub url: String,
    pub services: Vec<String>,
    /// `http`, `async` (pulls) or `local`.
    #[serde(rename = "type")]
    pub kind: String,
}

#[derive(Serialize)]
struct Beat<'a> {
    id: &'a str,
    url: &'a str,
    load: usize,
}

/// The answer is a word of assent nobody needs.
#[derive(Deserialize)]
struct Noted {}

impl Client {
    /// Registers a worker, or again.
    pub async fn register(&self, worker: &Registration) -> Result<(), ClientError> {
        let url = self.url(&["api", "workers", "register"], &[]);
        self.post(url, worker, Repeat::Harmless).await.map(|Noted {}| ())
    }

    /// A sign of life; `not_found` = register again.
    pub async fn heartbeat(&self, id: &str, url: &str, load: usize) -> Result<(), ClientError> {
        let to = self.url(&["api", "workers", "heartbeat"], &[]);
        self.post(to, &Beat { id, url, load }, Repeat::Never).await.map(|Noted {}| ())
    }

    /// Everyone that is known, dead or alive.
    pub async fn workers(&self) -> Result<crate::types::Workers, ClientError> {
        self.get(self.url(&["api", "v1", "workers"], &[])).await
    }

    /// Whether the server takes work: what its readiness route says, and its status.
    pub async fn ready(&self) -> Result<(bool, Value), ClientError> {
        let (status, body) = self.raw("GET", "/readyz", None).await?;
        Ok((status == 200, serde_json::from_str(&body).unwrap_or(Value::String(body))))
    }
}
