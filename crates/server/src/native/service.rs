//! Services: their workers and their settings.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::limits::RECHECK_MS;
use windlass_runtime::calls::service::ServiceError;
use windlass_sdk::contract::{List, PageQuery, ServiceChange, ServiceInfo};
use windlass_store::page::NameRange;
use windlass_store::service::{LiveService, ServiceRow, ServiceSettings};

use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Lists the services that live workers serve, and those for which something is set, by name.
#[utoipa::path(get, path = "/api/v1/services", operation_id = "list_services", tag = "services", params(PageQuery),
    responses((status = 200, description = "A page of services", body = List<ServiceInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<ServiceInfo>>> {
    let limit = shape::limit(asked.limit)?;
    let known = known(&app, shape::name_range(asked.cursor, limit)).await?;
    let (items, next) = shape::named_page(known.into_values().collect(), limit, |service| &service.name);
    Ok(Json(List { items, next }))
}

/// Shows a service.
#[utoipa::path(get, path = "/api/v1/services/{service}", operation_id = "show_service", tag = "services",
    params(("service" = String, Path, description = "The name of the service")),
    responses((status = 200, description = "The service", body = ServiceInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
) -> ApiResult<Json<ServiceInfo>> {
    let found = known(&app, NameRange::One(name.clone())).await?.remove(&name);
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
    let found = known(&app, NameRange::One(name.clone())).await?.remove(&name);
    Ok(Json(found.unwrap_or_else(|| ServiceInfo { name, ..ServiceInfo::default() })))
}

fn unknown(name: &str) -> ApiError {
    let shown: String = name.chars().take(80).collect();
    let detail = format!("service `{shown}` has no workers and no settings: create settings with PUT");
    ApiError::new(Code::UnknownService, detail)
}

/// Services with workers or settings. Each source gives as many names as the range may have, so that the first names of
/// both together are complete.
async fn known(app: &App, names: NameRange) -> ApiResult<BTreeMap<String, ServiceInfo>> {
    let named = |name: &String| ServiceInfo { name: name.clone(), ..ServiceInfo::default() };
    let mut services: BTreeMap<String, ServiceInfo> = BTreeMap::new();
    for ServiceRow { name, settings, updated_at } in app.runtime.calls().services(names.clone()).await? {
        let service = services.entry(name.clone()).or_insert_with(|| named(&name));
        (service.recheck_ms, service.updated_at) = (settings.recheck_ms, Some(shape::time(updated_at)));
    }
    for LiveService { name, n_workers } in app.runtime.workers().live_services(names).await? {
        let service = services.entry(name.clone()).or_insert_with(|| named(&name));
        service.n_workers = usize::try_from(n_workers).unwrap_or(usize::MAX);
    }
    Ok(services)
}
