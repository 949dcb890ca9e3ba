//! Reads the answer of a push worker as the outcome of its call.
//!
//! | answer | meaning |
//! |---|---|
//! | 2xx `{"result": any, "error": ""}` | done |
//! | 2xx `{"error": "text"}` | failed; `"retryable": false` = for good |
//! | 2xx `{"suspend": {"memo": any, "recheck_ms": n}}` | suspended; without `recheck_ms` until it is reported |
//! | 202 `{"memo": any, "recheck_ms": n}`, or nothing | suspended |
//! | 3xx | failed for good: redirects are not followed |
//! | 4xx | failed for good, except 408, 409, 425 and 429 |
//! | 5xx | failed |
//! | 408, 425, 429, 502, 503, 504, or `"temporary": true` with an error | failed, by a temporary fault |
//!
//! 429 and 503 may say in `Retry-After`, in seconds or as a date, when to come back.
//!
//! `retryable` in the body of a failure has the last word. Any answer may have `logs`: lines for people.

use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_engine::input::CallOutcome;
use windlass_engine::json::JsonFlaw;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::text::{a_type, excerpt, plain};
use windlass_engine::time::Timestamp;

use super::failed;
use crate::calls::log::{Log, read_lines};

/// The answer as the worker sent it.
pub(super) struct WorkerAnswer<'a> {
    pub(super) worker: &'a str,
    pub(super) status: u16,
    pub(super) body: &'a [u8],
    /// The reason not to build values from the body.
    pub(super) flaw: Option<&'a JsonFlaw>,
    /// How long it asked to be left alone.
    pub(super) retry_after_ms: Option<u64>,
}

/// The header `Retry-After`: a number of seconds, or a date.
pub(super) fn read_retry_after(header: &str, now: Timestamp) -> Option<u64> {
    let seconds = header.trim().parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1_000));
    seconds.or_else(|| Some(Timestamp::parse_http_date(header)?.since(now)))
}

/// The outcome of the call and the worker's log lines.
pub(super) fn read_answer(answer: &WorkerAnswer<'_>) -> (CallOutcome, Log) {
    if matches!(answer.status, 200..=299) {
        if answer.status == 202 && answer.body.iter().all(u8::is_ascii_whitespace) {
            return (CallOutcome::Suspended { memo: Value::Null, recheck_ms: None }, Log::default());
        }
        let mut fields = match answer.fields() {
            Ok(fields) => fields,
            Err(outcome) => return (outcome, Log::default()),
        };
        let log = read_lines(fields.remove("logs").unwrap_or_default());
        let outcome = if answer.status == 202 { accepted(answer, fields) } else { answered(answer, fields) };
        return (outcome, log);
    }
    let fields = answer.flaw.is_none().then(|| serde_json::from_slice::<Map<String, Value>>(answer.body));
    let mut fields = fields.and_then(Result::ok).unwrap_or_default();
    let log = read_lines(fields.remove("logs").unwrap_or_default());
    (refused(answer, &fields), log)
}

fn answered(answer: &WorkerAnswer<'_>, mut fields: Map<String, Value>) -> CallOutcome {
    if let Some(error) = fields.get("error").filter(|error| !is_nothing(error)) {
        return CallOutcome::Failed(fault(plain(error).into_owned(), FaultKind::Error, true, &fields));
    }
    if let Some(suspend) = fields.remove("suspend").filter(|suspend| !suspend.is_null()) {
        return match suspend {
            Value::Object(suspend) => suspended(answer, suspend),
            other => answer.unreadable(&format!("has {} as `suspend`, not an object", a_type(&other))),
        };
    }
    match fields.remove("result") {
        Some(result) => CallOutcome::Done(Arc::new(result)),
        // Some languages omit empty fields: an empty body is a null result.
        None if fields.is_empty() || fields.contains_key("error") => CallOutcome::Done(Arc::new(Value::Null)),
        None => answer.unreadable("has neither `result` nor `error` nor `suspend`"),
    }
}

fn accepted(answer: &WorkerAnswer<'_>, fields: Map<String, Value>) -> CallOutcome {
    if fields.contains_key("suspend") || fields.contains_key("error") {
        return answered(answer, fields);
    }
    suspended(answer, fields)
}

fn suspended(answer: &WorkerAnswer<'_>, mut fields: Map<String, Value>) -> CallOutcome {
    let recheck_ms = match fields.get("recheck_ms") {
        None | Some(Value::Null) => None,
        Some(ms) => match whole(ms) {
            Some(ms) => Some(ms),
            None => {
                let found = excerpt(&ms.to_string()).into_owned();
                return answer.unreadable(&format!("has `recheck_ms` {found}, not a number of milliseconds"));
            }
        },
    };
    CallOutcome::Suspended { memo: fields.remove("memo").unwrap_or_default(), recheck_ms }
}

fn refused(answer: &WorkerAnswer<'_>, fields: &Map<String, Value>) -> CallOutcome {
    let WorkerAnswer { worker, status, body, flaw: _, retry_after_ms } = answer;
    let retry_after_ms = retry_after_ms.filter(|_| matches!(status, 429 | 503));
    let said = match fields.get("error").filter(|error| !is_nothing(error)) {
        Some(error) => plain(error).into_owned(),
        None => excerpt(String::from_utf8_lossy(body).trim()).into_owned(),
    };
    let (retryable, remedy) = match status {
        300..=399 => (false, "; redirects are not followed: register the address it points to"),
        408 | 409 | 425 | 429 | 500..=599 => (true, ""),
        _ => (false, ""),
    };
    // These statuses ask for a retry: the same call may succeed a moment later.
    let kind = match status {
        408 | 425 | 429 | 502 | 503 | 504 => FaultKind::Transport,
        _ => FaultKind::Error,
    };
    let colon = if said.is_empty() { "" } else { ": " };
    let message = format!("worker `{worker}` answered {status}{colon}{said}{remedy}");
    CallOutcome::Failed(fault(message, kind, retryable, fields).after(retry_after_ms))
}

/// A worker's error; whether it can be tried again, and soon, is for the worker to say.
fn fault(message: String, kind: FaultKind, retryable: bool, fields: &Map<String, Value>) -> Fault {
    let kind = match fields.get("temporary").and_then(Value::as_bool) {
        Some(true) => FaultKind::Transport,
        Some(false) => FaultKind::Error,
        None => kind,
    };
    let fault = Fault::new(kind, message);
    let retryable = fields.get("retryable").and_then(Value::as_bool).unwrap_or(retryable);
    if retryable { fault } else { fault.permanent() }
}

fn is_nothing(error: &Value) -> bool {
    match error {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => false,
    }
}

fn whole(number: &Value) -> Option<u64> {
    let whole = number.as_u64();
    // A fraction is rounded and a cast saturates; anything but a number is rejected.
    whole.or_else(|| number.as_f64().filter(|ms| *ms >= 0.0).map(|ms| ms.round() as u64))
}

impl WorkerAnswer<'_> {
    fn fields(&self) -> Result<Map<String, Value>, CallOutcome> {
        if let Some(flaw) = self.flaw {
            return Err(self.unreadable(&format!("cannot be taken: {flaw}")));
        }
        match serde_json::from_slice(self.body) {
            Ok(Value::Object(fields)) => Ok(fields),
            Ok(other) => Err(self.unreadable(&format!("is {}, not an object", a_type(&other)))),
            Err(error) => {
                let text = String::from_utf8_lossy(self.body);
                Err(self.unreadable(&format!("is not json ({error}): {}", excerpt(text.trim()))))
            }
        }
    }

    fn unreadable(&self, what: &str) -> CallOutcome {
        let WorkerAnswer { worker, status, .. } = self;
        failed(FaultKind::Error, format!("the answer of worker `{worker}` ({status}) {what}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use windlass_engine::json::check_json;

    fn read(status: u16, body: &str) -> CallOutcome {
        read_all(status, body).0
    }

    fn read_all(status: u16, body: &str) -> (CallOutcome, Log) {
        let (flaw, body) = (check_json(body.as_bytes()).err(), body.as_bytes());
        let flaw = flaw.as_ref();
        read_answer(&WorkerAnswer { worker: "w", status, body, flaw, retry_after_ms: Some(3_000) })
    }

    fn failure(status: u16, body: &str) -> (String, bool) {
        match read(status, body) {
            CallOutcome::Failed(fault) => {
                let temporary = matches!(status, 408 | 425 | 429 | 502 | 503 | 504);
                assert_eq!(fault.kind == FaultKind::Transport, temporary);
                assert_eq!(fault.kind == FaultKind::Error, !temporary);
                assert_eq!(fault.retry_after_ms, matches!(status, 429 | 503).then_some(3_000));
                (fault.message, fault.retryable)
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_result_is_done() {
        assert_eq!(read(200, r#"{"result": 7, "error": ""}"#), CallOutcome::Done(Arc::new(json!(7))));
        assert_eq!(read(201, r#"{"result": [1], "error": null}"#), CallOutcome::Done(Arc::new(json!([1]))));
        for nothing in ["{}", r#"{"error": ""}"#, r#"{"result": null}"#] {
            assert_eq!(read(200, nothing), CallOutcome::Done(Arc::new(Value::Null)), "{nothing}");
        }
    }

    #[test]
    fn an_error_carries_the_words_of_the_worker_and_whether_to_retry() {
        assert_eq!(failure(200, r#"{"result": null, "error": "no ink"}"#), ("no ink".to_owned(), true));
        assert_eq!(failure(200, r#"{"error": "bad", "retryable": false}"#), ("bad".to_owned(), false));
        assert_eq!(failure(200, r#"{"error": {"code": 7}}"#), (r#"{"code":7}"#.to_owned(), true));
        assert!(failure(400, r#"{"error": "busy", "retryable": true}"#).1);
        assert!(!failure(500, r#"{"error": "hopeless", "retryable": false}"#).1);
    }

    #[test]
    fn a_worker_says_whether_a_fault_is_temporary() {
        let kind = |status, body: &str| match read(status, body) {
            CallOutcome::Failed(fault) => (fault.kind, fault.retryable),
            other => panic!("{other:?}"),
        };
        let slow = r#"{"error": "the provider is slow", "temporary": true}"#;
        assert_eq!(kind(200, slow), (FaultKind::Transport, true));
        assert_eq!(kind(400, slow), (FaultKind::Transport, false));
        assert_eq!(kind(503, r#"{"error": "full", "temporary": false}"#), (FaultKind::Error, true));
    }

    #[test]
    fn any_answer_may_bring_lines_for_people() {
        let logged = |status, body: &str| {
            let (outcome, log) = read_all(status, body);
            (outcome, log.lines.into_iter().map(|said| said.message).collect::<Vec<_>>())
        };
        let done = (CallOutcome::Done(Arc::new(json!(7))), vec!["a".to_owned()]);
        assert_eq!(logged(200, r#"{"result": 7, "logs": ["a"]}"#), done);
        assert_eq!(logged(200, r#"{"logs": ["a"]}"#).0, CallOutcome::Done(Arc::new(Value::Null)));
        let later = logged(202, r#"{"memo": 1, "logs": [{"message": "b"}]}"#);
        assert_eq!(
            later,
            (CallOutcome::Suspended { memo: json!(1), recheck_ms: None }, vec!["b".to_owned()])
        );
        assert_eq!(logged(500, r#"{"error": "no", "logs": ["c"]}"#).1, ["c"]);
        assert!(logged(200, r#"{"result": 7, "logs": 9}"#).1[0].contains("cannot be read"));
    }

    #[test]
    fn statuses_say_whether_to_try_again() {
        for status in [400, 401, 403, 404, 405, 410, 413, 422, 301, 302, 307, 308] {
            assert!(!failure(status, "no").1, "{status}");
        }
        for status in [408, 409, 425, 429, 500, 502, 503, 504, 599] {
            assert!(failure(status, "no").1, "{status}");
        }
        assert_eq!(failure(503, "").0, "worker `w` answered 503");
        assert_eq!(failure(500, r#"{"error": "boom"}"#).0, "worker `w` answered 500: boom");
        assert!(failure(302, "").0.contains("redirects are not followed"));
    }

    #[test]
    fn when_to_come_back_is_told_in_seconds_or_as_a_date() {
        let now = Timestamp(784_111_777_000);
        let read = |header| read_retry_after(header, now);
        assert_eq!((read("120"), read(" 0 ")), (Some(120_000), Some(0)));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:40 GMT"), Some(3_000));
        assert_eq!(read("Sun, 06 Nov 1994 08:49:30 GMT"), Some(0), "that has passed");
        assert_eq!(read("99999999999999999999"), None);
        assert_eq!(read("18446744073709551615"), Some(u64::MAX));
        assert_eq!((read("-1"), read("1.5"), read("soon"), read("")), (None, None, None, None));
    }

    #[test]
    fn a_call_is_suspended_by_the_body_or_by_the_status() {
        let suspended = |memo: Value, recheck_ms| CallOutcome::Suspended { memo, recheck_ms };
        let body = r#"{"suspend": {"memo": {"at": 3}, "recheck_ms": 500}}"#;
        assert_eq!(read(200, body), suspended(json!({"at": 3}), Some(500)));
        assert_eq!(read(202, body), suspended(json!({"at": 3}), Some(500)));
        assert_eq!(read(200, r#"{"suspend": {}}"#), suspended(Value::Null, None));
        assert_eq!(read(202, r#"{"memo": "m"}"#), suspended(json!("m"), None));
        assert_eq!(read(202, r#"{"memo": "m", "recheck_ms": 1e3}"#), suspended(json!("m"), Some(1_000)));
        assert_eq!(read(202, " "), suspended(Value::Null, None));
        assert_eq!(read(202, r#"{"recheck_ms": 0}"#), suspended(Value::Null, Some(0)));
        assert!(failure(202, r#"{"recheck_ms": "soon"}"#).0.contains("`recheck_ms` \"soon\""));
        assert!(failure(202, r#"{"recheck_ms": -5}"#).0.contains("-5"));
        assert!(failure(200, r#"{"suspend": true}"#).0.contains("a boolean"));
    }

    #[test]
    fn an_answer_that_two_readers_understand_differently_is_refused() {
        assert!(
            failure(200, r#"{"result": 1, "result": 2}"#).0.contains("result: the object has this key twice")
        );
        let large = failure(200, r#"{"result": {"n": 123456789012345678901}}"#).0;
        assert!(large.contains("result.n: the integer does not fit into 64 bits"), "{large}");
        let dense = format!("{{\"result\":[{}0]}}", "{\"a\":0},".repeat(400_000));
        assert!(failure(200, &dense).0.contains("bytes of memory"));
        assert!(failure(500, &dense).0.len() < 500);
    }

    #[test]
    fn an_answer_that_cannot_be_read_is_named() {
        assert!(failure(200, "<html>").0.contains("is not json"));
        assert!(failure(200, "<html>").0.contains("<html>"));
        assert!(failure(200, "").0.contains("is not json"));
        assert!(failure(200, "[1]").0.contains("is an array, not an object"));
        assert!(failure(200, r#"{"value": 1}"#).0.contains("neither `result` nor"));
        assert!(failure(202, "nope").0.contains("is not json"));
        let deep = format!("{}{}", r#"{"result":"#, "[".repeat(100_000));
        assert!(failure(200, &deep).0.len() < 500);
    }
}
