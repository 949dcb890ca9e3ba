//! What one flow did, or all of them.

use std::collections::HashMap;

use windlass_engine::event::Ending;
use windlass_engine::time::Timestamp;

use super::{FlowSums, NodeStats, Totals};
use crate::queue::{News, QueueStats, Spread, Tally, Times};

/// How many there were, their times added up, and the spread.
type Durations = (u64, u64, Spread);

/// How calls and runs went: lately, and since the server started.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) totals: Totals,
    calls: Tally,
    runs: Tally,
    call_ms: Times,
    wait_ms: Times,
    run_ms: Times,
    /// Of runs that were seen from their beginning to their end: the times of their calls, and their own.
    pub(super) whole_ms: (u64, u64),
    /// The most calls that were open at once.
    pub(super) n_open_max: u64,
}

/// Attempts at one node.
#[derive(Debug, Clone)]
pub(super) struct NodeCounts {
    n_ok: u64,
    n_failed: u64,
    n_suspended: u64,
    ms: Times,
    wait_ms: Times,
    whole_ms: Times,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    Succeeded,
    Failed,
    /// It answered that it is not finished.
    Suspended,
}

/// An attempt that ended, and how long it took, as far as that is known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Attempted {
    pub(super) how: How,
    /// Since somebody had it.
    pub(super) work_ms: Option<u64>,
    /// In a queue before that.
    pub(super) wait_ms: Option<u64>,
    /// Of a node that is over, since somebody was first given it.
    pub(super) whole_ms: Option<u64>,
}

/// What several flows did, since the server started.
#[derive(Debug)]
pub(super) struct Sums {
    totals: Totals,
    n_open: u64,
    call_ms: Times,
    wait_ms: Times,
    run_ms: Times,
    nodes: HashMap<String, NodeCounts>,
}

impl Counts {
    pub(super) fn new() -> Self {
        Counts {
            totals: Totals::default(),
            calls: Tally::new(),
            runs: Tally::new(),
            call_ms: Times::NONE,
            wait_ms: Times::NONE,
            run_ms: Times::NONE,
            whole_ms: (0, 0),
            n_open_max: 0,
        }
    }

    pub(super) fn begun(&mut self, now: Timestamp) {
        self.totals.runs_begun += 1;
        self.runs.note(News::Created, now);
    }

    /// Somebody has a call, after it was in a queue for so long; so many are open now.
    pub(super) fn started(&mut self, wait_ms: Option<u64>, n_open: u64, now: Timestamp) {
        self.totals.calls_begun += 1;
        self.n_open_max = self.n_open_max.max(n_open);
        self.calls.note(News::Started { wait_ms }, now);
    }

    pub(super) fn attempted(&mut self, ended: Attempted, now: Timestamp) {
        let work_ms = ended.work_ms;
        let (count, news) = match ended.how {
            How::Succeeded => (&mut self.totals.calls_ok, News::Succeeded { work_ms }),
            How::Failed => (&mut self.totals.calls_failed, News::Failed { work_ms, is_dead: false }),
            How::Suspended => (&mut self.totals.calls_suspended, News::Suspended { work_ms }),
        };
        *count += 1;
        work_ms.into_iter().for_each(|ms| self.call_ms.note(ms));
        ended.wait_ms.into_iter().for_each(|ms| self.wait_ms.note(ms));
        self.calls.note(news, now);
    }

    pub(super) fn settled(&mut self, now: Timestamp) {
        self.totals.nodes_settled += 1;
        self.calls.note(News::Created, now);
    }

    /// A round took so long, if that is known; of one that was seen whole, with the times of its calls.
    pub(super) fn ended(
        &mut self,
        ending: Ending,
        work_ms: Option<u64>,
        whole: Option<(u64, u64)>,
        now: Timestamp,
    ) {
        let (count, news) = match ending {
            Ending::Completed => (&mut self.totals.runs_completed, News::Succeeded { work_ms }),
            Ending::Failed => (&mut self.totals.runs_failed, News::Failed { work_ms, is_dead: false }),
            Ending::Canceled => (&mut self.totals.runs_canceled, News::Failed { work_ms, is_dead: true }),
        };
        *count += 1;
        work_ms.into_iter().for_each(|ms| self.run_ms.note(ms));
        if let Some((calls, run)) = whole {
            let (of_calls, of_runs) = self.whole_ms;
            self.whole_ms = (of_calls.saturating_add(calls), of_runs.saturating_add(run));
        }
        self.runs.note(news, now);
    }

    pub(super) fn last_at(&self) -> Timestamp {
        self.calls.last_at().max(self.runs.last_at())
    }

    /// How calls went, then how runs did.
    pub(super) fn stats(&self, now: Timestamp) -> (QueueStats, QueueStats) {
        (self.calls.stats(now), self.runs.stats(now))
    }

    /// How long calls took since the server started, how long they waited, and how long runs took.
    pub(super) fn durations(&self) -> [Durations; 3] {
        [&self.call_ms, &self.wait_ms, &self.run_ms].map(durations)
    }
}

fn durations(times: &Times) -> Durations {
    let (n, sum) = times.total();
    (n, sum, times.spread())
}

impl NodeCounts {
    pub(super) fn new() -> Self {
        let none = Times::NONE;
        NodeCounts {
            n_ok: 0,
            n_failed: 0,
            n_suspended: 0,
            ms: none.clone(),
            wait_ms: none.clone(),
            whole_ms: none,
        }
    }

    pub(super) fn attempted(&mut self, ended: Attempted) {
        *(match ended.how {
            How::Succeeded => &mut self.n_ok,
            How::Failed => &mut self.n_failed,
            How::Suspended => &mut self.n_suspended,
        }) += 1;
        ended.work_ms.into_iter().for_each(|ms| self.ms.note(ms));
        ended.wait_ms.into_iter().for_each(|ms| self.wait_ms.note(ms));
        ended.whole_ms.into_iter().for_each(|ms| self.whole_ms.note(ms));
    }

    fn add(&mut self, other: &NodeCounts) {
        self.n_ok += other.n_ok;
        self.n_failed += other.n_failed;
        self.n_suspended += other.n_suspended;
        self.ms.add(&other.ms, |n| n);
        self.wait_ms.add(&other.wait_ms, |n| n);
        self.whole_ms.add(&other.whole_ms, |n| n);
    }
}

impl Sums {
    pub(super) fn new() -> Self {
        Sums {
            totals: Totals::default(),
            n_open: 0,
            call_ms: Times::NONE,
            wait_ms: Times::NONE,
            run_ms: Times::NONE,
            nodes: HashMap::new(),
        }
    }

    /// Adds a flow that is not told by itself any more: its nodes are one.
    pub(super) fn add_forgotten(&mut self, counts: &Counts, nodes: &HashMap<String, NodeCounts>) {
        self.add_times(counts);
        let others = self.nodes.entry(super::OTHERS.to_owned()).or_insert_with(NodeCounts::new);
        nodes.values().for_each(|node| others.add(node));
    }

    /// Adds a flow, of which so many calls are open.
    pub(super) fn add(&mut self, counts: &Counts, nodes: &HashMap<String, NodeCounts>, n_open: u64) {
        self.add_times(counts);
        self.n_open += n_open;
        for (name, node) in nodes {
            self.nodes.entry(name.clone()).or_insert_with(NodeCounts::new).add(node);
        }
    }

    pub(super) fn join(&mut self, other: &Sums) {
        self.totals.add(&other.totals);
        self.n_open += other.n_open;
        self.call_ms.add(&other.call_ms, |n| n);
        self.wait_ms.add(&other.wait_ms, |n| n);
        self.run_ms.add(&other.run_ms, |n| n);
        for (name, node) in &other.nodes {
            self.nodes.entry(name.clone()).or_insert_with(NodeCounts::new).add(node);
        }
    }

    fn add_times(&mut self, counts: &Counts) {
        self.totals.add(&counts.totals);
        self.call_ms.add(&counts.call_ms, |n| n);
        self.wait_ms.add(&counts.wait_ms, |n| n);
        self.run_ms.add(&counts.run_ms, |n| n);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.totals == Totals::default()
    }

    pub(super) fn stats(&self) -> FlowSums {
        FlowSums {
            totals: self.totals,
            n_open: self.n_open,
            call_ms: durations(&self.call_ms),
            wait_ms: durations(&self.wait_ms),
            run_ms: durations(&self.run_ms),
            nodes: node_stats(&self.nodes),
        }
    }
}

/// The nodes of a flow, by name.
pub(super) fn node_stats(nodes: &HashMap<String, NodeCounts>) -> Vec<NodeStats> {
    let stats = |(node, counts): (&String, &NodeCounts)| NodeStats {
        node: node.clone(),
        n_ok: counts.n_ok,
        n_failed: counts.n_failed,
        n_suspended: counts.n_suspended,
        ms: durations(&counts.ms),
        wait_ms: counts.wait_ms.spread(),
        whole_ms: counts.whole_ms.spread(),
    };
    let mut stats: Vec<NodeStats> = nodes.iter().map(stats).collect();
    stats.sort_by(|a, b| a.node.cmp(&b.node));
    stats
}
