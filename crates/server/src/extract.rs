//! Extractors of bodies, queries and paths; an error names the place in the request.

use std::convert::Infallible;
use std::net::SocketAddr;

use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::Extensions;
use axum::http::request::Parts;
use serde::de::DeserializeOwned;
use serde_json::Value;
use windlass_engine::problem::did_you_mean;

use crate::guard::LARGE_BYTES;
use crate::problem::{ApiError, Code};

/// A JSON body. One that is empty counts as `{}`, so that an action without a word to say needs none.
pub(crate) struct JsonBody<T>(pub(crate) T);

/// The query of a request.
pub(crate) struct QueryParams<T>(pub(crate) T);

/// The parameters of a path.
pub(crate) struct PathParams<T>(pub(crate) T);

/// The network address that the request comes from, without its port; empty where there is no connection.
pub(crate) struct ClientAddress(pub(crate) String);

impl ClientAddress {
    pub(crate) fn of(extensions: &Extensions) -> Option<String> {
        let peer = extensions.get::<ConnectInfo<SocketAddr>>();
        peer.map(|ConnectInfo(peer)| peer.ip().to_canonical().to_string())
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(ClientAddress(ClientAddress::of(&parts.extensions).unwrap_or_default()))
    }
}

impl<T: DeserializeOwned + Send + 'static, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ApiError> {
        let bytes = axum::body::Bytes::from_request(request, state).await;
        let bytes =
            bytes.map_err(|_| ApiError::new(Code::MalformedJson, "the body ended before it was complete"))?;
        if bytes.len() <= LARGE_BYTES {
            return read(&bytes).map(JsonBody);
        }
        let reading = tokio::task::spawn_blocking(move || read(&bytes).map(JsonBody));
        reading.await.map_err(|_| ApiError::new(Code::Internal, "the body could not be read: report it"))?
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = Query::<T>::from_request_parts(parts, state).await;
        query.map(|Query(query)| QueryParams(query)).map_err(|rejection| match rejection {
            QueryRejection::FailedToDeserializeQueryString(error) => {
                wrong(Code::BadQuery, &innermost(&error), "?")
            }
            other => ApiError::new(Code::BadQuery, other.body_text()),
        })
    }
}

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let path = Path::<T>::from_request_parts(parts, state).await;
        path.map(|Path(path)| PathParams(path)).map_err(|rejection| match rejection {
            PathRejection::FailedToDeserializePathParams(error) => {
                ApiError::new(Code::BadPath, lowercase(&error.body_text()))
            }
            other => ApiError::new(Code::BadPath, lowercase(&other.body_text())),
        })
    }
}

/// Reads a body.
fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => parse(b"{}"),
        // Malformed JSON is reported before problems of its content.
        Some(b'{') => parse(bytes).map_err(|error| parse::<Value>(bytes).err().unwrap_or(error)),
        // An array would be taken for the fields of the object in their order.
        Some(_) => {
            parse::<Value>(bytes)?;
            Err(ApiError::field(Code::InvalidBody, "", "the body is not an object: put it into `{` and `}`"))
        }
    }
}

/// Parses JSON; an error names the place and the reason.
pub(crate) fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ApiError> {
    axum::Json::from_bytes(bytes).map(|axum::Json(body)| body).map_err(|rejection| match rejection {
        JsonRejection::JsonDataError(error) => {
            let text = innermost(&error);
            let code = if text.contains("unknown field `") { Code::UnknownField } else { Code::InvalidBody };
            wrong(code, &text, "")
        }
        JsonRejection::JsonSyntaxError(error) => {
            let text = innermost(&error);
            if text.contains("recursion limit exceeded") {
                ApiError::new(Code::TooDeep, "the body is nested deeper than 127 levels: flatten it")
            } else {
                ApiError::new(Code::MalformedJson, text)
            }
        }
        other => ApiError::new(Code::MalformedJson, lowercase(&other.body_text())),
    })
}

/// The problem in a deserialiser's message: `results[0].leas: unknown field `leas`, expected one of …`.
fn wrong(code: Code, text: &str, prefix: &str) -> ApiError {
    let (path, reason) = match text.split_once(": ") {
        Some((path, reason)) if is_path(path) => (path, reason),
        Some(_) | None => ("", text),
    };
    let quoted = |after: &str| {
        let (_, rest) = reason.split_once(after)?;
        rest.split('`').next()
    };
    let unknown = quoted("unknown field `").or_else(|| quoted("unknown variant `"));
    let known = reason.split_once("expected").map_or("", |(_, known)| known);
    let hint = unknown.and_then(|word| did_you_mean(word, known.split('`').skip(1).step_by(2)));
    let reason = reason.split(" at line ").next().unwrap_or(reason);
    let named = quoted("unknown field `").or_else(|| quoted("missing field `"));
    let place = match (path, named) {
        ("", Some(name)) => name.to_owned(),
        // The path of an unknown field ends with its name already; the path of a missing field does not.
        (path, Some(name)) if !ends_with_field(path, name) => format!("{path}.{name}"),
        (path, _) => path.to_owned(),
    };
    let is_flow =
        |word| matches!(word, "nodes" | "edges" | "steps" | "start") && known.contains("`definition`");
    let hint = hint.or_else(|| {
        unknown.filter(|word| is_flow(*word)).map(|_| "put the flow into `definition`".to_owned())
    });
    ApiError::field(code, format!("{prefix}{place}"), plainly(reason)).hint(hint)
}

/// A deserialiser's message without names of Rust types.
fn plainly(reason: &str) -> String {
    const TYPES: [(&str, &str); 9] = [
        ("i64", "a whole number"),
        ("u64", "a whole number from 0"),
        ("u32", "a whole number from 0"),
        ("usize", "a whole number from 0"),
        ("f64", "a number"),
        ("a map", "an object"),
        ("a sequence", "an array"),
        ("struct map", "an object"),
        ("a boolean", "true or false"),
    ];
    const FOUND: [(&str, &str); 2] =
        [("invalid type: map", "invalid type: object"), ("invalid type: sequence", "invalid type: array")];
    let expected = TYPES.iter().find_map(|(rust, word)| {
        Some(format!("{}expected {word}", reason.strip_suffix(rust)?.strip_suffix("expected ")?))
    });
    FOUND.iter().fold(expected.unwrap_or_else(|| reason.to_owned()), |text, (rust, word)| {
        text.replacen(rust, word, 1)
    })
}

fn ends_with_field(path: &str, name: &str) -> bool {
    path.strip_suffix(name).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && !text.contains([' ', '`', ','])
}

/// The innermost cause of an error: its wrappers only say that there is one.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut error = error;
    let mut text = error.to_string();
    // The path is told by the error around the first cause, which repeats that.
    while let Some(source) = error.source() {
        let said = source.to_string();
        if !text.ends_with(&said) || text.starts_with("Failed") {
            text = said;
        }
        error = source;
    }
    text
}

fn lowercase(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_lowercase().chain(chars).collect())
}

#[cfg(test)]
mod tests {
    use windlass_sdk::contract::{FinishRequest, FlowRequest, RunRequest, Signal};

    use super::*;

    #[track_caller]
    fn refused<T: DeserializeOwned>(body: &str, code: Code, path: &str) -> ApiError {
        let error = read::<T>(body.as_bytes()).err().unwrap();
        let problem = error.problem();
        assert_eq!(
            (error.code(), problem.errors.first().map_or("", |error| &error.path)),
            (code, path),
            "{problem:?}"
        );
        error
    }

    #[test]
    fn an_unknown_field_is_named_with_its_place_and_its_neighbour() {
        let error =
            refused::<FlowRequest>(r#"{"name":"a","desciption":"b"}"#, Code::UnknownField, "desciption");
        assert_eq!(error.problem().errors[0].hint.as_deref(), Some("did you mean `description`?"));
        let body = r#"{"results":[{"id":"a","lease":"b","outcome":"done","resul":1}]}"#;
        let error = refused::<FinishRequest>(body, Code::UnknownField, "results[0].resul");
        assert_eq!(error.problem().errors[0].hint.as_deref(), Some("did you mean `result`?"));
    }

    #[test]
    fn a_value_of_another_type_is_named_with_its_place() {
        refused::<RunRequest>(r#"{"params":5}"#, Code::InvalidBody, "params");
        refused::<RunRequest>(r#"{"version":-1}"#, Code::InvalidBody, "version");
        refused::<RunRequest>(r#"{"labels":{"a":1}}"#, Code::InvalidBody, "labels.a");
        refused::<FinishRequest>(
            r#"{"results":[{"id":"a","outcome":"done"}]}"#,
            Code::InvalidBody,
            "results[0].lease",
        );
        refused::<Signal>("", Code::InvalidBody, "key");
        refused::<Signal>(r#"["key", 1, null, null]"#, Code::InvalidBody, "");
        refused::<RunRequest>("5", Code::InvalidBody, "");
    }

    #[test]
    fn malformed_json_is_told_from_json_that_is_too_deep() {
        for body in ["{", "{\"a\":}", "nul", "{} {}", "\u{feff}{}", "{\"a\":1e999}", "\"\\ud800\""] {
            let error = parse::<Value>(body.as_bytes()).err().unwrap();
            assert_eq!(error.code(), Code::MalformedJson, "{body}");
        }
        assert_eq!(parse::<Value>(b"\xff").err().unwrap().code(), Code::MalformedJson);
        let deep = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
        assert!(parse::<Value>(deep(127).as_bytes()).is_ok());
        assert_eq!(parse::<Value>(deep(128).as_bytes()).err().unwrap().code(), Code::TooDeep);
        assert_eq!(parse::<Value>(deep(100_000).as_bytes()).err().unwrap().code(), Code::TooDeep);
    }
}
