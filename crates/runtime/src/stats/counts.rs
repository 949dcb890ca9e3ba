//! What one flow did, or all of them.

use std::collections::HashMap;

use windlass_engine::event::Ending;
use windlass_engine::time::Timestamp;

use super::{NodeStats, Totals};
use crate::queue::{News, QueueStats, Spread, Tally, Times};

/// How calls and runs went: lately, and since the server started.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) totals: Totals,
    calls: Tally,
    runs: Tally,
    call_ms: Times,
    run_ms: Times,
    /// Calls that are open, and the most that were.
    pub(super) n_open: u64,
    pub(super) n_open_max: u64,
}

/// Attempts at one node.
#[derive(Debug)]
pub(super) struct NodeCounts {
    n_ok: u64,
    n_failed: u64,
    ms: Times,
}

impl Counts {
    pub(super) fn new() -> Self {
        Counts {
            totals: Totals::default(),
            calls: Tally::new(),
            runs: Tally::new(),
            call_ms: Times::NONE,
            run_ms: Times::NONE,
            n_open: 0,
            n_open_max: 0,
        }
    }

    pub(super) fn begun(&mut self, now: Timestamp) {
        self.totals.runs_begun += 1;
        self.runs.note(News::Created, now);
    }

    pub(super) fn granted(&mut self, now: Timestamp) {
        self.totals.calls_begun += 1;
        self.n_open += 1;
        self.n_open_max = self.n_open_max.max(self.n_open);
        self.calls.note(News::Started { wait_ms: 0 }, now);
    }

    /// A call is no longer open; what came of it is told apart.
    pub(super) fn closed(&mut self) {
        self.n_open = self.n_open.saturating_sub(1);
    }

    pub(super) fn attempted(&mut self, is_ok: bool, work_ms: u64, now: Timestamp) {
        let (count, news) = if is_ok {
            (&mut self.totals.calls_ok, News::Succeeded { work_ms })
        } else {
            (&mut self.totals.calls_failed, News::Failed { work_ms, is_dead: false })
        };
        *count += 1;
        self.call_ms.note(work_ms);
        self.calls.note(news, now);
    }

    pub(super) fn settled(&mut self, now: Timestamp) {
        self.totals.nodes_settled += 1;
        self.calls.note(News::Created, now);
    }

    pub(super) fn ended(&mut self, ending: Ending, work_ms: u64, now: Timestamp) {
        let (count, news) = match ending {
            Ending::Completed => (&mut self.totals.runs_completed, News::Succeeded { work_ms }),
            Ending::Failed => (&mut self.totals.runs_failed, News::Failed { work_ms, is_dead: false }),
            Ending::Canceled => (&mut self.totals.runs_canceled, News::Failed { work_ms, is_dead: true }),
        };
        *count += 1;
        self.run_ms.note(work_ms);
        self.runs.note(news, now);
    }

    pub(super) fn last_at(&self) -> Timestamp {
        self.calls.last_at().max(self.runs.last_at())
    }

    /// How calls went, then how runs did.
    pub(super) fn stats(&self, now: Timestamp) -> (QueueStats, QueueStats) {
        (self.calls.stats(now), self.runs.stats(now))
    }

    /// How long calls took since the server started, and how long runs did: how many, all together, the spread.
    pub(super) fn durations(&self) -> [(u64, u64, Spread); 2] {
        [&self.call_ms, &self.run_ms].map(|times| {
            let (n, sum) = times.total();
            (n, sum, times.spread())
        })
    }
}

impl NodeCounts {
    pub(super) fn new() -> Self {
        NodeCounts { n_ok: 0, n_failed: 0, ms: Times::NONE }
    }

    pub(super) fn attempted(&mut self, is_ok: bool, ms: u64) {
        *(if is_ok { &mut self.n_ok } else { &mut self.n_failed }) += 1;
        self.ms.note(ms);
    }
}

/// The nodes of a flow, by name.
pub(super) fn node_stats(nodes: &HashMap<String, NodeCounts>) -> Vec<NodeStats> {
    let stats = |(node, counts): (&String, &NodeCounts)| NodeStats {
        node: node.clone(),
        n_ok: counts.n_ok,
        n_failed: counts.n_failed,
        total_ms: counts.ms.total().1,
        ms: counts.ms.spread(),
    };
    let mut stats: Vec<NodeStats> = nodes.iter().map(stats).collect();
    stats.sort_by(|a, b| a.node.cmp(&b.node));
    stats
}
