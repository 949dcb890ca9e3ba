//! The overview: the numbers of the first page, and the things that need a person.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::retry::FaultKind;
use windlass_engine::time::Timestamp;
use windlass_runtime::runs::RunSelection;
use windlass_sdk::contract::{
    About, AttentionItem, Overview, OverviewTiles, ServerSummary, ServiceDemand, TileCount, WorkerCounts,
};
use windlass_store::flow::FlowQuery;
use windlass_store::job::{JobQuery, JobStatus};
use windlass_store::page::{NameRange, PAGE_MAX, Part};
use windlass_store::queue::QueueDepth;
use windlass_store::run::{RunQuery, RunStatus};
use windlass_store::schedule::Scheduled;
use windlass_store::worker::{WorkerQuery, WorkerRow};

use super::approval;
use crate::app::App;
use crate::platform::worker::is_online;
use crate::problem::ApiResult;
use crate::shape;

/// Runs that are counted for one number.
const COUNTED_MAX: usize = 10_000;
/// Queues and workers that are looked at.
const NAMES_MAX: usize = 1_000;
/// Items of one kind that need a person.
const ITEMS_MAX: usize = 20;
const DAY_MS: u64 = 86_400_000;
const HOUR_MS: u64 = 3_600_000;
/// How late a schedule may fire before that needs a person.
const LATE_MS: u64 = 60_000;

/// Shows the numbers of the first page, and the things that need a person.
#[utoipa::path(get, path = "/api/v1/overview", operation_id = "show_overview", tag = "server",
    responses((status = 200, description = "The figures", body = Overview)))]
pub(crate) async fn show(State(app): State<App>) -> ApiResult<Json<Overview>> {
    figures(&app).await.map(Json)
}

/// The figures of the overview.
pub(crate) async fn figures(app: &App) -> ApiResult<Overview> {
    let now = app.runtime.clock().now();
    let names = || NameRange::After { name: None, limit: NAMES_MAX };
    let queues = app.store().queues(app.project(), names(), now).await?;
    let workers = app.runtime.workers().list(WorkerQuery { ids: names(), ..WorkerQuery::default() }).await?;
    let services = demand(app, &queues, &workers, now);
    let tiles = tiles(app, &queues, &workers, now).await?;
    let mut attention = troubles(app);
    attention.extend(without_worker(&queues, &services));
    attention.extend(missed_schedules(app, now).await?);
    attention.extend(of_queues(&queues));
    attention.extend(expired_leases(app, now).await?);
    attention.extend(low_balances(app).await?);
    let is_empty = is_empty(app).await?;
    Ok(Overview { at: shape::time(now), tiles, services, attention, is_empty })
}

async fn count(app: &App, query: RunQuery) -> ApiResult<TileCount> {
    let counted = app.runtime.runs().finder().count_selected(&RunSelection::of(query), COUNTED_MAX).await?;
    Ok(TileCount { count: counted.n as u64, more: counted.is_more })
}

async fn tiles(
    app: &App,
    queues: &[QueueDepth],
    workers: &[WorkerRow],
    now: Timestamp,
) -> ApiResult<OverviewTiles> {
    let of = |status| RunQuery { statuses: vec![status], ..RunQuery::default() };
    let failed = RunQuery { since: Some(now.before(DAY_MS)), ..of(RunStatus::Failed) };
    let plain = |count: u64| TileCount { count, more: false };
    let waits = |queue: &QueueDepth| {
        let of = |status| queue.open.get(&status).copied().unwrap_or_default();
        of(JobStatus::Queued) + of(JobStatus::Retrying) + of(JobStatus::Pending)
    };
    let mut counts = WorkerCounts::default();
    for worker in workers {
        let is_online = is_online(app, worker, now);
        counts.online += u64::from(is_online);
        counts.stale += u64::from(!is_online);
        counts.draining += u64::from(is_online && worker.is_draining);
    }
    Ok(OverviewTiles {
        running: count(app, of(RunStatus::Running)).await?,
        queued: plain(queues.iter().map(waits).sum()),
        waiting: count(app, of(RunStatus::Waiting)).await?,
        failed_24h: count(app, failed).await?,
        dead_letters: plain(queues.iter().map(|queue| queue.n_dead_letters).sum()),
        approvals: approval::count(app).await?,
        workers: counts,
    })
}

/// Services with jobs in their queue, or with live workers.
fn demand(app: &App, queues: &[QueueDepth], workers: &[WorkerRow], now: Timestamp) -> Vec<ServiceDemand> {
    let mut services: BTreeMap<&str, ServiceDemand> = BTreeMap::new();
    for queue in queues {
        let of = |status| queue.open.get(&status).copied().unwrap_or_default();
        let (queued, running) = (of(JobStatus::Queued), of(JobStatus::Running));
        if queued + running > 0 {
            let service = services.entry(&queue.name).or_default();
            (service.queued, service.running) = (queued, running);
        }
    }
    for worker in workers.iter().filter(|worker| is_online(app, worker, now)) {
        let served =
            worker.services.iter().chain(worker.queues.iter().filter(|q| !worker.services.contains(q)));
        for name in served {
            let service = services.entry(name).or_default();
            service.n_workers += 1;
            service.capacity += u64::try_from(worker.capacity).unwrap_or_default();
        }
    }
    services.into_iter().map(|(name, service)| ServiceDemand { name: name.to_owned(), ..service }).collect()
}

fn troubles(app: &App) -> Vec<AttentionItem> {
    let item = |text: String| AttentionItem {
        kind: "trouble".to_owned(),
        subject: "server".to_owned(),
        text,
        command: Some("windlass doctor".to_owned()),
        ..AttentionItem::default()
    };
    app.runtime.troubles().into_iter().chain(app.runtime.warnings()).map(item).collect()
}

/// Queues with jobs that no live worker takes.
fn without_worker(queues: &[QueueDepth], services: &[ServiceDemand]) -> Vec<AttentionItem> {
    let waiting = services.iter().filter(|service| service.n_workers == 0 && service.queued > 0);
    let item = |service: &ServiceDemand| {
        let (name, count) = (&service.name, service.queued);
        let since = queues.iter().find(|queue| queue.name == *name).and_then(|queue| queue.oldest_due_at);
        AttentionItem {
            kind: "no_worker".to_owned(),
            subject: name.clone(),
            text: format!("{count} jobs wait for `{name}`, and no live worker serves it"),
            count: Some(count),
            since: since.map(shape::time),
            command: Some("windlass worker list".to_owned()),
        }
    };
    waiting.take(ITEMS_MAX).map(item).collect()
}

/// Schedules with slots that passed without a firing.
async fn missed_schedules(app: &App, now: Timestamp) -> ApiResult<Vec<AttentionItem>> {
    let part = Part { limit: PAGE_MAX, ..Part::default() };
    let all = app.store().schedules(app.project(), part).await?.items;
    let item = |Scheduled { row, .. }: &Scheduled| {
        let late = row.next_at.filter(|next_at| now.since(*next_at) > LATE_MS);
        let (text, since) = match (&row.history.last_error, late) {
            (Some(missed), _) => {
                (format!("schedule `{}` missed a slot: {}", row.name, missed.reason), missed.slot)
            }
            (None, Some(next_at)) => (format!("schedule `{}` is due and has not fired", row.name), next_at),
            (None, None) => return None,
        };
        Some(AttentionItem {
            kind: "missed_schedule".to_owned(),
            subject: row.id().to_string(),
            text,
            since: Some(shape::time(since)),
            command: Some(format!("windlass schedule show {}", row.id())),
            count: None,
        })
    };
    Ok(all.iter().filter_map(item).take(ITEMS_MAX).collect())
}

/// Dead letters, and queues that are paused while jobs wait.
fn of_queues(queues: &[QueueDepth]) -> Vec<AttentionItem> {
    let mut items = Vec::new();
    for queue in queues.iter().filter(|queue| queue.n_dead_letters > 0) {
        let (name, count) = (&queue.name, queue.n_dead_letters);
        items.push(AttentionItem {
            kind: "dead_letters".to_owned(),
            subject: name.clone(),
            text: format!("{count} dead letters of the queue `{name}` wait for a replay or a discard"),
            count: Some(count),
            since: None,
            command: Some(format!("windlass dlq groups {name}")),
        });
    }
    for queue in queues.iter().filter(|queue| queue.is_paused) {
        let (name, count) = (&queue.name, queue.open.values().sum());
        items.push(AttentionItem {
            kind: "queue_paused".to_owned(),
            subject: name.clone(),
            text: format!("the queue `{name}` is paused with {count} open jobs"),
            count: Some(count),
            since: None,
            command: Some(format!("windlass queue resume {name}")),
        });
    }
    items.truncate(2 * ITEMS_MAX);
    items
}

/// Jobs whose workers were lost in the last hour, by queue.
async fn expired_leases(app: &App, now: Timestamp) -> ApiResult<Vec<AttentionItem>> {
    let part = Part { limit: PAGE_MAX, ..Part::default() };
    let since = Some(now.before(HOUR_MS));
    let query = JobQuery {
        since,
        part,
        statuses: vec![JobStatus::Failed, JobStatus::Retrying],
        ..JobQuery::default()
    };
    let mut lost: BTreeMap<String, u64> = BTreeMap::new();
    for row in app.store().jobs(app.project(), query).await?.items {
        let errors = row.job.attempts.iter().filter_map(|attempt| attempt.error.as_ref());
        if errors.into_iter().any(|error| error.kind == FaultKind::Lost) {
            *lost.entry(row.job.spec.queue.clone()).or_default() += 1;
        }
    }
    let item = |(queue, count): (String, u64)| AttentionItem {
        kind: "lease_expired".to_owned(),
        text: format!(
            "workers lost {count} jobs of the queue `{queue}` in the last hour: their leases expired"
        ),
        subject: queue,
        count: Some(count),
        since: Some(shape::time(now.before(HOUR_MS))),
        command: Some("windlass worker list".to_owned()),
    };
    Ok(lost.into_iter().take(ITEMS_MAX).map(item).collect())
}

/// Accounts with runs that wait for money.
async fn low_balances(app: &App) -> ApiResult<Vec<AttentionItem>> {
    let accounts = app.store().accounts_with_waiters(app.project(), None).await?;
    let item = |account: windlass_store::account::AccountRow| AttentionItem {
        kind: "low_balance".to_owned(),
        text: format!("runs wait for money on account `{}`, which has {}", account.id, account.balance),
        command: Some(format!("windlass account show {}", account.id)),
        subject: account.id,
        ..AttentionItem::default()
    };
    Ok(accounts.into_iter().take(ITEMS_MAX).map(item).collect())
}

/// Whether the store has no flow and no run.
async fn is_empty(app: &App) -> ApiResult<bool> {
    let one = || Part { limit: 1, ..Part::default() };
    let flows = app.store().flows(app.project(), FlowQuery { part: one(), ..FlowQuery::default() }).await?;
    if !flows.items.is_empty() {
        return Ok(false);
    }
    let runs = app.store().runs(app.project(), RunQuery { part: one(), ..RunQuery::default() }).await?;
    Ok(runs.items.is_empty())
}

/// Shows the version of the server, the servers on its store, and its settings.
#[utoipa::path(get, path = "/api/v1/about", operation_id = "show_about", tag = "server",
    responses((status = 200, description = "The server", body = About)))]
pub(crate) async fn about(State(app): State<App>) -> ApiResult<Json<About>> {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let settings = app.runtime.settings();
    let servers = app.store().servers().await?.into_iter().map(|row| ServerSummary {
        id: row.owner.server.to_string(),
        name: row.name,
        version: row.version,
        started_at: shape::time(row.started_at),
        heartbeat_at: shape::time(row.beat_at),
    });
    Ok(Json(About {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server: app.runtime.owner().server.to_string(),
        project: app.project().as_str().to_owned(),
        up_ms: app.runtime.activity().server().process.up_ms,
        is_shared: app.store().is_shared(),
        servers: servers.collect(),
        retain_ms: settings.retain_for.map(millis),
        worker_ttl_ms: millis(settings.worker_ttl),
    }))
}
