//! API keys.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Time, is_default};

/// A named set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum KeyRole {
    /// Reads.
    Viewer,
    /// Reads, starts runs and jobs, acts on them, decides approvals.
    Operator,
    /// Does the work of some services and queues.
    Worker,
    /// An operator who also changes flows, schedules, prices, services and queues.
    Author,
    /// May do everything.
    Admin,
}

impl KeyRole {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            KeyRole::Viewer => "viewer",
            KeyRole::Operator => "operator",
            KeyRole::Worker => "worker",
            KeyRole::Author => "author",
            KeyRole::Admin => "admin",
        }
    }
}

/// A key to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewKey {
    /// The name of its owner, which the audit shows.
    pub name: String,
    pub role: KeyRole,
    /// The right to publish definitions with scripts; of authors and admins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub scripts: bool,
    /// The services whose work the key may do; of workers. `*` = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<String>,
    /// The queues whose work the key may do; of workers. `*` = all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub queues: Vec<String>,
    /// When the key ends; absent = it ends when it is revoked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
}

/// A key, without its secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyInfo {
    /// The public part of the key.
    pub id: String,
    pub name: String,
    pub role: KeyRole,
    #[serde(default)]
    pub scripts: bool,
    #[serde(default)]
    pub services: Vec<String>,
    #[serde(default)]
    pub queues: Vec<String>,
    pub created_at: Time,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Time>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<Time>,
    /// The last use, to the minute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used_at: Option<Time>,
}

/// A new key. No other answer shows its text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct KeyMade {
    /// The text to send as `Authorization: Bearer`.
    pub key: String,
    #[serde(flatten)]
    pub info: KeyInfo,
}

/// The end of the old key when a new one takes its place.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RotateKey {
    /// How long the old key stays valid; absent = a day, 0 = it ends at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grace_ms: Option<u64>,
}
