//! The HTTP server over the runtime: the native surface and the queue platform surface under `/api/v1`, and the scheduler
//! surface. Handlers decide nothing and store nothing: they read a request, call the runtime or the store, and translate
//! the result.

mod access;
mod app;
mod audit;
mod check;
mod console;
pub mod descriptors;
mod extract;
mod fields;
mod guard;
mod host;
mod ignored;
mod job;
mod listen;
mod live;
mod native;
mod openapi;
mod platform;
mod prefix;
pub mod problem;
pub mod scheduler;
mod shape;
mod warning;

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request};
use axum::http::{HeaderValue, Method, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tokio_util::sync::CancellationToken;
use tower::Layer;
use tower_http::cors::{AllowOrigin, CorsLayer};
use windlass_runtime::Runtime;
use windlass_tls::ServerTls;

use access::AccessTable;
use app::App;
use audit::Audit;
use guard::Guard;
use host::HostCheck;
use problem::{ApiError, Code};

pub use listen::client::Network;
pub use listen::serve;

/// The header that names a request and its response.
const REQUEST_ID: header::HeaderName = header::HeaderName::from_static("x-request-id");

/// Options of the HTTP server.
#[derive(Debug, Clone)]
pub struct Options {
    /// Names under which the server answers, beside IP addresses, `localhost` and the machine's own name.
    pub hosts: Vec<String>,
    /// Origins whose pages may use the server from a browser; `*` = all. The server's own always may.
    pub cors: Vec<String>,
    /// Bytes of a request's body.
    pub body_bytes_max: usize,
    /// Connections at once; more wait until there is room.
    pub connections_max: usize,
    /// Connections of one address at once, or requests behind a trusted proxy; 0 = no limit. Loopback has none.
    pub connections_per_address_max: usize,
    /// Proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<Network>,
    /// How long a client may take for the head of a request that it has begun.
    pub head_timeout: Duration,
    /// How long the body of a request may be silent.
    pub body_timeout: Duration,
    /// How long the body of a request may take.
    pub body_total_timeout: Duration,
    /// Bytes of a body in a second, on average, once it has taken longer than it may be silent.
    pub body_rate_min: usize,
    /// How long a client may take nothing of its answer.
    pub write_timeout: Duration,
    /// How long a connection may be kept open without a request.
    pub idle_timeout: Duration,
    /// How long connections may take to end once the server stops listening.
    pub grace: Duration,
    /// Flows that a person may publish for a first look around.
    pub examples: Vec<ExampleFlow>,
    /// The certificate of the listener; `None` = plain HTTP.
    pub tls: Option<Arc<ServerTls>>,
}

/// A flow with the text of its definition.
#[derive(Debug, Clone)]
pub struct ExampleFlow {
    pub name: String,
    pub text: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            hosts: Vec::new(),
            cors: Vec::new(),
            body_bytes_max: 4 << 20,
            connections_max: 10_000,
            connections_per_address_max: 1_000,
            trusted_proxies: Vec::new(),
            head_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(15),
            body_total_timeout: Duration::from_secs(120),
            body_rate_min: 1 << 10,
            write_timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(60),
            grace: Duration::from_secs(10),
            examples: Vec::new(),
            tls: None,
        }
    }
}

/// Every route of every surface.
pub fn router(runtime: Runtime, options: Options) -> Router {
    build(runtime, &options, CancellationToken::new())
}

/// The OpenAPI document of every surface.
pub fn openapi() -> serde_json::Value {
    openapi::document(native::routes().merge(platform::routes()).into_openapi())
}

fn build(runtime: Runtime, options: &Options, closing: CancellationToken) -> Router {
    let app = App::new(runtime.clone(), closing, &options.examples);
    let guard = Guard::new(options, runtime.bodies().clone());
    let audit = Audit::new(runtime.clone(), app.hub.clone());
    let (ids, access, keys) = (app.clone(), Arc::new(AccessTable::new()), runtime.clone());
    let (native, document) = native::routes().merge(platform::routes()).split_for_parts();
    let document = openapi::document(document);
    let asking = Arc::new(openapi::asking(&document));
    let router = native
        .with_state(app)
        .route_layer(middleware::from_fn_with_state(asking, guard::check_query))
        .merge(openapi::routes(document))
        .merge(console::routes())
        .nest("/api", scheduler::prefixed(runtime.clone()))
        .merge(scheduler::bare(runtime))
        .fallback(nowhere)
        .method_not_allowed_fallback(wrong_method)
        // The guard has read the body, and its limit is the one that counts.
        .layer(DefaultBodyLimit::disable())
        .layer(middleware::from_fn_with_state(guard, guard::check))
        // Around the guard, so that no body of a stranger is read.
        .layer(middleware::from_fn_with_state(access, access::authorize))
        // Around both, so that requests which they refuse are recorded too.
        .layer(middleware::from_fn_with_state(audit, audit::note));
    let router = if options.cors.is_empty() { router } else { router.layer(cors(&options.cors)) };
    // A request for an unknown host reaches nothing else, preflights included.
    let router = router.layer(middleware::from_fn_with_state(HostCheck::new(options), host::check));
    // The beginning of an id is completed before the router sees the path. Around all layers, because every response has
    // them, refusals included: the id of the request and the header against sniffing.
    let router =
        Router::new().fallback_service(middleware::from_fn_with_state(ids, prefix::complete).layer(router));
    let router = router.layer(middleware::from_fn_with_state(keys, access::identify));
    router.layer(middleware::from_fn(request_id)).layer(middleware::map_response(forbid_sniffing))
}

/// Keeps browsers from taking a response for another type than its own.
async fn forbid_sniffing(mut response: Response) -> Response {
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Names every response by the id that the client gave, or by a new one, so that a report of an error can name it too.
async fn request_id(request: Request, next: Next) -> Response {
    let is_short = |id: &&HeaderValue| id.len() <= 100 && id.to_str().is_ok_and(|id| !id.trim().is_empty());
    let given = request.headers().get(REQUEST_ID).filter(is_short).cloned();
    let id = given.unwrap_or_else(|| {
        let fresh = uuid::Uuid::now_v7().simple().to_string();
        HeaderValue::from_str(&fresh).expect("hexadecimal digits fit into a header")
    });
    let mut response = next.run(request).await;
    response.headers_mut().insert(REQUEST_ID, id);
    response
}

fn cors(origins: &[String]) -> CorsLayer {
    let allowed = if origins.iter().any(|origin| origin == "*") {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok()))
    };
    CorsLayer::new()
        .allow_origin(allowed)
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::CONTENT_TYPE,
            header::AUTHORIZATION,
            header::HeaderName::from_static("last-event-id"),
            audit::ACTOR,
            REQUEST_ID,
        ])
        .expose_headers([REQUEST_ID])
}

async fn nowhere(request: Request) -> Response {
    if let Some(page) = console::fallback(&request) {
        return page;
    }
    let path: String = request.uri().path().chars().take(200).collect();
    ApiError::new(Code::UnknownRoute, format!("there is nothing at `{path}`: see /docs")).into_response()
}

async fn wrong_method(request: Request) -> Response {
    let path: String = request.uri().path().chars().take(200).collect();
    let detail = format!("`{path}` does not take {}: see /docs", request.method());
    ApiError::new(Code::MethodNotAllowed, detail).into_response()
}
