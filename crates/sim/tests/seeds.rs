//! A few worlds with every `cargo test`; `./test` plays thousands, and every planted bug.

use windlass_sim::bug::PlantedBug;
use windlass_sim::shrink::{play_twice, setup, shrink};

fn kept() -> Vec<u64> {
    let lines = include_str!("../seeds/kept.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split(' ').next()?.parse().ok()).collect()
}

#[test]
fn kept_seeds_and_the_first_hundred_keep_every_promise() {
    for seed in kept().into_iter().chain(0..100) {
        let outcome = play_twice(&setup(seed, None));
        assert_eq!(outcome.violation, None, "seed {seed}: {:#?}", outcome.story);
    }
}

#[test]
fn server_time_at_a_quarter_of_the_pace_makes_work_late() {
    let found = (0..500).find_map(|seed| play_twice(&setup(seed, Some(PlantedBug::QuarterPace))).violation);
    let found = found.expect("a clock goes back far enough within 500 worlds");
    assert_eq!(found.invariant, "I16", "{found:?}");
}

#[test]
fn a_planted_bug_is_found_and_its_world_made_smaller() {
    let failing = (0..500)
        .map(|seed| setup(seed, Some(PlantedBug::NoReaper)))
        .find(|setup| play_twice(setup).violation.is_some())
        .expect("a store without a reaper leaves jobs behind within 500 worlds");
    let small = shrink(&failing);
    assert!(play_twice(&small).violation.is_some(), "the smaller world fails as well");
    assert!(small.faults.enabled().len() < failing.faults.enabled().len(), "it suffers fewer faults");
}
