//! Services: their workers and their settings.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::limits::RECHECK_MS;
use windlass_engine::time::Timestamp;
use windlass_runtime::calls::service::ServiceError;
use windlass_sdk::contract::{List, ServiceChange, ServiceInfo};
use windlass_store::service::{ServiceRow, ServiceSettings};
use windlass_store::worker::WorkerQuery;

use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Lists the services that live workers serve, and those for which something is set, by name.
#[utoipa::path(get, path = "/api/v1/services", operation_id = "list_services", tag = "services",
    responses((status = 200, description = "All services", body = List<ServiceInfo>)))]
pub(crate) async fn list(State(app): State<App>) -> ApiResult<Json<List<ServiceInfo>>> {
    Ok(Json(List { items: known(&app).await?.into_values().collect(), next: None }))
}

/// Shows a service.
#[utoipa::path(get, path = "/api/v1/services/{service}", operation_id = "show_service", tag = "services",
    params(("service" = String, Path, description = "The name of the service")),
    responses((status = 200, description = "The service", body = ServiceInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
) -> ApiResult<Json<ServiceInfo>> {
    let found = known(&app).await?.remove(&name);
    Ok(Json(found.ok_or_else(|| unknown(&name))?))
}

/// Replaces the settings of a service, for runs that are started from now on.
#[utoipa::path(put, path = "/api/v1/services/{service}", operation_id = "set_service", tag = "services", request_body = ServiceChange,
    params(("service" = String, Path, description = "The name of the service")),
    responses((status = 200, description = "The service", body = ServiceInfo)))]
pub(crate) async fn set(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    JsonBody(change): JsonBody<ServiceChange>,
) -> ApiResult<Json<ServiceInfo>> {
    check::name("service", &name)?;
    if let Some(ms) = change.recheck_ms {
        check::within("recheck_ms", ms, *RECHECK_MS.start(), *RECHECK_MS.end())?;
    }
    let settings = ServiceSettings { recheck_ms: change.recheck_ms };
    match app.runtime.calls().set_service(name.clone(), settings).await {
        Ok(_) => {}
        Err(full @ ServiceError::TooMany) => return Err(ApiError::new(Code::Conflict, full.to_string())),
        Err(ServiceError::Runtime(error)) => return Err(error.into()),
    }
    // A service without live workers and without settings is unknown.
    let found = known(&app).await?.remove(&name);
    Ok(Json(found.unwrap_or_else(|| ServiceInfo { name, ..ServiceInfo::default() })))
}

fn unknown(name: &str) -> ApiError {
    let shown: String = name.chars().take(80).collect();
    let detail = format!("service `{shown}` has no workers and no settings: create settings with PUT");
    ApiError::new(Code::UnknownService, detail)
}

async fn known(app: &App) -> ApiResult<BTreeMap<String, ServiceInfo>> {
    let named = |name: &String| ServiceInfo { name: name.clone(), ..ServiceInfo::default() };
    let mut services: BTreeMap<String, ServiceInfo> = BTreeMap::new();
    for ServiceRow { name, settings, updated_at } in app.runtime.calls().services().await? {
        let service = services.entry(name.clone()).or_insert_with(|| named(&name));
        (service.recheck_ms, service.updated_at) = (settings.recheck_ms, Some(shape::time(updated_at)));
    }
    let ttl = i64::try_from(app.runtime.settings().worker_ttl.as_millis()).unwrap_or(i64::MAX);
    let alive_since = Some(Timestamp(app.runtime.clock().now().0.saturating_sub(ttl)));
    for worker in app.runtime.workers().list(WorkerQuery { alive_since, ..WorkerQuery::default() }).await? {
        for name in &worker.services {
            services.entry(name.clone()).or_insert_with(|| named(name)).n_workers += 1;
        }
    }
    Ok(services)
}
