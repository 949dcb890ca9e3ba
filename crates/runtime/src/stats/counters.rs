//! Counters and durations of one flow, of one node, or of all flows.

use std::collections::{BTreeMap, HashMap};

use prometheus::proto::Histogram as BucketCounts;
use windlass_engine::event::Ending;
use windlass_engine::time::Timestamp;

use super::histogram::{DurationBuckets, DurationHistogram, add_buckets};
use super::sample::EventFigures;
use super::window::{EventWindows, WindowEvent};
use super::{ActivityTotals, FlowActivity, FlowMetrics, NodeActivity, NodeMetrics, OTHER_LABEL};

/// Calls and runs of a flow: in the last hour, and since the server started.
#[derive(Debug)]
pub(super) struct FlowCounters {
    totals: ActivityTotals,
    calls: EventWindows,
    runs: EventWindows,
    call_ms: DurationHistogram,
    wait_ms: DurationHistogram,
    run_ms: DurationHistogram,
    wait_buckets: DurationBuckets,
    run_buckets: DurationBuckets,
    /// The durations of calls, and of their rounds, for rounds that this server saw from start to end.
    observed_call_ms: u64,
    observed_run_ms: u64,
    running_max: u64,
}

/// Attempts at one node.
#[derive(Debug)]
pub(super) struct NodeCounters {
    succeeded: u64,
    failed: u64,
    suspended: u64,
    work_ms: DurationHistogram,
    wait_ms: DurationHistogram,
    node_ms: DurationHistogram,
    work_buckets: DurationBuckets,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttemptOutcome {
    Succeeded,
    Failed,
    /// It answered that it is not finished.
    Suspended,
}

/// An attempt that ended, with its durations as far as they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedAttempt {
    pub(super) outcome: AttemptOutcome,
    /// From its grant or claim to its end.
    pub(super) work_ms: Option<u64>,
    /// In a queue before that.
    pub(super) wait_ms: Option<u64>,
    /// From the first grant of the node to its end, when the attempt ended the node.
    pub(super) node_ms: Option<u64>,
}

/// A round that ended, with its durations as far as they are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedRound {
    pub(super) ending: Ending,
    pub(super) run_ms: Option<u64>,
    /// The durations of its calls, if this server saw all of them.
    pub(super) call_ms: Option<u64>,
}

impl FlowCounters {
    /// The figures of runs and of calls in the minute that began at this time.
    pub(super) fn minute(&self, begin: Timestamp) -> (EventFigures, EventFigures) {
        (self.runs.minute(begin), self.calls.minute(begin))
    }

    pub(super) fn new() -> Self {
        FlowCounters {
            totals: ActivityTotals::default(),
            calls: EventWindows::new(),
            runs: EventWindows::new(),
            call_ms: DurationHistogram::new(),
            wait_ms: DurationHistogram::new(),
            run_ms: DurationHistogram::new(),
            wait_buckets: DurationBuckets::new(),
            run_buckets: DurationBuckets::new(),
            observed_call_ms: 0,
            observed_run_ms: 0,
            running_max: 0,
        }
    }

    pub(super) fn round_began(&mut self, now: Timestamp) {
        self.totals.runs_begun += 1;
        self.runs.record(WindowEvent::Created, now);
    }

    /// A worker or the server began a call after this wait in a queue; `running` calls are in progress now.
    pub(super) fn call_began(&mut self, wait_ms: Option<u64>, running: u64, now: Timestamp) {
        self.totals.calls_begun += 1;
        self.running_max = self.running_max.max(running);
        self.calls.record(WindowEvent::Started { wait_ms }, now);
    }

    pub(super) fn attempt_ended(&mut self, ended: EndedAttempt, now: Timestamp) {
        let work_ms = ended.work_ms;
        let (count, event) = match ended.outcome {
            AttemptOutcome::Succeeded => (&mut self.totals.calls_ok, WindowEvent::Succeeded { work_ms }),
            AttemptOutcome::Failed => {
                (&mut self.totals.calls_failed, WindowEvent::Failed { work_ms, is_dead: false })
            }
            AttemptOutcome::Suspended => {
                (&mut self.totals.calls_suspended, WindowEvent::Suspended { work_ms })
            }
        };
        *count += 1;
        self.calls.record(event, now);
        work_ms.into_iter().for_each(|ms| self.call_ms.record(ms));
        if let Some(ms) = ended.wait_ms {
            self.wait_ms.record(ms);
            self.wait_buckets.record(ms);
        }
    }

    pub(super) fn node_settled(&mut self, now: Timestamp) {
        self.totals.nodes_settled += 1;
        self.calls.record(WindowEvent::Created, now);
    }

    pub(super) fn round_ended(&mut self, ended: EndedRound, now: Timestamp) {
        let work_ms = ended.run_ms;
        let (count, event) = match ended.ending {
            Ending::Completed => (&mut self.totals.runs_completed, WindowEvent::Succeeded { work_ms }),
            Ending::Failed => (&mut self.totals.runs_failed, WindowEvent::Failed { work_ms, is_dead: false }),
            Ending::Canceled => {
                (&mut self.totals.runs_canceled, WindowEvent::Failed { work_ms, is_dead: true })
            }
        };
        *count += 1;
        self.runs.record(event, now);
        if let Some(ms) = work_ms {
            self.run_ms.record(ms);
            self.run_buckets.record(ms);
        }
        if let Some((calls, run)) = ended.call_ms.zip(work_ms) {
            self.observed_call_ms = self.observed_call_ms.saturating_add(calls);
            self.observed_run_ms = self.observed_run_ms.saturating_add(run);
        }
    }

    /// The time of the latest event.
    pub(super) fn last_at(&self) -> Timestamp {
        self.calls.last_at().max(self.runs.last_at())
    }

    pub(super) fn activity(&self, running: u64, now: Timestamp) -> FlowActivity {
        FlowActivity {
            totals: self.totals,
            calls: self.calls.activity(now),
            runs: self.runs.activity(now),
            call_ms: self.call_ms.stats(),
            wait_ms: self.wait_ms.stats(),
            run_ms: self.run_ms.stats(),
            observed_call_ms: self.observed_call_ms,
            observed_run_ms: self.observed_run_ms,
            running,
            running_max: self.running_max,
        }
    }
}

impl NodeCounters {
    pub(super) fn new() -> Self {
        NodeCounters {
            succeeded: 0,
            failed: 0,
            suspended: 0,
            work_ms: DurationHistogram::new(),
            wait_ms: DurationHistogram::new(),
            node_ms: DurationHistogram::new(),
            work_buckets: DurationBuckets::new(),
        }
    }

    pub(super) fn attempt_ended(&mut self, ended: EndedAttempt) {
        *(match ended.outcome {
            AttemptOutcome::Succeeded => &mut self.succeeded,
            AttemptOutcome::Failed => &mut self.failed,
            AttemptOutcome::Suspended => &mut self.suspended,
        }) += 1;
        if let Some(ms) = ended.work_ms {
            self.work_ms.record(ms);
            self.work_buckets.record(ms);
        }
        ended.wait_ms.into_iter().for_each(|ms| self.wait_ms.record(ms));
        ended.node_ms.into_iter().for_each(|ms| self.node_ms.record(ms));
    }
}

impl FlowMetrics {
    /// Adds a flow and its nodes.
    pub(super) fn add_flow(
        &mut self,
        flow: &FlowCounters,
        nodes: &HashMap<String, NodeCounters>,
        running: u64,
    ) {
        self.add_counters(flow);
        self.running += running;
        for (name, node) in nodes {
            self.node(name).add_counters(node);
        }
    }

    /// Adds a flow that no longer has counters of its own, with its nodes as one.
    pub(super) fn add_evicted(&mut self, flow: &FlowCounters, nodes: &HashMap<String, NodeCounters>) {
        self.add_counters(flow);
        nodes.values().for_each(|node| self.node(OTHER_LABEL).add_counters(node));
    }

    pub(super) fn add(&mut self, other: &FlowMetrics) {
        self.totals.add(&other.totals);
        self.running += other.running;
        add_buckets(&mut self.wait_seconds, &other.wait_seconds);
        add_buckets(&mut self.run_seconds, &other.run_seconds);
        for (name, node) in &other.nodes {
            self.node(name).add(node);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.totals == ActivityTotals::default()
    }

    fn add_counters(&mut self, flow: &FlowCounters) {
        self.totals.add(&flow.totals);
        flow.wait_buckets.add_to(&mut self.wait_seconds);
        flow.run_buckets.add_to(&mut self.run_seconds);
    }

    fn node(&mut self, name: &str) -> &mut NodeMetrics {
        if !self.nodes.contains_key(name) {
            self.nodes.insert(name.to_owned(), NodeMetrics::default());
        }
        self.nodes.get_mut(name).expect("the node was added above")
    }

    /// All nodes as one.
    pub fn all_nodes(&self) -> NodeMetrics {
        let mut all = NodeMetrics::default();
        self.nodes.values().for_each(|node| all.add(node));
        all
    }
}

impl NodeMetrics {
    fn add(&mut self, other: &NodeMetrics) {
        self.succeeded += other.succeeded;
        self.failed += other.failed;
        self.suspended += other.suspended;
        add_buckets(&mut self.work_seconds, &other.work_seconds);
    }

    fn add_counters(&mut self, node: &NodeCounters) {
        let mut work_seconds = BucketCounts::default();
        node.work_buckets.add_to(&mut work_seconds);
        let NodeCounters { succeeded, failed, suspended, .. } = *node;
        self.add(&NodeMetrics { succeeded, failed, suspended, work_seconds });
    }
}

/// The nodes of a flow, by name.
pub(super) fn node_activity(nodes: &HashMap<String, NodeCounters>) -> Vec<NodeActivity> {
    let sorted: BTreeMap<&String, &NodeCounters> = nodes.iter().collect();
    let activity = |(node, counters): (&String, &NodeCounters)| NodeActivity {
        node: node.clone(),
        succeeded: counters.succeeded,
        failed: counters.failed,
        suspended: counters.suspended,
        work_ms: counters.work_ms.stats(),
        wait_ms: counters.wait_ms.percentiles(),
        node_ms: counters.node_ms.percentiles(),
    };
    sorted.into_iter().map(activity).collect()
}
