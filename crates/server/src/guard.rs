//! What every request goes through before it reaches a handler: its body is read to its end, within limits of size
//! and time, and a page of another origin is kept out.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{CONTENT_LENGTH, HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::{Body as _, Frame};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::Options;
use crate::audit;
use crate::problem::{ApiError, Code};

/// How much of a body that is too large is read and thrown away, so that its sender reads the answer instead of a
/// broken connection; and how long that may take.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN: Duration = Duration::from_secs(10);
/// What a body may hold before it counts against what all bodies may hold together.
const SMALL_BYTES: usize = 64 << 10;
/// Tasks come in batches of ten thousand, and their body may be so many times as large as another.
const BATCH: &str = "/api/v1/tasks/batch";
const BATCH_TIMES: usize = 16;
/// What all bodies that are not small may hold together, in KiB.
const ALL_KIB: usize = 256 << 10;

/// The limits of one server.
#[derive(Clone)]
pub(crate) struct Guard {
    body_bytes_max: usize,
    /// How long a body may be silent.
    silence: Duration,
    /// Origins whose pages may ask for everything.
    origins: Arc<[String]>,
    room: Arc<Semaphore>,
}

impl Guard {
    pub(crate) fn new(options: &Options) -> Self {
        Guard {
            body_bytes_max: options.body_bytes_max,
            silence: options.body_timeout,
            origins: options.cors.as_slice().into(),
            room: Arc::new(Semaphore::new(ALL_KIB)),
        }
    }

    /// Whether a page of another origin asks for a change, and nobody said that it may. Browsers let any page send
    /// such a request; they only keep the answer from it.
    fn is_foreign(&self, method: &Method, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(ORIGIN) else { return false };
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return false;
        }
        let Ok(origin) = origin.to_str() else { return true };
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_own = origin.split_once("://").is_some_and(|(_, name)| Some(name) == host);
        !is_own && !self.origins.iter().any(|allowed| allowed == "*" || allowed == origin)
    }

    /// Reads a body to its end, and holds room for it.
    async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        most: usize,
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), ApiError> {
        let declared =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let mut body = body;
        if declared.is_some_and(|length| length > most) {
            drain(&mut body, self.silence).await;
            return Err(too_large(most));
        }
        let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(SMALL_BYTES));
        let mut held: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = next(&mut body, self.silence).await? {
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len().saturating_add(data.len()) > most {
                drain(&mut body, self.silence).await;
                return Err(too_large(most));
            }
            bytes.extend_from_slice(&data);
            if bytes.len() > SMALL_BYTES {
                self.hold(&mut held, bytes.len())?;
            }
        }
        Ok((bytes.into(), held))
    }

    fn hold(&self, held: &mut Option<OwnedSemaphorePermit>, bytes: usize) -> Result<(), ApiError> {
        let has = held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let more = u32::try_from(bytes.div_ceil(1 << 10).saturating_sub(has)).unwrap_or(u32::MAX);
        let more = self.room.clone().try_acquire_many_owned(more).map_err(|_| {
            let detail = "too many large bodies are read at once: try again in a second";
            ApiError::new(Code::Busy, detail).retry_after(Duration::from_secs(1))
        })?;
        match held {
            Some(held) => held.merge(more),
            None => *held = Some(more),
        }
        Ok(())
    }
}

fn too_large(most: usize) -> ApiError {
    let detail = format!("the body is larger than {most} bytes: send less, or a reference to it");
    ApiError::new(Code::TooLarge, detail)
}

/// Lets a request through, or answers it.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let form = Form::of(request.uri().path());
    let is_batch = request.uri().path() == BATCH;
    if guard.is_foreign(request.method(), request.headers()) {
        let detail = "the request comes from a page of another origin: allow it with the setting `cors`";
        return form.refuse(&ApiError::new(Code::CrossOrigin, detail));
    }
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return form.restate(next.run(Request::from_parts(parts, Body::empty())).await);
    }
    let most = guard.body_bytes_max.saturating_mul(if is_batch { BATCH_TIMES } else { 1 });
    match guard.read(&parts.headers, body, most).await {
        // Room is given back when the request has been answered: until then its body is in memory.
        Ok((bytes, _held)) => {
            if let Some(slot) = parts.extensions.get::<audit::Slot>() {
                slot.read(&bytes);
            }
            form.restate(next.run(Request::from_parts(parts, Body::from(bytes))).await)
        }
        Err(error) => form.refuse(&error),
    }
}

/// Refuses a query where nobody would read it. Probes of the server's health may carry what they like.
pub(crate) async fn check_query(
    State(asking): State<Arc<BTreeSet<String>>>,
    request: Request,
    next: Next,
) -> Response {
    let query = request.uri().query().unwrap_or_default();
    if query.is_empty() {
        return next.run(request).await;
    }
    let matched = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    if !matched.starts_with("/api/v1/") || asking.contains(&format!("{} {matched}", request.method())) {
        return next.run(request).await;
    }
    let name: String = query.split(['=', '&']).next().unwrap_or_default().chars().take(80).collect();
    ApiError::field(Code::BadQuery, format!("?{name}"), "nothing is read from the query here: leave it out")
        .into_response()
}

/// How a surface says what went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// `application/problem+json`.
    Native,
    /// The same with the text beside it.
    Platform,
    /// `{"error": "text"}`.
    Scheduler,
}

/// Whether a path belongs to the queue platform surface.
pub(crate) fn is_platform(path: &str) -> bool {
    Form::of(path) == Form::Platform
}

/// A refusal in the form of the surface that a path belongs to.
pub(crate) fn refuse(path: &str, error: &ApiError) -> Response {
    Form::of(path).refuse(error)
}

impl Form {
    /// The form of the surface that a path belongs to.
    fn of(path: &str) -> Form {
        const PLATFORM: [&str; 4] = ["/tasks", "/queues", "/schedules", "/workers"];
        const SCHEDULER: [&str; 8] =
            ["/flows", "/tasks", "/workers", "/queue", "/register", "/heartbeat", "/list", "/allocate"];
        let is_in = |bare: &str, prefix: &str| {
            bare.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(bare) = path.strip_prefix("/api/v1").filter(|bare| bare.starts_with('/')) {
            let is_platform = PLATFORM.iter().any(|prefix| is_in(bare, prefix));
            return if is_platform { Form::Platform } else { Form::Native };
        }
        let bare = path.strip_prefix("/api").unwrap_or(path);
        if SCHEDULER.iter().any(|prefix| is_in(bare, prefix)) { Form::Scheduler } else { Form::Native }
    }

    fn refuse(self, error: &ApiError) -> Response {
        match self {
            Form::Native => error.clone().into_response(),
            Form::Platform => error.platform(),
            Form::Scheduler => error.plain(),
        }
    }

    /// A refusal in this form; every other answer as it is.
    fn restate(self, mut response: Response) -> Response {
        if self == Form::Native || response.status().is_success() {
            return response;
        }
        match response.extensions_mut().remove::<ApiError>() {
            Some(error) => self.refuse(&error),
            None => response,
        }
    }
}

async fn next(body: &mut Body, silence: Duration) -> Result<Option<Frame<Bytes>>, ApiError> {
    let frame = poll_fn(|context| Pin::new(&mut *body).poll_frame(context));
    match timeout(silence, frame).await {
        Ok(None) => Ok(None),
        Ok(Some(Ok(frame))) => Ok(Some(frame)),
        Ok(Some(Err(_))) => Err(ApiError::new(Code::MalformedJson, "the body ended before it was complete")),
        Err(_) => {
            let detail = format!("no byte of the body came for {} ms: send it again", silence.as_millis());
            Err(ApiError::new(Code::SlowBody, detail))
        }
    }
}

/// Reads on and throws away, within bounds.
async fn drain(body: &mut Body, silence: Duration) {
    let read = async {
        let mut n_bytes = 0usize;
        while let Ok(Some(frame)) = next(body, silence).await {
            n_bytes = n_bytes.saturating_add(frame.into_data().map_or(0, |data| data.len()));
            if n_bytes > DRAIN_BYTES {
                return;
            }
        }
    };
    // Whoever is slower than that gets a broken connection.
    drop(timeout(DRAIN, read).await);
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn headers(origin: &'static str, host: &'static str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(ORIGIN, HeaderValue::from_static(origin));
        headers.insert(HOST, HeaderValue::from_static(host));
        headers
    }

    #[test]
    fn a_page_of_another_origin_changes_nothing_unless_it_may() {
        let guard = |origins: &[&str]| {
            let cors = origins.iter().map(|origin| (*origin).to_owned()).collect();
            Guard::new(&Options { cors, ..Options::default() })
        };
        let strict = guard(&[]);
        assert!(strict.is_foreign(&Method::POST, &headers("https://evil.example", "localhost:8070")));
        assert!(strict.is_foreign(&Method::POST, &headers("null", "localhost:8070")));
        assert!(!strict.is_foreign(&Method::GET, &headers("https://evil.example", "localhost:8070")));
        assert!(!strict.is_foreign(&Method::POST, &headers("http://localhost:8070", "localhost:8070")));
        assert!(!strict.is_foreign(&Method::POST, &HeaderMap::new()));
        let open = guard(&["https://app.example"]);
        assert!(!open.is_foreign(&Method::POST, &headers("https://app.example", "localhost:8070")));
        assert!(open.is_foreign(&Method::POST, &headers("https://app.example.evil", "localhost:8070")));
        assert!(!guard(&["*"]).is_foreign(&Method::POST, &headers("https://any", "localhost")));
    }

    #[test]
    fn every_surface_has_its_own_form_of_errors() {
        for native in
            ["/api/v1/flows", "/healthz", "/docs", "/nowhere", "/tasksx", "/api/v1/tasksx", "/api/v1"]
        {
            assert_eq!(Form::of(native), Form::Native, "{native}");
        }
        for platform in ["/api/v1/tasks", "/api/v1/queues/a/dlq", "/api/v1/schedules/x", "/api/v1/workers"] {
            assert_eq!(Form::of(platform), Form::Platform, "{platform}");
        }
        for other in ["/api/flows", "/flows/version", "/tasks", "/api/queue/poll", "/list", "/allocate"] {
            assert_eq!(Form::of(other), Form::Scheduler, "{other}");
        }
    }

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_give_it_back() {
        let guard = Guard {
            room: Arc::new(Semaphore::new(100)),
            ..Guard::new(&Options { body_bytes_max: 1 << 20, ..Options::default() })
        };
        let large = || Body::from(vec![b' '; 80 << 10]);
        let first = guard.read(&HeaderMap::new(), large(), 1 << 20).await.unwrap();
        assert_eq!(guard.read(&HeaderMap::new(), large(), 1 << 20).await.unwrap_err().code(), Code::Busy);
        drop(first);
        assert!(guard.read(&HeaderMap::new(), large(), 1 << 20).await.is_ok());
        let huge = Body::from(vec![b' '; (1 << 20) + 1]);
        assert_eq!(guard.read(&HeaderMap::new(), huge, 1 << 20).await.unwrap_err().code(), Code::TooLarge);
    }
}
