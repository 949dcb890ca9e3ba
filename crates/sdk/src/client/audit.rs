//! The audit log.

use super::{Client, with_query};
use crate::contract::{AuditHead, AuditLine, AuditListQuery, AuditVerification, AuditVerifyQuery, List};
use crate::error::ClientError;

/// The audit log of one server, from [`Client::audit`].
#[derive(Debug, Clone, Copy)]
pub struct AuditApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Reads the audit log.
    pub fn audit(&self) -> AuditApi<'_> {
        AuditApi { client: self }
    }
}

impl AuditApi<'_> {
    /// Changes that clients requested.
    pub async fn list(self, query: &AuditListQuery) -> Result<List<AuditLine>, ClientError> {
        self.client.get(with_query(self.client.native(&["audit"]), query)).await
    }

    /// The last line.
    pub async fn head(self) -> Result<AuditHead, ClientError> {
        self.client.get(self.client.native(&["audit", "head"])).await
    }

    /// Checks that all lines are as they were written.
    pub async fn verify(self, query: &AuditVerifyQuery) -> Result<AuditVerification, ClientError> {
        self.client.get(with_query(self.client.native(&["audit", "verify"]), query)).await
    }
}
