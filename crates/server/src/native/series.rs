//! Time series for charts.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use windlass_engine::time::Timestamp;
use windlass_runtime::stats::{EventFigures, SAMPLE_MS, SAMPLES_KEPT, SampleFigures, SeriesPoint};
use windlass_sdk::contract::{Series, SeriesQuery};

use crate::app::App;
use crate::extract::QueryParams;
use crate::problem::{ApiError, ApiResult, Code};
use crate::shape;

/// Points of a chart.
const POINTS_MAX: u64 = 360;
const MINUTE_S: u64 = SAMPLE_MS / 1_000;

/// Shows the figures of all servers over time: counts and durations of runs, calls and jobs in each step. Servers store
/// them once a minute and keep them for 7 days.
#[utoipa::path(get, path = "/api/v1/series", operation_id = "show_series", tag = "server", params(SeriesQuery),
    responses((status = 200, description = "The columns of a chart", body = Series)))]
pub(crate) async fn series(
    State(app): State<App>,
    QueryParams(asked): QueryParams<SeriesQuery>,
) -> ApiResult<Json<Series>> {
    let now = app.runtime.clock().now();
    let until = asked.to.map_or(now, |at| Timestamp(at.0)).min(now);
    let since = match (asked.range.as_deref(), asked.from) {
        (Some(_), Some(_)) => return Err(wrong("?from", "there is a `range` too: give one of the two")),
        (None, Some(from)) => Timestamp(from.0),
        (range, None) => until.before(length(range.unwrap_or("1h"))?),
    };
    let since = since.max(now.before(u64::try_from(SAMPLES_KEPT.as_millis()).unwrap_or(u64::MAX)));
    if since >= until {
        return Err(wrong("?from", "it is not before the end, or all of it was deleted: 7 days are kept"));
    }
    let seconds = until.since(since).div_ceil(1_000);
    let step = match asked.step {
        Some(step) if step == 0 || step % MINUTE_S != 0 => {
            return Err(wrong("?step", "give a multiple of 60: a sample is a minute"));
        }
        Some(step) if seconds / step > 4 * POINTS_MAX => {
            return Err(wrong("?step", "the chart would have more than 1,440 points: give a longer step"));
        }
        Some(step) => step,
        None => (seconds.div_ceil(POINTS_MAX)).div_ceil(MINUTE_S).max(1) * MINUTE_S,
    };
    let step_ms = step * 1_000;
    // Points begin at whole steps, so that a chart keeps its points while time goes on.
    let since = Timestamp(since.0.div_euclid(step_ms.cast_signed()) * step_ms.cast_signed());
    let scope = asked.queue.clone().unwrap_or_default();
    let points = app.runtime.sampler().series(scope, since, until, step_ms).await?;
    Ok(Json(Series {
        from: shape::time(since),
        to: shape::time(until),
        step,
        at: points.iter().map(|point| point.at.0.div_euclid(1_000)).collect(),
        series: columns(&points, asked.queue.is_none()),
    }))
}

fn wrong(place: &str, reason: &str) -> ApiError {
    ApiError::field(Code::BadQuery, place, reason)
}

fn length(range: &str) -> ApiResult<u64> {
    match range {
        "1h" => Ok(3_600_000),
        "6h" => Ok(6 * 3_600_000),
        "24h" => Ok(24 * 3_600_000),
        "7d" => Ok(7 * 86_400_000),
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(wrong("?range", &format!("`{shown}` is no range: give 1h, 6h, 24h or 7d")))
        }
    }
}

type Column = (&'static str, fn(&SampleFigures) -> Option<u64>);

/// Columns of the jobs of one queue, or of all queues.
const JOBS: [Column; 10] = [
    ("jobs_created", |figures| Some(figures.jobs.created)),
    ("jobs_started", |figures| Some(figures.jobs.started)),
    ("jobs_succeeded", |figures| Some(figures.jobs.succeeded)),
    ("jobs_failed", |figures| Some(figures.jobs.failed)),
    ("jobs_dead", |figures| Some(figures.jobs.dead)),
    ("wait_ms_p50", |figures| EventFigures::wait_ms(&figures.jobs, 50)),
    ("wait_ms_p95", |figures| EventFigures::wait_ms(&figures.jobs, 95)),
    ("work_ms_p50", |figures| EventFigures::work_ms(&figures.jobs, 50)),
    ("work_ms_p95", |figures| EventFigures::work_ms(&figures.jobs, 95)),
    ("depth", |figures| Some(figures.depth)),
];

/// Columns of runs and of their calls.
const RUNS: [Column; 11] = [
    ("runs_started", |figures| Some(figures.runs.created)),
    ("runs_completed", |figures| Some(figures.runs.succeeded)),
    ("runs_failed", |figures| Some(figures.runs.failed.saturating_sub(figures.runs.dead))),
    ("runs_canceled", |figures| Some(figures.runs.dead)),
    ("run_ms_p50", |figures| EventFigures::work_ms(&figures.runs, 50)),
    ("run_ms_p95", |figures| EventFigures::work_ms(&figures.runs, 95)),
    ("calls_started", |figures| Some(figures.calls.started)),
    ("calls_succeeded", |figures| Some(figures.calls.succeeded)),
    ("calls_failed", |figures| Some(figures.calls.failed)),
    ("call_ms_p50", |figures| EventFigures::work_ms(&figures.calls, 50)),
    ("call_ms_p95", |figures| EventFigures::work_ms(&figures.calls, 95)),
];

fn columns(points: &[SeriesPoint], has_runs: bool) -> BTreeMap<String, Vec<Option<f64>>> {
    let runs = if has_runs { &RUNS[..] } else { &[] };
    #[expect(clippy::cast_precision_loss, reason = "a chart needs no more digits")]
    let column = |(name, of): &Column| {
        let value = |point: &SeriesPoint| point.figures.as_ref().and_then(of).map(|n| n as f64);
        ((*name).to_owned(), points.iter().map(value).collect())
    };
    JOBS.iter().chain(runs).map(column).collect()
}
