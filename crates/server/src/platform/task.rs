//! New tasks, one or many. This is the way in of all work: what is well written is parsed once and moved, never
//! copied; only what is not is taken apart field by field.

use std::fmt;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use serde::de::{self, Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use windlass_engine::job::{JobBackoff, JobSpec, MAX_RETRIES_DEFAULT, MAX_RETRIES_MAX, SPAN_MS_MAX};
use windlass_engine::limits::PROBLEMS;
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::retry::Backoff;
use windlass_engine::time::Timestamp;
use windlass_runtime::job::{BATCH_MAX, Created};
use windlass_sdk::types::{BackoffKind, NewTask, TaskBackoff, TaskCreated, TaskType, TasksCreated, Time};

use super::fields::{Fields, named, refused};
use super::shape;
use crate::app::App;
use crate::extract;
use crate::problem::{Answer, ApiError, Code};

const TYPES: [(&str, TaskType); 2] = [("immediate", TaskType::Immediate), ("scheduled", TaskType::Scheduled)];
const KINDS: [(&str, BackoffKind); 2] =
    [("exponential", BackoffKind::Exponential), ("fixed", BackoffKind::Fixed)];
/// Larger bodies are read on a thread that may take its time.
const LARGE_BYTES: usize = 256 << 10;

/// Creates a task; answered when it is durable. While an open task of the queue has the same `dedup_key`, that one is
/// the answer.
#[utoipa::path(post, path = "/api/v1/tasks", operation_id = "create_task", tag = "tasks", request_body = NewTask,
    responses((status = 201, description = "The task, or the one that was there", body = TaskCreated)))]
pub(crate) async fn create(State(app): State<App>, bytes: Bytes) -> Answer<(StatusCode, Json<TaskCreated>)> {
    let created = app.runtime.create_job(read_one(&bytes)?).await?;
    Ok((StatusCode::CREATED, Json(answer(created))))
}

/// Creates tasks, up to 10,000: all of them, or, when something is wrong with one, none. The body may be sixteen times
/// as large as another.
#[utoipa::path(post, path = "/api/v1/tasks/batch", operation_id = "create_tasks", tag = "tasks",
    request_body = Vec<NewTask>,
    responses((status = 201, description = "What became of each, in their order", body = TasksCreated)))]
pub(crate) async fn create_batch(
    State(app): State<App>,
    bytes: Bytes,
) -> Answer<(StatusCode, Json<TasksCreated>)> {
    let specs = if bytes.len() > LARGE_BYTES {
        let read = tokio::task::spawn_blocking(move || read_many(&bytes));
        read.await.map_err(|_| ApiError::new(Code::Internal, "the body could not be read: report it"))??
    } else {
        read_many(&bytes)?
    };
    let created = app.runtime.create_jobs(specs).await?;
    let tasks: Vec<TaskCreated> = created.into_iter().map(answer).collect();
    Ok((StatusCode::CREATED, Json(TasksCreated { count: tasks.len(), tasks })))
}

fn answer(created: Created) -> TaskCreated {
    TaskCreated {
        task_id: shape::uuid(created.job.uuid()),
        status: created.status.to_owned(),
        duplicate: !created.created,
    }
}

/// The job that a body asks for.
fn read_one(bytes: &Bytes) -> Answer<JobSpec> {
    if let Some(spec) = serde_json::from_slice::<Strict>(bytes).ok().and_then(|Strict(task)| plain(task)) {
        return Ok(spec);
    }
    let (spec, problems) = judged(Fields::of_body(bytes)?, Place::Alone);
    if problems.is_empty() { Ok(spec) } else { Err(refused(problems)) }
}

/// The jobs that a body asks for.
fn read_many(bytes: &Bytes) -> Answer<Vec<JobSpec>> {
    let specs = serde_json::from_slice::<Batch>(bytes).ok();
    if let Some(specs) = specs.and_then(|Batch(tasks)| tasks.into_iter().map(plain).collect()) {
        return Ok(specs);
    }
    let wrong = |reason: String| Err(ApiError::field(Code::InvalidFields, "$", reason));
    // Counted before they are kept: there may be millions.
    let n = serde_json::from_slice::<Vec<IgnoredAny>>(bytes).map_or(0, |items| items.len());
    if n > BATCH_MAX {
        return wrong(format!("it has {n} tasks: give at most {BATCH_MAX}, and the others after"));
    }
    let items = match extract::parse(bytes)? {
        Value::Array(items) => items,
        other => return wrong(format!("it is {}: give an array of tasks", named(&other))),
    };
    let (mut specs, mut problems) = (Vec::with_capacity(items.len()), Problems::default());
    let mut all = Vec::new();
    for (n, item) in items.into_iter().enumerate() {
        match item {
            Value::Object(left) => {
                let (spec, told) = judged(Fields::of(format!("$[{n}]"), left), Place::Alone);
                specs.push(spec);
                all.extend(told);
            }
            other => problems.error(format!("$[{n}]"), format!("it is {}: give an object", named(&other))),
        }
        if all.len() >= PROBLEMS {
            break;
        }
    }
    all.extend(problems.into_list());
    if all.is_empty() { Ok(specs) } else { Err(refused(all)) }
}

/// Where a task is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is to be created.
    Alone,
    /// A schedule creates it: that says when.
    Schedule,
}

/// The job that these fields ask for, and everything that is wrong with it.
pub(super) fn judged(mut body: Fields, place: Place) -> (JobSpec, Vec<Problem>) {
    let mut problems = Problems::default();
    let given = Given { kind: body.has("type"), run_at: body.has("run_at") };
    let task = fields(&mut body, &mut problems);
    timing(&task, &given, place, &body, &mut problems);
    let prefix = body.place().to_owned();
    body.done(&mut problems);
    let spec = spec(task);
    let mut all = problems.into_list();
    for problem in spec.problems() {
        let path = problem.path.replacen('$', &prefix, 1);
        // Of one place, what could not be read was told already.
        if all.iter().all(|told| told.path != path) {
            all.push(Problem { path, ..problem });
        }
    }
    (spec, all)
}

fn fields(body: &mut Fields, problems: &mut Problems) -> NewTask {
    NewTask {
        name: body.required("name", problems).unwrap_or_default(),
        kind: body.word("type", &TYPES, problems),
        queue_name: body.required("queue_name", problems).unwrap_or_default(),
        priority: body.whole("priority", i32::MIN, i32::MAX, problems).unwrap_or_default(),
        payload: body.value("payload").unwrap_or_default(),
        dedup_key: body.text("dedup_key", problems).unwrap_or_default(),
        max_retries: body.whole("max_retries", 0, MAX_RETRIES_MAX, problems),
        run_at: body.moment("run_at", problems).map(|at| Time(at.0)),
        timeout_ms: body.whole("timeout_ms", 0, SPAN_MS_MAX, problems),
        unique_for_ms: body.whole("unique_for_ms", 0, SPAN_MS_MAX, problems),
        limit_key: body.text("limit_key", problems).unwrap_or_default(),
        account: body.text("account", problems),
        backoff: body.within("backoff", problems).map(|mut within| {
            let backoff = TaskBackoff {
                kind: within.word("kind", &KINDS, problems),
                base_ms: within.whole("base_ms", 0, SPAN_MS_MAX, problems),
                cap_ms: within.whole("cap_ms", 0, SPAN_MS_MAX, problems),
                jitter: within.flag("jitter", problems),
            };
            within.done(problems);
            backoff
        }),
    }
}

/// What is said about the time of a task, whether or not it could be read.
struct Given {
    kind: bool,
    run_at: bool,
}

/// Whether what is said about its time goes together.
fn timing(task: &NewTask, given: &Given, place: Place, body: &Fields, problems: &mut Problems) {
    match (place, task.kind, task.run_at) {
        (Place::Schedule, _, Some(_)) => {
            problems.error(body.at("run_at"), "the schedule says when: leave it out");
        }
        (Place::Schedule, Some(TaskType::Scheduled), None) => {
            problems.error(body.at("type"), "the schedule says when: leave it out, or give `immediate`");
        }
        (Place::Alone, None, _) if !given.kind => {
            problems.error(body.at("type"), "it is required: give `immediate`, or `scheduled` with `run_at`");
        }
        (Place::Alone, Some(TaskType::Scheduled), None) if !given.run_at => {
            let reason = "it is required when `type` is `scheduled`: give RFC 3339 text such as \
                          \"2026-11-15T09:00:00Z\"";
            problems.error(body.at("run_at"), reason);
        }
        (Place::Alone, Some(TaskType::Immediate), Some(_)) => {
            let reason = "an `immediate` task is due at once: leave it out, or give `type` `scheduled`";
            problems.error(body.at("run_at"), reason);
        }
        (Place::Schedule, None | Some(TaskType::Immediate), None)
        | (Place::Alone, None | Some(TaskType::Immediate), _)
        | (Place::Alone, Some(TaskType::Scheduled), _) => {}
    }
}

/// The job, if what is said about its time goes together.
fn plain(task: NewTask) -> Option<JobSpec> {
    let is_fine = match task.kind {
        Some(TaskType::Immediate) => task.run_at.is_none(),
        Some(TaskType::Scheduled) => task.run_at.is_some(),
        None => false,
    };
    is_fine.then(|| spec(task))
}

fn spec(task: NewTask) -> JobSpec {
    let backoff = task.backoff.unwrap_or_default();
    let usual = JobBackoff::default();
    JobSpec {
        priority: task.priority,
        payload: task.payload,
        dedup_key: task.dedup_key,
        unique_for_ms: task.unique_for_ms.unwrap_or(0),
        limit_key: task.limit_key,
        max_retries: task.max_retries.unwrap_or(MAX_RETRIES_DEFAULT),
        run_at: task.run_at.map(|at| Timestamp(at.0)),
        timeout_ms: task.timeout_ms.unwrap_or(0),
        backoff: JobBackoff {
            kind: backoff.kind.map_or(usual.kind, |kind| match kind {
                BackoffKind::Fixed => Backoff::Fixed,
                BackoffKind::Exponential => Backoff::Exponential,
            }),
            base_ms: backoff.base_ms.unwrap_or(usual.base_ms),
            cap_ms: backoff.cap_ms.unwrap_or(usual.cap_ms),
            jitter: backoff.jitter.unwrap_or(usual.jitter),
        },
        account: task.account,
        ..JobSpec::new(task.name, task.queue_name)
    }
}

/// A task from an object: an array would be taken for its fields in their order.
struct Strict(NewTask);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Strict;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Strict, A::Error> {
                NewTask::deserialize(de::value::MapAccessDeserializer::new(map)).map(Strict)
            }
        }
        from.deserialize_map(Object)
    }
}

/// Tasks, no more than may come at once.
struct Batch(Vec<NewTask>);

impl<'de> Deserialize<'de> for Batch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Array;
        impl<'de> Visitor<'de> for Array {
            type Value = Batch;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Batch, A::Error> {
                let mut tasks = Vec::new();
                while let Some(Strict(task)) = items.next_element()? {
                    if tasks.len() == BATCH_MAX {
                        return Err(de::Error::custom("too many"));
                    }
                    tasks.push(task);
                }
                Ok(Batch(tasks))
            }
        }
        from.deserialize_seq(Array)
    }
}
