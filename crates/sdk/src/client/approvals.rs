//! Approvals: listing and deciding them.

use super::{Client, Repeat, with_query};
use crate::contract::{ApprovalInfo, ApprovalsQuery, Decide, List, RunSummary};
use crate::error::ClientError;

/// Approvals that runs of one server wait for, from [`Client::approvals`].
#[derive(Debug, Clone, Copy)]
pub struct ApprovalsApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Lists and decides approvals.
    pub fn approvals(&self) -> ApprovalsApi<'_> {
        ApprovalsApi { client: self }
    }
}

impl ApprovalsApi<'_> {
    /// Open approvals.
    pub async fn list(self, query: &ApprovalsQuery) -> Result<List<ApprovalInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["approvals"]), query)).await
    }

    /// Decides an approval.
    pub async fn decide(self, run: &str, body: &Decide) -> Result<RunSummary, ClientError> {
        self.client.post(self.client.native(&["runs", run, "decide"]), body, Repeat::Never).await
    }
}
