//! Workers: registration, heartbeats and lists. Registration and heartbeats use the routes of the scheduler surface.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde::{Deserialize, Serialize};

use super::{Client, Repeat};
use crate::contract::{DoctorReport, DoctorRequest, Health, NoBody, Readiness, WorkerInfo, Workers};
use crate::error::ClientError;

/// How long a server with many open runs may take to look at them all.
const EXAMINE: Duration = Duration::from_secs(600);

/// The registration of a worker.
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
struct HeartbeatBody<'a> {
    id: &'a str,
    url: &'a str,
    load: usize,
}

/// The response to a heartbeat.
#[derive(Deserialize)]
struct HeartbeatReply {
    #[serde(default)]
    draining: bool,
}

impl Client {
    /// Registers a worker, or again.
    pub async fn register(&self, worker: &Registration) -> Result<(), ClientError> {
        let url = self.url(&["api", "workers", "register"], &[]);
        self.post(url, worker, Repeat::Harmless).await.map(|HeartbeatReply { .. }| ())
    }

    /// A heartbeat; `not_found` = register again. `true` = the server drains the worker.
    pub async fn heartbeat(&self, id: &str, url: &str, load: usize) -> Result<bool, ClientError> {
        let to = self.url(&["api", "workers", "heartbeat"], &[]);
        self.post(to, &HeartbeatBody { id, url, load }, Repeat::Never)
            .await
            .map(|HeartbeatReply { draining }| draining)
    }

    /// Everyone that is known, dead or alive.
    pub async fn workers(&self) -> Result<Workers, ClientError> {
        self.get(self.url(&["api", "v1", "workers"], &[])).await
    }

    /// Drains a worker: it gets no more jobs, and stops when its current ones have ended.
    pub async fn drain_worker(&self, id: &str) -> Result<WorkerInfo, ClientError> {
        self.word(&["workers", id, "drain"], &NoBody {}).await
    }

    /// Ends the draining of a worker.
    pub async fn undrain_worker(&self, id: &str) -> Result<WorkerInfo, ClientError> {
        self.word(&["workers", id, "undrain"], &NoBody {}).await
    }

    /// Whether the server is there.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get(self.url(&["healthz"], &[])).await
    }

    /// Examines every open run and every account; with `repair`, wakes runs that no timer would wake. It may take minutes.
    pub async fn examine(&self, repair: bool) -> Result<DoctorReport, ClientError> {
        let url = self.native(&["doctor"]);
        self.call(Method::POST, url, Some(&DoctorRequest { repair }), EXAMINE, Repeat::Harmless).await
    }

    /// Whether the server takes work, and the reason if not.
    pub async fn readiness(&self) -> Result<Readiness, ClientError> {
        let (status, body) = self.raw("GET", "/readyz", None).await?;
        // A server that is not ready answers with an unsuccessful status.
        serde_json::from_str(&body).map_err(|_| {
            let status = StatusCode::from_u16(status).unwrap_or_default();
            ClientError::answered(status, None, body.as_bytes())
        })
    }
}
