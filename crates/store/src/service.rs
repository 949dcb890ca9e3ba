//! What somebody set for a service: the name of something workers can do.

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

/// The settings of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    pub name: String,
    pub settings: ServiceSettings,
    pub updated_at: Timestamp,
}

/// What can be set. Runs are given it at their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSettings {
    /// How often suspended calls are asked again where nobody else says; `None` = when they are reported, and after
    /// temporary faults as the engine does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
}
