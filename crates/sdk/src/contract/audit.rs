//! The audit log: actor, change, subject and result.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{ListOrder, Time};

/// A change that a client requested. Never changed, never deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditLine {
    /// From 1, without gaps.
    pub seq: u64,
    pub at: Time,
    /// The name of the API key; on an open server the header `X-Windlass-Actor`, or the field `by`, or `anonymous`.
    pub who: String,
    /// The id of the API key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The person that the caller acted for, by its own word: `X-Windlass-Actor` or `by` of a request with a key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<String>,
    /// The name of the change, such as `run.cancel`.
    pub what: String,
    /// The id or the name of the subject, as the request wrote it.
    pub subject: String,
    /// `done`, `refused`, or `failed`: the server could not answer, and it may have been done.
    pub result: String,
    /// The HTTP status of the answer.
    pub status: u16,
    /// The code of the problem, if the change was refused or failed.
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
    /// SHA-256 of the line and of the hash of the line before it, as 64 hexadecimal digits.
    pub hash: String,
}

/// The last line of the audit. Keep it in another place: it proves that no line up to it was changed or deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditHead {
    /// 0 while there is no line.
    pub seq: u64,
    /// The hash of that line; 64 zeros while there is none.
    pub hash: String,
}

/// The result of a check of the whole audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditVerification {
    /// The lines from the first that are as they were written.
    pub intact: u64,
    /// The head that the store kept.
    pub head: AuditHead,
    /// The first place where the audit is not as it was written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub broken: Option<AuditBreak>,
}

/// A place where the audit is not as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditBreak {
    pub seq: u64,
    pub reason: String,
}

/// The head that a caller kept.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditVerifyQuery {
    /// An earlier head, as `<seq>:<hash>`: the audit must contain that line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub head: Option<String>,
}

/// Which part of the audit is asked for.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditListQuery {
    /// Only changes of this actor, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub who: Option<String>,
    /// Only changes of this name, exactly, such as `run.cancel`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// Only changes of this subject, exactly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// `newest` first, unless `oldest` is asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[param(inline)]
    pub order: Option<ListOrder>,
    /// The `next` of the page before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// 1 to 1,000; absent = 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}
