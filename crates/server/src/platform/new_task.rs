//! New tasks, one or many: the fields of document 002, translated to the specification of a job.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use windlass_engine::job::{
    JobBackoff, JobSpec, MAX_RETRIES_DEFAULT, MAX_RETRIES_MAX, SPAN_MS_MAX, TEMPLATE_RUN_AT,
};
use windlass_engine::problem::{Problem, Problems};
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::Backoff;
use windlass_engine::time::Timestamp;
use windlass_runtime::jobs::CreatedJob;
use windlass_sdk::contract::{BackoffKind, NewTask, TaskBackoff, TaskCreated, TaskType, TasksCreated, Time};

use super::shape;
use crate::app::App;
use crate::fields::{BACKOFF_WORDS, BodyFields};
use crate::guard::RequestMemory;
use crate::job::{self, JobBody};
use crate::problem::ApiResult;

const TYPES: [(&str, TaskType); 2] = [("immediate", TaskType::Immediate), ("scheduled", TaskType::Scheduled)];

/// Creates a task; answered when it is durable. While an open task of the queue has the same `dedup_key`, that one is
/// the answer.
#[utoipa::path(post, path = "/api/v1/tasks", operation_id = "create_task", tag = "tasks", request_body = NewTask,
    responses((status = 201, description = "The task, or the one that was there", body = TaskCreated)))]
pub(crate) async fn create(
    State(app): State<App>,
    bytes: Bytes,
) -> ApiResult<(StatusCode, Json<TaskCreated>)> {
    let created = job::create(&app, job::read_one::<NewTask<RawJson>>(&bytes)?).await?;
    Ok((StatusCode::CREATED, Json(answer(created))))
}

/// Creates tasks, up to 10,000: all of them, or, when something is wrong with one, none. The body may be sixteen times
/// as large as another.
#[utoipa::path(post, path = "/api/v1/tasks/batch", operation_id = "create_tasks", tag = "tasks",
    request_body = Vec<NewTask>,
    responses((status = 201, description = "The created tasks, in their order", body = TasksCreated)))]
pub(crate) async fn create_batch(
    State(app): State<App>,
    memory: RequestMemory,
    bytes: Bytes,
) -> ApiResult<(StatusCode, Json<TasksCreated>)> {
    let created = job::create_many(&app, job::read_many::<NewTask<RawJson>>(bytes).await?, memory).await?;
    let tasks: Vec<TaskCreated> = created.into_iter().map(answer).collect();
    Ok((StatusCode::CREATED, Json(TasksCreated { count: tasks.len(), tasks })))
}

fn answer(created: CreatedJob) -> TaskCreated {
    TaskCreated {
        task_id: shape::uuid(created.job.uuid()),
        status: shape::whole_word(created.status).to_owned(),
        duplicate: !created.created,
    }
}

/// Where a task is described.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TaskContext {
    /// It is to be created.
    Alone,
    /// A schedule creates it: that says when.
    Schedule,
}

/// The job that these fields ask for, and everything that is wrong with it.
pub(super) fn examine_task(mut body: BodyFields, place: TaskContext) -> (JobSpec, Vec<Problem>) {
    let mut problems = Problems::default();
    let given = TimingPresence { kind: body.has("type"), run_at: body.has("run_at") };
    let task = fields(&mut body, &mut problems);
    timing(&task, &given, place, &body, &mut problems);
    let prefix = body.place().to_owned();
    body.done(&mut problems);
    let mut spec = spec(task);
    if place == TaskContext::Schedule {
        spec.run_at = None;
    }
    let mut all = problems.into_list();
    for problem in spec.problems() {
        let path = problem.path.replacen('$', &prefix, 1);
        // A field that could not be read has its problem already.
        if all.iter().all(|told| told.path != path) {
            all.push(Problem { path, ..problem });
        }
    }
    (spec, all)
}

fn fields(body: &mut BodyFields, problems: &mut Problems) -> NewTask<RawJson> {
    NewTask {
        name: body.required("name", problems).unwrap_or_default(),
        kind: body.word("type", &TYPES, problems),
        queue_name: body.required("queue_name", problems).unwrap_or_default(),
        priority: body.whole("priority", i32::MIN, i32::MAX, problems).unwrap_or_default(),
        payload: body.value("payload").map(RawJson::from).unwrap_or_default(),
        dedup_key: body.text("dedup_key", problems).unwrap_or_default(),
        max_retries: body.whole("max_retries", 0, MAX_RETRIES_MAX, problems),
        run_at: body.moment("run_at", problems).map(|at| Time(at.0)),
        timeout_ms: body.whole("timeout_ms", 0, SPAN_MS_MAX, problems),
        unique_for_ms: body.whole("unique_for_ms", 0, SPAN_MS_MAX, problems),
        limit_key: body.text("limit_key", problems).unwrap_or_default(),
        account: body.text("account", problems),
        backoff: body.within("backoff", problems).map(|mut within| {
            let backoff = TaskBackoff {
                kind: within.word("kind", &BACKOFF_WORDS, problems),
                base_ms: within.whole("base_ms", 0, SPAN_MS_MAX, problems),
                cap_ms: within.whole("cap_ms", 0, SPAN_MS_MAX, problems),
                jitter: within.flag("jitter", problems),
            };
            within.done(problems);
            backoff
        }),
    }
}

/// The presence of the time fields of a task, readable or not.
struct TimingPresence {
    kind: bool,
    run_at: bool,
}

/// Checks that the time fields fit together.
fn timing(
    task: &NewTask<RawJson>,
    given: &TimingPresence,
    place: TaskContext,
    body: &BodyFields,
    problems: &mut Problems,
) {
    match (place, task.kind, task.run_at) {
        (TaskContext::Schedule, _, Some(_)) => {
            problems.error(body.at("run_at"), "the schedule says when: leave it out");
        }
        (TaskContext::Alone, None, _) if !given.kind => {
            let reason = "it is required: give `immediate`, or `scheduled` with `run_at`; without `run_at`, a \
                          `scheduled` task is a template for schedules";
            problems.error(body.at("type"), reason);
        }
        (TaskContext::Alone, Some(TaskType::Scheduled), None) if !given.run_at && task.account.is_some() => {
            let reason = "a template for schedules is not charged: leave it out and give the schedule the whole \
                          `task`, or give `run_at`";
            problems.error(body.at("account"), reason);
        }
        (TaskContext::Alone, Some(TaskType::Immediate), Some(_)) => {
            let reason = "an `immediate` task is due at once: leave it out, or give `type` `scheduled`";
            problems.error(body.at("run_at"), reason);
        }
        (TaskContext::Schedule, _, None)
        | (TaskContext::Alone, None | Some(TaskType::Immediate), _)
        | (TaskContext::Alone, Some(TaskType::Scheduled), _) => {}
    }
}

impl JobBody for NewTask<RawJson> {
    const PLURAL: &'static str = "tasks";

    fn into_spec(self) -> Option<JobSpec> {
        let is_fine = match self.kind {
            Some(TaskType::Immediate) => self.run_at.is_none(),
            Some(TaskType::Scheduled) => self.run_at.is_some() || self.account.is_none(),
            None => false,
        };
        is_fine.then(|| spec(self))
    }

    fn examine(fields: BodyFields) -> (JobSpec, Vec<Problem>) {
        examine_task(fields, TaskContext::Alone)
    }
}

fn spec(task: NewTask<RawJson>) -> JobSpec {
    let backoff = task.backoff.unwrap_or_default();
    let default = JobBackoff::default();
    let template = (task.kind == Some(TaskType::Scheduled)).then_some(TEMPLATE_RUN_AT);
    JobSpec {
        priority: task.priority,
        payload: task.payload,
        dedup_key: task.dedup_key,
        unique_for_ms: task.unique_for_ms.unwrap_or(0),
        limit_key: task.limit_key,
        max_retries: task.max_retries.unwrap_or(MAX_RETRIES_DEFAULT),
        run_at: task.run_at.map(|at| Timestamp(at.0)).or(template),
        timeout_ms: task.timeout_ms.unwrap_or(0),
        backoff: JobBackoff {
            kind: backoff.kind.map_or(default.kind, |kind| match kind {
                BackoffKind::Fixed => Backoff::Fixed,
                BackoffKind::Exponential => Backoff::Exponential,
            }),
            base_ms: backoff.base_ms.unwrap_or(default.base_ms),
            cap_ms: backoff.cap_ms.unwrap_or(default.cap_ms),
            jitter: backoff.jitter.unwrap_or(default.jitter),
        },
        account: task.account,
        ..JobSpec::new(task.name, task.queue_name)
    }
}
