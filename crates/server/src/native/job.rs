//! Jobs of queues on the native surface. `crate::job` does the work; this module translates between its rows and the
//! contract of the SDK.

mod fields;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use windlass_engine::raw_json::RawJson;
use windlass_sdk::contract::{
    JobAttempt, JobCreated, JobDetail, JobSummary, JobsCreated, JobsQuery, List, NewJob, NewJobs, NoBody,
    PageQuery,
};
use windlass_store::job::JobStatus;

use crate::app::App;
use crate::extract::{JsonBody, PathParams, QueryParams};
use crate::guard::RequestMemory;
use crate::job::{self, StatusWords};
use crate::problem::{ApiError, ApiResult};
use crate::shape;

const STATUS_WORDS: &StatusWords = &[
    ("queued", &[JobStatus::Pending, JobStatus::Queued]),
    ("running", &[JobStatus::Running, JobStatus::Suspended]),
    ("retrying", &[JobStatus::Retrying]),
    ("completed", &[JobStatus::Completed]),
    ("failed", &[JobStatus::Failed]),
    ("canceled", &[JobStatus::Canceled]),
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
    ("delayed", &[JobStatus::Pending]),
    ("suspended", &[JobStatus::Suspended]),
];

/// Creates one job, or up to 10,000 in an array: all of them, or none if one is invalid. The answer is sent when they
/// are durable. While an open job of the queue holds the same `dedup_key`, the answer is that job.
#[utoipa::path(post, path = "/api/v1/jobs", operation_id = "create_jobs", tag = "jobs", request_body = NewJobs,
    responses((status = 201, description = "The job; of an array, `items` in their order", body = JobsCreated),
        (status = 200, description = "The open job that holds the deduplication key", body = JobCreated)))]
pub(crate) async fn create(
    State(app): State<App>,
    memory: RequestMemory,
    bytes: Bytes,
) -> ApiResult<(StatusCode, Json<JobsCreated>)> {
    if job::is_array(&bytes) {
        let specs = job::read_many::<NewJob<RawJson>>(bytes).await.map_err(fields::unreadable)?;
        let created = job::create_many(&app, specs, memory).await.map_err(fields::refused)?;
        let items = created.into_iter().map(shape::job_created).collect();
        return Ok((StatusCode::CREATED, Json(JobsCreated::Many(List { items, next: None }))));
    }
    let spec = job::read_one::<NewJob<RawJson>>(&bytes).map_err(fields::unreadable)?;
    let created = shape::job_created(job::create(&app, spec).await.map_err(fields::refused)?);
    let status = if created.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(JobsCreated::One(created))))
}

/// Lists jobs, newest first, without payloads and results. Calls of runs that wait for a worker are among them.
#[utoipa::path(get, path = "/api/v1/jobs", operation_id = "list_jobs", tag = "jobs", params(JobsQuery),
    responses((status = 200, description = "A page of jobs", body = List<JobSummary>)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(query): QueryParams<JobsQuery>,
) -> ApiResult<Json<List<JobSummary>>> {
    let page = job::list(&app, query, STATUS_WORDS).await?;
    Ok(Json(shape::list(page, |row| shape::job_summary(&row))))
}

/// Shows a job with its payload, its settings and its latest attempt.
#[utoipa::path(get, path = "/api/v1/jobs/{id}", operation_id = "show_job", tag = "jobs",
    params(("id" = String, Path, description = "The id of the job")),
    responses((status = 200, description = "The job", body = JobDetail)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
) -> ApiResult<Json<JobDetail<RawJson>>> {
    Ok(Json(shape::job_detail(job::find(&app, &id).await?)))
}

/// Lists the attempts at a job, oldest first; 1,000 unless a limit is given.
#[utoipa::path(get, path = "/api/v1/jobs/{id}/attempts", operation_id = "list_job_attempts", tag = "jobs",
    params(("id" = String, Path, description = "The id of the job"), PageQuery),
    responses((status = 200, description = "A page of attempts", body = List<JobAttempt>)))]
pub(crate) async fn attempts(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(page): QueryParams<PageQuery>,
) -> ApiResult<Json<List<JobAttempt<RawJson>>>> {
    let page = job::attempts(&app, &id, page).await?;
    Ok(Json(List { items: page.attempts.into_iter().map(shape::job_attempt).collect(), next: page.next }))
}

/// Cancels a job. A running one ends when its worker has stopped, or 30 seconds later.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/cancel", operation_id = "cancel_job", tag = "jobs",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the job")),
    responses((status = 200, description = "The job", body = JobDetail)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<JobDetail<RawJson>>> {
    shown(job::cancel(&app, &id).await)
}

/// Ends the wait of a job, or opens a failed or canceled one again for a new round of attempts.
#[utoipa::path(post, path = "/api/v1/jobs/{id}/retry", operation_id = "retry_job", tag = "jobs",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the job")),
    responses((status = 200, description = "The job", body = JobDetail)))]
pub(crate) async fn retry(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    JsonBody(NoBody {}): JsonBody<NoBody>,
) -> ApiResult<Json<JobDetail<RawJson>>> {
    shown(job::retry(&app, &id).await)
}

fn shown(row: Result<windlass_store::job::JobRow, ApiError>) -> ApiResult<Json<JobDetail<RawJson>>> {
    row.map(|row| Json(shape::job_detail(row)))
}
