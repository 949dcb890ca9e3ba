//! Whether everything on the server is as it must be.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Look at every open run and every account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Examine {
    /// Do something about what is found: wake what would sleep for ever.
    #[serde(default)]
    pub repair: bool,
}

/// What was looked at and what was found.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Examination {
    pub n_runs: usize,
    pub n_accounts: usize,
    /// At most 1,000: there may be more.
    pub findings: Vec<Finding>,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct Finding {
    /// The id of the run or account.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub what: String,
    /// Whether something was done about it.
    pub repaired: bool,
}
