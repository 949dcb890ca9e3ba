//! Errors of calls to the server.

use std::fmt;
use std::time::Duration;

use reqwest::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use crate::contract::FieldError;

/// The server is unreachable.
pub const UNREACHABLE: &str = "unreachable";
/// No answer came in time; whether it was done is unknown.
pub const TIMED_OUT: &str = "timed_out";
/// The connection broke before the whole answer came; whether it was done is unknown.
pub const INTERRUPTED: &str = "interrupted";
/// The response cannot be read.
pub const UNREADABLE: &str = "unreadable_answer";
/// The request cannot be sent.
pub const UNSENDABLE: &str = "unsendable_request";

/// Characters of an answer that is not of the contract that are shown.
const SHOWN_CHARS: usize = 200;

/// A call that failed. `code` is one word that never changes: the server's own, or one of this module's when no
/// server answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientError {
    /// The HTTP status; `None` = no answer came.
    pub status: Option<u16>,
    pub code: String,
    /// The explanation, for people.
    pub detail: String,
    /// Each field that was wrong.
    pub errors: Vec<FieldError>,
    /// When to come back, if the server said so.
    pub retry_after: Option<Duration>,
}

/// `application/problem+json` and `{"error": …}` at once: everything is optional.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ProblemBody {
    code: Option<String>,
    detail: Option<String>,
    title: Option<String>,
    error: Option<Value>,
    errors: Vec<FieldError>,
}

impl ClientError {
    pub(crate) fn local(code: &str, detail: impl Into<String>) -> Self {
        ClientError {
            status: None,
            code: code.to_owned(),
            detail: detail.into(),
            errors: Vec::new(),
            retry_after: None,
        }
    }

    /// A response that breaks the contract.
    pub(crate) fn unreadable(status: StatusCode, detail: impl Into<String>) -> Self {
        ClientError { status: Some(status.as_u16()), ..ClientError::local(UNREADABLE, detail) }
    }

    pub(crate) fn sending(error: &reqwest::Error, base: &str) -> Self {
        let cause = causes(error);
        if error.is_connect() {
            ClientError::local(UNREACHABLE, format!("{base} does not answer: {cause}"))
        } else if error.is_timeout() {
            ClientError::local(TIMED_OUT, format!("{base} did not answer in time"))
        } else if error.is_builder() {
            ClientError::local(UNSENDABLE, format!("the request cannot be sent: {cause}"))
        } else {
            ClientError::local(INTERRUPTED, format!("the connection to {base} broke: {cause}"))
        }
    }

    /// An unsuccessful response. A proxy in between may have sent it without problem+json.
    pub(crate) fn answered(status: StatusCode, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let problem: Option<ProblemBody> = serde_json::from_slice(body).ok();
        let understood = problem.is_some();
        let problem = problem.unwrap_or_default();
        let plain = match problem.error {
            Some(Value::String(text)) => Some(text),
            Some(other) => Some(other.to_string()),
            None => None,
        };
        let detail = problem.detail.or(plain).or(problem.title).unwrap_or_else(|| {
            let text: String = String::from_utf8_lossy(body).chars().take(SHOWN_CHARS).collect();
            match (understood, text.trim()) {
                (true, _) | (false, "") => format!("the server answered {status}"),
                (false, text) => format!("the server answered {status}: {text}"),
            }
        });
        let code = problem.code.unwrap_or_else(|| word_of(status).to_owned());
        ClientError { status: Some(status.as_u16()), code, detail, errors: problem.errors, retry_after }
    }

    /// Whether there is no such thing.
    pub fn is_not_found(&self) -> bool {
        self.status == Some(404)
    }

    /// Whether the state at the server forbids it.
    pub fn is_conflict(&self) -> bool {
        self.status == Some(409)
    }

    /// Whether trying the same again later may help.
    pub fn is_temporary(&self) -> bool {
        match self.status {
            Some(status) => matches!(status, 408 | 425 | 429 | 500..),
            None => [UNREACHABLE, TIMED_OUT, INTERRUPTED].contains(&self.code.as_str()),
        }
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)?;
        for error in &self.errors {
            // The detail of a single error is that error.
            if !self.detail.contains(&error.reason) {
                write!(f, "; {}: {}", error.path, error.reason)?;
            }
            if let Some(hint) = &error.hint {
                write!(f, " ({hint})")?;
            }
        }
        write!(f, " [{}]", self.code)
    }
}

impl std::error::Error for ClientError {}

/// The innermost cause is the real one; the outer ones repeat the address.
fn causes(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    innermost.to_string()
}

fn word_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        400 => "bad_request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        405 => "method_not_allowed",
        409 => "conflict",
        413 => "too_large",
        422 => "invalid",
        429 => "busy",
        503 => "unavailable",
        500.. => "server_error",
        _ => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &str) -> ClientError {
        ClientError::answered(StatusCode::from_u16(status).unwrap(), None, body.as_bytes())
    }

    #[test]
    fn a_problem_keeps_its_code_and_its_fields() {
        let error = answered(
            422,
            r#"{"type":"/docs/errors#invalid_definition","title":"t","status":422,"code":"invalid_definition",
                "detail":"two problems","errors":[{"path":"$.a","reason":"unknown","hint":"did you mean `b`?"}]}"#,
        );
        assert_eq!(error.code, "invalid_definition");
        assert_eq!(error.to_string(), "two problems; $.a: unknown (did you mean `b`?) [invalid_definition]");
        assert!(!error.is_temporary());
    }

    #[test]
    fn the_compatible_surface_speaks_in_one_word() {
        let error = answered(404, r#"{"error":"no worker"}"#);
        assert_eq!((error.code.as_str(), error.detail.as_str()), ("not_found", "no worker"));
        assert!(error.is_not_found());
    }

    #[test]
    fn an_answer_of_another_program_is_shown() {
        let error = answered(502, "<h1>bad gateway</h1>");
        assert!(error.detail.ends_with("502 Bad Gateway: <h1>bad gateway</h1>"), "{}", error.detail);
        assert!(error.is_temporary());
        assert_eq!(answered(500, "").detail, "the server answered 500 Internal Server Error");
    }
}
