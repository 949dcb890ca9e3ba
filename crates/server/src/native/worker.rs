//! Who is there to do the work.

use axum::Json;
use axum::extract::State;
use windlass_sdk::types::{Worker, Workers};
use windlass_store::worker::{WorkerQuery, WorkerRow};

use crate::app::App;
use crate::problem::Answer;
use crate::shape;

/// Lists workers, dead or alive, by id.
#[utoipa::path(get, path = "/api/v1/workers", operation_id = "list_workers", tag = "workers",
    responses((status = 200, description = "All workers", body = Workers)))]
pub(crate) async fn list(State(app): State<App>) -> Answer<Json<Workers>> {
    let now = app.runtime.clock().now();
    let ttl = u64::try_from(app.runtime.settings().worker_ttl.as_millis()).unwrap_or(u64::MAX);
    let shape = |row: WorkerRow| Worker {
        status: if now.since(row.beat_at) <= ttl { "online" } else { "offline" }.to_owned(),
        id: row.id,
        name: row.name,
        queues: row.queues,
        services: row.services,
        heartbeat_at: shape::time(row.beat_at),
        capacity: row.capacity,
        load: row.load,
        url: row.url,
        kind: row.kind,
        is_draining: row.is_draining,
        tasks: Vec::new(),
    };
    let workers: Vec<Worker> =
        app.runtime.workers(WorkerQuery::default()).await?.into_iter().map(shape).collect();
    Ok(Json(Workers { count: workers.len(), workers }))
}
