//! Checks of every request before its handler: the guard reads the body within limits of size and time, and refuses
//! pages of other origins.

mod body;
mod memory;

use std::collections::BTreeSet;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{MatchedPath, Request, State};
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hyper::body::Body as _;
use windlass_runtime::body_budget::BodyBudget;

use crate::Options;
use crate::audit;
use crate::ignored::IgnoredFields;
use crate::problem::{ApiError, Code};
use crate::scheduler;
use body::BodyReader;

pub(crate) use body::LARGE_BYTES;
pub(crate) use memory::RequestMemory;

/// Routes that take thousands of jobs or results at once; their bodies may be so many times as large as others.
const BATCHES: [&str; 4] =
    ["/api/v1/jobs", "/api/v1/jobs/finish", "/api/v1/jobs/exchange", "/api/v1/tasks/batch"];
const BATCH_TIMES: usize = 16;

/// The limits of one server.
#[derive(Clone)]
pub(crate) struct Guard {
    body_bytes_max: usize,
    bodies: BodyReader,
    /// Origins whose pages may ask for everything.
    origins: Arc<[String]>,
}

impl Guard {
    pub(crate) fn new(options: &Options, budget: BodyBudget) -> Self {
        Guard {
            body_bytes_max: options.body_bytes_max,
            bodies: BodyReader::new(options, budget),
            origins: options.cors.as_slice().into(),
        }
    }

    /// Whether a page of another origin sent the request and the setting `cors` does not name that origin. Browsers
    /// let any page send such a request; they only keep the answer from it.
    fn is_foreign(&self, method: &Method, headers: &HeaderMap) -> bool {
        let origin = headers.get(ORIGIN).map(|origin| origin.to_str().unwrap_or_default());
        if self.origins.iter().any(|allowed| allowed == "*" || origin == Some(allowed)) {
            return false;
        }
        if is(headers, "sec-fetch-site", "cross-site") {
            // A link in another page leads here by a navigation; all other cross-site requests come from its scripts
            // and its images.
            let is_navigation = *method == Method::GET && is(headers, "sec-fetch-mode", "navigate");
            return !is_navigation;
        }
        let Some(origin) = origin else { return false };
        if matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS) {
            return false;
        }
        let host = headers.get(HOST).and_then(|host| host.to_str().ok());
        let is_own = origin.split_once("://").is_some_and(|(_, name)| Some(name) == host);
        !is_own
    }
}

fn is(headers: &HeaderMap, name: &str, value: &str) -> bool {
    headers.get(name).is_some_and(|found| found.as_bytes().eq_ignore_ascii_case(value.as_bytes()))
}

/// Lets a request through, or answers it.
pub(crate) async fn check(State(guard): State<Guard>, request: Request, next: Next) -> Response {
    let form = ErrorForm::of(request.uri().path());
    let is_batch = BATCHES.contains(&request.uri().path());
    if guard.is_foreign(request.method(), request.headers()) {
        let detail = "the request comes from a page of another origin: allow it with the setting `cors`";
        return form.refuse(&ApiError::new(Code::CrossOrigin, detail));
    }
    let (mut parts, body) = request.into_parts();
    if body.is_end_stream() {
        return form.restate(next.run(Request::from_parts(parts, Body::empty())).await);
    }
    let most = guard.body_bytes_max.saturating_mul(if is_batch { BATCH_TIMES } else { 1 });
    match guard.bodies.read(&parts.headers, body, most).await {
        Ok((bytes, memory)) => {
            if let Some(slot) = parts.extensions.get::<audit::NotesSlot>() {
                slot.read(&bytes);
            }
            parts.extensions.insert(memory.clone());
            let handling = next.run(Request::from_parts(parts, Body::from(bytes)));
            let response = form.handle(async move { form.restate(handling.await) }).await;
            // Handlers have the values of the body until they answer; those that wait give memory back before.
            drop(memory);
            response
        }
        Err(error) => form.refuse(&error),
    }
}

/// Refuses a query on routes that read none. Health probes may have any query.
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

/// The form of a surface's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ErrorForm {
    /// `application/problem+json`.
    Problem,
    /// The same with the text beside it.
    ProblemWithText,
    /// `{"error": "text"}`.
    TextOnly,
}

/// Whether a path belongs to the queue platform surface.
pub(crate) fn is_platform(path: &str) -> bool {
    ErrorForm::of(path) == ErrorForm::ProblemWithText
}

/// Whether a path belongs to a surface that clients of other systems use.
pub(crate) fn is_compatible(path: &str) -> bool {
    ErrorForm::of(path) != ErrorForm::Problem
}

/// A refusal in the form of the surface that a path belongs to.
pub(crate) fn refuse(path: &str, error: &ApiError) -> Response {
    ErrorForm::of(path).refuse(error)
}

impl ErrorForm {
    /// The form of the surface that a path belongs to.
    fn of(path: &str) -> ErrorForm {
        const PLATFORM: [&str; 4] = ["/tasks", "/queues", "/schedules", "/workers"];
        let is_in = |bare: &str, prefix: &str| {
            bare.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        if let Some(bare) = path.strip_prefix("/api/v1").filter(|bare| bare.starts_with('/')) {
            let is_platform = PLATFORM.iter().any(|prefix| is_in(bare, prefix));
            return if is_platform { ErrorForm::ProblemWithText } else { ErrorForm::Problem };
        }
        if scheduler::owns_path(path) { ErrorForm::TextOnly } else { ErrorForm::Problem }
    }

    fn refuse(self, error: &ApiError) -> Response {
        match self {
            ErrorForm::Problem => error.clone().into_response(),
            ErrorForm::ProblemWithText => error.platform(),
            ErrorForm::TextOnly => error.plain(),
        }
    }

    /// The response of a handler; unknown fields of the body are named in its headers where they are ignored.
    async fn handle(self, handling: impl Future<Output = Response>) -> Response {
        match self {
            ErrorForm::ProblemWithText => {
                let ignored = IgnoredFields::default();
                let mut response = ignored.noted_in(handling).await;
                ignored.warn(response.headers_mut());
                response
            }
            ErrorForm::Problem | ErrorForm::TextOnly => handling.await,
        }
    }

    /// A refusal in this form; every other answer as it is.
    fn restate(self, mut response: Response) -> Response {
        if self == ErrorForm::Problem || response.status().is_success() {
            return response;
        }
        match response.extensions_mut().remove::<ApiError>() {
            Some(error) => self.refuse(&error),
            None => response,
        }
    }
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
            Guard::new(&Options { cors, ..Options::default() }, BodyBudget::default())
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
    fn a_cross_site_request_is_foreign_unless_it_is_a_link_or_its_origin_is_allowed() {
        let guard = |cors: &[&str]| {
            let cors = cors.iter().map(|origin| (*origin).to_owned()).collect();
            Guard::new(&Options { cors, ..Options::default() }, BodyBudget::default())
        };
        let with = |mode: &'static str| {
            let mut headers = headers("https://app.example", "localhost:8070");
            headers.insert("sec-fetch-site", HeaderValue::from_static("cross-site"));
            headers.insert("sec-fetch-mode", HeaderValue::from_static(mode));
            headers
        };
        let strict = guard(&[]);
        assert!(strict.is_foreign(&Method::GET, &with("cors")));
        assert!(strict.is_foreign(&Method::GET, &with("no-cors")));
        assert!(strict.is_foreign(&Method::POST, &with("navigate")));
        assert!(!strict.is_foreign(&Method::GET, &with("navigate")));
        assert!(!guard(&["https://app.example"]).is_foreign(&Method::GET, &with("cors")));
        assert!(!guard(&["*"]).is_foreign(&Method::POST, &with("cors")));
    }

    #[test]
    fn every_surface_has_its_own_form_of_errors() {
        for native in
            ["/api/v1/flows", "/healthz", "/docs", "/nowhere", "/tasksx", "/api/v1/tasksx", "/api/v1"]
        {
            assert_eq!(ErrorForm::of(native), ErrorForm::Problem, "{native}");
        }
        for platform in ["/api/v1/tasks", "/api/v1/queues/a/dlq", "/api/v1/schedules/x", "/api/v1/workers"] {
            assert_eq!(ErrorForm::of(platform), ErrorForm::ProblemWithText, "{platform}");
        }
        for other in ["/api/flows", "/flows/version", "/tasks", "/api/queue/poll", "/list", "/allocate"] {
            assert_eq!(ErrorForm::of(other), ErrorForm::TextOnly, "{other}");
        }
    }
}
