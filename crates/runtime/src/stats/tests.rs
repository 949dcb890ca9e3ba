//! What is counted of moments, in an order that nobody may rely on.

use std::sync::Arc;

use uuid::Uuid;
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::event::Ending;

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
    Moment::Granted(NodePath::from(node))
}

fn settled(node: &str, is_ok: bool) -> Moment {
    Moment::Settled { node: NodePath::from(node), is_ok }
}

struct World {
    state: State,
    plan: Arc<Plan>,
}

impl World {
    fn new() -> Self {
        World { state: State::new(at(0)), plan: plan() }
    }

    fn follow(&mut self, n: u128, moments: &[Moment], ms: i64) {
        let of = Subject { run: run(n), begun_at: at(0), flow: flow(n), plan: &self.plan };
        self.state.follow_all(&of, moments, at(ms));
    }

    fn nodes(&self, n: u128) -> Vec<(String, u64, u64, u64)> {
        let nodes = node_stats(&self.state.flows[&flow(n)].nodes);
        nodes.into_iter().map(|node| (node.node, node.n_ok, node.n_failed, node.total_ms)).collect()
    }
}

#[test]
fn calls_are_counted_from_their_grant_to_their_end() {
    let mut world = World::new();
    world.follow(1, &[Moment::Begun, granted("a")], 0);
    let deferred = Moment::Attempted { node: NodePath::from("a"), is_ok: false };
    world.follow(1, &[deferred], 10);
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
    assert_eq!((world.state.all.n_open, world.state.open.len()), (0, 0));
    let [_, (n, sum, _)] = world.state.all.durations();
    assert_eq!((n, sum), (1, 160));
}

#[test]
fn what_is_dropped_is_open_no_longer_and_what_is_beside_it_is() {
    let mut world = World::new();
    world.follow(1, &[granted("l"), granted("l-2"), granted("l/0/b"), granted("a")], 0);
    world.follow(2, &[granted("l/0/b")], 0);
    assert_eq!((world.state.all.n_open, world.state.all.n_open_max), (5, 5));
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
    assert_eq!(world.state.all.n_open, 1);
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
    assert_eq!(world.state.flows.len(), FLOWS_MAX);
    assert!(!world.state.flows.contains_key(&flow(0)));
    assert_eq!(world.state.all.totals.runs_begun, FLOWS_MAX as u64 + 1);
    for n in 0..NODES_MAX + 10 {
        let node = format!("n{n:03}");
        world.follow(7, &[granted(&node), settled(&node, true)], 5_000);
    }
    let nodes = world.nodes(7);
    assert_eq!(
        (nodes.len(), nodes.last().map(|node| (node.0.as_str(), node.1))),
        (NODES_MAX + 1, Some(("other", 10)))
    );
}
