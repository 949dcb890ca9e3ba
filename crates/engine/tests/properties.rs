//! Properties of every run: random definitions of all three forms, random inputs, and an oracle that counts along.
//! See `support/game.rs` for the promises.

#![allow(clippy::unwrap_used, unreachable_pub, dead_code, reason = "a test stops at once and has no users")]

#[path = "support/dice.rs"]
mod dice;
#[path = "support/game.rs"]
mod game;
#[path = "support/moves.rs"]
mod moves;
#[path = "support/random.rs"]
mod random;
#[path = "support/world.rs"]
mod world;

use std::collections::BTreeSet;

use proptest::prelude::*;
use windlass_engine::counter::Fence;
use windlass_engine::definition::{Strictness, compile_value};
use windlass_engine::effect::Effect;
use windlass_engine::event::Start;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::retry::{Fault, FaultKind};

/// How many games are played; `PROPTEST_CASES` asks for more.
const GAMES: u32 = 1_000;

proptest! {
    #![proptest_config(ProptestConfig { cases: games(), max_shrink_iters: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_promise_holds_in_every_run(bytes in prop::collection::vec(any::<u8>(), 0..320)) {
        if let Err(broken) = game::play(&bytes) {
            prop_assert!(false, "{}", broken);
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "the test is told from outside to do more")]
fn games() -> u32 {
    std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(GAMES)
}

/// A generator that has gone dull proves nothing: the games together must meet every kind of event.
#[test]
fn the_games_meet_every_kind_of_event() {
    let mut seen = BTreeSet::new();
    for seed in 0..300 {
        let bytes = dice::noise(seed, 300);
        let game = game::play(&bytes).unwrap_or_else(|broken| panic!("{broken}"));
        for (_, event) in &game.world.journal {
            let stored = serde_json::to_value(event).unwrap();
            seen.insert(stored["e"].as_str().unwrap().to_owned());
        }
    }
    let all = [
        "started",
        "entered",
        "granted",
        "suspended",
        "deferred",
        "expiring",
        "done",
        "failed",
        "skipped",
        "dropped",
        "judged",
        "opened",
        "turned",
        "waiting",
        "signaled",
        "decided",
        "canceling",
        "paused",
        "resumed",
        "stepped",
        "retried",
        "rerun",
        "funded",
        "logged",
        "ended",
    ];
    let missing: Vec<&str> = all.into_iter().filter(|name| !seen.contains(*name)).collect();
    assert!(missing.is_empty(), "never met: {missing:?}");
}

/// Found by the games: case files do not show keys.
#[test]
fn a_retried_branch_has_keys_of_its_own() {
    let definition = serde_json::json!({"start": "f", "edges": [], "nodes": {
        "f": {"kind": "parallel", "parallel_services": ["x"], "cost": 5}}});
    let plan = compile_value(definition.clone(), Strictness::Strict).plan.unwrap();
    let mut world = world::TestRun::of(plan);
    let start = Start { account: Some("acc".to_owned()), ..Start::default() };
    let fail = Input::CallEnded {
        node: "f/0".into(),
        fence: Fence(1),
        outcome: CallOutcome::Failed(Fault::new(FaultKind::Error, "no").permanent()),
        worker: None,
    };
    for input in [Input::Start(Box::new(start)), fail, Input::Retry] {
        world.submit(&input, &Given::default()).unwrap();
    }
    let keys = |of: fn(&Effect) -> Option<&str>| {
        let keys: Vec<&str> = world.effects.iter().filter_map(of).collect();
        (keys.len(), keys.into_iter().collect::<BTreeSet<_>>().len())
    };
    let calls = keys(|effect| if let Effect::Call(spec) = effect { Some(&spec.key) } else { None });
    let moves =
        keys(|effect| if let Effect::Move { movement, .. } = effect { Some(&movement.key) } else { None });
    assert_eq!((calls, moves), ((2, 2), (3, 3)));
}
