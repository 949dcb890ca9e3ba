//! Dead letters: listing, replaying and discarding them.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use serde::Serialize;
use uuid::Uuid;
use windlass_engine::job::{Job, State as JobState};
use windlass_engine::limits::NAME_BYTES;
use windlass_engine::problem::Problems;
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::Fault as EngineFault;
use windlass_engine::weight::weigh;
use windlass_runtime::jobs::{DEAD_LETTERS_MAX, DeadLetterSelector, MovedDeadLetters, ReplayRequest};
use windlass_sdk::contract::{
    DeadLetter, DeadLetterGroupInfo, DeadLetterGroups, DeadLetterItem, DeadLetterRefusal, DeadLetters,
    DeadLettersMoved, DeadLettersQuery, DiscardDeadLetters, FaultInfo, ReplayDeadLetters,
};
use windlass_store::job::JobQuery;
use windlass_store::page::{Cursor, Order, PAGE_DEFAULT, PAGE_MAX, Part};

use super::shape;
use crate::app::App;
use crate::extract::{PathParams, QueryParams};
use crate::fields::{BodyFields, settled};
use crate::job::parse_id;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape::job_fault;
use crate::shape::time;

/// Dead letters that are read at once, and the bytes of a page beyond which the others are left for the next one.
const PART: usize = 50;
const PAGE_BYTES: usize = 16 << 20;
/// Bytes of a reason: a sentence, not a document.
const REASON_BYTES: usize = 4_096;
/// Replays that begin per second at most: more is all at once.
const PER_SECOND_MAX: u32 = 1_000_000;

/// Lists the dead letters of a queue, oldest first: as JSON in texts, or as objects.
#[utoipa::path(get, path = "/api/v1/queues/{name}/dlq", operation_id = "list_dead_letters", tag = "dead letters",
    params(("name" = String, Path, description = "The name of the queue"), DeadLettersQuery),
    responses((status = 200, description = "A page of dead letters", body = DeadLetters<DeadLetterItem>)))]
pub(crate) async fn list(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    QueryParams(asked): QueryParams<DeadLettersQuery>,
) -> ApiResult<Json<DeadLetters<DeadLetterItem>>> {
    let queue = shape::queue_name(name)?;
    let as_objects = match asked.format.as_deref() {
        None | Some("strings") => false,
        Some("objects") => true,
        Some(_) => return Err(ApiError::field(Code::BadQuery, "?format", "give `strings` or `objects`")),
    };
    let count = match asked.count {
        None => PAGE_DEFAULT,
        Some(count @ 1..=PAGE_MAX) => count,
        Some(_) => return Err(ApiError::field(Code::BadQuery, "?count", format!("give 1 to {PAGE_MAX}"))),
    };
    let (mut items, mut next, mut n_bytes) = (Vec::new(), asked.after.map(Cursor::from_text), 0);
    loop {
        let limit = PART.min(count - items.len());
        let query = JobQuery {
            queue: Some(queue.clone()),
            fingerprint: asked.fingerprint.clone(),
            is_dead_letter: Some(true),
            part: Part { order: Order::Oldest, cursor: next, limit, ..Part::default() },
            ..JobQuery::default()
        };
        let page = app.store().jobs(app.project(), query).await?;
        for job in page.items.into_iter().map(|row| row.job) {
            n_bytes += job.spec.payload.weigh().unwrap_or(PAGE_BYTES);
            items.push(letter(job, as_objects)?);
        }
        next = page.next;
        if next.is_none() || items.len() >= count || n_bytes > PAGE_BYTES {
            break;
        }
    }
    let next = next.map(|next| next.as_str().to_owned());
    Ok(Json(DeadLetters { queue, count: items.len(), items, next }))
}

/// A dead letter in the format of document 002: exactly these fields.
#[derive(Serialize)]
struct DeadLetterFields<'a> {
    task_run_id: &'a str,
    task_id: &'a str,
    attempt: u32,
    payload: &'a RawJson,
    priority: i32,
    queue_name: &'a str,
    max_retries: u32,
    error: &'a FaultInfo,
}

fn letter(job: Job, as_object: bool) -> ApiResult<DeadLetterItem> {
    let error = job_fault(&reason(&job));
    let task_run_id = shape::run_id(job.id, job.latest().number);
    let (task_id, attempt) = (shape::uuid(job.id.uuid()), job.latest().number);
    if !as_object {
        let words = DeadLetterFields {
            task_run_id: &task_run_id,
            task_id: &task_id,
            attempt,
            payload: &job.spec.payload,
            priority: job.spec.priority,
            queue_name: &job.spec.queue,
            max_retries: job.spec.max_retries,
            error: &error,
        };
        let text = serde_json::to_string(&words).map_err(|error| {
            tracing::error!(%error, "a dead letter cannot be written as JSON");
            ApiError::new(Code::Internal, "a dead letter cannot be written as JSON")
        })?;
        return Ok(DeadLetterItem::Text(text));
    }
    let (fingerprint, worker_id) = (reason(&job).fingerprint(), job.latest().worker.clone());
    let failed_at = time(job.latest().finished_at.unwrap_or(job.updated_at));
    let spec = Arc::unwrap_or_clone(job.spec);
    Ok(DeadLetterItem::Object(Box::new(DeadLetter {
        fingerprint,
        worker_id,
        created_at: time(job.created_at),
        failed_at,
        task_run_id,
        task_id,
        name: spec.name,
        attempt,
        payload: spec.payload.value(),
        priority: spec.priority,
        queue_name: spec.queue,
        max_retries: spec.max_retries,
        error,
    })))
}

/// Why a dead letter is one.
fn reason(job: &Job) -> EngineFault {
    match &job.state {
        JobState::Failed { reason, .. } => reason.clone(),
        JobState::Pending { .. }
        | JobState::Queued { .. }
        | JobState::Running { .. }
        | JobState::Suspended { .. }
        | JobState::Retrying { .. }
        | JobState::Succeeded
        | JobState::Canceled => EngineFault::new(windlass_engine::retry::FaultKind::Unknown, ""),
    }
}

/// Lists the dead letters of a queue, grouped by error, the largest group first.
#[utoipa::path(get, path = "/api/v1/queues/{name}/dlq/groups", operation_id = "group_dead_letters",
    tag = "dead letters", params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "At most 1,000 groups", body = DeadLetterGroups)))]
pub(crate) async fn groups(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
) -> ApiResult<Json<DeadLetterGroups>> {
    let queue = shape::queue_name(name)?;
    let groups = app.runtime.jobs().dead_letters().groups(&queue).await?.into_iter().map(|group| {
        DeadLetterGroupInfo {
            fingerprint: group.fingerprint,
            count: group.n,
            error: job_fault(&group.reason),
            latest_task_id: shape::uuid(group.latest.uuid()),
            first_at: time(group.first_at),
            last_at: time(group.last_at),
        }
    });
    let groups: Vec<DeadLetterGroupInfo> = groups.collect();
    Ok(Json(DeadLetterGroups { queue, count: groups.len(), groups }))
}

/// Replays dead letters: the oldest (one, unless `count` says otherwise), those of a group, or these. After an error,
/// each of them is either queued again or still a dead letter.
#[utoipa::path(post, path = "/api/v1/queues/{name}/dlq/replay", operation_id = "replay_dead_letters",
    tag = "dead letters", request_body = ReplayDeadLetters,
    params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "How many", body = DeadLettersMoved)))]
pub(crate) async fn replay(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<DeadLettersMoved>> {
    let queue = shape::queue_name(name)?;
    let mut problems = Problems::default();
    let mut body = BodyFields::of_body(&bytes)?;
    let letters = letters(&mut body, Some(1), &mut problems);
    let priority = body.whole("override_priority", i32::MIN, i32::MAX, &mut problems);
    let patch = body.value("patch");
    if let Some(Err(excess)) = patch.as_ref().map(weigh) {
        problems.error("$.patch", format!("it {excess}: give less"));
    }
    let per_second = body.whole("per_second", 1, PER_SECOND_MAX, &mut problems);
    let id = body.text("replay_id", &mut problems);
    if id.as_ref().is_some_and(|id| id.is_empty() || id.len() > NAME_BYTES) {
        problems.error("$.replay_id", format!("it is empty or longer than {NAME_BYTES} bytes"));
    }
    if id.as_ref().is_some_and(|id| id.contains(char::is_control)) {
        problems.error("$.replay_id", "control characters are not allowed");
    }
    body.done(&mut problems);
    settled(problems)?;
    let id = id.unwrap_or_else(|| shape::uuid(Uuid::now_v7()));
    let replay = ReplayRequest { queue: queue.clone(), letters, id, priority, patch, per_second };
    Ok(Json(moved(queue, app.runtime.jobs().dead_letters().replay(replay).await?)))
}

/// Gives dead letters up, for a reason: the oldest `count`, those of a group, or these. They stay readable as tasks.
#[utoipa::path(post, path = "/api/v1/queues/{name}/dlq/discard", operation_id = "discard_dead_letters",
    tag = "dead letters", request_body = DiscardDeadLetters,
    params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "How many", body = DeadLettersMoved)))]
pub(crate) async fn discard(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<DeadLettersMoved>> {
    let queue = shape::queue_name(name)?;
    let mut problems = Problems::default();
    let mut body = BodyFields::of_body(&bytes)?;
    let letters = letters(&mut body, None, &mut problems);
    let had_reason = body.has("reason");
    let reason = body.required("reason", &mut problems).unwrap_or_default();
    if had_reason && (reason.trim().is_empty() || reason.len() > REASON_BYTES) {
        problems.error("$.reason", format!("it is empty or longer than {REASON_BYTES} bytes: say why"));
    }
    body.done(&mut problems);
    settled(problems)?;
    Ok(Json(moved(queue.clone(), app.runtime.jobs().dead_letters().discard(&queue, letters, &reason).await?)))
}

/// Which dead letters a request is about; the oldest so many where it does not say.
fn letters(body: &mut BodyFields, usual: Option<usize>, problems: &mut Problems) -> DeadLetterSelector {
    let count =
        body.whole("count", 1, DEAD_LETTERS_MAX as u64, problems).and_then(|n| usize::try_from(n).ok());
    let (has_ids, has_count) = (body.has("ids"), count.is_some());
    let ids = body.texts("ids", problems);
    let fingerprint = body.text("fingerprint", problems);
    match (ids, fingerprint) {
        (Some(_), Some(_)) => {
            problems.error("$.ids", "there is a `fingerprint` too: give one of the two");
            DeadLetterSelector::Oldest(0)
        }
        (Some(_), None) if has_count => {
            problems.error("$.count", "there are `ids` too: give one of the two");
            DeadLetterSelector::Oldest(0)
        }
        (Some(ids), None) => DeadLetterSelector::Ids(these(&ids, problems)),
        (None, Some(fingerprint)) => {
            DeadLetterSelector::Group { fingerprint, max: count.unwrap_or(DEAD_LETTERS_MAX) }
        }
        (None, None) => {
            if usual.is_none() && !has_count && !has_ids {
                problems.error("$", "it does not say which: give `ids`, `fingerprint` or `count`");
            }
            DeadLetterSelector::Oldest(count.or(usual).unwrap_or(0))
        }
    }
}

fn these(ids: &[String], problems: &mut Problems) -> Vec<windlass_engine::id::JobId> {
    if ids.is_empty() || ids.len() > DEAD_LETTERS_MAX {
        problems.error("$.ids", format!("there are {}: give 1 to {DEAD_LETTERS_MAX}", ids.len()));
        return Vec::new();
    }
    let mut jobs = Vec::with_capacity(ids.len());
    for (n, id) in ids.iter().enumerate() {
        match parse_id(id) {
            Some(job) => jobs.push(job),
            None => problems.error(format!("$.ids[{n}]"), "it is no id of a task: give the UUID of one"),
        }
    }
    jobs
}

fn moved(queue: String, moved: MovedDeadLetters) -> DeadLettersMoved {
    let refused = moved.refused.into_iter().map(|(job, refusal)| DeadLetterRefusal {
        task_id: shape::uuid(job.uuid()),
        reason: match refusal {
            Some(refusal) => refusal.to_string(),
            None => "it is no dead letter of this queue".to_owned(),
        },
    });
    DeadLettersMoved {
        queue,
        moved: moved.moved.len(),
        refused: refused.collect(),
        ids: moved.moved.into_iter().map(|job| shape::uuid(job.uuid())).collect(),
    }
}
