//! Prices of services. A price applies to runs and jobs that are created afterwards.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde_json::json;
use windlass_engine::money::Amount;
use windlass_engine::money::Price as EnginePrice;
use windlass_sdk::contract::{List, NewPrice, PageQuery, PriceDeleted, PriceInfo};
use windlass_store::account::PriceRow;

use crate::app::App;
use crate::check;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::fields::nothing;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Sets the price of a service.
#[utoipa::path(put, path = "/api/v1/prices/{service}", operation_id = "set_price", tag = "money", request_body = NewPrice,
    params(("service" = String, Path, description = "The name of the service, or of the task")),
    responses((status = 200, description = "The price", body = PriceInfo)))]
pub(crate) async fn set(
    State(app): State<App>,
    PathParams(service): PathParams<String>,
    JsonBody(new): JsonBody<NewPrice>,
) -> ApiResult<Json<PriceInfo>> {
    check::name("service", &service)?;
    let NewPrice { unit_price, min_unit, units, actual_units } = new;
    let price = EnginePrice {
        unit_price: Amount(unit_price),
        min_unit,
        units: units.unwrap_or_else(|| json!(1)),
        actual_units,
    };
    Ok(Json(price_of(app.runtime.money().set_price(&service, price).await?)))
}

/// Lists prices, by service.
#[utoipa::path(get, path = "/api/v1/prices", operation_id = "list_prices", tag = "money", params(PageQuery),
    responses((status = 200, description = "A page of prices", body = List<PriceInfo>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<PriceInfo>>> {
    let limit = shape::limit(asked.limit)?;
    let mut rows = app.store().prices(app.project()).await?;
    if let Some(after) = &asked.cursor {
        rows.retain(|row| row.service > *after);
    }
    let is_more = rows.len() > limit;
    rows.truncate(limit);
    let next = rows.last().filter(|_| is_more).map(|last| last.service.clone());
    Ok(Json(List { items: rows.into_iter().map(price_of).collect(), next }))
}

/// Shows the price of a service.
#[utoipa::path(get, path = "/api/v1/prices/{service}", operation_id = "show_price", tag = "money",
    params(("service" = String, Path, description = "The name of the service, or of the task")),
    responses((status = 200, description = "The price", body = PriceInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(service): PathParams<String>,
) -> ApiResult<Json<PriceInfo>> {
    let row = app.store().prices(app.project()).await?.into_iter().find(|row| row.service == service);
    row.map(|row| Json(price_of(row))).ok_or_else(|| unknown(&service))
}

/// Deletes the price of a service. Runs and jobs keep the price of their start.
#[utoipa::path(delete, path = "/api/v1/prices/{service}", operation_id = "delete_price", tag = "money",
    params(("service" = String, Path, description = "The name of the service, or of the task")),
    responses((status = 200, description = "It asks nothing", body = PriceDeleted)))]
pub(crate) async fn delete(
    State(app): State<App>,
    PathParams(service): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<PriceDeleted>> {
    nothing(&bytes)?;
    if !app.runtime.money().delete_price(&service).await? {
        return Err(unknown(&service));
    }
    Ok(Json(PriceDeleted { service, deleted: true }))
}

fn unknown(service: &str) -> ApiError {
    let shown: String = service.chars().take(80).collect();
    ApiError::new(Code::UnknownPrice, format!("`{shown}` has no price: it asks nothing"))
}

fn price_of(row: PriceRow) -> PriceInfo {
    let EnginePrice { unit_price, min_unit, units, actual_units } = row.price;
    let updated_at = shape::time(row.updated_at);
    PriceInfo { service: row.service, unit_price: unit_price.0, min_unit, units, actual_units, updated_at }
}
