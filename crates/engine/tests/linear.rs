//! Nothing in a run grows with the square of its size: counted, not timed, so that it holds on any machine.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]

#[path = "support/shapes.rs"]
mod shapes;

use serde_json::{Map, Value};
use shapes::{Play, items, plan_of};

const N: usize = 2_000;

/// Twice the size may cost 2.2 times as much: numbers get longer.
#[track_caller]
fn grows_evenly(what: &str, once: usize, twice: usize) {
    assert!(twice * 10 <= once * 22, "{what}: {once} became {twice} for twice the size");
}

/// Events, bytes of the journal, bytes of the state.
fn sizes(definition: &Value, params: Map<String, Value>) -> [usize; 3] {
    let plan = plan_of(definition);
    let play = Play::to_end(&plan, params);
    let bytes = play.journal.iter().map(|(_, event)| serde_json::to_vec(event).unwrap().len()).sum();
    [play.journal.len(), bytes, serde_json::to_vec(&play.run).unwrap().len()]
}

#[track_caller]
fn check(name: &str, once: [usize; 3], twice: [usize; 3]) {
    for (what, (once, twice)) in ["events", "bytes", "state"].into_iter().zip(once.into_iter().zip(twice)) {
        grows_evenly(&format!("{what} of {name}"), once, twice);
    }
}

#[test]
fn a_fan_of_twice_the_items_is_twice_the_journal() {
    for definition in [shapes::foreach_calls(), shapes::foreach_with_params(), shapes::foreach_flows()] {
        check("foreach", sizes(&definition, items(N)), sizes(&definition, items(2 * N)));
    }
}

#[test]
fn twice_the_nodes_or_turns_are_twice_the_journal() {
    for (name, shape) in [
        ("dag_wide", shapes::dag_wide as fn(usize) -> Value),
        ("steps_loop", shapes::steps_loop),
        ("graph_chain", shapes::graph_chain),
        ("steps_chain", shapes::steps_chain),
    ] {
        check(name, sizes(&shape(N), Map::new()), sizes(&shape(2 * N), Map::new()));
    }
}

/// The run's parameters are shared by all branches: 20,000 copies of 20,000 items would not fit into any test.
#[test]
fn branches_share_the_parameters_of_their_run() {
    for definition in [shapes::foreach_calls(), shapes::foreach_with_params()] {
        let plan = plan_of(&definition);
        assert_eq!(Play::to_end(&plan, items(20_000)).run.fence.0, 20_000);
    }
}
