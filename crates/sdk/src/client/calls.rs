//! Calls: reporting the results of suspended ones.

use super::{Client, Repeat};
use crate::contract::{CallReport, ReportResponse};
use crate::error::ClientError;

/// Suspended calls of one server, from [`Client::calls`].
#[derive(Debug, Clone, Copy)]
pub struct CallsApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Reports the results of suspended calls.
    pub fn calls(&self) -> CallsApi<'_> {
        CallsApi { client: self }
    }
}

impl CallsApi<'_> {
    /// Says how a call ended that was suspended.
    pub async fn report(self, call: &str, report: &CallReport) -> Result<ReportResponse, ClientError> {
        self.client.post(self.client.native(&["calls", call, "report"]), report, Repeat::Harmless).await
    }
}
