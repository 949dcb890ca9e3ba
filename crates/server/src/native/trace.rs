//! Attempts, the journal, and the reasons why a run waits.

use axum::Json;
use axum::extract::State;
use windlass_engine::counter::Seq;
use windlass_engine::function;
use windlass_engine::id::JobId;
use windlass_engine::plan::{Exec, Plan};
use windlass_engine::run::Run;
use windlass_engine::time::Timestamp;
use windlass_sdk::contract::{JournalEntry, List, NodeAttemptInfo, PageQuery, WaitReason, Why};
use windlass_store::job::JobStatus;
use windlass_store::page::NameRange;
use windlass_store::projection::attempts::Attempts;
use windlass_store::queue::{QueueDepth, Rate, Spent};
use windlass_store::run::{RunRow, Since};
use windlass_store::worker::WorkerQuery;

use crate::app::{App, run_id};
use crate::extract::{PathParams, QueryParams};
use crate::problem::ApiResult;
use crate::shape;

/// Reasons given for one run, and how many of them are looked into: a wide fan has one for each branch.
const REASONS_MAX: usize = 1_000;
const REASONS_LOOKED_INTO: usize = 50;

/// Lists the attempts at the nodes of a run, oldest first. Every page reads the whole journal: of a long run ask for
/// large pages (`limit` up to 1,000).
#[utoipa::path(get, path = "/api/v1/runs/{id}/attempts", operation_id = "list_attempts", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), PageQuery),
    responses((status = 200, description = "A page of attempts", body = List<NodeAttemptInfo>)))]
pub(crate) async fn attempts(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<NodeAttemptInfo>>> {
    let view = app.view(run_id(&id)?).await?;
    let mut attempts = Attempts::new(view.row.id, &view.plan);
    app.each_entry(view.row.id, |_, entry| attempts.follow(entry)).await?;
    let rows = attempts.rows();
    Ok(Json(shape::slice(rows, asked.cursor.as_deref(), asked.limit, shape::attempt)?))
}

/// Lists the entries of a run's journal, oldest first.
#[utoipa::path(get, path = "/api/v1/runs/{id}/journal", operation_id = "list_journal", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), PageQuery),
    responses((status = 200, description = "A page of entries", body = List<JournalEntry>)))]
pub(crate) async fn journal(
    State(app): State<App>,
    PathParams(id): PathParams<String>,
    QueryParams(asked): QueryParams<PageQuery>,
) -> ApiResult<Json<List<JournalEntry>>> {
    let row = app.row(run_id(&id)?).await?;
    let (after, limit) = (Seq(shape::counted(asked.cursor.as_deref())?), shape::limit(asked.limit)?);
    let part = app.store().journal(app.project(), row.id, Since::Entry(after), limit).await?;
    let items: Vec<JournalEntry> =
        part.entries.iter().map(|(seq, entry)| shape::entry(*seq, entry)).collect();
    let next = items
        .last()
        .filter(|last| items.len() == limit && last.seq < row.len.0)
        .map(|last| last.seq.to_string());
    Ok(Json(List { items, next }))
}

/// Lists the reasons why a run waits, each with its remedy.
#[utoipa::path(get, path = "/api/v1/runs/{id}/why", operation_id = "explain_run", tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "Everything it waits for", body = Why)))]
pub(crate) async fn why(State(app): State<App>, PathParams(id): PathParams<String>) -> ApiResult<Json<Why>> {
    let view = app.view(run_id(&id)?).await?;
    let reasons = reasons(&app, &view.row, &view.plan, &view.state).await?;
    Ok(Json(Why { id: view.row.id.to_string(), status: shape::status(view.row.projection.status), reasons }))
}

/// The reasons why a run waits, with facts from the store.
pub(crate) async fn reasons(app: &App, row: &RunRow, plan: &Plan, state: &Run) -> ApiResult<Vec<WaitReason>> {
    let mut reasons: Vec<WaitReason> =
        state.why(plan).into_iter().take(REASONS_MAX).map(shape::reason).collect();
    let asked = reasons.iter_mut().filter(|reason| reason.service.is_some());
    for reason in asked.take(REASONS_LOOKED_INTO) {
        look_into(app, plan, state, reason).await?;
    }
    count_missing(app, row, &mut reasons).await?;
    Ok(reasons)
}

/// Adds the amount that an account lacks for a call, from the store.
async fn count_missing(app: &App, row: &RunRow, reasons: &mut [WaitReason]) -> ApiResult<()> {
    let mut short: Vec<&mut WaitReason> =
        reasons.iter_mut().filter(|reason| reason.waits_for == "balance").collect();
    let Some(account) = row.origin.account.as_deref().filter(|_| !short.is_empty()) else {
        return Ok(());
    };
    let Some(row) = app.store().account(app.project(), account).await? else { return Ok(()) };
    for reason in &mut short {
        let amount = reason.amount.unwrap_or_default();
        let (balance, missing) = (row.balance, amount.saturating_sub(row.balance.0));
        // A deposit since then will wake the run.
        if missing > 0 {
            reason.text =
                format!("a call of {amount} is more than the account has: {balance}, {missing} too little");
            reason.command = Some(format!("windlass account deposit {account} {missing}"));
            reason.missing = Some(missing);
        }
    }
    Ok(())
}

/// Adds the number of live workers of a service, from the store.
async fn look_into(app: &App, plan: &Plan, state: &Run, reason: &mut WaitReason) -> ApiResult<()> {
    let Some(service) = reason.service.clone() else { return Ok(()) };
    let place = state.place(plan, &reason.node.as_str().into());
    let work = place.as_ref().and_then(|place| Some((place.call?, place.phase.work()?)));
    let Some((call, work)) = work else { return Ok(()) };
    let is_job = match call.exec {
        Exec::Queue => true,
        Exec::Http => false,
        Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } => return Ok(()),
    };
    let now = app.runtime.clock().now();
    if is_job && let Some(fence) = work.fence() {
        let job = app.store().job(app.project(), JobId::of_call(state.id, fence)).await?;
        if job.is_some_and(|row| JobStatus::of(&row.job) == JobStatus::Running) {
            return Ok(());
        }
        let queues = app.store().queues(app.project(), NameRange::One(service.clone()), now).await?;
        if let Some(queue) = queues.first()
            && held_back(app, queue, now, reason).await?
        {
            return Ok(());
        }
    }
    let alive_since = Some(app.runtime.workers().alive_since());
    let workers = app.runtime.workers().list(WorkerQuery { alive_since, ..WorkerQuery::default() }).await?;
    let serves = |names: &[String]| names.contains(&service);
    let serving: Vec<_> = workers
        .iter()
        .filter(|worker| serves(&worker.services) || (is_job && serves(&worker.queues)))
        .collect();
    // The server calls a push worker at its URL; a worker without one only pulls jobs.
    let n_workers = serving.iter().filter(|worker| is_job || !worker.url.is_empty()).count();
    reason.n_workers = Some(n_workers);
    if n_workers == 0 {
        reason.waits_for = "worker".to_owned();
        (reason.text, reason.command) = without_worker(&service, !serving.is_empty());
    } else if is_job {
        reason.text = format!("a job for `{service}` waits for one of {n_workers} live workers");
    }
    Ok(())
}

/// The text and the command for a service that no live worker serves, or only pull workers where a push worker is needed.
fn without_worker(service: &str, is_pulled: bool) -> (String, Option<String>) {
    if is_pulled {
        let text = format!(
            "only pull workers serve `{service}`, and the node calls push workers: set `exec_type: queue` on the node and \
             publish the flow, or start a worker of `{service}` with a URL"
        );
        return (text, None);
    }
    if function::NAMES.contains(&service) {
        let command = format!("windlass worker --services {service}");
        return (format!("no live worker serves `{service}`"), Some(command));
    }
    let text = format!(
        "no live worker serves `{service}`, and the standard worker does not have it: start the worker that you wrote \
         for it (docs/workers.md shows how to write one)"
    );
    (text, Some("windlass worker list".to_owned()))
}

/// Whether a limit or a pause of its queue holds the job back; the reason names it then.
async fn held_back(
    app: &App,
    queue: &QueueDepth,
    now: Timestamp,
    reason: &mut WaitReason,
) -> ApiResult<bool> {
    let name = &queue.name;
    let n_running = queue.open.get(&JobStatus::Running).copied().unwrap_or_default();
    let full = queue.limits.concurrency.filter(|most| n_running >= u64::from(*most));
    let blocked_by = if queue.is_paused {
        let text = format!("the queue `{name}` is paused");
        Some(("queue", text, format!("windlass queue resume {name}")))
    } else if let Some(most) = full {
        let text =
            format!("the queue `{name}` lets workers have {most} jobs at a time, and they have as many");
        Some(("limit", text, format!("windlass queue limit {name} --concurrency none")))
    } else if let Some(rate) = queue.limits.rate
        && app
            .store()
            .held(app.project(), name.clone())
            .await?
            .spent
            .iter()
            .any(|spent| is_used_up(rate, spent, now))
    {
        let text = format!("the queue `{name}` hands out {} jobs in {} ms, and has", rate.count, rate.per_ms);
        Some(("limit", text, format!("windlass queue limit {name} --rate none")))
    } else {
        None
    };
    let Some((waits_for, text, command)) = blocked_by else { return Ok(false) };
    (reason.waits_for, reason.text, reason.command) = (waits_for.to_owned(), text, Some(command));
    Ok(true)
}

/// Whether the token bucket of a queue is empty; it refills gradually.
fn is_used_up(rate: Rate, spent: &Spent, now: Timestamp) -> bool {
    let most = u64::from(rate.burst.unwrap_or(rate.count));
    let back_ms = spent.full_at.since(now).saturating_mul(u64::from(rate.count));
    spent.limit_key.is_empty() && back_ms > most.saturating_sub(1).saturating_mul(u64::from(rate.per_ms))
}
