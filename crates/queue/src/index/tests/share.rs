//! Lower classes of runs under endless work of higher ones.

use windlass_engine::share::SHARE;

use super::*;

/// Hands out one after another from a backlog that is filled up again with the same, and says what became of it: the
/// priorities, in order.
fn hand_out(world: &mut World, query: &Query, n: usize, refill: impl Fn(u128, i64) -> JobRow) -> Vec<i32> {
    let mut given = Vec::new();
    for _ in 0..n {
        given.extend(hand_out_one(world, query).map(|row| row.job.spec.priority));
        world.n_made += 1;
        let row = refill(world.n_made, world.now);
        world.write(row);
    }
    given
}

/// Hands out the next one, which is done at once.
fn hand_out_one(world: &mut World, query: &Query) -> Option<Arc<JobRow>> {
    let before = world.taken.len();
    world.take(query, 1);
    let given = world.taken.get(before).cloned();
    world.step(&Step::Claim);
    world.step(&Step::Finish { done: true });
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

#[test]
fn a_plain_job_between_two_classes_waits_no_longer_than_without_the_share() {
    for query in [query(&["a"], &[]), query(&[], &["s"])] {
        let mut world = World::new(0, true);
        world.index = Index::new(ROOMY, true);
        fill(&mut world, 12, highest);
        fill(&mut world, 2, |id, now| row(id, "a", "s", 1, now));
        fill(&mut world, 5, |id, now| run_row(id, "a", "s", -2, now));
        let next = |_| hand_out_one(&mut world, &query).unwrap().job.spec.priority;
        let given: Vec<i32> = (0..19).map(next).collect();
        // Without a share, the plain ones would be right after all of the highest.
        let places = |priority: i32| (0..19).filter(|at| given[*at] == priority).collect::<Vec<usize>>();
        assert_eq!(places(1), [4, 9], "they take the turns that are kept");
        assert_eq!(places(-2), [14, 15, 16, 17, 18]);
    }
}

#[test]
fn a_plain_job_behind_runs_of_its_own_priority_is_not_overtaken_by_lower_ones() {
    let mut world = World::new(0, true);
    world.index = Index::new(ROOMY, true);
    fill(&mut world, 6, highest);
    fill(&mut world, 1, |id, now| row(id, "a", "s", 2, now));
    fill(&mut world, 2, |id, now| run_row(id, "b", "s", 0, now));
    let query = query(&[], &["s"]);
    let next = |_| hand_out_one(&mut world, &query).unwrap().id().uuid().as_u128();
    assert_eq!((0..9).map(next).collect::<Vec<_>>(), [1, 2, 3, 4, 7, 5, 6, 8, 9]);
}

#[test]
fn who_is_lower_is_found_behind_plain_jobs_of_their_own_priority() {
    let mut world = World::new(0, true);
    fill(&mut world, 200, highest);
    fill(&mut world, 200, |id, now| row(id, "a", "s", -2, now));
    fill(&mut world, 1, |id, now| run_row(id, "a", "s", -2, now));
    world.index = Index::new(ROOMY, true);
    world.index.doubt_queues(&["a".to_owned()]);
    let given: Vec<Arc<JobRow>> =
        (0..SHARE).filter_map(|_| hand_out_one(&mut world, &query(&["a"], &[]))).collect();
    let lower = given.last().unwrap();
    assert_eq!((lower.job.spec.priority, lower.job.spec.run.is_some()), (-2, true));
}

#[test]
fn a_class_that_is_alone_searches_for_nobody_and_others_search_once() {
    let mut index = Index::new(Limits { rows: 100, ..LIMITS }, true);
    for id in 1..=20 {
        index.offer(Arc::new(highest(id, 1)));
    }
    let query = query(&["a", "c"], &[]);
    let turn = |index: &mut Index, search: &mut Search| {
        let Some(Head::Job(top)) = index.head(&query, &[], 0) else { panic!("there are some") };
        assert_eq!(index.turn_of(&query, &[], 0, top, search), top);
        search.nobody_below
    };
    let mut search = Search::default();
    assert!((0..10).all(|_| turn(&mut index, &mut search).is_none()), "nobody is below in any list");
    // Somebody is, in a list that is not asked about.
    index.offer(Arc::new(run_row(30, "b", "t", 0, 1)));
    assert_eq!(turn(&mut index, &mut search), Some(2));
    assert_eq!(turn(&mut index, &mut search), Some(2));
}
