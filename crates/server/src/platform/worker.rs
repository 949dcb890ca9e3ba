//! Workers: listing and draining them.

use std::collections::HashMap;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::time::Timestamp;
use windlass_runtime::workers::RefusedRegistration;
use windlass_sdk::contract::{
    NoBody, RefusedWorker, WidePageQuery, WorkerInfo, WorkerTask, Workers, WorkersQuery,
};
use windlass_store::job::{JobQuery, JobRow, JobStatus};
use windlass_store::page::{NameRange, Order, PAGE_MAX, Part};
use windlass_store::worker::{WorkerQuery, WorkerRow};

use super::shape;
use crate::app::App;
use crate::extract::{PathParams, QueryParams};
use crate::fields::nothing;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape::{named_page, time, wide_range};

/// A worker without an address is seen when it claims and by its heartbeats, every ten seconds.
const PULL_TTL: Duration = Duration::from_secs(30);
/// Jobs that are told of one worker.
const TASKS_MAX: usize = 100;

/// Lists workers, dead or alive, by id, with their current jobs.
#[utoipa::path(get, path = "/api/v1/workers", operation_id = "list_workers", tag = "workers",
    params(WorkersQuery), responses((status = 200, description = "A page of workers", body = Workers)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<WorkersQuery>,
) -> ApiResult<Json<Workers>> {
    let WorkersQuery { status, cursor, limit } = asked;
    let online = match status.as_deref() {
        None => None,
        Some("online") => Some(true),
        Some("offline") => Some(false),
        Some(_) => return Err(ApiError::field(Code::BadQuery, "?status", "give `online` or `offline`")),
    };
    let (ids, limit) = wide_range(WidePageQuery { cursor, limit })?;
    let rows = app.runtime.workers().list(WorkerQuery { ids, ..WorkerQuery::default() }).await?;
    let (mut rows, next) = named_page(rows, limit, |row| &row.id);
    let now = app.runtime.clock().now();
    rows.retain(|row| online.is_none_or(|online| is_online(&app, row, now) == online));
    let mut busy = if rows.is_empty() { HashMap::new() } else { busy(&app, None).await? };
    let workers = rows.into_iter().map(|row| {
        let tasks = busy.remove(&row.id).unwrap_or_default();
        worker(&app, row, tasks)
    });
    let workers: Vec<WorkerInfo> = workers.collect();
    let refused = app.runtime.workers().refused().into_iter().map(refused).collect();
    Ok(Json(Workers { count: workers.len(), workers, next, refused }))
}

/// Drains a worker: it gets no more jobs, and stops when its current ones have ended.
#[utoipa::path(post, path = "/api/v1/workers/{id}/drain", operation_id = "drain_worker", tag = "workers",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the worker")),
    responses((status = 200, description = "The worker", body = WorkerInfo)))]
pub(crate) async fn drain(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<WorkerInfo>> {
    nothing(&bytes)?;
    set(&app, id, true).await
}

/// Ends the draining of a worker.
#[utoipa::path(post, path = "/api/v1/workers/{id}/undrain", operation_id = "undrain_worker", tag = "workers",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the worker")),
    responses((status = 200, description = "The worker", body = WorkerInfo)))]
pub(crate) async fn undrain(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<WorkerInfo>> {
    nothing(&bytes)?;
    set(&app, id, false).await
}

async fn set(app: &App, id: String, is_draining: bool) -> ApiResult<Json<WorkerInfo>> {
    let unknown = || {
        let shown: String = id.chars().take(80).collect();
        let detail = format!("there is no worker `{shown}`: list workers with GET /api/v1/workers");
        ApiError::new(Code::UnknownWorker, detail)
    };
    if !app.runtime.workers().drain_worker(&id, is_draining).await? {
        return Err(unknown());
    }
    let query = WorkerQuery { ids: NameRange::One(id.clone()), ..WorkerQuery::default() };
    let row = app.runtime.workers().list(query).await?.pop().ok_or_else(unknown)?;
    let tasks = busy(app, Some(&id)).await?.remove(&id).unwrap_or_default();
    Ok(Json(worker(app, row, tasks)))
}

/// The jobs that workers hold now, oldest first. One walk over all running jobs, independent of the number of workers;
/// the number of kept jobs per worker is bounded.
async fn busy(app: &App, worker: Option<&str>) -> ApiResult<HashMap<String, Vec<WorkerTask>>> {
    let limit = if worker.is_some() { TASKS_MAX } else { PAGE_MAX };
    let mut query = JobQuery {
        statuses: vec![JobStatus::Running],
        worker: worker.map(str::to_owned),
        part: Part { order: Order::Oldest, limit, ..Part::default() },
        ..JobQuery::default()
    };
    let mut busy: HashMap<String, Vec<WorkerTask>> = HashMap::new();
    loop {
        let page = app.store().jobs(app.project(), query.clone()).await?;
        for row in page.items {
            let Some(holder) = row.job.latest().worker.clone() else { continue };
            let tasks = busy.entry(holder).or_default();
            if tasks.len() < TASKS_MAX {
                tasks.push(held(&row));
            }
        }
        let is_full = worker.and_then(|id| busy.get(id)).is_some_and(|tasks| tasks.len() >= TASKS_MAX);
        match page.next {
            Some(next) if !is_full => query.part.cursor = Some(next),
            Some(_) | None => return Ok(busy),
        }
    }
}

fn held(row: &JobRow) -> WorkerTask {
    let latest = row.job.latest();
    WorkerTask {
        task_id: shape::uuid(row.job.id.uuid()),
        name: row.job.spec.name.clone(),
        queue_name: row.job.spec.queue.clone(),
        attempt: latest.number,
        since: time(latest.started_at.unwrap_or(row.job.updated_at)),
    }
}

fn worker(app: &App, row: WorkerRow, tasks: Vec<WorkerTask>) -> WorkerInfo {
    WorkerInfo {
        status: if is_online(app, &row, app.runtime.clock().now()) { "online" } else { "offline" }.to_owned(),
        id: row.id,
        name: row.name,
        queues: row.queues,
        services: row.services,
        heartbeat_at: time(row.beat_at),
        capacity: row.capacity,
        load: row.load,
        url: row.url,
        kind: row.kind,
        is_draining: row.is_draining,
        tasks,
    }
}

fn refused(refused: RefusedRegistration) -> RefusedWorker {
    let RefusedRegistration { id, url, reason, at } = refused;
    RefusedWorker { id, url, reason, at: time(at) }
}

/// Whether the worker was heard of lately.
pub(crate) fn is_online(app: &App, row: &WorkerRow, now: Timestamp) -> bool {
    let ttl = app.runtime.settings().worker_ttl;
    let ttl = if row.url.is_empty() { ttl.max(PULL_TTL) } else { ttl };
    now.since(row.beat_at) <= u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}
