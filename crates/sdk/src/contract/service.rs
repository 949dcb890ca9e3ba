//! Services, and their settings.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Time;

/// A service that has live workers or settings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ServiceInfo {
    pub name: String,
    /// How often suspended calls are asked again where neither the worker nor the node says, and the first wait while
    /// temporary faults go on. Absent = suspended calls wait for a report, and temporary faults for 10 seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
    /// Workers that serve it and are alive.
    #[serde(default)]
    pub n_workers: usize,
    /// When something was set for it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Time>,
}

/// All settings of a service: an absent field removes its setting. They apply to runs that are started
/// from now on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ServiceChange {
    /// 100 to 86,400,000.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recheck_ms: Option<u64>,
}
