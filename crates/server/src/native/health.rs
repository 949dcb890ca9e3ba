//! Health and readiness of the server.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use windlass_sdk::contract::{Health, Readiness};

use crate::app::App;
use crate::shape;

/// Says that the server is there.
#[utoipa::path(get, path = "/healthz", operation_id = "show_health", tag = "server",
    responses((status = 200, description = "It is", body = Health)))]
pub(crate) async fn healthz() -> Json<Health> {
    Json(Health { status: "ok".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() })
}

/// Tells whether the server takes work, and the reason if not.
#[utoipa::path(get, path = "/readyz", operation_id = "show_readiness", tag = "server",
    responses((status = 200, description = "It does", body = Readiness),
        (status = 503, description = "It does not", body = Readiness)))]
pub(crate) async fn readyz(State(app): State<App>) -> (StatusCode, Json<Readiness>) {
    let troubles = app.runtime.troubles();
    let ready = troubles.is_empty();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let warnings = app.runtime.warnings();
    let redis = app.runtime.jobs().redis_stats().map(shape::redis);
    let timestamp = shape::time(app.runtime.clock().now());
    let clock_skew_ms = app.runtime.clock().skew_ms();
    (status, Json(Readiness { ready, timestamp, clock_skew_ms, troubles, warnings, redis }))
}
