//! Services, and their settings.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use utoipa::ToSchema;

use super::{RunPriority, Time};

/// A service that has live workers or settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ServiceInfo {
    pub name: String,
    /// How often suspended calls are asked again where neither the worker nor the node says, and the first wait while
    /// temporary faults go on. Absent = suspended calls wait for a report, those of the dag form for 10 seconds, as after
    /// temporary faults.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// Whether suspended calls wait for a report where neither the worker nor the node says.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_reported: bool,
    /// The time limit over all attempts of a call whose node has none; a silent worker fails 60 seconds later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Calls to push workers at once, over all servers. Absent = the limit of every service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<u32>,
    /// The class of a call whose node has none. Absent = that of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<RunPriority>,
    /// Whether calls to its push workers are signed under a secret of the service.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_signed: bool,
    /// Demand: jobs that wait for a worker, at most 10,000 counted, and calls that wait for a push worker of this server.
    #[serde(default)]
    pub n_waiting: u64,
    /// Supply: workers that serve it and are alive.
    #[serde(default)]
    pub n_workers: usize,
    /// Calls that these workers can take at once, as they reported it; a worker of several services counts for each.
    #[serde(default)]
    pub capacity: u64,
    /// Calls that these workers reported as in progress.
    #[serde(default)]
    pub load: u64,
    /// When something was set for it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
}

/// All settings of a service: an absent field removes its setting. They apply to runs that are started
/// from now on; `calls_max` applies at once.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceChange {
    /// 100 to 86,400,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// Suspended calls wait for a report. Not beside `recheck_ms`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub until_reported: bool,
    /// 100 to 2,592,000,000 (30 days).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// 1 to 100,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_max: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<RunPriority>,
    /// The secret under which calls to push workers are signed: `whsec_` and 24 to 64 bytes as base64. Absent = as before,
    /// null = none. No answer has it.
    #[serde(default, skip_serializing_if = "SecretChange::is_keep")]
    #[schema(value_type = Option<String>)]
    pub secret: SecretChange,
}

/// A change of a secret that nothing shows.
#[derive(Clone, PartialEq, Eq, Default)]
pub enum SecretChange {
    #[default]
    Keep,
    Remove,
    Set(String),
}

impl SecretChange {
    fn is_keep(&self) -> bool {
        *self == SecretChange::Keep
    }
}

impl fmt::Debug for SecretChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            SecretChange::Keep => "Keep",
            SecretChange::Remove => "Remove",
            SecretChange::Set(_) => "Set",
        })
    }
}

impl Serialize for SecretChange {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            SecretChange::Keep | SecretChange::Remove => serializer.serialize_none(),
            SecretChange::Set(secret) => serializer.serialize_some(secret),
        }
    }
}

impl<'de> Deserialize<'de> for SecretChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let given = Option::<String>::deserialize(deserializer)?;
        Ok(given.map_or(SecretChange::Remove, SecretChange::Set))
    }
}
