//! The counters after metric events in different orders.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::counter::{Fence, Revision};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::Ending;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobEvent, JobInput, JobSpec};
use windlass_engine::plan::Plan;
use windlass_store::job::{CallRef, JobOrigin};

use super::open_calls::UNCONFIRMED_MS_MAX;
use super::state::{EVICTED_TOGETHER, FLOWS_MAX, NODES_MAX};
use super::*;

const FLOW: &str = r#"{"steps": [{"id": "a", "operator": "x"},
    {"id": "l", "operator": "@control/flow/loop", "parameters": {"limit": 2}, "steps": [{"id": "b", "operator": "x"}]}]}"#;

fn plan() -> Arc<Plan> {
    compile(FLOW, Strictness::Strict).plan.unwrap()
}

fn flow(n: u128) -> FlowId {
    FlowId::new(Uuid::from_u128(n))
}

fn run(n: u128) -> RunId {
    RunId::new(Uuid::from_u128(n))
}

fn at(ms: i64) -> Timestamp {
    Timestamp(1_790_000_000_000 + ms)
}

fn granted(node: &str) -> MetricEvent {
    MetricEvent::Granted { node: NodePath::from(node), fence: Fence(1) }
}

fn settled(node: &str, is_ok: bool) -> MetricEvent {
    MetricEvent::Settled { node: NodePath::from(node), is_ok }
}

struct StatsTest {
    state: StatsState,
    plan: Arc<Plan>,
    /// The state of every node in the runs that are written.
    progress: NodeProgress,
}

impl StatsTest {
    fn new() -> Self {
        StatsTest { state: StatsState::new(at(0)), plan: plan(), progress: NodeProgress::Ended }
    }

    fn record(&mut self, n: u128, metric_events: &[MetricEvent], ms: i64) {
        self.record_with(n, CallJobs::default(), metric_events, ms);
    }

    fn record_with(&mut self, n: u128, jobs: CallJobs<'_>, metric_events: &[MetricEvent], ms: i64) {
        let progress = self.progress;
        let of = CommittedRun {
            run: run(n),
            created_at: at(0),
            round: 1,
            flow: flow(n),
            plan: &self.plan,
            jobs,
            is_call: &|node| !node.as_str().ends_with('l'),
            progress: &|_| progress,
        };
        self.state.record_all(&of, metric_events, at(ms));
    }

    /// Changes the job of this call.
    fn change_job(&mut self, n: u128, node: &str, input: JobInput, job: &mut Job, ms: i64) {
        for event in job.decide(input, at(ms)).unwrap() {
            job.apply(&event, at(ms));
        }
        let call = CallRef { run: run(n), node: NodePath::from(node), fence: Fence(1) };
        let origin = JobOrigin { call: Some(call.clone()), schedule: None };
        let change = JobChange { expected_rev: Revision(1), job: job.clone(), origin };
        self.state.job_changed(&call, &change, at(ms));
        self.state.update_concurrency(at(ms));
    }

    fn nodes(&self, n: u128) -> Vec<(String, u64, u64, u64)> {
        let nodes = self.node_activity(n).into_iter();
        nodes.map(|node| (node.node, node.succeeded, node.failed, node.work_ms.sum_ms)).collect()
    }

    fn node_activity(&self, n: u128) -> Vec<NodeActivity> {
        node_activity(&self.state.flows[&flow(n)].nodes)
    }

    fn all(&self, ms: i64) -> FlowActivity {
        self.state.all.activity(self.n_open(), at(ms))
    }

    fn n_open(&self) -> u64 {
        self.state.open.n_working()
    }
}

fn job_made(ms: i64) -> Job {
    let spec = Arc::new(JobSpec { run: Some(run(1)), max_retries: 1, ..JobSpec::new("x", "x") });
    Job::replay(JobId::of_call(run(1), Fence(1)), &[(JobEvent::Created { spec, due: None }, at(ms))]).unwrap()
}

fn claim() -> JobInput {
    JobInput::Claim { worker: "w".to_owned(), lease_ms: 30_000 }
}

#[test]
fn calls_are_counted_from_their_grant_to_their_end() {
    let mut test = StatsTest::new();
    test.record(1, &[MetricEvent::Begun, granted("a")], 0);
    test.record(1, &[MetricEvent::Deferred(NodePath::from("a"))], 10);
    test.record(1, &[granted("a")], 100);
    test.record(1, &[settled("a", true), granted("l/0/b")], 130);
    test.record(1, &[settled("l/0/b", true), granted("l/1/b")], 140);
    test.record(1, &[settled("l/1/b", false), settled("l", false), MetricEvent::Ended(Ending::Failed)], 160);
    let of = |node: &str, n_ok, n_failed, ms| (node.to_owned(), n_ok, n_failed, ms);
    assert_eq!(test.nodes(1), [of("a", 1, 1, 40), of("l/*/b", 1, 1, 30)]);
    let totals = test.all(160).totals;
    assert_eq!(
        (totals.calls_begun, totals.calls_ok, totals.calls_failed, totals.nodes_settled),
        (4, 2, 2, 4)
    );
    assert_eq!((totals.runs_begun, totals.runs_failed), (1, 1));
    assert_eq!((test.n_open(), test.state.open.len()), (0, 0));
    let run_ms = test.all(160).run_ms;
    assert_eq!((run_ms.count, run_ms.sum_ms), (1, 160));
}

#[test]
fn a_dropped_node_closes_its_calls_and_not_those_of_its_siblings() {
    let mut test = StatsTest::new();
    test.record(1, &[granted("l"), granted("l-2"), granted("l/0/b"), granted("a")], 0);
    test.record(2, &[granted("l/0/b")], 0);
    assert_eq!((test.n_open(), test.all(0).running_max), (5, 5));
    test.record(1, &[MetricEvent::Dropped(NodePath::from("l"))], 5);
    let left: Vec<String> = test.state.open.keys().map(|(_, node)| node.to_string()).collect();
    assert_eq!(left, ["a", "l-2", "l/0/b"]);
    test.record(1, &[MetricEvent::Ended(Ending::Canceled)], 6);
    assert_eq!(test.state.open.len(), 1);
    // A dropped call has no outcome.
    let totals = test.all(6).totals;
    assert_eq!(totals.calls_ok + totals.calls_failed, 0);
}

#[test]
fn a_call_that_is_granted_again_without_an_answer_is_open_once() {
    let mut test = StatsTest::new();
    test.record(1, &[granted("a")], 0);
    test.record(1, &[granted("a")], 50);
    assert_eq!(test.n_open(), 1);
    test.record(1, &[settled("a", true)], 60);
    assert_eq!(test.nodes(1), [("a".to_owned(), 1, 0, 10)]);
}

#[test]
fn an_end_without_a_known_start_has_no_duration() {
    let mut test = StatsTest::new();
    test.record(1, &[settled("a", true)], 60);
    assert_eq!(test.all(60).totals.nodes_settled, 1);
    assert_eq!((test.all(60).totals.calls_ok, test.nodes(1).len()), (0, 0));
}

#[test]
fn flows_without_recent_events_are_evicted_and_nodes_beyond_the_limit_are_counted_together() {
    let mut test = StatsTest::new();
    for n in 0..=FLOWS_MAX as u128 {
        test.record(n, &[MetricEvent::Begun], n as i64);
    }
    assert_eq!(test.state.flows.len(), FLOWS_MAX + 1 - EVICTED_TOGETHER);
    assert!(!test.state.flows.contains_key(&flow(0)));
    assert_eq!(test.all(1_000).totals.runs_begun, FLOWS_MAX as u64 + 1);
    let by_name = test.state.metrics(&HashMap::new());
    assert_eq!(by_name[OTHER_LABEL].totals.runs_begun, FLOWS_MAX as u64 + 1);
    for n in 0..NODES_MAX + 10 {
        let node = format!("n{n:03}");
        test.record(70, &[granted(&node), settled(&node, true)], 5_000);
    }
    let nodes = test.nodes(70);
    assert_eq!(
        (nodes.len(), nodes.first().map(|node| (node.0.as_str(), node.1))),
        (NODES_MAX + 1, Some((OTHER_LABEL, 10)))
    );
}

#[test]
fn a_call_in_a_queue_waits_until_a_worker_claims_it() {
    let mut test = StatsTest::new();
    let (a, mut job) = (NodePath::from("a"), job_made(0));
    let jobs = CallJobs { queued: [&a].into(), ..CallJobs::default() };
    test.record_with(1, jobs, &[MetricEvent::Begun, granted("a")], 0);
    assert_eq!((test.n_open(), test.state.open.n_queued()), (0, 1));
    test.change_job(1, "a", claim(), &mut job, 4_000);
    assert_eq!((test.n_open(), test.state.open.n_queued()), (1, 0));
    assert_eq!(test.state.open.n_working_of(flow(1)), 1);
    let jobs = CallJobs { claimed: [(&a, (at(0), at(4_000)))].into(), ..CallJobs::default() };
    test.record_with(1, jobs, &[settled("a", true), MetricEvent::Ended(Ending::Completed)], 4_100);
    assert_eq!((test.n_open(), test.state.open.len()), (0, 0));
    let found = &test.node_activity(1)[0];
    assert_eq!((found.work_ms.sum_ms, found.wait_ms.max, found.node_ms.max), (100, Some(4_000), Some(4_100)));
    let all = test.all(4_100);
    assert_eq!((all.observed_call_ms, all.observed_run_ms), (100, 4_100));
    assert_eq!(all.calls.last_10s.wait_ms.max, Some(4_000));
}

#[test]
fn a_released_job_waits_again_and_a_dropped_one_is_gone() {
    let mut test = StatsTest::new();
    let (a, mut job) = (NodePath::from("a"), job_made(0));
    test.record_with(1, CallJobs { queued: [&a].into(), ..CallJobs::default() }, &[granted("a")], 0);
    test.change_job(1, "a", claim(), &mut job, 10);
    let fence = job.fence;
    test.change_job(1, "a", JobInput::Release { fence }, &mut job, 20);
    assert_eq!((test.n_open(), test.state.open.n_queued()), (0, 1));
    test.change_job(1, "a", claim(), &mut job, 30);
    assert_eq!(test.n_open(), 1);
    test.change_job(1, "a", JobInput::Cancel, &mut job, 40);
    // The worker is asked to stop and still works on it.
    assert_eq!(test.n_open(), 1);
    test.record(1, &[MetricEvent::Dropped(a)], 50);
    assert_eq!((test.n_open(), test.state.open.len()), (0, 0));
}

#[test]
fn a_suspension_counts_for_the_node_and_not_for_the_attempt() {
    let mut test = StatsTest::new();
    test.record(1, &[granted("a")], 0);
    test.record(1, &[MetricEvent::Suspended(NodePath::from("a"))], 10);
    assert_eq!(test.n_open(), 0);
    test.record(1, &[settled("a", true)], 5_000);
    let found = &test.node_activity(1)[0];
    assert_eq!((found.succeeded, found.failed, found.suspended), (1, 0, 1));
    assert_eq!((found.work_ms.sum_ms, found.node_ms.max), (10, Some(5_000)));
    assert_eq!(test.all(5_000).calls.last_10s.counts.suspended, 1);
}

#[test]
fn every_round_of_a_run_is_timed_from_its_own_start() {
    let mut test = StatsTest::new();
    test.record(1, &[MetricEvent::Begun, granted("a")], 0);
    test.record(1, &[settled("a", false), MetricEvent::Ended(Ending::Failed)], 100);
    test.record(1, &[MetricEvent::Begun, granted("a")], 3_600_000);
    test.record(1, &[settled("a", true), MetricEvent::Ended(Ending::Completed)], 3_600_050);
    let all = test.all(3_600_050);
    assert_eq!((all.run_ms.count, all.run_ms.sum_ms), (2, 150));
    assert_eq!((all.observed_call_ms, all.observed_run_ms), (150, 150));
    assert!(test.state.runs.is_empty());
    // An open round adds to neither sum.
    test.record(1, &[MetricEvent::Begun, granted("a")], 3_700_000);
    test.record(1, &[settled("a", true)], 3_700_900);
    let all = test.all(3_700_900);
    assert_eq!((all.observed_call_ms, all.observed_run_ms), (150, 150));
}

#[test]
fn unconfirmed_calls_are_removed_unless_this_server_makes_them() {
    let mut test = StatsTest::new();
    test.record(1, &[MetricEvent::Begun, granted("a"), granted("b")], 0);
    test.record(2, &[MetricEvent::Begun, granted("a")], 0);
    test.state.invalidate(run(1), at(10));
    let late = UNCONFIRMED_MS_MAX as i64 + 10;
    test.state.expire(at(late - 1), |_, _| false);
    assert_eq!(test.n_open(), 3);
    test.state.expire(at(late), |_, _| false);
    assert_eq!((test.n_open(), test.state.concurrency.n()), (1, 1));
    assert_eq!(test.state.runs.keys().copied().collect::<Vec<_>>(), [run(2)]);
    test.state.invalidate_all(at(late));
    test.state.expire(at(2 * late), |_, _| true);
    assert_eq!(test.n_open(), 1);
    test.state.invalidate_all(at(2 * late));
    test.state.expire(at(3 * late), |_, _| false);
    assert_eq!((test.n_open(), test.state.open.len()), (0, 0));
}

#[test]
fn a_commit_of_this_server_confirms_or_removes_calls() {
    let mut test = StatsTest::new();
    test.record(1, &[MetricEvent::Begun, granted("a"), granted("b")], 0);
    test.state.invalidate(run(1), at(10));
    test.progress = NodeProgress::Granted(Fence(1));
    test.record(1, &[settled("l", true)], 2_000);
    test.state.expire(at(1_000_000), |_, _| false);
    assert_eq!(test.n_open(), 2);
    test.state.invalidate(run(1), at(1_000_000));
    // Other workers got new grants meanwhile.
    test.progress = NodeProgress::Granted(Fence(7));
    test.record(1, &[settled("l", true)], 1_002_000);
    assert_eq!((test.n_open(), test.state.open.len()), (0, 0));
}

#[test]
fn a_heartbeat_confirms_a_call() {
    let mut test = StatsTest::new();
    let (a, mut job) = (NodePath::from("a"), job_made(0));
    test.record_with(1, CallJobs { queued: [&a].into(), ..CallJobs::default() }, &[granted("a")], 0);
    test.change_job(1, "a", claim(), &mut job, 10);
    test.state.invalidate(run(1), at(20));
    let fence = job.fence;
    test.change_job(1, "a", JobInput::Extend { fence, lease_ms: 30_000 }, &mut job, 30);
    test.state.expire(at(1_000_000), |_, _| false);
    assert_eq!(test.n_open(), 1);
    // An extended lease is no claim.
    test.record(1, &[MetricEvent::Dropped(a)], 1_000_000);
    test.change_job(1, "a", JobInput::Extend { fence, lease_ms: 60_000 }, &mut job, 1_000_010);
    assert_eq!(test.n_open(), 0);
}

#[test]
fn flows_of_one_name_are_summed() {
    let mut test = StatsTest::new();
    for n in 1..=3 {
        test.record(n, &[MetricEvent::Begun, granted("a"), settled("a", true), granted("b")], 5);
    }
    let name = |n: u128, name: &str| (flow(n), name.to_owned());
    let names = HashMap::from([name(1, "x"), name(2, "x"), name(3, "y")]);
    let found = test.state.metrics(&names);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["x", "y"]);
    let FlowMetrics { totals, running, nodes, .. } = &found["x"];
    assert_eq!((totals.runs_begun, *running, nodes.len()), (2, 2, 1));
    assert_eq!((nodes["a"].succeeded, nodes["a"].work_seconds.get_sample_count()), (2, 2));
}
