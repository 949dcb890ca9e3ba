//! What happened to a run, and what it waits for.

use axum::Json;
use axum::extract::State;
use windlass_engine::id::JobId;
use windlass_engine::plan::Exec;
use windlass_engine::time::Timestamp;
use windlass_runtime::run::RunView;
use windlass_sdk::types::{Attempt, JournalEntry, List, PageQuery, Reason, Why};
use windlass_store::job::JobStatus;
use windlass_store::project::attempts::Attempts;
use windlass_store::queue::{QueueDepth, Rate, Spent};
use windlass_store::run::Since;
use windlass_store::worker::WorkerQuery;

use crate::app::{App, run_id};
use crate::extract::{Asked, At};
use crate::problem::Answer;
use crate::shape;

/// Reasons given for one run, and how many of them are looked into: a wide fan has one for each branch.
const REASONS_MAX: usize = 1_000;
const REASONS_LOOKED_INTO: usize = 50;

/// Lists the attempts at the nodes of a run, oldest first. Every page reads the whole journal: of a long run ask for
/// large pages (`limit` up to 1,000).
#[utoipa::path(get, path = "/api/v1/runs/{id}/attempts", operation_id = "list_attempts", tag = "runs",
    params(("id" = String, Path, description = "The id of the run"), PageQuery),
    responses((status = 200, description = "A page of attempts", body = List<Attempt>)))]
pub(crate) async fn attempts(
    State(app): State<App>,
    At(id): At<String>,
    Asked(asked): Asked<PageQuery>,
) -> Answer<Json<List<Attempt>>> {
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
    At(id): At<String>,
    Asked(asked): Asked<PageQuery>,
) -> Answer<Json<List<JournalEntry>>> {
    let row = app.row(run_id(&id)?).await?;
    let (after, limit) = (shape::counted(asked.cursor.as_deref())?, shape::limit(asked.limit)?);
    let part = app.store().journal(row.id, Since::Entry(after), limit).await?;
    let items: Vec<JournalEntry> =
        part.entries.iter().map(|(seq, entry)| shape::entry(*seq, entry)).collect();
    let next = items
        .last()
        .filter(|last| items.len() == limit && last.seq < row.len)
        .map(|last| last.seq.to_string());
    Ok(Json(List { items, next }))
}

/// Says what a run waits for, and what would clear it.
#[utoipa::path(get, path = "/api/v1/runs/{id}/why", operation_id = "explain_run", tag = "runs",
    params(("id" = String, Path, description = "The id of the run")),
    responses((status = 200, description = "Everything it waits for", body = Why)))]
pub(crate) async fn why(State(app): State<App>, At(id): At<String>) -> Answer<Json<Why>> {
    let view = app.view(run_id(&id)?).await?;
    let mut reasons: Vec<Reason> =
        view.state.why(&view.plan).into_iter().take(REASONS_MAX).map(shape::reason).collect();
    let asked = reasons.iter_mut().filter(|reason| reason.service.is_some());
    for reason in asked.take(REASONS_LOOKED_INTO) {
        look_into(&app, &view, reason).await?;
    }
    count_missing(&app, &view, &mut reasons).await?;
    Ok(Json(Why { id: view.row.id.to_string(), status: shape::status(view.row.standing.status), reasons }))
}

/// Adds what only the store knows: how much of a call's cost the account lacks.
async fn count_missing(app: &App, view: &RunView, reasons: &mut [Reason]) -> Answer<()> {
    let mut short: Vec<&mut Reason> =
        reasons.iter_mut().filter(|reason| reason.waits_for == "balance").collect();
    let Some(account) = view.row.origin.account.as_deref().filter(|_| !short.is_empty()) else {
        return Ok(());
    };
    let Some(row) = app.store().account(account).await? else { return Ok(()) };
    for reason in &mut short {
        let amount = reason.amount.unwrap_or_default();
        let (balance, missing) = (row.balance, amount.saturating_sub(row.balance));
        // What came in since lets it go without anybody's help.
        if missing > 0 {
            reason.text =
                format!("a call of {amount} is more than the account has: {balance}, {missing} too little");
            reason.command = Some(format!("windlass account deposit {account} {missing}"));
            reason.missing = Some(missing);
        }
    }
    Ok(())
}

/// Adds what only the store knows: whether anybody is there to do the work.
async fn look_into(app: &App, view: &RunView, reason: &mut Reason) -> Answer<()> {
    let Some(service) = reason.service.clone() else { return Ok(()) };
    let place = view.state.place(&view.plan, &reason.node.as_str().into());
    let work = place.as_ref().and_then(|place| Some((place.call?, place.phase.work()?)));
    let Some((call, work)) = work else { return Ok(()) };
    let is_job = match call.exec {
        Exec::Queue => true,
        Exec::Http => false,
        Exec::Func { .. } | Exec::Script(_) | Exec::Flow { .. } => return Ok(()),
    };
    let now = app.runtime.clock().now();
    if is_job && let Some(fence) = work.fence() {
        let job = app.store().job(JobId::of_call(view.row.id, fence)).await?;
        if job.is_some_and(|row| JobStatus::of(&row.job) == JobStatus::Running) {
            return Ok(());
        }
        let queues = app.store().queues(now).await?;
        if let Some(queue) = queues.iter().find(|queue| queue.name == service)
            && held_back(app, queue, now, reason).await?
        {
            return Ok(());
        }
    }
    let ttl = i64::try_from(app.runtime.settings().worker_ttl.as_millis()).unwrap_or(i64::MAX);
    let alive_since = Some(Timestamp(now.0.saturating_sub(ttl)));
    let workers = app.runtime.workers(WorkerQuery { alive_since, ..WorkerQuery::default() }).await?;
    let serves = |names: &[String]| names.contains(&service);
    let n_workers = workers
        .iter()
        .filter(|worker| serves(&worker.services) || (is_job && serves(&worker.queues)))
        .count();
    reason.n_workers = Some(n_workers);
    if n_workers == 0 {
        reason.waits_for = "worker".to_owned();
        reason.text = format!("no live worker serves `{service}`");
        reason.command = Some(format!("windlass worker --services {service}"));
    } else if is_job {
        reason.text = format!("a job for `{service}` waits for one of {n_workers} live workers");
    }
    Ok(())
}

/// Whether its queue hands out nothing now, which is what the reason says then.
async fn held_back(app: &App, queue: &QueueDepth, now: Timestamp, reason: &mut Reason) -> Answer<bool> {
    let name = &queue.name;
    let n_running = queue.open.get(&JobStatus::Running).copied().unwrap_or_default();
    let full = queue.limits.concurrency.filter(|most| n_running >= u64::from(*most));
    let told = if queue.is_paused {
        let text = format!("the queue `{name}` is paused");
        Some(("queue", text, format!("windlass queue resume {name}")))
    } else if let Some(most) = full {
        let text =
            format!("the queue `{name}` lets workers have {most} jobs at a time, and they have as many");
        Some(("limit", text, format!("windlass queue limit {name} --concurrency none")))
    } else if let Some(rate) = queue.limits.rate
        && app.store().held(name.clone()).await?.spent.iter().any(|spent| is_used_up(rate, spent, now))
    {
        let text = format!("the queue `{name}` hands out {} jobs in {} ms, and has", rate.count, rate.per_ms);
        Some(("limit", text, format!("windlass queue limit {name} --rate none")))
    } else {
        None
    };
    let Some((waits_for, text, command)) = told else { return Ok(false) };
    (reason.waits_for, reason.text, reason.command) = (waits_for.to_owned(), text, Some(command));
    Ok(true)
}

/// Whether the rate of a whole queue has not even one left: what is used of it comes back little by little.
fn is_used_up(rate: Rate, spent: &Spent, now: Timestamp) -> bool {
    let most = u64::from(rate.burst.unwrap_or(rate.count));
    let back_ms = spent.full_at.since(now).saturating_mul(u64::from(rate.count));
    spent.limit_key.is_empty() && back_ms > most.saturating_sub(1).saturating_mul(u64::from(rate.per_ms))
}
