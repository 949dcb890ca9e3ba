//! The queue platform surface: tasks, workers, queues, dead letters and schedules. A *task* here is a job, and its ids
//! are bare UUIDs.
//!
//! Invalid bodies are read field by field, so that one response names all problems; see `crate::fields`. Problems have
//! the form of this surface; see `guard`. The module only translates: `crate::job` does the work on jobs.

mod dead_letter;
mod new_task;
mod queue;
mod schedule;
mod schedule_actions;
mod schedule_body;
mod shape;
mod tasks;
pub(crate) mod worker;

use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::app::App;

pub(crate) use shape::task_code;

/// Every route, with its place in the OpenAPI document.
pub(crate) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().merge(task_routes()).merge(queue_routes()).merge(schedule_routes())
}

fn task_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(tasks::list, new_task::create))
        .routes(routes!(new_task::create_batch))
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
        .routes(routes!(dead_letter::list))
        .routes(routes!(dead_letter::groups))
        .routes(routes!(dead_letter::replay))
        .routes(routes!(dead_letter::discard))
}

fn schedule_routes() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(schedule::list, schedule::create))
        .routes(routes!(schedule::preview))
        .routes(routes!(schedule::show, schedule_actions::patch, schedule_actions::delete))
        .routes(routes!(schedule_actions::toggle))
        .routes(routes!(schedule_actions::trigger))
        .routes(routes!(schedule::next))
}
