//! The HTTP server of a push worker: it answers `POST /exec/{service}`.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use axum::Json;
use axum::Router;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use reqwest::Url;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::Services;
use super::handler::{CallLogger, HandlerOutcome, ServiceCall};
use super::signature::SignatureCheck;
use super::slots::Slots;
use crate::contract::WorkerLogLine;

/// Bytes of one call.
const BODY_BYTES: usize = 8 << 20;
/// Calls that wait for a slot, for every slot; more are turned away.
const WAITING_PER_SLOT: usize = 16;

/// Binds the port of `url`, or a free one when that is taken, and says where the worker really is.
pub async fn bind(url: &str) -> io::Result<(TcpListener, String)> {
    let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
    let mut url = Url::parse(url).map_err(|error| wrong(format!("`{url}` is no address: {error}")))?;
    if url.scheme() != "http" {
        return Err(wrong(format!(
            "`{url}` cannot be served: write http://, and put a proxy in front for https"
        )));
    }
    let host = url.host_str().map(|host| host.trim_matches(['[', ']']).to_owned());
    let Some(host) = host else { return Err(wrong(format!("`{url}` names no host"))) };
    let port = url.port_or_known_default().unwrap_or(0);
    // The name in the address is how others reach this machine; it need not be one of its own.
    let mut bound = Err(io::Error::from(io::ErrorKind::AddrNotAvailable));
    for (host, port) in [(host.as_str(), port), (host.as_str(), 0), ("0.0.0.0", port), ("0.0.0.0", 0)] {
        bound = TcpListener::bind((host, port)).await;
        if bound.is_ok() {
            break;
        }
    }
    let listener = bound?;
    let real = listener.local_addr()?.port();
    url.set_port(Some(real)).map_err(|()| wrong(format!("`{url}` can have no port")))?;
    Ok((listener, url.as_str().trim_end_matches('/').to_owned()))
}

/// The state that all pushed calls share.
pub(super) struct PushState {
    services: Services,
    slots: Arc<Slots>,
    signatures: SignatureCheck,
    waiting_max: usize,
    /// Calls that are here now, those that wait included.
    n_here: AtomicUsize,
}

impl PushState {
    pub(super) fn new(services: Services, slots: Arc<Slots>, signatures: SignatureCheck) -> Self {
        PushState {
            services,
            signatures,
            waiting_max: slots.max().saturating_mul(WAITING_PER_SLOT),
            slots,
            n_here: AtomicUsize::new(0),
        }
    }

    /// Calls that are being answered.
    pub(super) fn load(&self) -> usize {
        self.n_here.load(Ordering::Relaxed)
    }
}

/// Serves calls until `stop`; then those that are here may finish.
pub(super) async fn serve(
    listener: TcpListener,
    push: Arc<PushState>,
    stop: CancellationToken,
) -> io::Result<()> {
    axum::serve(listener, router(push)).with_graceful_shutdown(stop.cancelled_owned()).await
}

fn router(push: Arc<PushState>) -> Router {
    Router::new()
        .route("/exec/{service}", post(exec))
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .with_state(push)
}

#[derive(Debug, Deserialize)]
struct PushedCall {
    #[serde(default)]
    input: Value,
    #[serde(default)]
    params: Value,
    #[serde(default)]
    memo: Option<Value>,
}

/// Counts a call until it is dropped.
struct CallGuard<'d>(&'d AtomicUsize);

impl Drop for CallGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

type PushResponse = (StatusCode, Json<Value>);

async fn exec(
    State(push): State<Arc<PushState>>,
    Path(service): Path<String>,
    headers: HeaderMap,
    body: axum::body::Bytes,
) -> PushResponse {
    if let Err(refusal) = push.signatures.check(&headers, &body) {
        // A retry can help: a secret is replaced at the server and at its workers one after the other.
        let body = json!({ "error": refusal.to_string(), "retryable": true });
        return (StatusCode::UNAUTHORIZED, Json(body));
    }
    let Some(handler) = push.services.of_service(&service) else {
        let known = push.services.names().collect::<Vec<_>>().join(", ");
        return error(
            StatusCode::NOT_FOUND,
            format!("there is no service `{service}` here; there are {known}"),
        );
    };
    let asked: PushedCall = match serde_json::from_slice(&body) {
        Ok(asked) => asked,
        Err(wrong) => return error(StatusCode::BAD_REQUEST, format!("the body is no call: {wrong}")),
    };
    let n_here = push.n_here.fetch_add(1, Ordering::Relaxed);
    let _here = CallGuard(&push.n_here);
    if n_here >= push.waiting_max {
        return error(StatusCode::TOO_MANY_REQUESTS, format!("{n_here} calls wait here already"));
    }
    let _slot = push.slots.push.take().await;
    // The server leaves a quarter of the slots of a worker with several services free of each of them.
    if push.slots.push.n_free().saturating_mul(4) <= push.slots.n() {
        push.slots.grow();
    }
    let call = call_of(service, &headers, asked);
    let logger = call.logger.clone();
    // A server that hangs up wants no answer: the call is canceled when this future is dropped.
    let _hung_up = call.cancel.clone().drop_guard();
    let outcome = handler.answer(call).await;
    answer(outcome, &logger.take())
}

fn call_of(service: String, headers: &HeaderMap, asked: PushedCall) -> ServiceCall {
    let word = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let number = |name: &str| word(name).and_then(|text| text.parse::<u64>().ok());
    let deadline = number("windlass-deadline").map(Duration::from_millis);
    ServiceCall {
        service,
        queue: None,
        run: word("windlass-run"),
        node: word("windlass-node"),
        call: word("windlass-call"),
        input: asked.input,
        params: asked.params,
        memo: asked.memo.filter(|memo| !memo.is_null()),
        key: word("idempotency-key").unwrap_or_default(),
        attempt: number("windlass-attempt").and_then(|n| u32::try_from(n).ok()).unwrap_or(1),
        priority: 0,
        deadline: deadline.and_then(|since| UNIX_EPOCH.checked_add(since)),
        cancel: CancellationToken::new(),
        logger: CallLogger::default(),
    }
}

fn answer(outcome: HandlerOutcome, logs: &[WorkerLogLine]) -> PushResponse {
    let (status, Json(mut body)) = in_words(outcome);
    if let (Value::Object(fields), false) = (&mut body, logs.is_empty()) {
        fields.insert("logs".to_owned(), json!(logs));
    }
    (status, Json(body))
}

fn in_words(outcome: HandlerOutcome) -> PushResponse {
    let ms = |recheck: Duration| u64::try_from(recheck.as_millis()).unwrap_or(u64::MAX);
    match outcome {
        HandlerOutcome::Done(result) => (StatusCode::OK, Json(json!({ "result": result, "error": "" }))),
        HandlerOutcome::Suspended { memo, recheck: Some(recheck) } => {
            let suspend = json!({ "memo": memo, "recheck_ms": ms(recheck) });
            (StatusCode::OK, Json(json!({ "suspend": suspend })))
        }
        HandlerOutcome::Suspended { memo, recheck: None } => {
            (StatusCode::ACCEPTED, Json(json!({ "memo": memo })))
        }
        HandlerOutcome::Failed { message, retryable, temporary } => {
            // An empty error would read as success.
            let message = if message.is_empty() { "it failed without a word".to_owned() } else { message };
            let mut body = json!({ "result": null, "error": message, "retryable": retryable });
            if temporary {
                body["temporary"] = json!(true);
            }
            (StatusCode::OK, Json(body))
        }
    }
}

fn error(status: StatusCode, message: String) -> PushResponse {
    (status, Json(json!({ "error": message })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_taken_port_gives_way_to_a_free_one() {
        let (first, url) = bind("http://127.0.0.1:0/").await.unwrap();
        let port = first.local_addr().unwrap().port();
        assert_eq!(url, format!("http://127.0.0.1:{port}"));
        let (second, other) = bind(&url).await.unwrap();
        assert_ne!(second.local_addr().unwrap().port(), port);
        assert_ne!(other, url);
    }

    #[tokio::test]
    async fn malformed_addresses_are_refused() {
        assert!(bind("localhost").await.is_err());
        assert!(bind("mailto:ann").await.is_err());
        assert!(bind("https://localhost:0").await.unwrap_err().to_string().contains("put a proxy"));
    }

    #[test]
    fn a_call_knows_what_its_end_is_reported_under() {
        let mut headers = HeaderMap::new();
        headers.insert("windlass-call", "run_1.4".parse().unwrap());
        let asked = PushedCall { input: Value::Null, params: Value::Null, memo: None };
        assert_eq!(call_of("s".to_owned(), &headers, asked).call.as_deref(), Some("run_1.4"));
    }

    #[test]
    fn outcomes_are_told_in_the_words_of_the_protocol() {
        let recheck = Some(Duration::from_millis(40));
        let (status, Json(body)) =
            answer(HandlerOutcome::Suspended { memo: json!({"job": 1}), recheck }, &[]);
        assert_eq!(
            (status, body),
            (StatusCode::OK, json!({"suspend": {"memo": {"job": 1}, "recheck_ms": 40}}))
        );
        let (status, Json(body)) = answer(HandlerOutcome::Suspended { memo: json!(7), recheck: None }, &[]);
        assert_eq!((status, body), (StatusCode::ACCEPTED, json!({"memo": 7})));
        let lines = [WorkerLogLine { message: "half".to_owned(), ..WorkerLogLine::default() }];
        let (_, Json(body)) = answer(HandlerOutcome::temporary("slow"), &lines);
        assert_eq!(body["temporary"], json!(true));
        assert_eq!(body["logs"], json!([{"level": "info", "message": "half"}]));
        let (_, Json(body)) = answer(HandlerOutcome::refused(""), &[]);
        assert_eq!(body["retryable"], json!(false));
        assert_ne!(body["error"], json!(""));
    }
}
