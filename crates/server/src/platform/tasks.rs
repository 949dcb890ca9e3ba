//! Tasks as they stand, and what people do to them.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::id::ScheduleId;
use windlass_engine::problem::did_you_mean;
use windlass_engine::time::Timestamp;
use windlass_sdk::types::{NoBody, PageQuery, TaskDetail, TaskList, TaskRun, TaskRuns, TasksQuery};
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::PAGE_MAX;

use super::fields::nothing;
use super::shape;
use crate::app::App;
use crate::extract::{Asked, At};
use crate::problem::{Answer, ApiError, Code};
use crate::shape::{counted, part};

const STATUSES: [(&str, JobStatus); 8] = [
    ("pending", JobStatus::Pending),
    ("queued", JobStatus::Queued),
    ("running", JobStatus::Running),
    ("suspended", JobStatus::Suspended),
    ("retrying", JobStatus::Retrying),
    ("completed", JobStatus::Completed),
    ("failed", JobStatus::Failed),
    ("cancelled", JobStatus::Cancelled),
];
/// The statuses of a task that has not ended.
const OPEN: usize = 5;

/// Lists tasks, newest first. Calls of runs that wait for a worker are among them.
#[utoipa::path(get, path = "/api/v1/tasks", operation_id = "list_tasks", tag = "tasks", params(TasksQuery),
    responses((status = 200, description = "A page of tasks", body = TaskList)))]
pub(crate) async fn list(State(app): State<App>, Asked(asked): Asked<TasksQuery>) -> Answer<Json<TaskList>> {
    let query = JobQuery {
        statuses: statuses(asked.status.as_deref())?,
        queue: asked.queue,
        name: asked.name,
        worker: asked.worker,
        schedule: asked.schedule.as_deref().map(schedule).transpose()?,
        since: asked.since.map(|at| Timestamp(at.0)),
        until: asked.until.map(|at| Timestamp(at.0)),
        part: part(asked.cursor, asked.limit)?,
        ..JobQuery::default()
    };
    let page = app.store().jobs(query).await?;
    let next = page.next.map(|next| next.as_str().to_owned());
    let tasks: Vec<_> = page.items.into_iter().map(shape::summary).collect();
    Ok(Json(TaskList { count: tasks.len(), tasks, next }))
}

fn statuses(text: Option<&str>) -> Answer<Vec<JobStatus>> {
    let mut statuses = Vec::new();
    for word in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        match STATUSES.iter().find(|(known, _)| *known == word) {
            Some((_, status)) => statuses.push(*status),
            None if word == "open" => statuses.extend(STATUSES.iter().take(OPEN).map(|(_, status)| *status)),
            None => {
                let words = STATUSES.iter().map(|(word, _)| *word).chain(["open"]);
                let allowed = words.clone().collect::<Vec<_>>().join(", ");
                let word: String = word.chars().take(80).collect();
                let reason = format!("there is no status `{word}`: give {allowed}, or several with commas");
                let hint = did_you_mean(&word, words);
                return Err(ApiError::field(Code::BadQuery, "?status", reason).hint(hint));
            }
        }
    }
    Ok(statuses)
}

fn schedule(text: &str) -> Answer<ScheduleId> {
    shape::schedule_id(text).map_err(|_| {
        ApiError::field(Code::BadQuery, "?schedule", "it is no id of a schedule: give the UUID of one")
    })
}

/// Shows a task with its latest run.
#[utoipa::path(get, path = "/api/v1/tasks/{id}", operation_id = "show_task", tag = "tasks",
    params(("id" = String, Path, description = "The id of the task")),
    responses((status = 200, description = "The task", body = TaskDetail)))]
pub(crate) async fn show(State(app): State<App>, At(id): At<String>) -> Answer<Json<TaskDetail>> {
    let row = app.store().job(shape::task_id(&id)?).await?;
    row.map(|row| Json(shape::detail(row))).ok_or_else(|| shape::unknown_task(&id))
}

/// Lists the runs of a task: every attempt, oldest first, 1,000 unless a limit is given.
#[utoipa::path(get, path = "/api/v1/tasks/{id}/runs", operation_id = "list_task_runs", tag = "tasks",
    params(("id" = String, Path, description = "The id of the task"), PageQuery),
    responses((status = 200, description = "Its attempts", body = TaskRuns)))]
pub(crate) async fn runs(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<PageQuery>,
) -> Answer<Json<TaskRuns>> {
    let job = shape::task_id(&id)?;
    let limit = crate::shape::limit(Some(asked.limit.unwrap_or(PAGE_MAX)))?;
    let after = u32::try_from(counted(asked.cursor.as_deref())?).unwrap_or(u32::MAX);
    if app.store().job(job).await?.is_none() {
        return Err(shape::unknown_task(&id));
    }
    let attempts = app.store().attempts(job, after, limit).await?;
    let next = attempts.last().filter(|_| attempts.len() == limit).map(|last| last.number.to_string());
    let runs: Vec<TaskRun> = attempts.into_iter().map(|attempt| shape::run(job, attempt)).collect();
    Ok(Json(TaskRuns { task_id: shape::uuid(job.uuid()), count: runs.len(), runs, next }))
}

/// Cancels a task. One that somebody works on is cancelled when they have stopped, or had the time to.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/cancel", operation_id = "cancel_task", tag = "tasks",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the task")),
    responses((status = 200, description = "The task", body = TaskDetail)))]
pub(crate) async fn cancel(
    State(app): State<App>,
    At(id): At<String>,
    bytes: Bytes,
) -> Answer<Json<TaskDetail>> {
    nothing(&bytes)?;
    let row = app.runtime.cancel_job(shape::task_id(&id)?).await?;
    Ok(Json(shape::detail(row)))
}

/// Ends the wait of a task, or opens a failed or cancelled one again.
#[utoipa::path(post, path = "/api/v1/tasks/{id}/retry", operation_id = "retry_task", tag = "tasks",
    request_body = NoBody, params(("id" = String, Path, description = "The id of the task")),
    responses((status = 200, description = "The task", body = TaskDetail)))]
pub(crate) async fn retry(
    State(app): State<App>,
    At(id): At<String>,
    bytes: Bytes,
) -> Answer<Json<TaskDetail>> {
    nothing(&bytes)?;
    let row = app.runtime.retry_job(shape::task_id(&id)?).await?;
    Ok(Json(shape::detail(row)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_known_or_its_neighbour_is_named() {
        assert_eq!(statuses(Some("failed, open")).unwrap().len(), 6);
        assert!(statuses(None).unwrap().is_empty());
        let error = statuses(Some("faild")).unwrap_err();
        assert_eq!(error.problem().errors[0].hint.as_deref(), Some("did you mean `failed`?"));
    }
}
