//! Queues that Redis dispatches.

use super::*;

fn of_service(service: &str) -> Arc<ClaimQuery> {
    Arc::new(ClaimQuery { queues: Vec::new(), services: vec![service.to_owned()] })
}

#[test]
fn redis_serves_claims_by_queue_and_the_index_claims_by_service() {
    let dispatch = known(&["q"]);
    dispatch.set_via_redis(true);
    assert_eq!(dispatch.queues_via_redis(&of_queue("q")), ["q"]);
    let mut waiter = wait(&dispatch, "q");
    assert!(waiter.is_complete(), "nobody asks the store for it");
    dispatch.offer([row(1, "q")]);
    dispatch.invalidate_queues(&["q".to_owned()]);
    assert!(!is_woken(&mut waiter));
    assert_eq!(dispatch.awaited(), ["q"]);
    dispatch.wake_via_redis("q", 1);
    assert!(is_woken(&mut waiter));
    // A claim by service reads the store for jobs that were not kept.
    let TakeResult::Read(mut fill) = attempt(&dispatch, &of_service("service"), 1) else {
        panic!("it is not known")
    };
    fill.add_result(StoreReadResult::Ready(vec![row(1, "q")]));
    drop(fill);
    dispatch.offer([row(2, "q")]);
    let TakeResult::Jobs(taken) = dispatch.take(&of_service("service"), 9, false, None, Timestamp(5)) else {
        panic!("there are two")
    };
    assert_eq!(taken.rows.len(), 2);
}

#[test]
fn during_an_outage_of_redis_claims_read_the_store() {
    let dispatch = known(&["q"]);
    dispatch.set_via_redis(true);
    let mut waiter = wait(&dispatch, "q");
    dispatch.set_via_redis(false);
    assert!(is_woken(&mut waiter));
    assert!(dispatch.queues_via_redis(&of_queue("q")).is_empty());
    fill(&dispatch, "q", vec![row(1, "q")]);
    assert_eq!(take(&dispatch, "q").len(), 1);
}

#[test]
fn jobs_known_before_a_switch_are_not_dispatched_afterwards() {
    let dispatch = known(&["q"]);
    dispatch.offer([row(1, "q")]);
    dispatch.set_via_redis(true);
    dispatch.set_via_redis(false);
    fill(&dispatch, "q", Vec::new());
    assert!(take(&dispatch, "q").is_empty(), "others have handed it out");
}

#[test]
fn a_woken_claim_that_leaves_passes_the_wake_up_of_redis_on() {
    let dispatch = known(&["q"]);
    dispatch.set_via_redis(true);
    let (first, mut second) = (wait(&dispatch, "q"), wait(&dispatch, "q"));
    dispatch.wake_via_redis("q", 1);
    assert!(!is_woken(&mut second));
    drop(first);
    assert!(is_woken(&mut second));
}

#[test]
fn paused_and_limited_queues_are_not_dispatched_through_redis() {
    let dispatch = known(&["q", "tight"]);
    dispatch.set_via_redis(true);
    dispatch.pause("q", true);
    let limits = QueueLimits { concurrency: Some(1), ..QueueLimits::default() };
    dispatch.limit("tight", limits, Timestamp(5));
    let both = ClaimQuery { queues: vec!["q".to_owned(), "tight".to_owned()], services: Vec::new() };
    assert!(dispatch.queues_via_redis(&both).is_empty());
    let mut waiter = wait(&dispatch, "q");
    dispatch.wake_via_redis("q", 1);
    assert!(!is_woken(&mut waiter));
    dispatch.pause("q", false);
    assert!(is_woken(&mut waiter));
    assert_eq!(dispatch.queues_via_redis(&both), ["q"]);
}
