//! Calls to push workers: `POST <url>/exec/<service>` with `{"input", "params"[, "memo"]}`.
//!
//! Headers describe the call to the worker: `Windlass-Run`, `Windlass-Node`, `Windlass-Attempt`, `Windlass-Fence`,
//! `Windlass-Call` (the signed id for a later report, see [`crate::grant`]), `Windlass-Deadline` (milliseconds since
//! 1970, UTC) and `Idempotency-Key` (the same for every attempt). In their values, everything but visible ASCII, and
//! the percent sign, is percent-encoded.

use std::error::Error;
use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::redirect;
use reqwest::{Client, Response, Url};
use serde::Serialize;
use serde_json::Value;
use windlass_engine::effect::CallSpec;
use windlass_engine::function;
use windlass_engine::input::CallOutcome;
use windlass_engine::json::check_json;
use windlass_engine::limits::SHARED_BYTES;
use windlass_engine::params::Params;
use windlass_engine::retry::{DeliveryProgress, Fault, FaultKind};
use windlass_engine::text::excerpt;
use windlass_tls::rustls::ClientConfig;

use super::address::AddressPolicy;
use super::answer::{WorkerAnswer, read_answer, read_retry_after};
use super::signature::sign;
use super::{CallLimit, failed, failed_for_good};
use crate::Settings;
use crate::body_budget::{BodyMemory, NoBodyMemory};
use crate::calls::Calls;
use crate::calls::log::Log;
use crate::part::RuntimePart;
use crate::workers::{ChosenWorker, NoWorker, PermitError, WorkerPermit};

/// How long a connection may take: a worker that is not there is found out before the attempt's time is up.
const CONNECT: Duration = Duration::from_secs(10);
/// How long a connection is kept for the next call. Common HTTP servers close theirs after five seconds; one that is
/// closed while the next call goes out would cost an attempt.
const IDLE: Duration = Duration::from_secs(4);
/// Bytes of an answer: as many as a run can store.
pub(super) const ANSWER_BYTES_MAX: usize = SHARED_BYTES;

/// Larger answers are parsed on a blocking thread.
const LARGE_BYTES: usize = 256 << 10;

/// A client without redirects and proxies, which connects to allowed addresses only.
pub(super) fn client(settings: &Settings) -> Client {
    Client::builder()
        .tls_backend_preconfigured(ClientConfig::clone(&settings.worker_tls))
        .dns_resolver(AddressPolicy::of(settings))
        .redirect(redirect::Policy::none())
        .no_proxy()
        .connect_timeout(CONNECT)
        .pool_idle_timeout(IDLE)
        .pool_max_idle_per_host(settings.worker_calls_max)
        .user_agent(concat!("windlass/", env!("CARGO_PKG_VERSION")))
        .build()
        .expect("the configuration of TLS is of the version that the client uses")
}

/// An answer as it came.
struct HttpAnswer {
    status: u16,
    retry_after_ms: Option<u64>,
    body: Vec<u8>,
    /// The memory that the body holds.
    memory: BodyMemory,
}

/// The reason why there is no body.
enum BodyFault {
    TooLarge,
    NoMemory(NoBodyMemory),
    Broken(reqwest::Error),
}

#[derive(Serialize)]
struct CallBody<'o> {
    input: &'o Value,
    params: &'o Params,
    #[serde(skip_serializing_if = "Option::is_none")]
    memo: Option<&'o Value>,
}

impl Calls {
    /// Calls a worker of the order's service; returns the outcome and sets the worker's id.
    pub(super) async fn call_worker(
        &self,
        spec: &CallSpec,
        limit: CallLimit,
        worker: &OnceLock<String>,
    ) -> (CallOutcome, Log) {
        let in_time = tokio::time::timeout_at(limit.ends_at, self.find_and_call(spec, limit, worker)).await;
        in_time.unwrap_or_else(|_| {
            let (service, ms) = (&spec.service, limit.ms());
            let message = match worker.get() {
                Some(id) => format!("worker `{id}` did not answer `{service}` within {ms} ms"),
                None => format!("no worker of service `{service}` was free within {ms} ms"),
            };
            (failed(FaultKind::Timeout, message), Log::default())
        })
    }

    async fn find_and_call(
        &self,
        spec: &CallSpec,
        limit: CallLimit,
        worker: &OnceLock<String>,
    ) -> (CallOutcome, Log) {
        let (service, workers) = (&spec.service, self.workers());
        let mut permit = match WorkerPermit::ask(&workers, spec).await {
            Ok(permit) => permit,
            Err(PermitError::NoWorker(reason)) => return (none_for(service, reason), Log::default()),
            Err(PermitError::Runtime(error)) => {
                let message = format!("workers of service `{service}` cannot be looked up: {error}");
                return (failed(FaultKind::NoWorker, message), Log::default());
            }
        };
        let chosen = match permit.worker().await {
            Ok(chosen) => chosen,
            Err(nobody) => return (none_for(service, nobody), Log::default()),
        };
        if !self.cluster().may_call() {
            // It waited for so long that others may have made the call already.
            return (CallOutcome::ServerLost, Log::default());
        }
        if !self.state().open.take_in_hand(spec.run, spec.fence) {
            return (CallOutcome::Canceled, Log::default());
        }
        let _ = worker.set(chosen.id.clone());
        let (mut outcome, log) = match self.ask(spec, limit, &chosen).await {
            Ok(answer) => read_within_memory(&chosen.id, answer).await,
            Err(outcome) => (outcome, Log::default()),
        };
        if let CallOutcome::Failed(fault) = &mut outcome {
            fault.delivery.has_other_worker = workers.has_other_worker(spec, &chosen.id);
        }
        (outcome, log)
    }

    /// The answer of a worker, or the outcome if there is no answer.
    async fn ask(
        &self,
        spec: &CallSpec,
        limit: CallLimit,
        worker: &ChosenWorker,
    ) -> Result<HttpAnswer, CallOutcome> {
        let id = &worker.id;
        let url = target(AddressPolicy::of(self.settings()), &worker.url, &spec.service)?;
        let body = CallBody { input: &spec.input, params: &spec.params, memo: spec.memo.as_deref() };
        let body = match serde_json::to_vec(&body) {
            Ok(body) => body,
            Err(error) => {
                let message = format!("the input for `{}` cannot be written as json: {error}", spec.service);
                return Err(failed_for_good(FaultKind::Input, message));
            }
        };
        let call = self.grants().signed(spec.run, spec.fence);
        let mut headers = headers(spec, limit, call);
        if let Some(secret) = worker.secret.clone().or_else(|| self.service_secret(&spec.service)) {
            let signed = sign(&secret, &delivery_id(spec), self.clock().wall(), &body);
            let unsigned = |reason| failed_for_good(FaultKind::Error, format!("worker `{id}`: {reason}"));
            headers.extend(signed.map_err(unsigned)?);
        }
        let request = self.state().client.post(url).headers(headers).body(body);
        let response = match request.send().await {
            Ok(response) => response,
            Err(error) if error.is_connect() => {
                let why = innermost(&error);
                let message = format!("worker `{id}` cannot be reached at {}: {why}", worker.url);
                let fault = Fault::new(FaultKind::Transport, message);
                return Err(CallOutcome::Failed(fault.undelivered(DeliveryProgress::NotSent)));
            }
            Err(error) => return Err(broken(id, &error)),
        };
        let status = response.status().as_u16();
        let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after_ms = retry_after.and_then(|header| read_retry_after(header, self.clock().now()));
        let mut memory = self.ctx().bodies.begin();
        match read_body(response, &mut memory).await {
            Ok(body) => Ok(HttpAnswer { status, retry_after_ms, body, memory }),
            Err(BodyFault::TooLarge) => Err(failed_for_good(
                FaultKind::Error,
                format!("worker `{id}` answered with more than {ANSWER_BYTES_MAX} bytes: answer with less"),
            )),
            Err(BodyFault::NoMemory(reason)) => Err(no_memory(id, reason)),
            Err(BodyFault::Broken(error)) => Err(broken(id, &error)),
        }
    }
}

/// Reads an answer, once there is memory for its values.
async fn read_within_memory(worker: &str, answer: HttpAnswer) -> (CallOutcome, Log) {
    let HttpAnswer { status, retry_after_ms, body, mut memory } = answer;
    let flaw = match check_json(&body) {
        Ok(tree_bytes) => match memory.complete(body.len().saturating_add(tree_bytes)).await {
            Ok(()) => None,
            Err(reason) => return (no_memory(worker, reason), Log::default()),
        },
        Err(flaw) => Some(flaw),
    };
    let name = worker.to_owned();
    let is_large = body.len() > LARGE_BYTES;
    let read = move || {
        let answer = WorkerAnswer { worker: &name, status, body: &body, flaw: flaw.as_ref(), retry_after_ms };
        let read = read_answer(&answer);
        // Held by the work and not by its caller, who leaves when the call's time is up.
        drop(memory);
        read
    };
    if !is_large {
        return read();
    }
    let read = tokio::task::spawn_blocking(read).await;
    read.unwrap_or_else(|_| {
        let message = format!("the answer of worker `{worker}` could not be read: see the server's log");
        (failed(FaultKind::Error, message), Log::default())
    })
}

fn no_memory(worker: &str, reason: NoBodyMemory) -> CallOutcome {
    failed(FaultKind::Transport, format!("the answer of worker `{worker}` could not be taken: {reason}"))
}

fn none_for(service: &str, nobody: NoWorker) -> CallOutcome {
    let service = excerpt(service);
    let message = match nobody {
        NoWorker::NoneAlive => {
            let remedy = if function::NAMES.contains(&service.as_ref()) {
                format!("start one with `windlass worker --services {service}`")
            } else {
                "start the worker that you wrote for it; for a pull worker, set `exec_type: queue` on the node".to_owned()
            };
            format!("no worker for service `{service}`: {remedy}")
        }
        NoWorker::QueueFull { n_waiting } => {
            format!("{n_waiting} calls already wait for service `{service}`: start more workers")
        }
    };
    failed(FaultKind::NoWorker, message)
}

fn broken(worker: &str, error: &reqwest::Error) -> CallOutcome {
    let message = format!("the connection to worker `{worker}` broke: {}", innermost(error));
    if error.is_timeout() {
        return failed(FaultKind::Timeout, message);
    }
    CallOutcome::Failed(Fault::new(FaultKind::Transport, message).undelivered(DeliveryProgress::Sent))
}

/// The URL of the call. The address is checked again: a server with other settings may have stored it.
fn target(policy: AddressPolicy, base: &str, service: &str) -> Result<Url, CallOutcome> {
    if matches!(service, "" | "." | "..") {
        let message = format!("service `{service}` cannot be part of a url: give it another name");
        return Err(failed_for_good(FaultKind::Error, message));
    }
    policy.read(base).map_err(|reason| failed(FaultKind::Transport, reason))?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~');
    let url = format!("{}/exec/{}", base.trim().trim_end_matches('/'), escaped(service, is_plain));
    Url::parse(&url).map_err(|error| failed(FaultKind::Transport, format!("url `{url}`: {error}")))
}

fn headers(spec: &CallSpec, limit: CallLimit, call: String) -> HeaderMap {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
    let told = [
        ("windlass-run", spec.run.to_string()),
        ("windlass-node", escaped(spec.node.as_str(), is_plain)),
        ("windlass-attempt", spec.attempt.to_string()),
        ("windlass-fence", spec.fence.to_string()),
        ("windlass-call", call),
        ("windlass-deadline", limit.deadline.0.to_string()),
        ("idempotency-key", escaped(&spec.key, is_plain)),
    ];
    let named = told.into_iter().map(|(name, value)| {
        let value = HeaderValue::try_from(value).expect("only visible ASCII is left");
        (HeaderName::from_static(name), value)
    });
    let content = (CONTENT_TYPE, HeaderValue::from_static("application/json"));
    named.chain([content]).collect()
}

/// The id of one delivery in its signature: another one for each attempt.
fn delivery_id(spec: &CallSpec) -> String {
    format!("{}_{}", spec.run, spec.fence)
}

fn escaped(text: &str, is_plain: impl Fn(u8) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if is_plain(byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

/// The whole body, if it is not larger than an answer may be.
async fn read_body(mut response: Response, memory: &mut BodyMemory) -> Result<Vec<u8>, BodyFault> {
    if response.content_length().is_some_and(|length| length > ANSWER_BYTES_MAX as u64) {
        return Err(BodyFault::TooLarge);
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(BodyFault::Broken)? {
        if body.len() + chunk.len() > ANSWER_BYTES_MAX {
            return Err(BodyFault::TooLarge);
        }
        memory.grow_to(body.len() + chunk.len()).await.map_err(BodyFault::NoMemory)?;
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// The innermost cause: the outer errors only wrap it.
fn innermost(error: &reqwest::Error) -> String {
    let mut deepest: &dyn Error = error;
    while let Some(source) = deepest.source() {
        deepest = source;
    }
    deepest.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_of_any_name_is_one_segment_of_the_path() {
        let policy = AddressPolicy::of(&crate::Settings::default());
        let at = |base, service| target(policy, base, service).map(|url| url.to_string());
        assert_eq!(at("http://127.0.0.1:9/", "sum").unwrap(), "http://127.0.0.1:9/exec/sum");
        assert_eq!(
            at("http://localhost/base//", "a/b?c#d").unwrap(),
            "http://localhost/base/exec/a%2Fb%3Fc%23d"
        );
        assert_eq!(at("http://localhost", "../é").unwrap(), "http://localhost/exec/..%2F%C3%A9");
        assert!(at("http://localhost", "..").is_err());
        assert!(at("http://localhost", "").is_err());
        assert!(at("http://169.254.169.254", "sum").is_err());
    }

    #[test]
    fn a_header_keeps_its_line() {
        let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'%';
        assert_eq!(escaped("fe/3", is_plain), "fe/3");
        assert_eq!(escaped("a\r\nX: y 100%", is_plain), "a%0D%0AX:%20y%20100%25");
    }
}
