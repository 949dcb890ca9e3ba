//! Problems, as `application/problem+json`.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Why a request was not fulfilled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct ProblemDetails {
    /// Where the code is explained: `/docs/errors#<code>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The same for every problem of this code.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// One stable word for programs.
    #[schema(example = "unknown_run")]
    pub code: String,
    /// The explanation of this occurrence, with the remedy.
    pub detail: String,
    /// Every place that is wrong, where there are places.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<FieldError>,
}

/// A problem on the queue platform surface: the text that its clients know, and the fields of a problem.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct PlatformProblem {
    /// Everything that is wrong, for people.
    pub error: String,
    #[serde(flatten)]
    pub problem: ProblemDetails,
}

/// One place that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct FieldError {
    /// Where: `definition.nodes.fetch.service`, `results[0].lease`, `?limit`.
    pub path: String,
    /// The reason.
    pub reason: String,
    /// The remedy, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}
