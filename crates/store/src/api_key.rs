//! API keys: rows of the keys that clients present. A row has the hash of a key and never its text.

use std::fmt;
use std::hint::black_box;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use windlass_engine::access::Role;
use windlass_engine::access::api_key::{ApiKey, ApiKeyId};
use windlass_engine::access::identity::{Identity, KeyTerm, WorkScope};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;

use crate::error::StoreError;

/// The SHA-256 of a whole key.
#[derive(Clone, Copy)]
pub struct ApiKeyHash(pub(crate) [u8; 32]);

impl ApiKeyHash {
    /// The hash of a presented key.
    pub fn of(key: &ApiKey) -> Self {
        ApiKeyHash(Sha256::digest(key.reveal().as_bytes()).into())
    }
}

/// Takes the same time wherever the hashes differ.
impl PartialEq for ApiKeyHash {
    fn eq(&self, other: &Self) -> bool {
        let pairs = self.0.iter().zip(&other.0);
        black_box(pairs.fold(0, |differs, (one, other)| black_box(differs | (one ^ other)))) == 0
    }
}

impl Eq for ApiKeyHash {}

/// No log shows a hash: it can be compared with guesses.
impl fmt::Debug for ApiKeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKeyHash")
    }
}

/// An API key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiKeyRow {
    pub id: ApiKeyId,
    pub project: Project,
    pub hash: ApiKeyHash,
    /// The name of its owner in the audit.
    pub name: String,
    pub role: Role,
    /// The right to publish definitions with scripts.
    pub may_script: bool,
    pub scope: WorkScope,
    pub created_at: Timestamp,
    pub created_by: String,
    pub term: KeyTerm,
    /// The last known use; the latest minute may be missing.
    pub used_at: Option<Timestamp>,
}

impl ApiKeyRow {
    /// The identity that the key proves.
    pub fn identity(&self) -> Identity {
        Identity {
            name: self.name.clone(),
            key: Some(self.id),
            role: self.role,
            may_script: self.may_script,
            scope: self.scope.clone(),
            project: self.project.clone(),
        }
    }
}

/// The verbs about API keys. Every store has them.
#[async_trait]
pub trait ApiKeyStore: Send + Sync {
    /// Writes a new key; `false` = another key has the id, and nothing was written.
    async fn create_api_key(&self, project: &Project, row: ApiKeyRow) -> Result<bool, StoreError>;

    /// The key with this id, of any project: the row names it.
    async fn api_key(&self, id: ApiKeyId) -> Result<Option<ApiKeyRow>, StoreError>;

    /// Keys after this one, by id.
    async fn api_keys(
        &self,
        project: &Project,
        after: Option<ApiKeyId>,
        limit: usize,
    ) -> Result<Vec<ApiKeyRow>, StoreError>;

    /// Whether there is any key in any project, ended ones included.
    async fn has_api_keys(&self) -> Result<bool, StoreError>;

    /// Ends a key; the first time counts. `false` = the project has no such key.
    async fn revoke_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        now: Timestamp,
    ) -> Result<bool, StoreError>;

    /// Writes the successor of a key, which itself ends at `ends_at` or earlier. `false` = the project has no such key,
    /// or it was revoked, and nothing was written.
    async fn rotate_api_key(
        &self,
        project: &Project,
        id: ApiKeyId,
        ends_at: Timestamp,
        successor: ApiKeyRow,
    ) -> Result<bool, StoreError>;

    /// Writes the last uses of keys of all projects; the latest time of each counts.
    async fn save_api_key_uses(&self, uses: Vec<(ApiKeyId, Timestamp)>) -> Result<(), StoreError>;
}

#[cfg(test)]
mod tests {
    use windlass_engine::access::api_key::RANDOM_BYTES;

    use super::*;

    #[test]
    fn hashes_are_equal_if_their_keys_are() {
        let key = |byte| ApiKey::new(Role::Admin, &[byte; RANDOM_BYTES]);
        assert_eq!(ApiKeyHash::of(&key(1)), ApiKeyHash::of(&key(1)));
        assert_ne!(ApiKeyHash::of(&key(1)), ApiKeyHash::of(&key(2)));
        let (mut one, other) = ([7; 32], ApiKeyHash([7; 32]));
        for at in 0..32 {
            one[at] ^= 128;
            assert_ne!(ApiKeyHash(one), other);
            one[at] ^= 128;
        }
        assert_eq!(ApiKeyHash(one), other);
        assert_eq!(format!("{other:?}"), "ApiKeyHash");
    }
}
