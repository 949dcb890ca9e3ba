//! Tasks: starting, listing, showing them, and acting on them.

mod render;

use std::collections::BTreeMap;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::json;
use tokio::sync::broadcast::error::RecvError;
use tokio::time::Instant;
use windlass_engine::event::Start;
use windlass_engine::id::RunId;
use windlass_engine::input::{Input, Refusal};
use windlass_runtime::SubmitError;
use windlass_runtime::feed::RunUpdates;
use windlass_runtime::runs::{FlowStart, FlowStarted, RunView};
use windlass_store::page::{Order, Part};
use windlass_store::run::{Request, RunQuery, RunRef, RunStatus};

use super::Surface;
use super::era::Era;
use super::failure::{Failure, SchedulerResult, ok};
use super::request::RequestFields;
use super::{flow, id};
use render::Renderer;

/// How long a manual step is awaited; a longer one goes on in the background.
const STEP_WAIT: Duration = Duration::from_secs(30);

/// The words of this surface for statuses.
const STATUSES: [&str; 7] =
    ["pending", "running", "waiting_queue", "completed", "failed", "canceling", "canceled"];

pub(super) async fn list(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let (page, size) = ask.page(surface.era.page_size())?;
    let mut query = match ask.text("status")? {
        Some(word) => query_of(word).ok_or_else(|| {
            Failure::bad(format!("there is no such status: give one of {}", STATUSES.join(", ")))
        })?,
        None => RunQuery::default(),
    };
    if let Some(version) = ask.text("flow_version_id")? {
        let id = id::read_version(version).ok_or_else(|| Failure::unknown("version", version))?;
        query.version = Some(id);
    }
    query.part = Part {
        order: Order::LatestChange,
        cursor: None,
        skip: page.saturating_sub(1).saturating_mul(size),
        limit: size,
        count: surface.era == Era::Prefixed,
    };
    let found = surface.runtime.store().runs(surface.runtime.project(), query).await?;
    let mut renderer = Renderer::new(&surface);
    let mut data = Vec::with_capacity(found.items.len());
    for row in found.items {
        match surface.runtime.runs().view(row.id).await {
            Ok(Some(view)) => data.push(renderer.task(&view).await?),
            // One that was deleted meanwhile is not there.
            Ok(None) => {}
            Err(error) if error.is_of_one_run() => {
                tracing::error!(run = %row.id, %error, "a task is listed without its state");
                data.push(renderer.row(&row).await?);
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(surface.era.page(data, found.total, page, size))
}

fn query_of(word: &str) -> Option<RunQuery> {
    let any = RunQuery::default();
    Some(match word {
        "pending" => RunQuery {
            statuses: vec![RunStatus::Pending, RunStatus::Waiting],
            has_entered: Some(false),
            ..any
        },
        "running" => RunQuery {
            statuses: vec![RunStatus::Running, RunStatus::Waiting, RunStatus::Paused],
            is_owned: Some(true),
            has_entered: Some(true),
            ..any
        },
        "waiting_queue" => RunQuery { statuses: vec![RunStatus::Running], is_owned: Some(false), ..any },
        "completed" => RunQuery { statuses: vec![RunStatus::Completed], ..any },
        "failed" => RunQuery { statuses: vec![RunStatus::Failed], ..any },
        "canceling" => RunQuery { statuses: vec![RunStatus::Canceling], ..any },
        "canceled" => RunQuery { statuses: vec![RunStatus::Canceled], ..any },
        _ => return None,
    })
}

pub(super) async fn create(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let flow = ask.required("FlowID")?;
    let number = ask.whole("Version")?.unwrap_or(0);
    let Ok(version) = u32::try_from(number) else {
        return Err(Failure::bad(format!("`Version` is a number from 0 up, not {number}")));
    };
    let params = ask.object("ParamsJSON")?;
    let manual = ask.flag("Manual")?;
    let request = ask.text("RequestID")?;
    let flow = flow::find(&surface, flow).await?;
    let request = match request {
        Some(_) => {
            // The digest covers the request, not its result: a version published meanwhile does not change it.
            let body = json!({"flow": flow.id, "version": number, "params": params, "manual": manual});
            Some(Request::new(ask.required("RequestID")?, &body))
        }
        None => None,
    };
    let new = FlowStart {
        flow,
        version: Some(version).filter(|number| *number > 0),
        request,
        labels: BTreeMap::new(),
        start: Start { params: params.into(), manual, ..Start::default() },
        wait: None,
    };
    let FlowStarted { started, .. } = surface.runtime.runs().start_flow(new, || {}).await?;
    Ok(Json(json!({"id": id::task(started.run)})))
}

pub(super) async fn show(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let view = view(&surface, ask.required("id")?).await?;
    Ok(Json(Renderer::new(&surface).task(&view).await?))
}

pub(super) async fn cancel(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    tell(&surface, ask.required("id")?, Input::Cancel { reason: None, by: None }).await
}

pub(super) async fn signal(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let task = ask.required("task_id")?;
    let key = ask.required("key")?.to_owned();
    let value = ask.value("value");
    tell(&surface, task, Input::Signal { id: None, key, value, by: None }).await
}

/// Tells a task something. One that has ended takes no notice: clients of this surface expect no error then.
async fn tell(surface: &Surface, task: &str, input: Input) -> SchedulerResult {
    match submit(surface, task, input).await {
        Ok(()) | Err(ActError::Ended) => ok(),
        Err(ActError::Failed(failure)) => Err(failure),
    }
}

/// Lets a task enter one more node, and waits until that has been attempted. A task that is not advanced by hand is
/// paused first.
pub(super) async fn run_once(State(surface): State<Surface>, ask: RequestFields) -> SchedulerResult {
    let text = ask.required("id")?;
    ask.text("owner")?;
    let view = view(&surface, text).await?;
    let status = view.row.projection.status;
    if !status.is_open() {
        return Err(Failure::conflict(format!("the task has ended ({})", status.word())));
    }
    if !view.state.granted_calls(&view.plan).is_empty() {
        return Err(Failure::conflict("a call of this task is in flight: step it when the call has ended"));
    }
    let changes = surface.runtime.runs().changes();
    if !view.state.start.manual && status != RunStatus::Paused {
        submit(&surface, text, Input::Pause).await?;
    }
    submit(&surface, text, Input::Step).await?;
    attempted(&surface, view.row.id, changes).await?;
    ok()
}

/// Waits until no server works on the run any more.
async fn attempted(surface: &Surface, run: RunId, mut changes: RunUpdates) -> Result<(), Failure> {
    let until = Instant::now() + STEP_WAIT;
    loop {
        let row = surface.runtime.store().run(surface.runtime.project(), RunRef::Id(run)).await?;
        if row.is_none_or(|row| row.projection.owner.is_none()) {
            return Ok(());
        }
        loop {
            match tokio::time::timeout_at(until, changes.recv()).await {
                Ok(Ok(change)) if change.run != run => {}
                // After missed events the row is read again.
                Ok(Ok(_) | Err(RecvError::Lagged(_))) => break,
                Ok(Err(RecvError::Closed)) | Err(_) => return Ok(()),
            }
        }
    }
}

/// A task by the id a client gave.
pub(super) async fn view(surface: &Surface, text: &str) -> Result<RunView, Failure> {
    let unknown = || Failure::unknown("task", text);
    let run = id::read_task(text).ok_or_else(unknown)?;
    surface.runtime.runs().view(run).await?.ok_or_else(unknown)
}

/// Why an input was not taken.
enum ActError {
    /// The task has ended, or is about to.
    Ended,
    Failed(Failure),
}

impl From<ActError> for Failure {
    fn from(error: ActError) -> Self {
        match error {
            ActError::Ended => Failure::conflict("the task has ended"),
            ActError::Failed(failure) => failure,
        }
    }
}

async fn submit(surface: &Surface, text: &str, input: Input) -> Result<(), ActError> {
    let unknown = || ActError::Failed(Failure::unknown("task", text));
    let run = id::read_task(text).ok_or_else(unknown)?;
    match surface.runtime.runs().submit(run, input).await {
        Ok(_) => Ok(()),
        Err(SubmitError::UnknownRun(_)) => Err(unknown()),
        Err(SubmitError::Refused(Refusal::Ended { .. } | Refusal::Canceling)) => Err(ActError::Ended),
        Err(error) => Err(ActError::Failed(error.into())),
    }
}
