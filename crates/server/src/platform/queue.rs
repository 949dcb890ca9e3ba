//! Queues: depth, throughput and limits.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::problem::Problems;
use windlass_engine::time::Timestamp;
use windlass_runtime::jobs::{QueueView, RATE_MS_MAX};
use windlass_runtime::stats::{EventCounts, WindowStats};
use windlass_sdk::contract::{
    NoBody, QueueChange, QueueInfo, QueueLimitSettings, QueueStatsInfo, QueueWindow, Queues, RateLimit,
    Rates, WidePageQuery,
};
use windlass_store::queue::{QueueLimits as StoredLimits, QueueSettings, Rate as StoredRate};

use super::shape;
use crate::app::App;
use crate::extract::{PathParams, QueryParams};
use crate::fields::{BodyFields, nothing, settled};
use crate::problem::ApiResult;
use crate::shape::{named_page, wide_range};

/// Lists queues that have settings, open tasks or dead letters, by name.
#[utoipa::path(get, path = "/api/v1/queues", operation_id = "list_queues", tag = "queues", params(WidePageQuery),
    responses((status = 200, description = "A page of queues", body = Queues)))]
pub(crate) async fn list(
    State(app): State<App>,
    QueryParams(asked): QueryParams<WidePageQuery>,
) -> ApiResult<Json<Queues>> {
    let (names, limit) = wide_range(asked)?;
    let (now, seen) = (app.runtime.clock().now(), app.runtime.jobs().queues(names).await?);
    let (seen, next) = named_page(seen, limit, |seen| &seen.depth.name);
    let queues: Vec<QueueInfo> = seen.into_iter().map(|seen| queue(seen, now)).collect();
    Ok(Json(Queues { count: queues.len(), queues, next }))
}

/// Shows a queue; an unused one is empty.
#[utoipa::path(get, path = "/api/v1/queues/{name}", operation_id = "show_queue", tag = "queues",
    params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = QueueInfo)))]
pub(crate) async fn show(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
) -> ApiResult<Json<QueueInfo>> {
    answer(&app, &shape::queue_name(name)?).await
}

/// Pauses or resumes a queue, and sets its limits: a limit that is not named is removed. Without `limits` they stay as
/// they are.
#[utoipa::path(put, path = "/api/v1/queues/{name}", operation_id = "set_queue", tag = "queues",
    request_body = QueueChange, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = QueueInfo)))]
pub(crate) async fn put(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<QueueInfo>> {
    change(&app, name, &bytes, LimitUpdate::Whole).await
}

/// The same, limit by limit: one that is not named stays, one that is null is lifted.
#[utoipa::path(patch, path = "/api/v1/queues/{name}", operation_id = "change_queue", tag = "queues",
    request_body = QueueChange, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = QueueInfo)))]
pub(crate) async fn patch(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<QueueInfo>> {
    change(&app, name, &bytes, LimitUpdate::Single).await
}

/// Pauses a queue: no job of it is claimed any more; claimed ones go on.
#[utoipa::path(post, path = "/api/v1/queues/{name}/pause", operation_id = "pause_queue", tag = "queues",
    request_body = NoBody, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = QueueInfo)))]
pub(crate) async fn pause(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<QueueInfo>> {
    nothing(&bytes)?;
    let name = shape::queue_name(name)?;
    app.runtime.jobs().pause_queue(&name, true).await?;
    answer(&app, &name).await
}

/// Hands out from a queue again.
#[utoipa::path(post, path = "/api/v1/queues/{name}/resume", operation_id = "resume_queue", tag = "queues",
    request_body = NoBody, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = QueueInfo)))]
pub(crate) async fn resume(
    State(app): State<App>,
    PathParams(name): PathParams<String>,
    bytes: Bytes,
) -> ApiResult<Json<QueueInfo>> {
    nothing(&bytes)?;
    let name = shape::queue_name(name)?;
    app.runtime.jobs().pause_queue(&name, false).await?;
    answer(&app, &name).await
}

async fn answer(app: &App, name: &str) -> ApiResult<Json<QueueInfo>> {
    let seen = app.runtime.jobs().queue(name).await?;
    Ok(Json(queue(seen, app.runtime.clock().now())))
}

/// Which limits a change is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LimitUpdate {
    /// All: those that are not named are lifted.
    Whole,
    /// Those that are named.
    Single,
}

async fn change(app: &App, name: String, bytes: &Bytes, which: LimitUpdate) -> ApiResult<Json<QueueInfo>> {
    let name = shape::queue_name(name)?;
    let mut problems = Problems::default();
    let mut body = BodyFields::of_body(bytes)?;
    let paused = body.flag("paused", &mut problems);
    let fields = body.within("limits", &mut problems).map(|given| LimitFields::read(given, &mut problems));
    if paused.is_none() && fields.is_none() && !problems.has_errors() {
        problems.error("$", "there is nothing to change: give `paused` or `limits`");
    }
    body.done(&mut problems);
    settled(problems)?;
    let change = move |settings: &mut QueueSettings| {
        settings.is_paused = paused.unwrap_or(settings.is_paused);
        if let Some(fields) = fields {
            if which == LimitUpdate::Whole {
                settings.limits = StoredLimits::default();
            }
            fields.lay_over(&mut settings.limits);
        }
    };
    app.runtime.jobs().change_queue(&name, change).await?;
    answer(app, &name).await
}

/// The limits that a body names; `Some(None)` = lifted.
#[derive(Default)]
struct LimitFields {
    concurrency: Option<Option<u32>>,
    rate: Option<Option<StoredRate>>,
    key_concurrency: Option<Option<u32>>,
    key_rate: Option<Option<StoredRate>>,
    fair: Option<bool>,
}

impl LimitFields {
    fn read(mut given: BodyFields, problems: &mut Problems) -> LimitFields {
        let mut fields = LimitFields::default();
        given.knows(&["concurrency", "rate", "key_concurrency", "key_rate", "fair"]);
        if given.names("concurrency") {
            fields.concurrency = Some(given.whole("concurrency", 1, u32::MAX, problems));
        }
        if given.names("rate") {
            fields.rate = Some(given.within("rate", problems).and_then(|within| rate(within, problems)));
        }
        if given.names("key_concurrency") {
            fields.key_concurrency = Some(given.whole("key_concurrency", 1, u32::MAX, problems));
        }
        if given.names("key_rate") {
            fields.key_rate =
                Some(given.within("key_rate", problems).and_then(|within| rate(within, problems)));
        }
        if given.names("fair") {
            fields.fair = Some(given.flag("fair", problems).unwrap_or_default());
        }
        given.done(problems);
        fields
    }

    fn lay_over(self, limits: &mut StoredLimits) {
        limits.concurrency = self.concurrency.unwrap_or(limits.concurrency);
        limits.rate = self.rate.unwrap_or(limits.rate);
        limits.key_concurrency = self.key_concurrency.unwrap_or(limits.key_concurrency);
        limits.key_rate = self.key_rate.unwrap_or(limits.key_rate);
        limits.fair = self.fair.unwrap_or(limits.fair);
    }
}

fn rate(mut given: BodyFields, problems: &mut Problems) -> Option<StoredRate> {
    let missing = ["count", "per_ms"].into_iter().filter(|name| !given.has(name)).collect::<Vec<_>>();
    for name in missing {
        problems.error(given.at(name), "it is required and missing");
    }
    let count = given.whole("count", 1, u32::MAX, problems);
    let per_ms = given.whole("per_ms", 1, RATE_MS_MAX, problems);
    let burst = given.whole("burst", 1, u32::MAX, problems);
    given.done(problems);
    Some(StoredRate { count: count?, per_ms: per_ms?, burst })
}

/// A queue in the words of this surface.
fn queue(seen: QueueView, now: Timestamp) -> QueueInfo {
    let depth = seen.depth;
    QueueInfo {
        name: depth.name,
        paused: depth.is_paused,
        open: depth.open.values().sum(),
        depth: depth.open.into_iter().map(|(status, n)| (status.word().to_owned(), n)).collect(),
        dead_letters: depth.n_dead_letters,
        oldest_age_ms: depth.oldest_due_at.map(|since| now.since(since)),
        limits: QueueLimitSettings {
            concurrency: depth.limits.concurrency,
            rate: depth.limits.rate.map(shown),
            key_concurrency: depth.limits.key_concurrency,
            key_rate: depth.limits.key_rate.map(shown),
            fair: depth.limits.fair,
        },
        stats: QueueStatsInfo {
            last_10s: stretch(&seen.activity.last_10s, 10.0),
            last_minute: stretch(&seen.activity.last_minute, 60.0),
            last_hour: stretch(&seen.activity.last_hour, 3_600.0),
        },
    }
}

fn shown(rate: StoredRate) -> RateLimit {
    RateLimit { count: rate.count, per_ms: rate.per_ms, burst: rate.burst }
}

fn stretch(window: &WindowStats, seconds: f64) -> QueueWindow {
    let EventCounts { created, started, succeeded, failed, dead, suspended: _ } = window.counts;
    let per_second = |n: u64| (n as f64 / seconds * 1_000.0).round() / 1_000.0;
    QueueWindow {
        created,
        started,
        succeeded,
        failed,
        dead,
        per_second: Rates {
            created: per_second(created),
            started: per_second(started),
            succeeded: per_second(succeeded),
            failed: per_second(failed),
            dead: per_second(dead),
        },
        wait_ms: crate::shape::percentiles(&window.wait_ms),
        work_ms: crate::shape::percentiles(&window.work_ms),
    }
}
