//! Tasks: listing, showing, canceling and retrying them.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::raw_json::RawJson;
use windlass_sdk::contract::{
    JobsQuery, NoBody, PageQuery, TaskDetail, TaskList, TaskRun, TaskRuns, TasksQuery,
};
use windlass_store::job::{JobRow, JobStatus};

use super::shape;
use crate::app::App;
use crate::extract::{PathParams, QueryParams};
use crate::fields::nothing;
use crate::job::{self, StatusWords};
use crate::problem::ApiResult;

const STATUS_WORDS: &StatusWords = &[
    ("pending", &[JobStatus::Pending]),
    ("queued", &[JobStatus::Queued]),
    ("running", &[JobStatus::Running]),
    ("suspended", &[JobStatus::Suspended]),
    ("retrying", &[JobStatus::Retrying]),
    ("completed", &[JobStatus::Completed]),
    ("failed", &[JobStatus::Failed]),
    ("cancelled", &[JobStatus::Canceled]),
    (
        "open",
        &[
            JobStatus::Pending,
            JobStatus::Queued,
            JobStatus::Running,
            JobStatus::Suspended,
            JobStatus::Retrying,
        ],
    ),
];

/// Lists tasks, newest first. Calls of runs that wait for a worker are among them.
#[utoipa::path(get, path = "/api/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(TasksQuery),
    responses((status = 200, description = "A page of tasks", body = TaskList)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<TasksQuery>,
) -> ApiResult<Json<TaskList>> {
    let TasksQuery { status, queue, name, worker, schedule, since, until, cursor, limit } = asked;
    let query = JobsQuery { status, queue, name, worker, schedule, since, until, cursor, limit };
    let page = job::list(&app, query, STATUS_WORDS).await?;
    let next = page.next.map(|next| next.as_str().to_owned());
    let tasks: Vec<_> = page.items.into_iter().map(shape::summary).collect();
    Ok(Json(TaskList { count: tasks.len(), tasks, next }))
}

/// Shows a task with its latest run.
#[utoipa::path(get, path = "/api/v1/tasks/{id}", operation_id = "show_task", tag = "tasks",
    params(("id" = String, Path, description = "The id of the task")),
    responses((status = 200, description = "The task", body = TaskDetail)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<TaskDetail<RawJson>>> {
    shown(&id, job::find(&app, &id).await)
}

/// Lists the runs of a task: every attempt, oldest first, 1,000 unless a limit is given.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/runs", operation_id = "list_task_runs", tag = "tasks",
    params(("id" = String, Path, description = "The id of the task"), PageQuery),
    responses((status = 200, description = "Its attempts", body = TaskRuns)))]
pub(crate) async fn runs(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<TaskRuns<RawJson>>> {
    let page = job::attempts(&app, &id, asked).await.map_err(|error| shape::task_words(&id, error))?;
    let (job, next) = (page.job, page.next);
    let runs: Vec<TaskRun<RawJson>> =
        page.attempts.into_iter().map(|attempt| shape::run(job, attempt)).collect();
    Ok(Json(TaskRuns { task_id: shape::uuid(job.uuid()), count: runs.len(), runs, next }))
}

/// Cancels a task. A running one ends when its worker has stopped, or after a grace period.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/cancel", operation_id = "cancel_task", tag = "tasks",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the task")),
    responses((status = 200, description = "The task", body = TaskDetail)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<TaskDetail<RawJson>>> {
    nothing(&bytes)?;
    shown(&id, job::cancel(&app, &id).await)
}

/// Ends the wait of a task, or opens a failed or cancelled one again.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/retry", operation_id = "retry_task", tag = "tasks",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the task")),
    responses((status = 200, description = "The task", body = TaskDetail)))]
pub(crate) async fn retry(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<TaskDetail<RawJson>>> {
    nothing(&bytes)?;
    shown(&id, job::retry(&app, &id).await)
}

fn shown(id: &str, row: ApiResult<JobRow>) -> ApiResult<Json<TaskDetail<RawJson>>> {
    row.map(|row| Json(shape::detail(row))).map_err(|error| shape::task_words(id, error))
}
