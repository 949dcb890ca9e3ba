//! The consistency check of the server.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Look at every open run and every account.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DoctorRequest {
    /// Repair the findings: wake runs that no timer would wake.
    #[serde(default)]
    pub repair: bool,
}

/// The number of examined runs and accounts, and the findings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct DoctorReport {
    pub n_runs: usize,
    pub n_accounts: usize,
    /// At most 1,000: there may be more.
    pub findings: Vec<DoctorFinding>,
    #[serde(default)]
    pub pages: PageCheck,
}

/// The tables of a SQLite file whose pages were checked within ten seconds. The next check goes on with the others.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PageCheck {
    pub n_checked: usize,
    /// 0 if the database checks its own pages.
    pub n_tables: usize,
    /// Reasons why tables could not be checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<String>,
}

/// Something that is not as it must be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct DoctorFinding {
    /// The id of the run or account, or the key of a row.
    pub subject: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    pub what: String,
    /// Whether something was done about it.
    pub repaired: bool,
    /// The action of a person, if `repair` cannot help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}
