//! Bulk actions: one action on many runs.

use super::{Client, Repeat, with_query};
use crate::contract::{BulkAccepted, BulkDryRun, BulkInfo, BulkRequest, List, NoBody, PageQuery};
use crate::error::ClientError;

/// Bulk actions of one server, from [`Client::bulks`].
#[derive(Debug, Clone, Copy)]
pub struct BulksApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Begins and reads bulk actions.
    pub fn bulks(&self) -> BulksApi<'_> {
        BulksApi { client: self }
    }
}

impl BulksApi<'_> {
    /// Begins an action on many runs; it goes on by itself.
    pub async fn create(self, bulk: &BulkRequest) -> Result<BulkAccepted, ClientError> {
        let bulk = BulkRequest { dry_run: false, ..bulk.clone() };
        self.client.post(self.client.native(&["bulk"]), &bulk, Repeat::Never).await
    }

    /// The effect that an action would have.
    pub async fn dry_run(self, bulk: &BulkRequest) -> Result<BulkDryRun, ClientError> {
        let bulk = BulkRequest { dry_run: true, ..bulk.clone() };
        self.client.post(self.client.native(&["bulk"]), &bulk, Repeat::Harmless).await
    }

    /// Bulk actions, newest first.
    pub async fn list(self, page: &PageQuery) -> Result<List<BulkInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["bulk"]), page)).await
    }

    /// A bulk action with its progress.
    pub async fn show(self, id: &str) -> Result<BulkInfo, ClientError> {
        self.client.get(self.client.native(&["bulk", id])).await
    }

    /// Ends a bulk action: no further run takes it.
    pub async fn cancel(self, id: &str) -> Result<BulkInfo, ClientError> {
        self.client.post(self.client.native(&["bulk", id, "cancel"]), &NoBody {}, Repeat::Harmless).await
    }
}
