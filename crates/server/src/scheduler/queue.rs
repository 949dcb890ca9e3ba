//! Jobs for pull workers.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use windlass_engine::id::JobId;
use windlass_engine::input::CallOutcome;
use windlass_engine::job::LEASE_MS_MAX;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_runtime::calls::log::Log;
use windlass_runtime::grant::{GrantError, GrantSigner};
use windlass_runtime::jobs::{ClaimRequest, ClaimVerdict, JobEnd, LeasedJob};
use windlass_store::job::CallRef;
use windlass_store::page::NameRange;
use windlass_store::run::RunRef;
use windlass_store::worker::WorkerQuery;

use super::Surface;
use super::attempt::node_key;
use super::failure::{Failure, SchedulerResult, ok};
use super::id;
use super::request::RequestFields;
use super::worker::{lost, seconds};
use crate::access::Caller;
use crate::extract::ClientAddress;

pub(super) async fn poll(
    State(surface): State<Surface>,
    ClientAddress(peer): ClientAddress,
    caller: Caller,
    ask: RequestFields,
) -> Result<Response, Failure> {
    let worker = ask.required("worker_id")?.to_owned();
    if surface.runtime.workers().is_replaced(&worker, &peer) {
        return Err(lost(&worker));
    }
    let services = services(&surface, &ask, &worker).await?;
    caller.require_scope(&services, [])?;
    let claimed = match lease(&ask)? {
        None => surface.runtime.jobs().poll(worker.clone(), services).await?,
        Some(lease) => {
            let (queues, wait) = (Vec::new(), Duration::ZERO);
            let claim = ClaimRequest { worker: worker.clone(), queues, services, max: 1, wait, lease };
            surface.runtime.jobs().claim(claim).await?.into_iter().next()
        }
    };
    Ok(match claimed {
        Some(claimed) => Json(render(surface.runtime.grants(), &claimed, &worker)).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// The lease that a worker asks for; it keeps it by `update_run`.
fn lease(ask: &RequestFields) -> Result<Option<Duration>, Failure> {
    let lease_ms = ask.whole("lease_ms")?.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
    Ok(lease_ms.map(|ms| Duration::from_millis(ms.min(LEASE_MS_MAX))))
}

/// The services of the worker: from the request, or else from its registration.
async fn services(surface: &Surface, ask: &RequestFields, worker: &str) -> Result<Vec<String>, Failure> {
    if let Some(services) = ask.texts("services")?.filter(|services| !services.is_empty()) {
        return Ok(services);
    }
    let query = WorkerQuery { ids: NameRange::One(worker.to_owned()), ..WorkerQuery::default() };
    let known = surface.runtime.store().workers(surface.runtime.project(), query).await?;
    let services: Vec<String> = known.into_iter().flat_map(|worker| worker.services).collect();
    if services.is_empty() {
        return Err(Failure::bad("`services` is missing: name the services of this worker"));
    }
    Ok(services)
}

/// The job for its worker. Both ids are signed: the worker sends them back as they are.
fn render(grants: &GrantSigner, claimed: &LeasedJob, worker: &str) -> Value {
    let call = claimed.call.as_ref();
    let signed = |call: &CallRef| grants.signed_as(&call.run.uuid(), call.run, call.fence);
    let run_id = call.map(signed).unwrap_or_default();
    let input = json!({"input": claimed.input, "params": claimed.params, "run_id": run_id});
    let until = claimed.deadline.map_or(claimed.lease_until, |deadline| deadline.min(claimed.lease_until));
    json!({
        "id": grants.signed_as(&claimed.job.uuid(), claimed.job, claimed.fence),
        "task_id": call.map(|call| id::task(call.run)).unwrap_or_default(),
        "node_key": call.map(|call| node_key(&call.node)).unwrap_or_default(),
        "service": claimed.service,
        "input_json": input.to_string(),
        "status": "running",
        "worker_id": worker,
        "created_at": seconds(claimed.created_at),
        "started_at": seconds(claimed.started_at),
        "timeout_at": seconds(until),
    })
}

pub(super) async fn complete(
    State(surface): State<Surface>,
    caller: Caller,
    ask: RequestFields,
) -> SchedulerResult {
    let text = ask.required("queue_id")?;
    // The claim tells the attempt.
    ask.text("run_id")?;
    let worker = ask.name("worker_id")?.map(str::to_owned);
    let outcome = match ask.text("error")? {
        Some(message) => CallOutcome::Failed(Fault::new(FaultKind::Error, message)),
        None => CallOutcome::Done(ask.value("result").into()),
    };
    let log = match (ask.text("log")?, ask.text("log_path")?) {
        (Some(log), _) => Log::of_text(log),
        // A file of the worker's machine cannot be read from here.
        (None, Some(path)) => Log::of_text(format!("the worker keeps its log at {path}")),
        (None, None) => Log::default(),
    };
    let unknown = || Failure::unknown("queue task", text);
    let stale =
        || Failure::conflict("the lease was lost: another worker has the task, or the task has ended");
    let (job, fence) = match surface.runtime.grants().check(text, id::read_job) {
        Ok(grant) => grant,
        Err(GrantError::Unreadable) => return Err(unknown()),
        Err(GrantError::Forged) => return Err(stale()),
    };
    if surface.runtime.store().job(surface.runtime.project(), job).await?.is_none() {
        return Err(unknown());
    }
    caller.require_jobs(surface.runtime.store(), surface.runtime.project(), vec![job]).await?;
    let finish = JobEnd { job, fence, outcome, worker, log, retry_after_ms: None };
    let verdict = surface.runtime.jobs().finish(vec![finish]).await.into_iter().next();
    match verdict.ok_or_else(unknown)?? {
        ClaimVerdict::Ok => ok(),
        ClaimVerdict::Lost => Err(stale()),
        ClaimVerdict::Canceled => Err(Failure::conflict("the task was cancelled: its result is ignored")),
    }
}

/// A heartbeat of an attempt: it extends the lease. A lost lease is reported at the end.
pub(super) async fn update_run(
    State(surface): State<Surface>,
    caller: Caller,
    ask: RequestFields,
) -> SchedulerResult {
    let text = ask.required("run_id")?;
    ask.text("status")?;
    let unknown = || Failure::unknown("node run", text);
    // A text without the signature of the call is like a lost lease: it extends nothing.
    let (run, signed_fence) = match surface.runtime.grants().check(text, id::read_task) {
        Ok((run, fence)) => (run, Some(fence)),
        Err(GrantError::Forged) => return ok(),
        Err(GrantError::Unreadable) => (id::read_attempt(text).ok_or_else(unknown)?.0, None),
    };
    let store = surface.runtime.store();
    store.run(surface.runtime.project(), RunRef::Id(run)).await?.ok_or_else(unknown)?;
    let Some(fence) = signed_fence else { return ok() };
    if let Some(row) = store.job(surface.runtime.project(), JobId::of_call(run, fence)).await? {
        caller.require_scope([&row.job.spec.name], [])?;
        surface.runtime.jobs().keep_polled(&row.job, row.job.fence).await?;
    }
    ok()
}
