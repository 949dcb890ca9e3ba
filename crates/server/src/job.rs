//! Operations on jobs for both surfaces that have them: `native/job.rs` calls them in its own words, `platform` calls
//! them and translates. Each answers with rows of the store; a handler only shapes them.

mod body;

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::id::{JobId, ScheduleId};
use windlass_engine::job::{Attempt, JobSpec};
use windlass_engine::problem::did_you_mean;
use windlass_engine::time::Timestamp;
use windlass_runtime::jobs::CreatedJob;
use windlass_sdk::contract::{JobsQuery, PageQuery};
use windlass_store::StoreError;
use windlass_store::blob;
use windlass_store::job::{JobQuery, JobRow, JobStatus};
use windlass_store::page::{PAGE_MAX, Page};

use crate::app::App;
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape::{counted, limit, part};

pub(crate) use body::{JobBody, is_array, read_many, read_one};

/// Characters of an id that a message repeats.
const SHOWN_CHARS: usize = 80;

/// The words of a surface for the statuses of jobs.
pub(crate) type StatusWords = [(&'static str, &'static [JobStatus])];

/// The job that a text names: `job_…`, or a bare UUID as document 002 writes it.
pub(crate) fn parse_id(text: &str) -> Option<JobId> {
    text.parse().ok().or_else(|| Uuid::try_parse(text).ok().map(JobId::new))
}

/// The job that a path names.
pub(crate) fn id(text: &str) -> ApiResult<JobId> {
    parse_id(text).ok_or_else(|| unknown(text))
}

fn unknown(text: &str) -> ApiError {
    let shown: String = text.chars().take(SHOWN_CHARS).collect();
    ApiError::new(Code::UnknownJob, format!("there is no job `{shown}`: list jobs with GET /api/v1/jobs"))
}

/// Creates a job.
pub(crate) async fn create(app: &App, spec: JobSpec) -> ApiResult<CreatedJob> {
    Ok(app.runtime.jobs().create_job(spec).await?)
}

/// Creates all jobs, or none if one of them is invalid.
pub(crate) async fn create_many(
    app: &App,
    specs: Vec<JobSpec>,
    memory: RequestMemory,
) -> ApiResult<Vec<CreatedJob>> {
    let runtime = app.runtime.clone();
    // They are created also if the client leaves, and hold their memory until then.
    let creating = async move {
        let created = runtime.jobs().create_jobs(specs).await;
        drop(memory);
        created
    };
    Ok(app.runtime.to_the_end(creating).await??)
}

/// A page of jobs, newest first; `words` are the statuses that the filter may name.
pub(crate) async fn list(app: &App, query: JobsQuery, words: &StatusWords) -> ApiResult<Page<JobRow>> {
    let query = JobQuery {
        statuses: statuses(query.status.as_deref(), words)?,
        queue: query.queue,
        name: query.name,
        worker: query.worker,
        schedule: query.schedule.as_deref().map(schedule).transpose()?,
        since: query.since.map(|at| Timestamp(at.0)),
        until: query.until.map(|at| Timestamp(at.0)),
        part: part(query.cursor, query.limit)?,
        ..JobQuery::default()
    };
    Ok(app.store().jobs(app.project(), query).await?)
}

fn statuses(text: Option<&str>, words: &StatusWords) -> ApiResult<Vec<JobStatus>> {
    let mut statuses = Vec::new();
    for word in text.into_iter().flat_map(|text| text.split(',')).map(str::trim) {
        let Some((_, found)) = words.iter().find(|(known, _)| *known == word) else {
            let known = words.iter().map(|(word, _)| *word);
            let allowed = known.clone().collect::<Vec<_>>().join(", ");
            let word: String = word.chars().take(SHOWN_CHARS).collect();
            let reason = format!("there is no status `{word}`: give {allowed}, or several with commas");
            let hint = did_you_mean(&word, known);
            return Err(ApiError::field(Code::BadQuery, "?status", reason).hint(hint));
        };
        statuses.extend_from_slice(found);
    }
    Ok(statuses)
}

fn schedule(text: &str) -> ApiResult<ScheduleId> {
    let id = text.parse().ok().or_else(|| Uuid::try_parse(text).ok().map(ScheduleId::new));
    id.ok_or_else(|| {
        ApiError::field(Code::BadQuery, "?schedule", "it is no id of a schedule: give the UUID of one")
    })
}

/// A job.
pub(crate) async fn find(app: &App, text: &str) -> ApiResult<JobRow> {
    let row = app.store().job(app.project(), id(text)?).await?.ok_or_else(|| unknown(text))?;
    written_out(app, row).await
}

/// The job with the large parameters of its call in place of references to them.
async fn written_out(app: &App, mut row: JobRow) -> ApiResult<JobRow> {
    let hashes = blob::blobs_of_jobs([&row]);
    if !hashes.is_empty() {
        let found = app.store().blobs(app.project(), hashes).await?;
        let spec = Arc::make_mut(&mut row.job.spec);
        spec.payload = blob::written_out(&spec.payload, &found).map_err(StoreError::from)?;
    }
    Ok(row)
}

/// Attempts at one job, oldest first.
pub(crate) struct AttemptPage {
    pub(crate) job: JobId,
    pub(crate) attempts: Vec<Attempt>,
    pub(crate) next: Option<String>,
}

/// A page of the attempts at a job; 1,000 unless the page has a limit.
pub(crate) async fn attempts(app: &App, text: &str, page: PageQuery) -> ApiResult<AttemptPage> {
    let job = id(text)?;
    let limit = limit(Some(page.limit.unwrap_or(PAGE_MAX)))?;
    let after = u32::try_from(counted(page.cursor.as_deref())?).unwrap_or(u32::MAX);
    if app.store().job(app.project(), job).await?.is_none() {
        return Err(unknown(text));
    }
    let attempts = app.store().attempts(app.project(), job, after, limit).await?;
    let next = attempts.last().filter(|_| attempts.len() == limit).map(|last| last.number.to_string());
    Ok(AttemptPage { job, attempts, next })
}

/// Cancels a job.
pub(crate) async fn cancel(app: &App, text: &str) -> ApiResult<JobRow> {
    written_out(app, app.runtime.jobs().cancel_job(id(text)?).await?).await
}

/// Ends the wait of a job, or opens a failed or canceled one again.
pub(crate) async fn retry(app: &App, text: &str) -> ApiResult<JobRow> {
    written_out(app, app.runtime.jobs().retry_job(id(text)?).await?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &StatusWords = &[
        ("failed", &[JobStatus::Failed]),
        ("open", &[JobStatus::Pending, JobStatus::Queued, JobStatus::Running]),
    ];

    #[test]
    fn a_status_is_known_or_a_near_miss_is_named() {
        assert_eq!(statuses(Some("failed, open"), WORDS).unwrap().len(), 4);
        assert!(statuses(None, WORDS).unwrap().is_empty());
        let error = statuses(Some("faild"), WORDS).unwrap_err();
        assert_eq!(error.problem().errors[0].hint.as_deref(), Some("did you mean `failed`?"));
    }

    #[test]
    fn an_id_is_a_bare_uuid_or_has_the_prefix() {
        let job: JobId = "job_0190a1b2c3d47000800000000000000b".parse().unwrap();
        assert_eq!(parse_id(&job.to_string()), Some(job));
        assert_eq!(parse_id(&job.uuid().hyphenated().to_string()), Some(job));
        assert_eq!(parse_id("job_1"), None);
    }
}
