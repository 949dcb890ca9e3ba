//! Services: their workers and their settings.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::limits::RECHECK_MS;
use windlass_runtime::calls::service::{SecretChange, ServiceError};
use windlass_runtime::calls::signature::read_secret;
use windlass_sdk::contract::{self, List, PageQuery, ServiceChange, ServiceInfo};
use windlass_store::page::NameRange;
use windlass_store::service::{LiveService, ServiceRow, ServiceSettings, WaitingService};

use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Time limits of a service: a worker can notice the shortest, and 30 days are enough for a person.
const TIMEOUT_MS: std::ops::RangeInclusive<u64> = 100..=2_592_000_000;
/// Calls of a service at once: far more than one server can have open.
const CALLS_MAX: std::ops::RangeInclusive<u64> = 1..=100_000;

/// Lists the services that live workers serve, that have settings or that work waits for, by name: demand and supply.
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
    let (settings, secret) = (settings(&change)?, secret_change(&change.secret)?);
    match app.runtime.calls().set_service(name.clone(), settings, secret).await {
        Ok(_) => {}
        Err(full @ ServiceError::TooMany) => return Err(ApiError::new(Code::Conflict, full.to_string())),
        Err(ServiceError::Runtime(error)) => return Err(error.into()),
    }
    // A service without live workers, settings and waiting work is unknown.
    let found = known(&app, NameRange::One(name.clone())).await?.remove(&name);
    Ok(Json(found.unwrap_or_else(|| ServiceInfo { name, ..ServiceInfo::default() })))
}

/// The settings, within their limits.
fn settings(change: &ServiceChange) -> ApiResult<ServiceSettings> {
    let ServiceChange { recheck_ms, until_reported, timeout_ms, calls_max, priority, secret: _ } = *change;
    if let Some(ms) = recheck_ms {
        check::within("recheck_ms", ms, *RECHECK_MS.start(), *RECHECK_MS.end())?;
        if until_reported {
            let reason = "calls are asked again every `recheck_ms` or wait for a report, not both";
            return Err(ApiError::field(Code::InvalidBody, "until_reported", reason));
        }
    }
    if let Some(ms) = timeout_ms {
        check::within("timeout_ms", ms, *TIMEOUT_MS.start(), *TIMEOUT_MS.end())?;
    }
    if let Some(n) = calls_max {
        check::within("calls_max", u64::from(n), *CALLS_MAX.start(), *CALLS_MAX.end())?;
    }
    let priority = priority.map(shape::priority);
    Ok(ServiceSettings { recheck_ms, until_reported, timeout_ms, calls_max, priority, secret: None })
}

fn secret_change(change: &contract::SecretChange) -> ApiResult<SecretChange> {
    Ok(match change {
        contract::SecretChange::Keep => SecretChange::Keep,
        contract::SecretChange::Remove => SecretChange::Remove,
        contract::SecretChange::Set(secret) => {
            let wrong = |reason: String| ApiError::field(Code::InvalidBody, "secret", reason);
            SecretChange::Set(read_secret(secret).map_err(wrong)?)
        }
    })
}

fn unknown(name: &str) -> ApiError {
    let shown: String = name.chars().take(80).collect();
    let detail = format!(
        "service `{shown}` has no workers, no settings and no waiting work: create settings with PUT"
    );
    ApiError::new(Code::UnknownService, detail)
}

/// Services with workers, settings or waiting work. Each source gives as many names as the range may have, so that the first names of
/// both together are complete.
async fn known(app: &App, names: NameRange) -> ApiResult<BTreeMap<String, ServiceInfo>> {
    let named = |name: &String| ServiceInfo { name: name.clone(), ..ServiceInfo::default() };
    let mut services: BTreeMap<String, ServiceInfo> = BTreeMap::new();
    for ServiceRow { name, settings, updated_at } in app.runtime.calls().services(names.clone()).await? {
        let service = services.entry(name.clone()).or_insert_with(|| named(&name));
        let ServiceSettings { recheck_ms, until_reported, timeout_ms, calls_max, priority, secret } =
            settings;
        service.is_signed = secret.is_some();
        (service.recheck_ms, service.until_reported) = (recheck_ms, until_reported);
        (service.timeout_ms, service.calls_max) = (timeout_ms, calls_max);
        service.priority = priority.map(shape::priority_word);
        service.updated_at = Some(shape::time(updated_at));
    }
    let workers = app.runtime.workers();
    for LiveService { name, n_workers, capacity, load } in workers.live_services(names.clone()).await? {
        let service = services.entry(name.clone()).or_insert_with(|| named(&name));
        service.n_workers = usize::try_from(n_workers).unwrap_or(usize::MAX);
        (service.capacity, service.load) = (capacity, load);
    }
    for WaitingService { name, n_waiting } in workers.waiting_services(names.clone()).await? {
        services.entry(name.clone()).or_insert_with(|| named(&name)).n_waiting = n_waiting;
    }
    for (name, n_calls) in workers.waiting_calls().into_iter().filter(|(name, _)| names.contains(name)) {
        services.entry(name.clone()).or_insert_with(|| named(&name)).n_waiting += n_calls as u64;
    }
    Ok(services)
}
