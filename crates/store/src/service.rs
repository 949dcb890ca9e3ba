//! Settings of a service: the name of something workers can do.

use serde::{Deserialize, Serialize};
use windlass_engine::time::Timestamp;

/// The settings of one service.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceRow {
    pub name: String,
    pub settings: ServiceSettings,
    pub updated_at: Timestamp,
}

/// A service that live workers serve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveService {
    pub name: String,
    pub n_workers: u64,
}

/// The settings. Runs are given them at their start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServiceSettings {
    /// The default recheck interval of suspended calls; `None` = when they are reported, and after
    /// temporary faults as the engine does it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
}
