//! The figures of one run, from its journal and the jobs of its calls.

use std::collections::{BTreeMap, HashMap};

use windlass_engine::id::RunId;
use windlass_engine::journal::Entry;
use windlass_engine::path::NodePath;
use windlass_engine::time::Timestamp;
use windlass_runtime::run::RunView;
use windlass_sdk::types::NodeDurations;
use windlass_store::job::JobQuery;
use windlass_store::page::{Order, Part};
use windlass_store::project::attempts::{AttemptStatus, NodeAttempt};
use windlass_store::project::moments::{Moment, moments};

use crate::app::App;
use crate::problem::Answer;
use crate::shape;

/// Nodes of a run that are told apart.
const NODES_MAX: usize = 1_000;

/// Jobs that are read at once, with all that they were given.
const JOBS: usize = 100;

/// From one moment to another.
type Span = (Timestamp, Timestamp);

/// How the calls of a run went.
pub(super) struct Figures {
    /// When somebody worked on each.
    pub(super) spans: Vec<Span>,
    pub(super) work: Vec<u64>,
    pub(super) waits: Vec<u64>,
    pub(super) n_attempts: u64,
    pub(super) nodes: Vec<NodeDurations>,
}

/// What is known of a node.
#[derive(Default)]
struct Times {
    durations: NodeDurations,
    work: Vec<u64>,
    waits: Vec<u64>,
    whole: Vec<u64>,
}

impl Figures {
    pub(super) fn of(
        view: &RunView,
        rows: &[NodeAttempt],
        claims: &HashMap<u64, Option<Timestamp>>,
        now: Timestamp,
    ) -> Self {
        let mut figures = Figures {
            spans: Vec::new(),
            work: Vec::new(),
            waits: Vec::new(),
            n_attempts: 0,
            nodes: Vec::new(),
        };
        let mut nodes: BTreeMap<String, Times> = BTreeMap::new();
        let mut visits: BTreeMap<(&NodePath, u64), (Timestamp, Option<Timestamp>)> = BTreeMap::new();
        for row in rows.iter().filter(|row| row.fence > 0) {
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
            times.whole.extend(to.filter(|_| is_over).map(|to| to.since(from)));
        }
        figures.nodes = longest(nodes);
        figures
    }
}

/// How long an attempt was in a queue, and when somebody worked on it. Of a call whose job is gone it is not known
/// when somebody got it: all of it counts as work.
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

/// When somebody got the jobs of a run, by the fences of its calls.
pub(super) async fn claims(app: &App, run: RunId) -> Answer<HashMap<u64, Option<Timestamp>>> {
    let part = Part { order: Order::Oldest, limit: JOBS, ..Part::default() };
    let mut query = JobQuery { run: Some(run), part, ..JobQuery::default() };
    let mut claims = HashMap::new();
    loop {
        let page = app.store().jobs(query.clone()).await?;
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

/// When each round of a run began, and when it ended.
pub(super) fn follow_rounds(rounds: &mut Vec<(Timestamp, Option<Timestamp>)>, entry: &Entry) {
    for moment in moments(&entry.events) {
        match moment {
            Moment::Begun => rounds.push((entry.at, None)),
            Moment::Ended(_) => rounds.last_mut().into_iter().for_each(|(_, end)| *end = Some(entry.at)),
            Moment::Granted { .. }
            | Moment::Suspended(_)
            | Moment::Deferred(_)
            | Moment::Settled { .. }
            | Moment::Dropped(_) => {}
        }
    }
}

/// By name, those that took longest if there are too many.
fn longest(nodes: BTreeMap<String, Times>) -> Vec<NodeDurations> {
    let durations = |(name, times): (String, Times)| NodeDurations {
        node: name,
        total_ms: times.work.iter().fold(0, |sum: u64, ms| sum.saturating_add(*ms)),
        duration_ms: shape::spread_of(times.work),
        waiting_ms: shape::spread_of(times.waits),
        node_ms: shape::spread_of(times.whole),
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
