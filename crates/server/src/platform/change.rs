//! What people do to schedules.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::problem::Problems;
use windlass_runtime::schedule::Draft;
use windlass_sdk::types::{NoBody, Schedule, ScheduleChange, ScheduleDeleted, Toggle, Triggered};

use super::draft::Said;
use super::fields::{Fields, nothing, settled};
use super::schedule::{begun, shown};
use super::shape;
use crate::app::App;
use crate::extract::At;
use crate::problem::Answer;

/// Slots that are told of a schedule that was changed.
const NEXT: usize = 5;

/// Changes a schedule; what is absent stays, and what it has decided so far stays decided.
#[utoipa::path(patch, path = "/api/v1/schedules/{id}", operation_id = "change_schedule", tag = "schedules",
    request_body = ScheduleChange, params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "The schedule", body = Schedule)))]
pub(crate) async fn patch(
    State(app): State<App>,
    At(id): At<String>,
    bytes: Bytes,
) -> Answer<Json<Schedule>> {
    let schedule = shape::schedule_id(&id)?;
    let said = Said::read(&app, Fields::of_body(&bytes)?, false).await?;
    let changed = app.runtime.change_schedule(schedule, move |draft| said.over(draft)).await?;
    Ok(Json(shown(&app, changed, NEXT).await?))
}

/// Deletes a schedule; what it started goes on.
#[utoipa::path(delete, path = "/api/v1/schedules/{id}", operation_id = "delete_schedule", tag = "schedules",
    params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "It is no more", body = ScheduleDeleted)))]
pub(crate) async fn delete(State(app): State<App>, At(id): At<String>) -> Answer<Json<ScheduleDeleted>> {
    let schedule = shape::schedule_id(&id)?;
    app.runtime.delete_schedule(schedule).await?;
    Ok(Json(ScheduleDeleted { id: shape::uuid(schedule.uuid()), deleted: true }))
}

/// Turns a schedule on or off: the other way round, or as `enabled` says.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/toggle", operation_id = "toggle_schedule", tag = "schedules",
    request_body = Toggle, params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "The schedule", body = Schedule)))]
pub(crate) async fn toggle(
    State(app): State<App>,
    At(id): At<String>,
    bytes: Bytes,
) -> Answer<Json<Schedule>> {
    let mut problems = Problems::default();
    let mut body = Fields::of_body(&bytes)?;
    let enabled = body.flag("enabled", &mut problems);
    body.done(&mut problems);
    settled(problems)?;
    let turn = move |draft: Draft| Draft { enabled: enabled.unwrap_or(!draft.enabled), ..draft };
    let changed = app.runtime.change_schedule(shape::schedule_id(&id)?, turn).await?;
    Ok(Json(shown(&app, changed, NEXT).await?))
}

/// Starts what a schedule starts, now, whether or not it is enabled.
#[utoipa::path(post, path = "/api/v1/schedules/{id}/trigger", operation_id = "trigger_schedule", tag = "schedules",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "What it started", body = Triggered)))]
pub(crate) async fn trigger(
    State(app): State<App>,
    At(id): At<String>,
    bytes: Bytes,
) -> Answer<Json<Triggered>> {
    nothing(&bytes)?;
    let schedule = shape::schedule_id(&id)?;
    let started = app.runtime.trigger_schedule(schedule).await?;
    Ok(Json(Triggered { schedule_id: shape::uuid(schedule.uuid()), started: begun(started) }))
}
