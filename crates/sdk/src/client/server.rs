//! The server itself: health, readiness, statistics and examination.

use std::time::Duration;

use reqwest::{Method, StatusCode};

use super::{Client, Repeat, with_query};
use crate::contract::{
    About, DoctorReport, DoctorRequest, Health, Overview, Readiness, SearchHits, SearchQuery, Series,
    SeriesQuery, StatsResponse,
};
use crate::error::ClientError;

/// How long a server with many open runs may take to look at them all.
const EXAMINE: Duration = Duration::from_secs(600);

impl Client {
    /// Whether the server is there.
    pub async fn health(&self) -> Result<Health, ClientError> {
        self.get(self.url(&["healthz"], &[])).await
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

    /// How everything on the server went since it started.
    pub async fn stats(&self) -> Result<StatsResponse, ClientError> {
        self.get(self.native(&["stats"])).await
    }

    /// The numbers of the first page, and the things that need a person.
    pub async fn overview(&self) -> Result<Overview, ClientError> {
        self.get(self.native(&["overview"])).await
    }

    /// The figures of all servers over time.
    pub async fn series(&self, query: &SeriesQuery) -> Result<Series, ClientError> {
        self.get(with_query(self.native(&["series"]), query)).await
    }

    /// The version of the server, the servers on its store, and its settings.
    pub async fn about(&self) -> Result<About, ClientError> {
        self.get(self.native(&["about"])).await
    }

    /// Runs, jobs, flows and queues by the beginning of an id or a part of a name.
    pub async fn search(&self, query: &SearchQuery) -> Result<SearchHits, ClientError> {
        self.get(with_query(self.native(&["search"]), query)).await
    }

    /// Examines every open run and every account; with `repair`, wakes runs that no timer would wake. It may take minutes.
    pub async fn examine(&self, repair: bool) -> Result<DoctorReport, ClientError> {
        let url = self.native(&["doctor"]);
        self.call(Method::POST, url, Some(&DoctorRequest { repair }), EXAMINE, Repeat::Harmless).await
    }
}
