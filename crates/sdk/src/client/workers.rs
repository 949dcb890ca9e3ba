//! Workers: registering, signs of life, who is there. These routes are those of the scheduler surface.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::{Client, Repeat};
use crate::error::ClientError;
use crate::types::{Examination, Examine, Health, NoBody, Readiness, Worker, Workers};

/// How long a server with many open runs may take to look at them all.
const EXAMINE: Duration = Duration::from_secs(600);

/// What a worker tells about itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Registration {
    pub id: String,
    /// Where it is called; empty = it only pulls.
    pub url: String,
    pub services: Vec<String>,
    /// Queues whose jobs it asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// Calls it answers at once; absent = it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<usize>,
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

/// The answer is a word of assent nobody needs, and, now and then, a request.
#[derive(Deserialize)]
struct Noted {
    #[serde(default)]
    draining: bool,
}

impl Client {
    /// Registers a worker, or again.
    pub async fn register(&self, worker: &Registration) -> Result<(), ClientError> {
        let url = self.url(&["api", "workers", "register"], &[]);
        self.post(url, worker, Repeat::Harmless).await.map(|Noted { .. }| ())
    }

    /// A sign of life; `not_found` = register again. `true` = the worker is to finish what it has and go.
    pub async fn heartbeat(&self, id: &str, url: &str, load: usize) -> Result<bool, ClientError> {
        let to = self.url(&["api", "workers", "heartbeat"], &[]);
        self.post(to, &Beat { id, url, load }, Repeat::Never).await.map(|Noted { draining }| draining)
    }

    /// Everyone that is known, dead or alive.
    pub async fn workers(&self) -> Result<Workers, ClientError> {
        self.get(self.url(&["api", "v1", "workers"], &[])).await
    }

    /// Gives a worker no more work; it goes when it is done with what it has.
    pub async fn drain_worker(&self, id: &str) -> Result<Worker, ClientError> {
        self.word(&["workers", id, "drain"], &NoBody {}).await
    }

    /// Gives a worker work again.
    pub async fn undrain_worker(&self, id: &str) -> Result<Worker, ClientError> {
        self.word(&["workers", id, "undrain"], &NoBody {}).await
    }

    /// Whether the server is there.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get(self.url(&["healthz"], &[])).await
    }

    /// Looks at every open run and every account; with `repair`, wakes what would sleep for ever. It may take its time.
    pub async fn examine(&self, repair: bool) -> Result<Examination, ClientError> {
        let url = self.native(&["doctor"]);
        self.call(Method::POST, url, Some(&Examine { repair }), EXAMINE, Repeat::Harmless).await
    }

    /// Whether the server takes work, and what keeps it from doing so.
    pub async fn readiness(&self) -> Result<Readiness, ClientError> {
        let (status, body) = self.raw("GET", "/readyz", None).await?;
        // What is not ready says so with a status that is no success.
        serde_json::from_str(&body).map_err(|_| {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            ClientError::answered(status, None, body.as_bytes())
        })
    }
}
