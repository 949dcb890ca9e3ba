//! What is counted of moments, in an order that nobody may rely on.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::Ending;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, JobEvent, JobInput, JobSpec};
use windlass_engine::plan::Plan;
use windlass_store::job::{CallRef, JobOrigin};

use super::open::DOUBT_MS;
use super::state::{FLOWS_MAX, FORGET, NODES_MAX};
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

fn granted(node: &str) -> Moment {
    Moment::Granted { node: NodePath::from(node), fence: 1 }
}

fn settled(node: &str, is_ok: bool) -> Moment {
    Moment::Settled { node: NodePath::from(node), is_ok }
}

struct World {
    state: State,
    plan: Arc<Plan>,
    /// How every place stands, for whoever looks.
    stands: Stands,
}

impl World {
    fn new() -> Self {
        World { state: State::new(at(0)), plan: plan(), stands: Stands::Over }
    }

    fn follow(&mut self, n: u128, moments: &[Moment], ms: i64) {
        self.follow_with(n, Jobs::default(), moments, ms);
    }

    fn follow_with(&mut self, n: u128, jobs: Jobs<'_>, moments: &[Moment], ms: i64) {
        let stands = self.stands;
        let of = Subject {
            run: run(n),
            created_at: at(0),
            round: 1,
            flow: flow(n),
            plan: &self.plan,
            jobs,
            is_call: &|node| !node.as_str().ends_with('l'),
            stands: &|_| stands,
        };
        self.state.follow_all(&of, moments, at(ms));
    }

    /// Something happens to the job of this call.
    fn job(&mut self, n: u128, node: &str, input: JobInput, job: &mut Job, ms: i64) {
        for event in job.decide(input, at(ms)).unwrap() {
            job.apply(&event, at(ms));
        }
        let call = CallRef { run: run(n), node: NodePath::from(node), fence: 1 };
        let origin = JobOrigin { call: Some(call.clone()), schedule: None };
        let change = JobChange { expected_rev: 1, job: job.clone(), origin };
        self.state.job_moved(&call, &change, at(ms));
        self.state.measure(at(ms));
    }

    fn nodes(&self, n: u128) -> Vec<(String, u64, u64, u64)> {
        let nodes = node_stats(&self.state.flows[&flow(n)].nodes);
        nodes.into_iter().map(|node| (node.node, node.n_ok, node.n_failed, node.ms.1)).collect()
    }

    fn n_open(&self) -> u64 {
        self.state.open.n_working()
    }
}

fn job_made(ms: i64) -> Job {
    let spec = Arc::new(JobSpec { run: Some(run(1)), max_retries: 1, ..JobSpec::new("x", "x") });
    Job::replay(JobId::of_call(run(1), 1), &[(JobEvent::Created { spec, due: None }, at(ms))]).unwrap()
}

fn claim() -> JobInput {
    JobInput::Claim { worker: "w".to_owned(), lease_ms: 30_000 }
}

#[test]
fn calls_are_counted_from_their_grant_to_their_end() {
    let mut world = World::new();
    world.follow(1, &[Moment::Begun, granted("a")], 0);
    world.follow(1, &[Moment::Deferred(NodePath::from("a"))], 10);
    world.follow(1, &[granted("a")], 100);
    world.follow(1, &[settled("a", true), granted("l/0/b")], 130);
    world.follow(1, &[settled("l/0/b", true), granted("l/1/b")], 140);
    world.follow(1, &[settled("l/1/b", false), settled("l", false), Moment::Ended(Ending::Failed)], 160);
    let of = |node: &str, n_ok, n_failed, ms| (node.to_owned(), n_ok, n_failed, ms);
    assert_eq!(world.nodes(1), [of("a", 1, 1, 40), of("l/*/b", 1, 1, 30)]);
    let totals = world.state.all.totals;
    assert_eq!(
        (totals.calls_begun, totals.calls_ok, totals.calls_failed, totals.nodes_settled),
        (4, 2, 2, 4)
    );
    assert_eq!((totals.runs_begun, totals.runs_failed), (1, 1));
    assert_eq!((world.n_open(), world.state.open.len()), (0, 0));
    let [_, _, (n, sum, _)] = world.state.all.durations();
    assert_eq!((n, sum), (1, 160));
}

#[test]
fn what_is_dropped_is_open_no_longer_and_what_is_beside_it_is() {
    let mut world = World::new();
    world.follow(1, &[granted("l"), granted("l-2"), granted("l/0/b"), granted("a")], 0);
    world.follow(2, &[granted("l/0/b")], 0);
    assert_eq!((world.n_open(), world.state.all.n_open_max), (5, 5));
    world.follow(1, &[Moment::Dropped(NodePath::from("l"))], 5);
    let left: Vec<String> = world.state.open.keys().map(|(_, node)| node.to_string()).collect();
    assert_eq!(left, ["a", "l-2", "l/0/b"]);
    world.follow(1, &[Moment::Ended(Ending::Canceled)], 6);
    assert_eq!(world.state.open.len(), 1);
    // Nothing was heard of how they ended.
    assert_eq!(world.state.all.totals.calls_ok + world.state.all.totals.calls_failed, 0);
}

#[test]
fn a_call_that_is_given_again_without_an_answer_is_open_once() {
    let mut world = World::new();
    world.follow(1, &[granted("a")], 0);
    world.follow(1, &[granted("a")], 50);
    assert_eq!(world.n_open(), 1);
    world.follow(1, &[settled("a", true)], 60);
    assert_eq!(world.nodes(1), [("a".to_owned(), 1, 0, 10)]);
}

#[test]
fn an_end_whose_beginning_nobody_saw_has_no_duration() {
    let mut world = World::new();
    world.follow(1, &[settled("a", true)], 60);
    assert_eq!(world.state.all.totals.nodes_settled, 1);
    assert_eq!((world.state.all.totals.calls_ok, world.nodes(1).len()), (0, 0));
}

#[test]
fn of_too_many_flows_the_quiet_are_forgotten_and_of_too_many_nodes_the_last_are_one() {
    let mut world = World::new();
    for n in 0..=FLOWS_MAX as u128 {
        world.follow(n, &[Moment::Begun], n as i64);
    }
    assert_eq!(world.state.flows.len(), FLOWS_MAX + 1 - FORGET);
    assert!(!world.state.flows.contains_key(&flow(0)));
    assert_eq!(world.state.all.totals.runs_begun, FLOWS_MAX as u64 + 1);
    let by_name = world.state.by_name(&HashMap::new());
    assert_eq!(by_name[OTHERS].totals.runs_begun, FLOWS_MAX as u64 + 1);
    for n in 0..NODES_MAX + 10 {
        let node = format!("n{n:03}");
        world.follow(70, &[granted(&node), settled(&node, true)], 5_000);
    }
    let nodes = world.nodes(70);
    assert_eq!(
        (nodes.len(), nodes.first().map(|node| (node.0.as_str(), node.1))),
        (NODES_MAX + 1, Some((OTHERS, 10)))
    );
}

#[test]
fn a_call_in_a_queue_waits_until_somebody_has_it() {
    let mut world = World::new();
    let (a, mut job) = (NodePath::from("a"), job_made(0));
    let jobs = Jobs { queued: [&a].into(), ..Jobs::default() };
    world.follow_with(1, jobs, &[Moment::Begun, granted("a")], 0);
    assert_eq!((world.n_open(), world.state.open.n_queued()), (0, 1));
    world.job(1, "a", claim(), &mut job, 4_000);
    assert_eq!((world.n_open(), world.state.open.n_queued()), (1, 0));
    assert_eq!(world.state.open.of_flow(flow(1)), 1);
    let jobs = Jobs { claimed: [(&a, (at(0), at(4_000)))].into(), ..Jobs::default() };
    world.follow_with(1, jobs, &[settled("a", true), Moment::Ended(Ending::Completed)], 4_100);
    assert_eq!((world.n_open(), world.state.open.len()), (0, 0));
    let found = &node_stats(&world.state.flows[&flow(1)].nodes)[0];
    assert_eq!((found.ms.1, found.wait_ms.max, found.whole_ms.max), (100, Some(4_000), Some(4_100)));
    assert_eq!(world.state.all.whole_ms, (100, 4_100));
    assert_eq!(world.state.all.stats(at(4_100)).0.last_10s.wait_ms.max, Some(4_000));
}

#[test]
fn a_job_that_is_given_back_waits_again_and_one_that_ends_alone_is_gone() {
    let mut world = World::new();
    let (a, mut job) = (NodePath::from("a"), job_made(0));
    world.follow_with(1, Jobs { queued: [&a].into(), ..Jobs::default() }, &[granted("a")], 0);
    world.job(1, "a", claim(), &mut job, 10);
    let fence = job.fence;
    world.job(1, "a", JobInput::Release { fence }, &mut job, 20);
    assert_eq!((world.n_open(), world.state.open.n_queued()), (0, 1));
    world.job(1, "a", claim(), &mut job, 30);
    assert_eq!(world.n_open(), 1);
    world.job(1, "a", JobInput::Cancel, &mut job, 40);
    // It is asked to stop; whoever has it still does.
    assert_eq!(world.n_open(), 1);
    world.follow(1, &[Moment::Dropped(a)], 50);
    assert_eq!((world.n_open(), world.state.open.len()), (0, 0));
}

#[test]
fn what_a_suspended_call_waits_for_is_no_work_but_the_node_takes_as_long() {
    let mut world = World::new();
    world.follow(1, &[granted("a")], 0);
    world.follow(1, &[Moment::Suspended(NodePath::from("a"))], 10);
    assert_eq!(world.n_open(), 0);
    world.follow(1, &[settled("a", true)], 5_000);
    let found = &node_stats(&world.state.flows[&flow(1)].nodes)[0];
    assert_eq!((found.n_ok, found.n_failed, found.n_suspended), (1, 0, 1));
    assert_eq!((found.ms.1, found.whole_ms.max), (10, Some(5_000)));
    assert_eq!(world.state.all.stats(at(5_000)).0.last_10s.n_suspended, 1);
}

#[test]
fn every_round_of_a_run_is_timed_from_its_own_beginning() {
    let mut world = World::new();
    world.follow(1, &[Moment::Begun, granted("a")], 0);
    world.follow(1, &[settled("a", false), Moment::Ended(Ending::Failed)], 100);
    world.follow(1, &[Moment::Begun, granted("a")], 3_600_000);
    world.follow(1, &[settled("a", true), Moment::Ended(Ending::Completed)], 3_600_050);
    let [_, _, (n, sum, _)] = world.state.all.durations();
    assert_eq!((n, sum, world.state.all.whole_ms), (2, 150, (150, 150)));
    assert!(world.state.runs.is_empty());
    // What goes on adds to neither sum.
    world.follow(1, &[Moment::Begun, granted("a")], 3_700_000);
    world.follow(1, &[settled("a", true)], 3_700_900);
    assert_eq!(world.state.all.whole_ms, (150, 150));
}

#[test]
fn what_another_server_ended_is_forgotten_and_what_this_one_makes_is_not() {
    let mut world = World::new();
    world.follow(1, &[Moment::Begun, granted("a"), granted("b")], 0);
    world.follow(2, &[Moment::Begun, granted("a")], 0);
    world.state.doubt(run(1), at(10));
    let late = DOUBT_MS as i64 + 10;
    world.state.expire(at(late - 1), |_, _| false);
    assert_eq!(world.n_open(), 3);
    world.state.expire(at(late), |_, _| false);
    assert_eq!((world.n_open(), world.state.load.n()), (1, 1));
    assert_eq!(world.state.runs.keys().copied().collect::<Vec<_>>(), [run(2)]);
    world.state.doubt_all(at(late));
    world.state.expire(at(2 * late), |_, _| true);
    assert_eq!(world.n_open(), 1);
    world.state.doubt_all(at(2 * late));
    world.state.expire(at(3 * late), |_, _| false);
    assert_eq!((world.n_open(), world.state.open.len()), (0, 0));
}

#[test]
fn a_commit_of_its_own_settles_what_is_doubtful() {
    let mut world = World::new();
    world.follow(1, &[Moment::Begun, granted("a"), granted("b")], 0);
    world.state.doubt(run(1), at(10));
    world.stands = Stands::Granted(1);
    world.follow(1, &[settled("l", true)], 2_000);
    world.state.expire(at(1_000_000), |_, _| false);
    assert_eq!(world.n_open(), 2);
    world.state.doubt(run(1), at(1_000_000));
    // They were given to somebody else meanwhile.
    world.stands = Stands::Granted(7);
    world.follow(1, &[settled("l", true)], 1_002_000);
    assert_eq!((world.n_open(), world.state.open.len()), (0, 0));
}

#[test]
fn a_sign_of_life_confirms_a_call() {
    let mut world = World::new();
    let (a, mut job) = (NodePath::from("a"), job_made(0));
    world.follow_with(1, Jobs { queued: [&a].into(), ..Jobs::default() }, &[granted("a")], 0);
    world.job(1, "a", claim(), &mut job, 10);
    world.state.doubt(run(1), at(20));
    let fence = job.fence;
    world.job(1, "a", JobInput::Extend { fence, lease_ms: 30_000 }, &mut job, 30);
    world.state.expire(at(1_000_000), |_, _| false);
    assert_eq!(world.n_open(), 1);
    // What only looks like a claim is none.
    world.follow(1, &[Moment::Dropped(a)], 1_000_000);
    world.job(1, "a", JobInput::Extend { fence, lease_ms: 60_000 }, &mut job, 1_000_010);
    assert_eq!(world.n_open(), 0);
}

#[test]
fn flows_of_one_name_are_one() {
    let mut world = World::new();
    for n in 1..=3 {
        world.follow(n, &[Moment::Begun, granted("a"), settled("a", true), granted("b")], 5);
    }
    let name = |n: u128, name: &str| (flow(n), name.to_owned());
    let names = HashMap::from([name(1, "x"), name(2, "x"), name(3, "y")]);
    let found = world.state.by_name(&names);
    assert_eq!(found.keys().collect::<Vec<_>>(), ["x", "y"]);
    let FlowSums { totals, n_open, nodes, .. } = &found["x"];
    assert_eq!((totals.runs_begun, *n_open, nodes.len(), nodes[0].n_ok), (2, 2, 1, 2));
}
