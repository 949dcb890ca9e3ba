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
use crate::problem::{ApiError, Code};

/// How much of a body that is too large is read and thrown away, so that its sender reads the answer instead of a
/// broken connection; and how long that may take.
const DRAIN_BYTES: usize = 64 << 20;
const DRAIN: Duration = Duration::from_secs(10);
/// What a body may hold before it counts against what all bodies may hold together.
const SMALL_BYTES: usize = 64 << 10;
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
    ) -> Result<(Bytes, Option<OwnedSemaphorePermit>), ApiError> {
        let declared =
            headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
        let mut body = body;
        if declared.is_some_and(|length| length > self.body_bytes_max) {
            drain(&mut body, self.silence).await;
            return Err(self.too_large());
        }
        let mut bytes = Vec::with_capacity(declared.unwrap_or(0).min(SMALL_BYTES));
        let mut held: Option<OwnedSemaphorePermit> = None;
        while let Some(frame) = next(&mut body, self.silence).await? {
            let Ok(data) = frame.into_data() else { continue };
            if bytes.len().saturating_add(data.len()) > self.body_bytes_max {
                drain(&mut body, self.silence).await;
                return Err(self.too_large());
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

    fn too_large(&self) -> ApiError {
        let detail =
            format!("the body is larger than {} bytes: send less, or a reference to it", self.body_bytes_max);
        ApiError::new(Code::TooLarge, detail)
    }
}

/// Lets a request through, or answers it.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let native = is_native(request.uri().path());
    let refuse = |error: ApiError| if native { error.into_response() } else { error.plain() };
    if guard.is_foreign(request.method(), request.headers()) {
        let detail = "the request comes from a page of another origin: allow it with the setting `cors`";
        return refuse(ApiError::new(Code::CrossOrigin, detail));
    }
    let (parts, body) = request.into_parts();
    if body.is_end_stream() {
        return next.run(Request::from_parts(parts, Body::empty())).await;
    }
    match guard.read(&parts.headers, body).await {
        // Room is given back when the request has been answered: until then its body is in memory.
        Ok((bytes, _held)) => next.run(Request::from_parts(parts, Body::from(bytes))).await,
        Err(error) => refuse(error),
    }
}

/// Refuses a query where nobody would read it. Probes of the server's health may carry what they like.
pub(crate) async fn check_query(
    State(asking): State<Arc<BTreeSet<String>>>,
    request: Request,
    next: Next,
) -> Response {
    let matched = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let query = request.uri().query().unwrap_or_default();
    let is_read =
        !matched.starts_with("/api/v1/") || asking.contains(&format!("{} {matched}", request.method()));
    if query.is_empty() || is_read {
        return next.run(request).await;
    }
    let name: String = query.split(['=', '&']).next().unwrap_or_default().chars().take(80).collect();
    ApiError::field(Code::BadQuery, format!("?{name}"), "nothing is read from the query here: leave it out")
        .into_response()
}

/// Whether a path speaks the native surface: the others have their own form of errors.
pub(crate) fn is_native(path: &str) -> bool {
    const OTHER: [&str; 7] = ["/flows", "/tasks", "/workers", "/queue", "/register", "/heartbeat", "/list"];
    let bare = path.strip_prefix("/api").unwrap_or(path);
    let inside =
        |prefix: &str| bare.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    !(OTHER.iter().any(|prefix| inside(prefix)) || inside("/allocate"))
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
        for native in ["/api/v1/flows", "/healthz", "/docs", "/nowhere", "/tasksx"] {
            assert!(is_native(native), "{native}");
        }
        for other in ["/api/flows", "/flows/version", "/tasks", "/api/queue/poll", "/list"] {
            assert!(!is_native(other), "{other}");
        }
    }

    #[tokio::test]
    async fn large_bodies_wait_for_room_and_give_it_back() {
        let guard = Guard {
            room: Arc::new(Semaphore::new(100)),
            ..Guard::new(&Options { body_bytes_max: 1 << 20, ..Options::default() })
        };
        let large = || Body::from(vec![b' '; 80 << 10]);
        let first = guard.read(&HeaderMap::new(), large()).await.unwrap();
        assert_eq!(guard.read(&HeaderMap::new(), large()).await.unwrap_err().code(), Code::Busy);
        drop(first);
        assert!(guard.read(&HeaderMap::new(), large()).await.is_ok());
        let huge = Body::from(vec![b' '; (1 << 20) + 1]);
        assert_eq!(guard.read(&HeaderMap::new(), huge).await.unwrap_err().code(), Code::TooLarge);
    }
}
