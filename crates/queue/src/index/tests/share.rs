//! Lower classes of runs under endless work of higher ones.

use windlass_engine::share::SHARE;

use super::*;

/// Dispatches `n` jobs from a backlog that is refilled after each, and returns their priorities in order.
fn dispatch(
    test: &mut IndexTest,
    query: &ClaimQuery,
    n: usize,
    refill: impl Fn(u128, i64) -> JobRow,
) -> Vec<i32> {
    let mut given = Vec::new();
    for _ in 0..n {
        given.extend(dispatch_one(test, query).map(|row| row.job.spec.priority));
        test.n_made += 1;
        let row = refill(test.n_made, test.now);
        test.write(row);
    }
    given
}

/// Dispatches the next job and ends it at once.
fn dispatch_one(test: &mut IndexTest, query: &ClaimQuery) -> Option<Arc<JobRow>> {
    let before = test.taken.len();
    test.take(query, 1);
    let given = test.taken.get(before).cloned();
    test.step(&IndexStep::Claim);
    test.step(&IndexStep::Finish { done: true });
    given
}

/// Room for more than the reserved jobs of each class.
const ROOMY: DispatchLimits = DispatchLimits { rows: 64, read_rows: 8, ..LIMITS };

fn fill(test: &mut IndexTest, n: u128, make: impl Fn(u128, i64) -> JobRow) {
    for _ in 0..n {
        test.n_made += 1;
        let row = make(test.n_made, test.now);
        test.write(row);
    }
}

const N: usize = 100;

fn highest(id: u128, now: i64) -> JobRow {
    run_row(id, "a", "s", 2, now)
}

#[test]
fn the_lowest_is_done_under_an_endless_stream_of_the_highest() {
    // Fewer jobs than fit into memory, and far more: then the lowest is behind the known range.
    for n_before in [3, 200] {
        for query in [query(&["a"], &[]), query(&[], &["s"])] {
            let mut test = IndexTest::new(0, true);
            test.index = JobIndex::new(ROOMY, true);
            fill(&mut test, n_before, highest);
            fill(&mut test, 1, |id, now| run_row(id, "a", "s", -2, now));
            let given = dispatch(&mut test, &query, N, highest);
            let at = given.iter().position(|priority| *priority == -2);
            assert!(at.is_some_and(|at| at < SHARE as usize), "{n_before}: {given:?}");
            assert!(given.iter().filter(|priority| **priority == 2).count() == N - 1);
        }
    }
}

#[test]
fn every_class_progresses_and_the_highest_keeps_four_fifths() {
    let mut test = IndexTest::new(0, true);
    test.index = JobIndex::new(ROOMY, true);
    for class in -2..=2 {
        fill(&mut test, 60, |id, now| run_row(id, "a", "s", class, now));
    }
    let given = dispatch(&mut test, &query(&[], &["s"]), N, highest);
    let n = |class: i32| given.iter().filter(|priority| **priority == class).count();
    assert!(n(2) >= N * 4 / 5, "{given:?}");
    assert!((-2..2).all(|class| n(class) > 0), "{given:?}");
}

#[test]
fn after_a_restart_the_lowest_is_found_behind_all_that_is_above_it() {
    let mut test = IndexTest::new(0, true);
    fill(&mut test, 200, highest);
    fill(&mut test, 1, |id, now| run_row(id, "a", "s", -2, now));
    test.index = JobIndex::new(ROOMY, true);
    test.index.invalidate_queues(&["a".to_owned()]);
    let given = dispatch(&mut test, &query(&["a"], &[]), N, highest);
    assert!(given.iter().take(SHARE as usize).any(|priority| *priority == -2), "{given:?}");
}

#[test]
fn a_lower_class_of_another_service_of_the_same_worker_is_not_starved() {
    let mut test = IndexTest::new(0, true);
    fill(&mut test, 5, highest);
    fill(&mut test, 1, |id, now| run_row(id, "b", "t", -1, now));
    let given = dispatch(&mut test, &query(&[], &["s", "t"]), 10, highest);
    assert_eq!(given, [2, 2, 2, 2, -1, 2, 2, 2, 2, 2]);
}

#[test]
fn plain_jobs_stay_in_their_order() {
    let mut test = IndexTest::new(0, true);
    let urgent = |id, now| row(id, "a", "s", 2, now);
    fill(&mut test, 5, urgent);
    fill(&mut test, 1, |id, now| row(id, "a", "s", 1, now));
    fill(&mut test, 1, |id, now| run_row(id, "a", "s", 0, now));
    let given = dispatch(&mut test, &query(&["a"], &[]), 30, urgent);
    assert_eq!(given, [2; 30]);
}

#[test]
fn a_plain_job_between_two_classes_waits_no_longer_than_without_the_share() {
    for query in [query(&["a"], &[]), query(&[], &["s"])] {
        let mut test = IndexTest::new(0, true);
        test.index = JobIndex::new(ROOMY, true);
        fill(&mut test, 12, highest);
        fill(&mut test, 2, |id, now| row(id, "a", "s", 1, now));
        fill(&mut test, 5, |id, now| run_row(id, "a", "s", -2, now));
        let next = |_| dispatch_one(&mut test, &query).unwrap().job.spec.priority;
        let given: Vec<i32> = (0..19).map(next).collect();
        // Without a share, the plain jobs would come right after all of the highest.
        let places = |priority: i32| (0..19).filter(|at| given[*at] == priority).collect::<Vec<usize>>();
        assert_eq!(places(1), [4, 9], "they take the turns that are kept");
        assert_eq!(places(-2), [14, 15, 16, 17, 18]);
    }
}

#[test]
fn a_plain_job_behind_runs_of_its_own_priority_is_not_overtaken_by_lower_ones() {
    let mut test = IndexTest::new(0, true);
    test.index = JobIndex::new(ROOMY, true);
    fill(&mut test, 6, highest);
    fill(&mut test, 1, |id, now| row(id, "a", "s", 2, now));
    fill(&mut test, 2, |id, now| run_row(id, "b", "s", 0, now));
    let query = query(&[], &["s"]);
    let next = |_| dispatch_one(&mut test, &query).unwrap().id().uuid().as_u128();
    assert_eq!((0..9).map(next).collect::<Vec<_>>(), [1, 2, 3, 4, 7, 5, 6, 8, 9]);
}

#[test]
fn a_lower_class_is_found_behind_plain_jobs_of_its_own_priority() {
    let mut test = IndexTest::new(0, true);
    fill(&mut test, 200, highest);
    fill(&mut test, 200, |id, now| row(id, "a", "s", -2, now));
    fill(&mut test, 1, |id, now| run_row(id, "a", "s", -2, now));
    test.index = JobIndex::new(ROOMY, true);
    test.index.invalidate_queues(&["a".to_owned()]);
    let given: Vec<Arc<JobRow>> =
        (0..SHARE).filter_map(|_| dispatch_one(&mut test, &query(&["a"], &[]))).collect();
    let lower = given.last().unwrap();
    assert_eq!((lower.job.spec.priority, lower.job.spec.run.is_some()), (-2, true));
}

#[test]
fn a_single_class_makes_no_search_and_several_classes_search_once() {
    let mut index = JobIndex::new(DispatchLimits { rows: 100, ..LIMITS }, true);
    for id in 1..=20 {
        index.offer(Arc::new(highest(id, 1)));
    }
    let query = query(&["a", "c"], &[]);
    let turn = |index: &mut JobIndex, search: &mut ClassSearch| {
        let Some(ListHead::Job(top)) = index.lists.head(&query, &[], 0) else { panic!("there are some") };
        assert_eq!(index.lists.pick_by_share(&query, &[], 0, top, search, &index.jobs), top);
        search.empty_below
    };
    let mut search = ClassSearch::default();
    assert!((0..10).all(|_| turn(&mut index, &mut search).is_none()), "nobody is below in any list");
    // A lower class has a job in a list that the query does not name.
    index.offer(Arc::new(run_row(30, "b", "t", 0, 1)));
    assert_eq!(turn(&mut index, &mut search), Some(2));
    assert_eq!(turn(&mut index, &mut search), Some(2));
}
