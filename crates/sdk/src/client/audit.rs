//! Who asked for what.

use super::{Client, with_query};
use crate::error::ClientError;
use crate::types::{AuditLine, AuditQuery, List};

impl Client {
    /// Changes that somebody asked for.
    pub async fn audit(&self, query: &AuditQuery) -> Result<List<AuditLine>, ClientError> {
        self.get(with_query(self.native(&["audit"]), query)).await
    }
}
