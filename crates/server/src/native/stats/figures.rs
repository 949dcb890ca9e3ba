//! Durations and counts of one run, computed from its journal and the jobs of its calls.

use std::collections::{BTreeMap, HashMap};

use windlass_engine::counter::{Fence, Visit};
use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;
use windlass_runtime::runs::RunView;
use windlass_sdk::contract::NodeDurations;
use windlass_store::job::JobQuery;
use windlass_store::page::{Order, Part};
use windlass_store::projection::attempts::{AttemptStatus, NodeAttempt};
use windlass_store::projection::metric_event::{MetricEvent, metric_events};

use crate::app::App;
use crate::problem::ApiResult;
use crate::shape;

/// Nodes of a run that are shown.
const NODES_MAX: usize = 1_000;

/// Jobs in one read, with their payloads.
const PAGE_SIZE: usize = 100;

/// A start and an end.
type Span = (Timestamp, Timestamp);

/// The calls of a run.
pub(super) struct RunFigures {
    /// The time of work on each.
    pub(super) spans: Vec<Span>,
    pub(super) work: Vec<u64>,
    pub(super) waits: Vec<u64>,
    pub(super) n_attempts: u64,
    pub(super) nodes: Vec<NodeDurations>,
}

/// The attempts at one node.
#[derive(Default)]
struct NodeTimes {
    durations: NodeDurations,
    work: Vec<u64>,
    waits: Vec<u64>,
    node: Vec<u64>,
}

impl RunFigures {
    pub(super) fn new(
        view: &RunView,
        rows: &[NodeAttempt],
        claims: &HashMap<Fence, Option<Timestamp>>,
        now: Timestamp,
    ) -> Self {
        let mut figures = RunFigures {
            spans: Vec::new(),
            work: Vec::new(),
            waits: Vec::new(),
            n_attempts: 0,
            nodes: Vec::new(),
        };
        let mut nodes: BTreeMap<String, NodeTimes> = BTreeMap::new();
        let mut visits: BTreeMap<(&NodePath, Visit), (Timestamp, Option<Timestamp>)> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.fence > Fence::ZERO) {
            figures.n_attempts += 1;
            let times = nodes.entry(view.plan.pattern(&row.node)).or_default();
            let (wait, work) = times_of(row, claims.get(&row.fence), now);
            if let Some(wait) = wait {
                figures.waits.push(wait);
                times.waits.push(wait);
            }
            if let Some((from, to)) = work {
                figures.spans.push((from, to));
                figures.work.push(to.since(from));
                times.work.push(to.since(from));
            }
            times.durations.succeeded += u64::from(row.status == AttemptStatus::Ok);
            times.durations.failed += u64::from(row.status == AttemptStatus::Error);
            times.durations.suspended += u64::from(row.suspended_at.is_some());
            let (_, ended) = visits.entry((&row.node, row.visit)).or_insert((row.started_at, None));
            *ended = row.finished_at.filter(|_| !row.status.is_open());
        }
        for ((node, visit), (from, to)) in visits {
            let place = view.state.place(&view.plan, node);
            let is_over = !place.is_some_and(|place| place.phase.is_open() && place.visit == visit);
            let times = nodes.entry(view.plan.pattern(node)).or_default();
            times.node.extend(to.filter(|_| is_over).map(|to| to.since(from)));
        }
        figures.nodes = longest(nodes);
        figures
    }
}

/// The time of an attempt in a queue, and the span of its work. When the job of a call is gone, its claim is unknown and
/// the whole attempt counts as work.
fn times_of(
    row: &NodeAttempt,
    claim: Option<&Option<Timestamp>>,
    now: Timestamp,
) -> (Option<u64>, Option<Span>) {
    let end = row.suspended_at.or(row.finished_at).unwrap_or(now);
    match claim {
        None => (None, Some((row.started_at, end))),
        Some(None) => (Some(end.since(row.started_at)), None),
        Some(Some(at)) => (Some(at.since(row.started_at)), Some((*at, end))),
    }
}

/// When the jobs of a run were claimed, by the fences of its calls.
pub(crate) async fn claim_times(app: &App, run: RunId) -> ApiResult<HashMap<Fence, Option<Timestamp>>> {
    let part = Part { order: Order::Oldest, limit: PAGE_SIZE, ..Part::default() };
    let mut query = JobQuery { run: Some(run), part, ..JobQuery::default() };
    let mut claims = HashMap::new();
    loop {
        let page = app.store().jobs(app.project(), query.clone()).await?;
        for row in page.items {
            if let Some(call) = &row.origin.call {
                claims.insert(call.fence, row.job.latest().started_at);
            }
        }
        query.part.cursor = page.next;
        if query.part.cursor.is_none() {
            return Ok(claims);
        }
    }
}

/// Adds the starts and ends of rounds in a journal entry.
pub(super) fn record_rounds(rounds: &mut Vec<(Timestamp, Option<Timestamp>)>, entry: &Entry) {
    for moment in metric_events(&entry.events) {
        match moment {
            MetricEvent::Begun => rounds.push((entry.at, None)),
            MetricEvent::Ended(_) => rounds.last_mut().into_iter().for_each(|(_, end)| *end = Some(entry.at)),
            MetricEvent::Granted { .. }
            | MetricEvent::Suspended(_)
            | MetricEvent::Deferred(_)
            | MetricEvent::Settled { .. }
            | MetricEvent::Dropped(_) => {}
        }
    }
}

/// The nodes by name; the ones with the longest work if there are too many.
fn longest(nodes: BTreeMap<String, NodeTimes>) -> Vec<NodeDurations> {
    let durations = |(name, times): (String, NodeTimes)| NodeDurations {
        node: name,
        total_ms: times.work.iter().fold(0, |sum: u64, ms| sum.saturating_add(*ms)),
        duration_ms: shape::exact_percentiles(times.work),
        waiting_ms: shape::exact_percentiles(times.waits),
        node_ms: shape::exact_percentiles(times.node),
        ..times.durations
    };
    let mut nodes: Vec<NodeDurations> = nodes.into_iter().map(durations).collect();
    if nodes.len() > NODES_MAX {
        nodes.sort_by_key(|node| std::cmp::Reverse(node.total_ms));
        nodes.truncate(NODES_MAX);
        nodes.sort_by(|a, b| a.node.cmp(&b.node));
    }
    nodes
}
