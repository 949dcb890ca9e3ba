//! The pull protocol: claims, extensions of leases, and results of jobs.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use serde_json::Value;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::input::CallOutcome as EngineOutcome;
use windlass_engine::raw_json::RawJson;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_runtime::RuntimeError;
use windlass_runtime::calls::log::Log;
use windlass_runtime::jobs::{
    ClaimRequest as Asking, ClaimVerdict as Word, JobEnd as End, LeasedJob as Handed,
};
use windlass_sdk::contract::{
    CallOutcome, ClaimRequest, ClaimResponse, ClaimedJob, ExchangeRequest, ExchangeResponse, ExtendRequest,
    ExtendResponse, ExtendVerdict, FinishRequest, FinishResponse, FinishVerdict, JobResult, LeaseVerdict,
};

use crate::access::Caller;
use crate::app::App;
use crate::check;
use crate::extract::{ClientAddress, JsonBody};
use crate::guard::RequestMemory;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Jobs in one request: more would delay the requests of other workers.
const JOBS_MAX: usize = 1_000;
/// Queues and services of one claim.
const NAMES_MAX: usize = 1_000;
/// The longest that a claim waits: proxies give up sooner or later.
const WAIT_MS_MAX: u64 = 60_000;
/// How long a claim lasts unless it asks for something else.
const LEASE_MS: u64 = 30_000;
/// A claim that lasts less is lost before it is read; one that lasts more keeps a dead worker's job too long.
const LEASE_MS_RANGE: (u64, u64) = (1_000, 3_600_000);

/// Hands out jobs; waits for some when there are none.
#[utoipa::path(post, path = "/api/v1/jobs/claim", operation_id = "claim_jobs", tag = "jobs", request_body = ClaimRequest,
    responses((status = 200, description = "Jobs that the worker has now; none when there were none", body = ClaimResponse)))]
pub(crate) async fn claim(
    State(app): State<App>,
    ClientAddress(peer): ClientAddress,
    caller: Caller,
    memory: RequestMemory,
    JsonBody(claim): JsonBody<ClaimRequest>,
) -> ApiResult<Json<ClaimResponse<RawJson>>> {
    let claim = read_claim(&app, &peer, &caller, claim, "")?;
    let (jobs, draining) = claim_jobs(&app, memory, claim).await?;
    Ok(Json(ClaimResponse { jobs, draining }))
}

/// Checks a claim; `place` is where its fields stand.
fn read_claim(app: &App, peer: &str, caller: &Caller, claim: ClaimRequest, place: &str) -> ApiResult<Asking> {
    let at = |field: &str| format!("{place}{field}");
    check::name(&at("worker_id"), &claim.worker_id)?;
    check::within(&at("queues"), claim.queues.len(), 0, NAMES_MAX)?;
    check::within(&at("services"), claim.services.len(), 0, NAMES_MAX)?;
    claim.queues.iter().try_for_each(|queue| check::name(&at("queues"), queue))?;
    claim.services.iter().try_for_each(|service| check::name(&at("services"), service))?;
    if claim.queues.is_empty() && claim.services.is_empty() {
        let reason = "there are neither `queues` nor `services`: name the queues or services of the worker";
        return Err(ApiError::field(Code::InvalidBody, at("queues"), reason));
    }
    caller.require_scope(&claim.services, &claim.queues)?;
    if app.runtime.workers().is_replaced(&claim.worker_id, peer) {
        return Err(ApiError::new(Code::WorkerLost, check::taken_id(&claim.worker_id)));
    }
    let wait_ms = check::within(&at("wait_ms"), claim.wait_ms.unwrap_or(0), 0, WAIT_MS_MAX)?;
    Ok(Asking {
        max: check::within(&at("max"), claim.max.unwrap_or(1), 1, JOBS_MAX)?,
        wait: Duration::from_millis(wait_ms),
        lease: lease(&at("lease_ms"), claim.lease_ms)?,
        worker: claim.worker_id,
        queues: claim.queues,
        services: claim.services,
    })
}

/// The jobs of a claim, and whether its worker is to stop.
async fn claim_jobs(
    app: &App,
    memory: RequestMemory,
    asking: Asking,
) -> ApiResult<(Vec<ClaimedJob<RawJson>>, bool)> {
    let names = asking.queues.iter().chain(&asking.services);
    memory.keep(names.map(|name| name.len() + size_of::<String>()).sum()).await?;
    let worker = asking.worker.clone();
    let jobs = app.runtime.jobs().claim(asking).await?;
    let draining = app.runtime.workers().is_worker_draining(&worker);
    Ok((jobs.into_iter().map(|job| handed(app, job)).collect(), draining))
}

fn lease(field: &str, asked: Option<u64>) -> ApiResult<Duration> {
    let (from, to) = LEASE_MS_RANGE;
    check::within(field, asked.unwrap_or(LEASE_MS), from, to).map(Duration::from_millis)
}

fn handed(app: &App, job: Handed) -> ClaimedJob<RawJson> {
    let grants = app.runtime.grants();
    ClaimedJob {
        id: job.job.to_string(),
        lease: grants.signed(job.job, job.fence),
        attempt: job.attempt,
        key: job.key,
        queue: job.queue,
        service: job.service,
        priority: job.priority,
        input: job.input,
        params: job.params.fields().into_iter().map(|(key, value)| (key.to_owned(), value.clone())).collect(),
        memo: job.memo,
        deadline: job.deadline.map(shape::time),
        lease_until: shape::time(job.lease_until),
        call: job.call.as_ref().map(|call| grants.signed(call.run, call.fence)),
        run: job.call.as_ref().map(|call| call.run.to_string()),
        node: job.call.as_ref().map(|call| call.node.to_string()),
    }
}

/// Takes the ends of jobs, each for itself. The very same end sent again is `ok` again; one that the server could not
/// take is an `error` with its code: send it again. When it could take none, the answer is that problem.
#[utoipa::path(post, path = "/api/v1/jobs/finish", operation_id = "finish_jobs", tag = "jobs", request_body = FinishRequest,
    responses((status = 200, description = "The verdict on each result, in their order", body = FinishResponse)))]
pub(crate) async fn finish(
    State(app): State<App>,
    caller: Caller,
    JsonBody(finish): JsonBody<FinishRequest<RawJson>>,
) -> ApiResult<Json<FinishResponse>> {
    let ends = read_ends(&app, "results", finish.results)?;
    Ok(Json(FinishResponse { results: take_ends(&app, &caller, ends).await? }))
}

/// Takes the ends of jobs and then claims, in one request: a busy worker needs no second one for its next jobs. Both
/// parts are checked before either is done. The ends are stored before the claim begins, however long it waits; if they
/// are stored and the claim fails, the answer has the verdicts and the `code` of the claim's problem.
#[utoipa::path(post, path = "/api/v1/jobs/exchange", operation_id = "exchange_jobs", tag = "jobs",
    request_body = ExchangeRequest,
    responses((status = 200, description = "The verdict on each end, in their order, and the jobs that the worker has now",
        body = ExchangeResponse)))]
pub(crate) async fn exchange(
    State(app): State<App>,
    ClientAddress(peer): ClientAddress,
    caller: Caller,
    memory: RequestMemory,
    JsonBody(exchange): JsonBody<ExchangeRequest<RawJson>>,
) -> ApiResult<Json<ExchangeResponse<RawJson>>> {
    let claim = read_claim(&app, &peer, &caller, exchange.claim, "claim.")?;
    let ends = read_ends(&app, "finish", exchange.finish)?;
    let has_ends = !ends.is_empty();
    let results = take_ends(&app, &caller, ends).await?;
    match claim_jobs(&app, memory, claim).await {
        Ok((jobs, draining)) => Ok(Json(ExchangeResponse { results, jobs, draining, code: None })),
        Err(error) if has_ends => {
            let code = Some(error.code().word().to_owned());
            Ok(Json(ExchangeResponse { results, code, ..ExchangeResponse::default() }))
        }
        Err(error) => Err(error),
    }
}

/// The ids of jobs and their ends; `place` is where they stand.
fn read_ends(
    app: &App,
    place: &str,
    results: Vec<JobResult<RawJson>>,
) -> ApiResult<Vec<(String, Option<End>)>> {
    check::within(place, results.len(), 0, JOBS_MAX)?;
    let ends = results.into_iter().enumerate();
    ends.map(|(at, result)| Ok((result.id.clone(), end(app, &format!("{place}[{at}]."), result)?))).collect()
}

/// Hands the ends to the runtime, and returns the verdict on each.
async fn take_ends(
    app: &App,
    caller: &Caller,
    ends: Vec<(String, Option<End>)>,
) -> ApiResult<Vec<FinishVerdict>> {
    let jobs = ends.iter().filter_map(|(_, end)| Some(end.as_ref()?.job)).collect();
    caller.require_jobs(app.store(), app.project(), jobs).await?;
    let known: Vec<bool> = ends.iter().map(|(_, end)| end.is_some()).collect();
    let (ids, ends): (Vec<String>, Vec<Option<End>>) = ends.into_iter().unzip();
    let words = app.runtime.jobs().finish(ends.into_iter().flatten().collect()).await;
    let verdicts = ids.into_iter().zip(verdicts(known, words)?);
    Ok(verdicts.map(|(id, (verdict, code))| FinishVerdict { id, verdict, code }).collect())
}

/// The end of one job; `None` if its lease cannot be one of this job.
fn end(app: &App, place: &str, given: JobResult<RawJson>) -> ApiResult<Option<End>> {
    let JobResult { id, lease, log, logs, retry_after_ms, .. } = given;
    let reported = ReportedOutcome {
        outcome: given.outcome,
        result: given.result,
        error: given.error,
        retryable: given.retryable,
        temporary: given.temporary,
        memo: given.memo,
        recheck_ms: given.recheck_ms,
    };
    let outcome = reported.into_outcome(place)?;
    let Some((job, fence)) = read_lease(app, &lease).filter(|(job, _)| job.to_string() == id) else {
        return Ok(None);
    };
    let log = Log::read(log, logs);
    Ok(Some(End { job, fence, outcome, worker: None, log, retry_after_ms }))
}

/// Extends leases, each by itself, and tells which of their jobs were canceled. A lease that the server could not
/// extend has the verdict `error` with a code: try again. If it could extend none, the answer is that problem.
#[utoipa::path(post, path = "/api/v1/jobs/extend", operation_id = "extend_jobs", tag = "jobs", request_body = ExtendRequest,
    responses((status = 200, description = "The verdict on each lease, in their order", body = ExtendResponse)))]
pub(crate) async fn extend(
    State(app): State<App>,
    caller: Caller,
    JsonBody(extend): JsonBody<ExtendRequest>,
) -> ApiResult<Json<ExtendResponse>> {
    check::within("leases", extend.leases.len(), 0, JOBS_MAX)?;
    let lease = lease("lease_ms", extend.lease_ms)?;
    let read: Vec<Option<(JobId, Fence)>> =
        extend.leases.iter().map(|lease| read_lease(&app, lease)).collect();
    let jobs = read.iter().flatten().map(|(job, _)| *job).collect();
    caller.require_jobs(app.store(), app.project(), jobs).await?;
    let known: Vec<bool> = read.iter().map(Option::is_some).collect();
    let words = app.runtime.jobs().extend(read.into_iter().flatten().collect(), lease).await;
    let verdicts = extend.leases.into_iter().zip(verdicts(known, words)?);
    let results = verdicts.map(|(lease, (verdict, code))| ExtendVerdict { lease, verdict, code }).collect();
    Ok(Json(ExtendResponse { results }))
}

/// The verdict on each lease, or the code of its error. If all of them failed, the answer is the first error, which
/// also says when to try again.
fn verdicts(
    known: Vec<bool>,
    words: Vec<Result<Word, RuntimeError>>,
) -> ApiResult<Vec<(LeaseVerdict, Option<String>)>> {
    let nothing_went_well = !words.is_empty() && words.iter().all(Result::is_err);
    let mut words = words.into_iter();
    let mut verdicts = Vec::with_capacity(known.len());
    for is_known in known {
        if !is_known {
            verdicts.push((LeaseVerdict::Lost, None));
            continue;
        }
        let word = words.next().ok_or_else(|| ApiError::new(Code::Internal, "a job was not answered"))?;
        verdicts.push(match word.map_err(ApiError::from) {
            Ok(Word::Ok) => (LeaseVerdict::Ok, None),
            Ok(Word::Lost) => (LeaseVerdict::Lost, None),
            Ok(Word::Canceled) => (LeaseVerdict::Canceled, None),
            Err(error) if nothing_went_well => return Err(error),
            Err(error) => (LeaseVerdict::Error, Some(error.code().word().to_owned())),
        });
    }
    Ok(verdicts)
}

/// The job and the claim of it that a lease proves. A forged one is like a lost one.
fn read_lease(app: &App, lease: &str) -> Option<(JobId, Fence)> {
    app.runtime.grants().check(lease, |job| job.parse().ok()).ok()
}

/// How a call or a job ended, in the words of a worker.
pub(crate) struct ReportedOutcome<R> {
    pub(crate) outcome: CallOutcome,
    pub(crate) result: R,
    pub(crate) error: Option<String>,
    pub(crate) retryable: Option<bool>,
    pub(crate) temporary: bool,
    pub(crate) memo: Value,
    pub(crate) recheck_ms: Option<u64>,
}

impl<R> ReportedOutcome<R> {
    /// The same in the words of the engine; `place` is where the fields stand.
    pub(crate) fn into_outcome(self, place: &str) -> ApiResult<EngineOutcome<R>> {
        let wrong = |field: &str, reason: &str| {
            Err(ApiError::field(Code::InvalidBody, format!("{place}{field}"), reason))
        };
        match (self.outcome, self.error) {
            (CallOutcome::Done | CallOutcome::Suspended, Some(_)) => {
                wrong("error", "only the outcome `failed` has an error: leave it out, or say `failed`")
            }
            (CallOutcome::Done | CallOutcome::Suspended, None) if self.temporary => wrong(
                "temporary",
                "only the outcome `failed` can be temporary: leave it out, or say `failed`",
            ),
            (CallOutcome::Done, None) => Ok(EngineOutcome::Done(self.result)),
            (CallOutcome::Suspended, None) => {
                Ok(EngineOutcome::Suspended { memo: self.memo, recheck_ms: self.recheck_ms })
            }
            (CallOutcome::Failed, error) => {
                let kind = if self.temporary { FaultKind::Transport } else { FaultKind::Error };
                let fault = Fault::new(kind, error.unwrap_or_default());
                let is_retryable = self.retryable.unwrap_or(true);
                Ok(EngineOutcome::Failed(if is_retryable { fault } else { fault.permanent() }))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_cannot_be_taken_does_not_hold_the_others() {
        let broken = || Err(RuntimeError::Broken);
        let reported = verdicts(vec![true, false, true], vec![broken(), Ok(Word::Ok)]).unwrap();
        let internal = Some("internal".to_owned());
        assert_eq!(
            reported,
            [(LeaseVerdict::Error, internal), (LeaseVerdict::Lost, None), (LeaseVerdict::Ok, None)]
        );
        let all = verdicts(vec![true, true], vec![Err(RuntimeError::Draining), broken()]);
        assert_eq!(all.unwrap_err().code(), Code::Draining);
        assert_eq!(verdicts(vec![false], Vec::new()).unwrap(), [(LeaseVerdict::Lost, None)]);
    }

    #[test]
    fn an_error_goes_only_with_a_failure() {
        let reported = |outcome, error: Option<&str>| {
            let error = error.map(str::to_owned);
            let (result, memo) = (Value::Null, Value::Null);
            ReportedOutcome {
                outcome,
                result,
                error,
                retryable: None,
                temporary: false,
                memo,
                recheck_ms: None,
            }
            .into_outcome("")
        };
        assert!(reported(CallOutcome::Done, Some("no")).is_err());
        assert!(
            matches!(reported(CallOutcome::Failed, Some("no")), Ok(EngineOutcome::Failed(fault)) if fault.retryable)
        );
        assert!(matches!(reported(CallOutcome::Done, None), Ok(EngineOutcome::Done(_))));
    }
}
