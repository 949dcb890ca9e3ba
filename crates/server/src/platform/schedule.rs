//! Schedules: creating, listing and showing them, with their next slots.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use windlass_engine::problem::Problems;
use windlass_engine::schedule::{Catchup as C, Cron, Dst as D, Overlap as O, WINDOW_MS_DEFAULT};
use windlass_engine::time::Timestamp;
use windlass_runtime::schedules::{FiringTarget, ScheduleDraft, draft_of};
use windlass_sdk::contract::{
    CatchupRule, DstRule, LastRun, MissedSlot, NewSchedule, NextQuery, NextRuns, OverlapRule, ScheduleInfo,
    SchedulePreviewRequest, Schedules, StartedId, WidePageQuery,
};
use windlass_store::flow::FlowRef;
use windlass_store::page::{Order, Part};
use windlass_store::schedule::{Scheduled, Started};

use super::schedule_body::{DSTS, ScheduleFields, wrong_cron};
use super::shape;
use crate::app::App;
use crate::audit::{self, CreatedId};
use crate::extract::{PathParams, QueryParams};
use crate::fields::{BodyFields, refused};
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape::{time, wide_limit};

/// The default number of shown slots.
const NEXT_DEFAULT: usize = 5;
const NEXT_MAX: usize = 1_000;

/// Makes a schedule.
#[utoipa::path(post, path = "/api/v1/schedules", operation_id = "create_schedule", tag = "schedules",
    request_body = NewSchedule, responses((status = 201, description = "The schedule", body = ScheduleInfo)))]
pub(crate) async fn create(
    State(app): State<App>,
    bytes: Bytes,
) -> ApiResult<(StatusCode, Extension<CreatedId>, Json<ScheduleInfo>)> {
    let fields = ScheduleFields::read(&app, BodyFields::of_body(&bytes)?, true).await?;
    let Some(target) = fields.target.clone() else {
        return Err(ApiError::field(
            Code::InvalidFields,
            "$",
            "it names no target: give `task`, `task_template_id` or `flow`",
        ));
    };
    let usual = ScheduleDraft {
        name: String::new(),
        cron_expr: String::new(),
        timezone: String::new(),
        dst: D::default(),
        enabled: true,
        overlap: O::default(),
        catchup: C::default(),
        window_ms: 0,
        target,
    };
    let made = app.runtime.schedules().create_schedule(fields.over(usual)).await?;
    let schedule = shown(&app, made, NEXT_DEFAULT).await?;
    Ok((StatusCode::CREATED, audit::made(&schedule.id), Json(schedule)))
}

/// Lists schedules, oldest first, each with its next slot.
#[utoipa::path(get, path = "/api/v1/schedules", operation_id = "list_schedules", tag = "schedules",
    params(WidePageQuery), responses((status = 200, description = "A page of schedules", body = Schedules)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<WidePageQuery>,
) -> ApiResult<Json<Schedules>> {
    let part = crate::shape::part(asked.cursor, Some(wide_limit(asked.limit)?))?;
    let page = app.runtime.schedules().list(Part { order: Order::Oldest, ..part }).await?;
    let mut schedules = Vec::with_capacity(page.items.len());
    for scheduled in page.items {
        schedules.push(shown(&app, scheduled, 1).await?);
    }
    let next = page.next.map(|next| next.as_str().to_owned());
    Ok(Json(Schedules { count: schedules.len(), schedules, next }))
}

/// Shows a schedule.
#[utoipa::path(get, path = "/api/v1/schedules/{id}", operation_id = "show_schedule", tag = "schedules",
    params(("id" = String, Path, description = "The id of the schedule")),
    responses((status = 200, description = "The schedule", body = ScheduleInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<ScheduleInfo>> {
    let scheduled = find(&app, &id).await?;
    Ok(Json(shown(&app, scheduled, NEXT_DEFAULT).await?))
}

/// Says when a schedule is due next, whether or not it is enabled.
#[utoipa::path(get, path = "/api/v1/schedules/{id}/next", operation_id = "show_next_runs", tag = "schedules",
    params(("id" = String, Path, description = "The id of the schedule"), NextQuery),
    responses((status = 200, description = "Its next slots", body = NextRuns)))]
pub(crate) async fn next(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<NextQuery>,
) -> ApiResult<Json<NextRuns>> {
    let count = match asked.count {
        None => NEXT_DEFAULT,
        Some(count @ 1..=NEXT_MAX) => count,
        Some(_) => return Err(ApiError::field(Code::BadQuery, "?count", format!("give 1 to {NEXT_MAX}"))),
    };
    let scheduled = find(&app, &id).await?;
    Ok(Json(slots(&scheduled.row.schedule.cron, app.runtime.clock().wall(), count)))
}

/// Says when a cron expression would be due.
#[utoipa::path(post, path = "/api/v1/schedules/preview", operation_id = "preview_schedule", tag = "schedules",
    request_body = SchedulePreviewRequest, responses((status = 200, description = "The next slots", body = NextRuns)))]
pub(crate) async fn preview(State(app): State<App>, bytes: Bytes) -> ApiResult<Json<NextRuns>> {
    let mut problems = Problems::default();
    let mut body = BodyFields::of_body(&bytes)?;
    let expr = body.required("cron_expr", &mut problems);
    let zone = body.text("timezone", &mut problems).unwrap_or_default();
    let dst = body.word("dst", &DSTS, &mut problems).unwrap_or_default();
    let count = body.whole("count", 1, NEXT_MAX as u64, &mut problems);
    body.done(&mut problems);
    let mut all = problems.into_list();
    all.extend(expr.iter().flat_map(|expr| wrong_cron(expr, &zone)));
    match Cron::parse(expr.as_deref().unwrap_or_default(), &zone) {
        Ok(cron) if all.is_empty() => {
            let count = count.and_then(|count| usize::try_from(count).ok()).unwrap_or(NEXT_DEFAULT);
            Ok(Json(slots(&cron.with_dst(dst), app.runtime.clock().wall(), count)))
        }
        Ok(_) | Err(_) => Err(refused(all)),
    }
}

fn slots(cron: &Cron, now: Timestamp, count: usize) -> NextRuns {
    let slots = cron.upcoming(now, count);
    NextRuns {
        cron_expr: cron.expr().to_owned(),
        timezone: cron.zone().to_owned(),
        local: slots.iter().map(|slot| local(*slot, cron.zone())).collect(),
        count: slots.len(),
        next_runs: slots.into_iter().map(time).collect(),
    }
}

/// A moment on the clocks of a zone.
fn local(at: Timestamp, zone: &str) -> String {
    let moment = jiff::Timestamp::from_millisecond(at.0).unwrap_or(jiff::Timestamp::MAX);
    let zone = jiff::tz::TimeZone::get(zone).unwrap_or(jiff::tz::TimeZone::UTC);
    moment.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
}

/// The schedule that the path names.
pub(super) async fn find(app: &App, text: &str) -> ApiResult<Scheduled> {
    let id = shape::schedule_id(text)?;
    app.runtime.schedules().show(id).await?.ok_or_else(|| shape::unknown_schedule(text))
}

async fn flow_name(app: &App, flow: FlowRef) -> ApiResult<String> {
    Ok(app.store().flow(app.project(), flow).await?.map(|flow| flow.name).unwrap_or_default())
}

/// A schedule in the words of this surface, with so many of its next slots.
pub(super) async fn shown(app: &App, scheduled: Scheduled, n_next: usize) -> ApiResult<ScheduleInfo> {
    let draft = draft_of(&scheduled);
    let Scheduled { row, running, .. } = scheduled;
    let now = app.runtime.clock().wall();
    let next_runs = match (draft.enabled, n_next) {
        (false, _) => Vec::new(),
        // It is known; to work it out for every schedule of a long list would take its time.
        (true, 1) => row.next_at.into_iter().map(time).collect(),
        (true, n) => row.schedule.cron.upcoming(now, n).into_iter().map(time).collect(),
    };
    let mut schedule = ScheduleInfo {
        id: shape::uuid(row.schedule.id.uuid()),
        schedule_id: shape::uuid(row.schedule.id.uuid()),
        name: draft.name,
        cron_expr: draft.cron_expr,
        timezone: draft.timezone,
        enabled: draft.enabled,
        overlap: overlap(draft.overlap),
        catchup: catchup(draft.catchup),
        dst: dst(draft.dst),
        window_ms: if draft.window_ms == 0 { WINDOW_MS_DEFAULT } else { draft.window_ms },
        task: None,
        flow: None,
        version: None,
        params: None,
        account: None,
        next_runs,
        running: running.into_iter().map(begun).collect(),
        waiting: row.progress.waiting.into_iter().map(time).collect(),
        decided_until: row.progress.last_slot.map(time),
        fired: row.history.n_fired,
        passed: row.history.n_passed,
        last_run: row.history.last.map(|last| LastRun {
            slot: time(last.firing.slot),
            manual: last.firing.manual,
            started: begun(last.started),
        }),
        last_error: row.history.last_error.map(|missed| MissedSlot {
            slot: time(missed.slot),
            at: time(missed.at),
            reason: missed.reason,
        }),
        created_at: time(row.created_at),
        updated_at: time(row.updated_at),
    };
    match draft.target {
        FiringTarget::Job(spec) => schedule.task = Some(shape::new_task(*spec)),
        FiringTarget::Flow { flow, version, params, account } => {
            schedule.flow = Some(flow_name(app, FlowRef::Id(flow)).await?);
            (schedule.version, schedule.params, schedule.account) = (version, Some(params), account);
        }
    }
    Ok(schedule)
}

pub(super) fn begun(started: Started) -> StartedId {
    match started {
        Started::Job(job) => StartedId::TaskId(shape::uuid(job.uuid())),
        Started::Run(run) => StartedId::RunId(run.to_string()),
    }
}

fn overlap(overlap: O) -> OverlapRule {
    match overlap {
        O::Skip => OverlapRule::Skip,
        O::Queue => OverlapRule::Queue,
        O::Cancel => OverlapRule::Cancel,
        O::Allow => OverlapRule::Allow,
    }
}

fn catchup(catchup: C) -> CatchupRule {
    match catchup {
        C::None => CatchupRule::None,
        C::Last => CatchupRule::Last,
        C::All => CatchupRule::All,
    }
}

fn dst(dst: D) -> DstRule {
    match dst {
        D::Shift => DstRule::Shift,
        D::Skip => DstRule::Skip,
        D::Twice => DstRule::Twice,
    }
}
