//! The server itself: health, readiness, statistics and examination.

use std::time::Duration;

use reqwest::{Method, StatusCode};

use super::{Client, Repeat};
use crate::contract::{DoctorReport, DoctorRequest, Health, Readiness, StatsResponse};
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

    /// Examines every open run and every account; with `repair`, wakes runs that no timer would wake. It may take minutes.
    pub async fn examine(&self, repair: bool) -> Result<DoctorReport, ClientError> {
        let url = self.native(&["doctor"]);
        self.call(Method::POST, url, Some(&DoctorRequest { repair }), EXAMINE, Repeat::Harmless).await
    }
}
