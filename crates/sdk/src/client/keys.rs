//! API keys of the server.

use super::{Client, Repeat, with_query};
use crate::contract::{KeyInfo, KeyMade, List, NewKey, NoBody, PageQuery, RotateKey};
use crate::error::ClientError;

/// API keys of one server, from [`Client::keys`].
#[derive(Debug, Clone, Copy)]
pub struct KeysApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Makes, lists and ends API keys.
    pub fn keys(&self) -> KeysApi<'_> {
        KeysApi { client: self }
    }
}

impl KeysApi<'_> {
    /// Keys, by id.
    pub async fn list(self, page: &PageQuery) -> Result<List<KeyInfo>, ClientError> {
        self.client.get(with_query(self.client.native(&["keys"]), page)).await
    }

    /// Makes a key. Its text is in the answer and nowhere else, so the call is not made again by itself.
    pub async fn create(self, new: &NewKey) -> Result<KeyMade, ClientError> {
        self.client.post(self.client.native(&["keys"]), new, Repeat::Never).await
    }

    /// Ends a key at once.
    pub async fn revoke(self, id: &str) -> Result<KeyInfo, ClientError> {
        self.client.word(&["keys", id, "revoke"], &NoBody {}).await
    }

    /// Makes the successor of a key with the same rights.
    pub async fn rotate(self, id: &str, rotate: &RotateKey) -> Result<KeyMade, ClientError> {
        self.client.post(self.client.native(&["keys", id, "rotate"]), rotate, Repeat::Never).await
    }
}
