//! Queues: how full they are, how fast they go, and what holds them back.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use windlass_engine::problem::Problems;
use windlass_engine::time::Timestamp;
use windlass_runtime::queue::{QueueView, RATE_MS_MAX, Stretch as StretchSeen};
use windlass_sdk::types::{
    NoBody, Queue, QueueChange, QueueLimits, QueueStats, Queues, Rate, Rates, Stretch,
};
use windlass_store::queue::{QueueLimits as StoredLimits, QueueSettings, Rate as StoredRate};

use super::fields::{Fields, nothing, settled};
use super::shape;
use crate::app::App;
use crate::extract::At;
use crate::problem::Answer;

/// Lists all queues that have settings, open tasks or dead letters, by name.
#[utoipa::path(get, path = "/api/v1/queues", operation_id = "list_queues", tag = "queues",
    responses((status = 200, description = "All queues", body = Queues)))]
pub(crate) async fn list(State(app): State<App>) -> Answer<Json<Queues>> {
    let now = app.runtime.clock().now();
    let queues: Vec<Queue> = app.runtime.queues().await?.into_iter().map(|seen| queue(seen, now)).collect();
    Ok(Json(Queues { count: queues.len(), queues }))
}

/// Shows a queue; one that nobody has used is empty.
#[utoipa::path(get, path = "/api/v1/queues/{name}", operation_id = "show_queue", tag = "queues",
    params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = Queue)))]
pub(crate) async fn show(State(app): State<App>, At(name): At<String>) -> Answer<Json<Queue>> {
    answer(&app, &shape::queue_name(name)?).await
}

/// Pauses a queue or resumes it, and sets what holds it back: a limit that is not named is lifted. Without `limits`
/// they stay as they are.
#[utoipa::path(put, path = "/api/v1/queues/{name}", operation_id = "set_queue", tag = "queues",
    request_body = QueueChange, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = Queue)))]
pub(crate) async fn put(State(app): State<App>, At(name): At<String>, bytes: Bytes) -> Answer<Json<Queue>> {
    change(&app, name, &bytes, Limits::Whole).await
}

/// The same, limit by limit: one that is not named stays, one that is null is lifted.
#[utoipa::path(patch, path = "/api/v1/queues/{name}", operation_id = "change_queue", tag = "queues",
    request_body = QueueChange, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = Queue)))]
pub(crate) async fn patch(State(app): State<App>, At(name): At<String>, bytes: Bytes) -> Answer<Json<Queue>> {
    change(&app, name, &bytes, Limits::Single).await
}

/// Hands out nothing from a queue any more; what was handed out goes on.
#[utoipa::path(post, path = "/api/v1/queues/{name}/pause", operation_id = "pause_queue", tag = "queues",
    request_body = NoBody, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = Queue)))]
pub(crate) async fn pause(State(app): State<App>, At(name): At<String>, bytes: Bytes) -> Answer<Json<Queue>> {
    nothing(&bytes)?;
    let name = shape::queue_name(name)?;
    app.runtime.pause_queue(&name, true).await?;
    answer(&app, &name).await
}

/// Hands out from a queue again.
#[utoipa::path(post, path = "/api/v1/queues/{name}/resume", operation_id = "resume_queue", tag = "queues",
    request_body = NoBody, params(("name" = String, Path, description = "The name of the queue")),
    responses((status = 200, description = "The queue", body = Queue)))]
pub(crate) async fn resume(
    State(app): State<App>,
    At(name): At<String>,
    bytes: Bytes,
) -> Answer<Json<Queue>> {
    nothing(&bytes)?;
    let name = shape::queue_name(name)?;
    app.runtime.pause_queue(&name, false).await?;
    answer(&app, &name).await
}

async fn answer(app: &App, name: &str) -> Answer<Json<Queue>> {
    let seen = app.runtime.queue(name).await?;
    Ok(Json(queue(seen, app.runtime.clock().now())))
}

/// Which limits a change is about.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Limits {
    /// All: those that are not named are lifted.
    Whole,
    /// Those that are named.
    Single,
}

async fn change(app: &App, name: String, bytes: &Bytes, which: Limits) -> Answer<Json<Queue>> {
    let name = shape::queue_name(name)?;
    let mut problems = Problems::default();
    let mut body = Fields::of_body(bytes)?;
    let paused = body.flag("paused", &mut problems);
    let said = body.within("limits", &mut problems).map(|given| Said::read(given, &mut problems));
    if paused.is_none() && said.is_none() && !problems.has_errors() {
        problems.error("$", "there is nothing to change: give `paused` or `limits`");
    }
    body.done(&mut problems);
    settled(problems)?;
    let change = move |settings: &mut QueueSettings| {
        settings.is_paused = paused.unwrap_or(settings.is_paused);
        if let Some(said) = said {
            if which == Limits::Whole {
                settings.limits = StoredLimits::default();
            }
            said.lay_over(&mut settings.limits);
        }
    };
    app.runtime.change_queue(&name, change).await?;
    answer(app, &name).await
}

/// The limits that a body names; `Some(None)` = lifted.
#[derive(Default)]
struct Said {
    concurrency: Option<Option<u32>>,
    rate: Option<Option<StoredRate>>,
    key_concurrency: Option<Option<u32>>,
    key_rate: Option<Option<StoredRate>>,
    fair: Option<bool>,
}

impl Said {
    fn read(mut given: Fields, problems: &mut Problems) -> Said {
        let mut said = Said::default();
        given.knows(&["concurrency", "rate", "key_concurrency", "key_rate", "fair"]);
        if given.names("concurrency") {
            said.concurrency = Some(given.whole("concurrency", 1, u32::MAX, problems));
        }
        if given.names("rate") {
            said.rate = Some(given.within("rate", problems).and_then(|within| rate(within, problems)));
        }
        if given.names("key_concurrency") {
            said.key_concurrency = Some(given.whole("key_concurrency", 1, u32::MAX, problems));
        }
        if given.names("key_rate") {
            said.key_rate =
                Some(given.within("key_rate", problems).and_then(|within| rate(within, problems)));
        }
        if given.names("fair") {
            said.fair = Some(given.flag("fair", problems).unwrap_or_default());
        }
        given.done(problems);
        said
    }

    fn lay_over(self, limits: &mut StoredLimits) {
        limits.concurrency = self.concurrency.unwrap_or(limits.concurrency);
        limits.rate = self.rate.unwrap_or(limits.rate);
        limits.key_concurrency = self.key_concurrency.unwrap_or(limits.key_concurrency);
        limits.key_rate = self.key_rate.unwrap_or(limits.key_rate);
        limits.fair = self.fair.unwrap_or(limits.fair);
    }
}

fn rate(mut given: Fields, problems: &mut Problems) -> Option<StoredRate> {
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
fn queue(seen: QueueView, now: Timestamp) -> Queue {
    let depth = seen.depth;
    Queue {
        name: depth.name,
        paused: depth.is_paused,
        open: depth.open.values().sum(),
        depth: depth.open.into_iter().map(|(status, n)| (status.word().to_owned(), n)).collect(),
        dead_letters: depth.n_dead_letters,
        oldest_age_ms: depth.oldest_due_at.map(|since| now.since(since)),
        limits: QueueLimits {
            concurrency: depth.limits.concurrency,
            rate: depth.limits.rate.map(shown),
            key_concurrency: depth.limits.key_concurrency,
            key_rate: depth.limits.key_rate.map(shown),
            fair: depth.limits.fair,
        },
        stats: QueueStats {
            last_10s: stretch(&seen.stats.last_10s, 10.0),
            last_minute: stretch(&seen.stats.last_minute, 60.0),
            last_hour: stretch(&seen.stats.last_hour, 3_600.0),
        },
    }
}

fn shown(rate: StoredRate) -> Rate {
    Rate { count: rate.count, per_ms: rate.per_ms, burst: rate.burst }
}

fn stretch(seen: &StretchSeen, seconds: f64) -> Stretch {
    // Counts of an hour are far below what a float holds exactly; three digits are read by people.
    let per_second = |n: u64| (n as f64 / seconds * 1_000.0).round() / 1_000.0;
    Stretch {
        created: seen.n_created,
        started: seen.n_started,
        succeeded: seen.n_succeeded,
        failed: seen.n_failed,
        dead: seen.n_dead,
        per_second: Rates {
            created: per_second(seen.n_created),
            started: per_second(seen.n_started),
            succeeded: per_second(seen.n_succeeded),
            failed: per_second(seen.n_failed),
            dead: per_second(seen.n_dead),
        },
        wait_ms: crate::shape::spread(&seen.wait_ms),
        work_ms: crate::shape::spread(&seen.work_ms),
    }
}
