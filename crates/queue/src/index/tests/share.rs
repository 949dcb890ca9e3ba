//! Lower classes of runs under endless work of higher ones.

use windlass_engine::share::SHARE;

use super::*;

/// Hands out one after another from a backlog that is filled up again with the same, and says what became of it: the
/// priorities, in order.
fn hand_out(world: &mut World, query: &Query, n: usize, refill: impl Fn(u128, i64) -> JobRow) -> Vec<i32> {
    let mut given = Vec::new();
    for _ in 0..n {
        let before = world.taken.len();
        world.take(query, 1);
        given.extend(world.taken[before..].iter().map(|row| row.job.spec.priority));
        world.step(&Step::Claim);
        world.step(&Step::Finish { done: true });
        world.n_made += 1;
        let row = refill(world.n_made, world.now);
        world.write(row);
    }
    given
}

/// Room for more than the few that are kept of each class.
const ROOMY: Limits = Limits { rows: 64, fill_rows: 8, ..LIMITS };

fn fill(world: &mut World, n: u128, make: impl Fn(u128, i64) -> JobRow) {
    for _ in 0..n {
        world.n_made += 1;
        let row = make(world.n_made, world.now);
        world.write(row);
    }
}

const N: usize = 100;

fn highest(id: u128, now: i64) -> JobRow {
    run_row(id, "a", "s", 2, now)
}

#[test]
fn the_lowest_is_done_under_an_endless_stream_of_the_highest() {
    // Fewer than are kept in memory, and far more: then the lowest is behind all that is known.
    for n_before in [3, 200] {
        for query in [query(&["a"], &[]), query(&[], &["s"])] {
            let mut world = World::new(0, true);
            world.index = Index::new(ROOMY, true);
            fill(&mut world, n_before, highest);
            fill(&mut world, 1, |id, now| run_row(id, "a", "s", -2, now));
            let given = hand_out(&mut world, &query, N, highest);
            let at = given.iter().position(|priority| *priority == -2);
            assert!(at.is_some_and(|at| at < SHARE as usize), "{n_before}: {given:?}");
            assert!(given.iter().filter(|priority| **priority == 2).count() == N - 1);
        }
    }
}

#[test]
fn every_class_gets_on_and_the_highest_keeps_four_fifths() {
    let mut world = World::new(0, true);
    world.index = Index::new(ROOMY, true);
    for class in -2..=2 {
        fill(&mut world, 60, |id, now| run_row(id, "a", "s", class, now));
    }
    let given = hand_out(&mut world, &query(&[], &["s"]), N, highest);
    let n = |class: i32| given.iter().filter(|priority| **priority == class).count();
    assert!(n(2) >= N * 4 / 5, "{given:?}");
    assert!((-2..2).all(|class| n(class) > 0), "{given:?}");
}

#[test]
fn after_a_restart_the_lowest_is_found_behind_all_that_is_above_it() {
    let mut world = World::new(0, true);
    fill(&mut world, 200, highest);
    fill(&mut world, 1, |id, now| run_row(id, "a", "s", -2, now));
    world.index = Index::new(ROOMY, true);
    world.index.doubt_queues(&["a".to_owned()]);
    let given = hand_out(&mut world, &query(&["a"], &[]), N, highest);
    assert!(given.iter().take(SHARE as usize).any(|priority| *priority == -2), "{given:?}");
}

#[test]
fn a_lower_class_of_another_service_of_the_same_worker_is_not_starved() {
    let mut world = World::new(0, true);
    fill(&mut world, 5, highest);
    fill(&mut world, 1, |id, now| run_row(id, "b", "t", -1, now));
    let given = hand_out(&mut world, &query(&[], &["s", "t"]), 10, highest);
    assert_eq!(given, [2, 2, 2, 2, -1, 2, 2, 2, 2, 2]);
}

#[test]
fn plain_jobs_stay_in_their_order() {
    let mut world = World::new(0, true);
    let urgent = |id, now| row(id, "a", "s", 2, now);
    fill(&mut world, 5, urgent);
    fill(&mut world, 1, |id, now| row(id, "a", "s", 1, now));
    fill(&mut world, 1, |id, now| run_row(id, "a", "s", 0, now));
    let given = hand_out(&mut world, &query(&["a"], &[]), 30, urgent);
    assert_eq!(given, [2; 30]);
}
