//! Jobs for workers that come and ask.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use windlass_engine::id::JobId;
use windlass_engine::input::Outcome;
use windlass_engine::job::{LEASE_MS_DEFAULT, LEASE_MS_MAX};
use windlass_engine::retry::{Fault, FaultKind};
use windlass_runtime::job::{Claim, Claimed, Finish, Verdict};
use windlass_runtime::log::Log;
use windlass_store::run::RunRef;
use windlass_store::worker::WorkerQuery;

use super::Surface;
use super::answer::{Answer, Failure, ok};
use super::ask::Ask;
use super::attempt::node_key;
use super::id;
use super::worker::seconds;

pub(super) async fn poll(State(surface): State<Surface>, ask: Ask) -> Result<Response, Failure> {
    let worker = ask.required("worker_id")?.to_owned();
    let services = services(&surface, &ask, &worker).await?;
    let lease_ms = ask.whole("lease_ms")?.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0);
    let claim = Claim {
        worker: worker.clone(),
        queues: Vec::new(),
        services,
        max: 1,
        wait: Duration::ZERO,
        lease: Duration::from_millis(lease_ms.unwrap_or(LEASE_MS_DEFAULT).min(LEASE_MS_MAX)),
    };
    let claimed = surface.runtime.claim(claim).await?;
    Ok(match claimed.into_iter().next() {
        Some(claimed) => Json(render(&claimed, &worker)).into_response(),
        None => StatusCode::NO_CONTENT.into_response(),
    })
}

/// What the worker can do: as it says, or as it said when it registered.
async fn services(surface: &Surface, ask: &Ask, worker: &str) -> Result<Vec<String>, Failure> {
    if let Some(services) = ask.texts("services")?.filter(|services| !services.is_empty()) {
        return Ok(services);
    }
    let query = WorkerQuery { id: Some(worker.to_owned()), ..WorkerQuery::default() };
    let known = surface.runtime.store().workers(query).await?;
    let services: Vec<String> = known.into_iter().flat_map(|worker| worker.services).collect();
    if services.is_empty() {
        return Err(Failure::bad("`services` is missing: name what this worker can do"));
    }
    Ok(services)
}

fn render(claimed: &Claimed, worker: &str) -> Value {
    let call = claimed.call.as_ref();
    let run_id = call.map(|call| id::attempt(call.run, call.fence, 0)).unwrap_or_default();
    let input = json!({"input": claimed.input, "params": claimed.params, "run_id": run_id});
    let until = claimed.deadline.map_or(claimed.lease_until, |deadline| deadline.min(claimed.lease_until));
    json!({
        "id": id::claim(claimed.job, claimed.fence),
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

pub(super) async fn complete(State(surface): State<Surface>, ask: Ask) -> Answer {
    let text = ask.required("queue_id")?;
    let unknown = || Failure::unknown("queue task", text);
    let (job, fence) = id::read_claim(text).ok_or_else(unknown)?;
    let outcome = match ask.text("error")? {
        Some(message) => Outcome::Failed(Fault::new(FaultKind::Error, message)),
        None => Outcome::Done(ask.value("result").into()),
    };
    let log = match (ask.text("log")?, ask.text("log_path")?) {
        (Some(log), _) => Log::of_text(log),
        // A file of the worker's machine cannot be read from here.
        (None, Some(path)) => Log::of_text(format!("the worker keeps its log at {path}")),
        (None, None) => Log::default(),
    };
    if surface.runtime.store().job(job).await?.is_none() {
        return Err(unknown());
    }
    let finish = Finish {
        job,
        fence,
        outcome,
        worker: ask.text("worker_id")?.map(str::to_owned),
        log,
        retry_after_ms: None,
    };
    let verdict = surface.runtime.finish(vec![finish]).await.into_iter().next();
    match verdict.ok_or_else(unknown)?? {
        Verdict::Ok => ok(),
        Verdict::Lost => {
            Err(Failure::conflict("the lease was lost: somebody else has the task, or it is over"))
        }
        Verdict::Canceled => Err(Failure::conflict("the task was cancelled: nobody waits for its result")),
    }
}

/// A sign that somebody works on an attempt: what is claimed stays so. A lease that was lost is told at the end.
pub(super) async fn update_run(State(surface): State<Surface>, ask: Ask) -> Answer {
    let text = ask.required("run_id")?;
    ask.text("status")?;
    let unknown = || Failure::unknown("node run", text);
    let (run, fence) = id::read_attempt(text).ok_or_else(unknown)?;
    let store = surface.runtime.store();
    store.run(RunRef::Id(run)).await?.ok_or_else(unknown)?;
    let Some(fence) = fence else { return ok() };
    if let Some(row) = store.job(JobId::of_call(run, fence)).await? {
        let lease = Duration::from_millis(LEASE_MS_DEFAULT);
        for extended in surface.runtime.extend(vec![(row.id(), row.job.fence)], lease).await {
            extended?;
        }
    }
    ok()
}
