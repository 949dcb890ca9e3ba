//! The audit log.

use super::{Client, with_query};
use crate::contract::{AuditLine, AuditListQuery, List};
use crate::error::ClientError;

impl Client {
    /// Changes that clients requested.
    pub async fn audit(&self, query: &AuditListQuery) -> Result<List<AuditLine>, ClientError> {
        self.get(with_query(self.native(&["audit"]), query)).await
    }
}
