//! Queues whose jobs others hand out.

use super::*;

fn of_service(service: &str) -> Arc<Query> {
    Arc::new(Query { queues: Vec::new(), services: vec![service.to_owned()] })
}

/// A job of a queue is told of by others, and who waits for it by others too.
#[test]
fn whoever_asks_by_queue_is_told_by_others_and_by_service_is_served_here() {
    let dispatch = known(&["q"]);
    dispatch.elsewhere(true);
    assert_eq!(dispatch.asked_elsewhere(&of_queue("q")), ["q"]);
    let mut waiter = wait(&dispatch, "q");
    assert!(waiter.is_sure(), "nobody asks the store for it");
    dispatch.offer([row(1, "q")]);
    dispatch.doubt_queues(&["q".to_owned()]);
    assert!(!is_woken(&mut waiter));
    assert_eq!(dispatch.awaited(), ["q"]);
    dispatch.wake_elsewhere("q", 1);
    assert!(is_woken(&mut waiter));
    // By service, the store is asked for what was not kept.
    let Take::Fill(mut fill) = attempt(&dispatch, &of_service("service"), 1) else {
        panic!("it is not known")
    };
    fill.answered(Answer::Ready(vec![row(1, "q")]));
    drop(fill);
    dispatch.offer([row(2, "q")]);
    let Take::Jobs(taken) = dispatch.take(&of_service("service"), 9, false, None, Timestamp(5)) else {
        panic!("there are two")
    };
    assert_eq!(taken.rows.len(), 2);
}

#[test]
fn when_others_are_away_everybody_asks_the_store() {
    let dispatch = known(&["q"]);
    dispatch.elsewhere(true);
    let mut waiter = wait(&dispatch, "q");
    dispatch.elsewhere(false);
    assert!(is_woken(&mut waiter));
    assert!(dispatch.asked_elsewhere(&of_queue("q")).is_empty());
    fill(&dispatch, "q", vec![row(1, "q")]);
    assert_eq!(take(&dispatch, "q").len(), 1);
}

#[test]
fn what_was_known_before_is_not_handed_out_afterwards() {
    let dispatch = known(&["q"]);
    dispatch.offer([row(1, "q")]);
    dispatch.elsewhere(true);
    dispatch.elsewhere(false);
    fill(&dispatch, "q", Vec::new());
    assert!(take(&dispatch, "q").is_empty(), "others have handed it out");
}

#[test]
fn whoever_was_woken_and_goes_leaves_what_others_have_to_another() {
    let dispatch = known(&["q"]);
    dispatch.elsewhere(true);
    let (first, mut second) = (wait(&dispatch, "q"), wait(&dispatch, "q"));
    dispatch.wake_elsewhere("q", 1);
    assert!(!is_woken(&mut second));
    drop(first);
    assert!(is_woken(&mut second));
}

#[test]
fn a_paused_queue_and_one_with_limits_are_not_asked_of_others() {
    let dispatch = known(&["q", "tight"]);
    dispatch.elsewhere(true);
    dispatch.pause("q", true);
    let limits = QueueLimits { concurrency: Some(1), ..QueueLimits::default() };
    dispatch.limit("tight", limits, Timestamp(5));
    let both = Query { queues: vec!["q".to_owned(), "tight".to_owned()], services: Vec::new() };
    assert!(dispatch.asked_elsewhere(&both).is_empty());
    let mut waiter = wait(&dispatch, "q");
    dispatch.wake_elsewhere("q", 1);
    assert!(!is_woken(&mut waiter));
    dispatch.pause("q", false);
    assert!(is_woken(&mut waiter));
    assert_eq!(dispatch.asked_elsewhere(&both), ["q"]);
}
