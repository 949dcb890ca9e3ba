//! Changes of schedules.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::problem::Problems;
use windlass_runtime::schedules::ScheduleDraft;
use windlass_sdk::contract::{NoBody, ScheduleDeleted, ScheduleInfo, SchedulePatch, Toggle, Triggered};

use super::schedule::{begun, shown};
use super::schedule_body::ScheduleFields;
use super::shape;
use crate::app::App;
use crate::extract::PathParams;
use crate::fields::{BodyFields, nothing, settled};
use crate::problem::ApiResult;

/// Slots that are told of a schedule that was changed.
const NEXT: usize = 5;

/// Changes a schedule; absent fields keep their values, and past decisions stay.
#[utoipa::path(patch, path = "/api/v1/schedules/{id}", operation_id = "change_schedule", tag = "schedules",
    request_body = SchedulePatch, params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "The schedule", body = ScheduleInfo)))]
pub(crate) async fn patch(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<ScheduleInfo>> {
    let schedule = shape::schedule_id(&id)?;
    let fields = ScheduleFields::read(&app, BodyFields::of_body(&bytes)?, false).await?;
    let changed = app.runtime.schedules().change_schedule(schedule, move |draft| fields.over(draft)).await?;
    Ok(Json(shown(&app, changed, NEXT).await?))
}

/// Deletes a schedule; its open jobs and runs go on.
#[utoipa::path(delete, path = "/api/v1/schedules/{id}", operation_id = "delete_schedule", tag = "schedules",
    params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "It is no more", body = ScheduleDeleted)))]
pub(crate) async fn delete(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<ScheduleDeleted>> {
    nothing(&bytes)?;
    let schedule = shape::schedule_id(&id)?;
    app.runtime.schedules().delete_schedule(schedule).await?;
    Ok(Json(ScheduleDeleted { id: shape::uuid(schedule.uuid()), deleted: true }))
}

/// Turns a schedule on or off: the other way round, or as `enabled` says.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/toggle", operation_id = "toggle_schedule", tag = "schedules",
    request_body = Toggle, params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "The schedule", body = ScheduleInfo)))]
pub(crate) async fn toggle(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<ScheduleInfo>> {
    let mut problems = Problems::default();
    let mut body = BodyFields::of_body(&bytes)?;
    let enabled = body.flag("enabled", &mut problems);
    body.done(&mut problems);
    settled(problems)?;
    let turn =
        move |draft: ScheduleDraft| ScheduleDraft { enabled: enabled.unwrap_or(!draft.enabled), ..draft };
    let changed = app.runtime.schedules().change_schedule(shape::schedule_id(&id)?, turn).await?;
    Ok(Json(shown(&app, changed, NEXT).await?))
}

/// Starts the target of a schedule now, whether or not it is enabled.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/trigger", operation_id = "trigger_schedule", tag = "schedules",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "The started task or run", body = Triggered)))]
pub(crate) async fn trigger(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<Triggered>> {
    nothing(&bytes)?;
    let schedule = shape::schedule_id(&id)?;
    let started = app.runtime.schedules().trigger_schedule(schedule).await?;
    Ok(Json(Triggered { schedule_id: shape::uuid(schedule.uuid()), started: begun(started) }))
}
