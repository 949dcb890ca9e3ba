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
    Ok(Json(Why { id: view.row.id.to_string(), status: shape::status(view.row.standing.status), reasons }))
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
        if queues.iter().any(|queue| queue.name == service && queue.is_paused) {
            reason.waits_for = "queue".to_owned();
            reason.text = format!("the queue `{service}` is paused");
            // There is no command that resumes a queue.
            reason.command = None;
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
