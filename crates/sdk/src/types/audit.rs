//! The audit: who asked for what, and what came of it.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{LineOrder, Time};

/// A change that somebody asked for. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLine {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Time,
    /// What the request said in `X-Windlass-Actor`, or in `by`; `anonymous` where it said nothing.
    pub who: String,
    /// What was asked for: `run.cancel`.
    pub what: String,
    /// What it was asked of: an id or a name, as the request named it.
    pub subject: String,
    /// `done`, `refused`, or `failed`: the server could not answer, and it may have been done.
    pub result: String,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The code of the problem, of what was not done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Why, if the request said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    pub method: String,
    pub path: String,
    /// Where the connection came from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ip: Option<String>,
}

/// Which part of the audit is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Who asked, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// What was asked for, exactly: `run.cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// What it was asked of, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// `newest` first, unless `oldest` is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub order: Option<LineOrder>,
    /// What the page before answered as `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1,000; absent = 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
