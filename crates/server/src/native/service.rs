//! Services: who serves them, and what is set for them.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::limits::RECHECK_MS;
use windlass_engine::time::Timestamp;
use windlass_runtime::service::ServiceError;
use windlass_sdk::types::{List, Service, ServiceChange};
use windlass_store::service::{ServiceRow, ServiceSettings};
use windlass_store::worker::WorkerQuery;

use crate::app::App;
use crate::check;
use crate::extract::{At, Body};
use crate::problem::{Answer, ApiError, Code};
use crate::shape;

/// Lists the services that live workers serve, and those for which something is set, by name.
#[utoipa::path(get, path = "/api/v1/services", operation_id = "list_services", tag = "services",
    responses((status = 200, description = "All services", body = List<Service>)))]
pub(crate) async fn list(State(app): State<App>) -> Answer<Json<List<Service>>> {
    Ok(Json(List { items: known(&app).await?.into_values().collect(), next: None }))
}

/// Shows a service.
#[utoipa::path(get, path = "/api/v1/services/{service}", operation_id = "show_service", tag = "services",
    params(("service" = String, Path, description = "The name of the service")),
    responses((status = 200, description = "The service", body = Service)))]
pub(crate) async fn show(State(app): State<App>, At(name): At<String>) -> Answer<Json<Service>> {
    let found = known(&app).await?.remove(&name);
    Ok(Json(found.ok_or_else(|| unknown(&name))?))
}

/// Sets what holds for a service in runs that are started from now on.
#[utoipa::path(put, path = "/api/v1/services/{service}", operation_id = "set_service", tag = "services", request_body = ServiceChange,
    params(("service" = String, Path, description = "The name of the service")),
    responses((status = 200, description = "The service", body = Service)))]
pub(crate) async fn set(
    State(app): State<App>,
    At(name): At<String>,
    Body(change): Body<ServiceChange>,
) -> Answer<Json<Service>> {
    check::name("service", &name)?;
    if let Some(ms) = change.recheck_ms {
        check::within("recheck_ms", ms, *RECHECK_MS.start(), *RECHECK_MS.end())?;
    }
    let settings = ServiceSettings { recheck_ms: change.recheck_ms };
    match app.runtime.set_service(name.clone(), settings).await {
        Ok(_) => {}
        Err(full @ ServiceError::TooMany) => return Err(ApiError::new(Code::Conflict, full.to_string())),
        Err(ServiceError::Runtime(error)) => return Err(error.into()),
    }
    // Nothing is known of one that nobody serves and for which nothing is set any more.
    let found = known(&app).await?.remove(&name);
    Ok(Json(found.unwrap_or_else(|| Service { name, ..Service::default() })))
}

fn unknown(name: &str) -> ApiError {
    let shown: String = name.chars().take(80).collect();
    let detail = format!("nobody serves `{shown}`, and nothing is set for it: set it with PUT");
    ApiError::new(Code::UnknownService, detail)
}

async fn known(app: &App) -> Answer<BTreeMap<String, Service>> {
    let named = |name: &String| Service { name: name.clone(), ..Service::default() };
    let mut services: BTreeMap<String, Service> = BTreeMap::new();
    for ServiceRow { name, settings, updated_at } in app.runtime.services().await? {
        let service = services.entry(name.clone()).or_insert_with(|| named(&name));
        (service.recheck_ms, service.updated_at) = (settings.recheck_ms, Some(shape::time(updated_at)));
    }
    let ttl = i64::try_from(app.runtime.settings().worker_ttl.as_millis()).unwrap_or(i64::MAX);
    let alive_since = Some(Timestamp(app.runtime.clock().now().0.saturating_sub(ttl)));
    for worker in app.runtime.workers(WorkerQuery { alive_since, ..WorkerQuery::default() }).await? {
        for name in &worker.services {
            services.entry(name.clone()).or_insert_with(|| named(name)).n_workers += 1;
        }
    }
    Ok(services)
}
