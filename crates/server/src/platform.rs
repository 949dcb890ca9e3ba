//! The queue platform surface: tasks, workers, queues, dead letters and schedules. A *task* here is a job, and its ids
//! are bare UUIDs.
//!
//! Bodies are read field by field where something is wrong about them, so that everything is told at once; see
//! [`fields`]. What goes wrong is answered in the form of this surface; see `guard`.

mod change;
mod draft;
mod fields;
mod letter;
mod queue;
mod schedule;
mod shape;
mod task;
mod tasks;
mod worker;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

/// Every route, with its place in the OpenAPI document.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(task_routes()).merge(queue_routes()).merge(schedule_routes())
}

fn task_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tasks::list, task::create))
        .routes(routes!(task::create_batch))
        .routes(routes!(tasks::show))
        .routes(routes!(tasks::runs))
        .routes(routes!(tasks::cancel))
        .routes(routes!(tasks::retry))
        .routes(routes!(worker::list))
        .routes(routes!(worker::drain))
        .routes(routes!(worker::undrain))
}

fn queue_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(queue::list))
        .routes(routes!(queue::show, queue::put, queue::patch))
        .routes(routes!(queue::pause))
        .routes(routes!(queue::resume))
        .routes(routes!(letter::list))
        .routes(routes!(letter::groups))
        .routes(routes!(letter::replay))
        .routes(routes!(letter::discard))
}

fn schedule_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(schedule::list, schedule::create))
        .routes(routes!(schedule::preview))
        .routes(routes!(schedule::show, change::patch, change::delete))
        .routes(routes!(change::toggle))
        .routes(routes!(change::trigger))
        .routes(routes!(schedule::next))
}
