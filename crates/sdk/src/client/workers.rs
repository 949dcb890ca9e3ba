//! Workers: registration, heartbeats and lists. Registration and heartbeats use the routes of the scheduler surface.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Client, Repeat, follow, with_query};
use crate::contract::{NoBody, PageQuery, RefusedWorker, WorkerInfo, Workers};
use crate::error::ClientError;

/// The registration of a worker.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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
    /// The secret under which the server signs its calls: `whsec_` and 24 to 64 bytes as base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
}

/// Without the secret.
impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registration")
            .field("id", &self.id)
            .field("url", &self.url)
            .field("services", &self.services)
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
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

/// Workers of one server, from [`Client::workers`].
#[derive(Debug, Clone, Copy)]
pub struct WorkersApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Registers, lists and drains workers.
    pub fn workers(&self) -> WorkersApi<'_> {
        WorkersApi { client: self }
    }
}

impl WorkersApi<'_> {
    /// Registers a worker, or again.
    pub async fn register(self, worker: &Registration) -> Result<(), ClientError> {
        let url = self.client.url(&["api", "workers", "register"], &[]);
        self.client.post(url, worker, Repeat::Harmless).await.map(|HeartbeatReply { .. }| ())
    }

    /// A heartbeat; `not_found` = register again. `true` = the server drains the worker.
    pub async fn heartbeat(self, id: &str, url: &str, load: usize) -> Result<bool, ClientError> {
        let to = self.client.url(&["api", "workers", "heartbeat"], &[]);
        self.client
            .post(to, &HeartbeatBody { id, url, load }, Repeat::Never)
            .await
            .map(|HeartbeatReply { draining }| draining)
    }

    /// A page of the known workers, dead or alive, by id.
    pub async fn list(self, page: &PageQuery) -> Result<Workers, ClientError> {
        self.client.get(with_query(self.client.native(&["workers"]), page)).await
    }

    /// All pages of [`WorkersApi::list`].
    pub async fn all(self) -> Result<Vec<WorkerInfo>, ClientError> {
        follow(|page| async move { self.list(&page).await.map(|page| (page.workers, page.next)) }).await
    }

    /// Workers that the server refused because of their addresses, the latest refusal first.
    pub async fn refused(self) -> Result<Vec<RefusedWorker>, ClientError> {
        let page = PageQuery { limit: Some(1), ..PageQuery::default() };
        Ok(self.list(&page).await?.refused)
    }

    /// Drains a worker: it gets no more jobs, and stops when its current ones have ended.
    pub async fn drain(self, id: &str) -> Result<WorkerInfo, ClientError> {
        self.client.word(&["workers", id, "drain"], &NoBody {}).await
    }

    /// Ends the draining of a worker.
    pub async fn undrain(self, id: &str) -> Result<WorkerInfo, ClientError> {
        self.client.word(&["workers", id, "undrain"], &NoBody {}).await
    }
}
