//! Wake-ups when limits allow another job.

use windlass_engine::job::JobOutcome;
use windlass_store::job::{HeldRow, KeyBatch, KeyRows};
use windlass_store::queue::{Held, QueueLimits, Rate};

use super::*;

fn at_once(concurrency: u32) -> QueueLimits {
    QueueLimits { concurrency: Some(concurrency), ..QueueLimits::default() }
}

/// A dispatcher that knows all jobs of a queue with these limits; workers hold those in `held`.
fn limited(limits: QueueLimits, rows: Vec<JobRow>, held: Vec<HeldRow>) -> Dispatcher {
    let dispatch = Dispatcher::new(DispatchLimits::default());
    dispatch.limit("q", limits, Timestamp(5));
    let TakeResult::Read(fill) = attempt(&dispatch, &of_queue("q"), 1) else { panic!("nothing to fill") };
    answer(fill, &rows, &held);
    dispatch
}

fn answer(mut fill: StoreRead<'_>, rows: &[JobRow], held: &[HeldRow]) {
    while let Some(question) = fill.query(Timestamp(5)) {
        fill.add_result(match question {
            StoreReadQuery::Ready(_) => StoreReadResult::Ready(rows.to_vec()),
            StoreReadQuery::ReadyByKey(_) => StoreReadResult::ReadyByKey(by_key(rows)),
            StoreReadQuery::Held(_) => StoreReadResult::Held(Held { jobs: held.to_vec(), ..Held::default() }),
        });
    }
}

/// The same jobs without limit keys.
fn by_key(rows: &[JobRow]) -> KeyRows {
    let turn = KeyBatch { key: String::new(), priority: 0, rows: rows.to_vec(), is_all: true };
    KeyRows { turns: Vec::from_iter((!rows.is_empty()).then_some(turn)), rest: None }
}

fn changed(row: &JobRow, input: JobInput) -> JobRow {
    let mut changed = JobRow { rev: row.rev.next(), ..row.clone() };
    for event in row.job.decide(input, Timestamp(5)).unwrap() {
        changed.job.apply(&event, Timestamp(5));
    }
    changed
}

fn claimed(row: &JobRow) -> JobRow {
    changed(row, JobInput::Claim { worker: "w".to_owned(), lease_ms: 100 })
}

#[test]
fn jobs_held_before_the_start_count() {
    let running = claimed(&row(9, "q"));
    let held = HeldRow { job: running.id(), rev: running.rev, limit_key: String::new() };
    let dispatch = limited(at_once(2), vec![row(1, "q"), row(2, "q")], vec![held]);
    assert_eq!(take(&dispatch, "q").len(), 1);
    let mut waiter = wait(&dispatch, "q");
    dispatch.ended([(running.id(), running.rev.next())]);
    assert!(is_woken(&mut waiter));
    drop(waiter);
    assert_eq!(take(&dispatch, "q").len(), 1);
}

#[test]
fn a_count_invalidated_during_a_read_does_not_discard_the_read() {
    let dispatch = Dispatcher::new(DispatchLimits::default());
    dispatch.limit("q", at_once(2), Timestamp(5));
    let TakeResult::Read(fill) = attempt(&dispatch, &of_queue("q"), 1) else { panic!("nothing to fill") };
    // Another server had a turn meanwhile.
    dispatch.recount("q");
    let rows = [row(1, "q"), row(2, "q")];
    answer(fill, &rows, &[]);
    while let TakeResult::Read(fill) = attempt(&dispatch, &of_queue("q"), 0) {
        answer(fill, &rows, &[]);
    }
    assert_eq!(take(&dispatch, "q").len(), 2);
}

#[test]
fn a_write_of_another_server_during_a_read_does_not_discard_the_read() {
    for limits in [at_once(9), QueueLimits { key_concurrency: Some(9), ..QueueLimits::default() }] {
        let dispatch = Dispatcher::new(DispatchLimits::default());
        dispatch.limit("q", limits, Timestamp(5));
        let mut left: Vec<JobRow> = (1..=12).map(|id| row(id, "q")).collect();
        let mut may_read = true;
        for _ in 0..40 {
            let took = dispatch.take(&of_queue("q"), 2, may_read, None, Timestamp(5));
            may_read = !matches!(took, TakeResult::Read(_));
            dispatch.invalidate_queues(&["q".to_owned()]);
            match took {
                TakeResult::Read(fill) => answer(fill, &left, &[]),
                TakeResult::Jobs(taken) => {
                    dispatch.ended(taken.rows.iter().map(|row| (row.id(), row.rev.next())));
                    left.retain(|row| taken.rows.iter().all(|taken| taken.id() != row.id()));
                }
                TakeResult::Wait(_) | TakeResult::Crowded => {}
            }
        }
        assert!(left.is_empty(), "{} are left", left.len());
    }
}

#[test]
fn a_slot_is_free_again_after_every_end_of_a_job() {
    type End = fn(&Dispatcher, &Arc<JobRow>);
    let ends: [End; 5] = [
        |dispatch, taken| dispatch.put_back(std::slice::from_ref(taken)),
        |dispatch, taken| dispatch.forget(taken.id()),
        |dispatch, taken| dispatch.ended([(taken.id(), Revision(9))]),
        |dispatch, taken| {
            let running = claimed(taken);
            let released = changed(&running, JobInput::Release { fence: running.job.fence });
            dispatch.offer([running, released]);
        },
        |dispatch, taken| {
            let running = claimed(taken);
            let suspended = JobOutcome::Suspended { memo: 1.into(), recheck_ms: 50 };
            let finish = JobInput::Finish { fence: running.job.fence, outcome: suspended };
            let suspended = changed(&running, finish);
            dispatch.offer([running, suspended]);
        },
    ];
    for end in ends {
        let dispatch = limited(at_once(1), vec![row(1, "q"), row(2, "q")], Vec::new());
        let [taken] = take(&dispatch, "q").try_into().unwrap();
        let mut waiter = wait(&dispatch, "q");
        assert!(!is_woken(&mut waiter));
        end(&dispatch, &taken);
        assert!(is_woken(&mut waiter));
        drop(waiter);
        assert_eq!(take(&dispatch, "q").len(), 1);
        assert!(take(&dispatch, "q").is_empty());
    }
}

#[test]
fn a_new_job_wakes_no_claim_while_the_limit_is_reached() {
    let dispatch = limited(at_once(1), vec![row(1, "q")], Vec::new());
    assert_eq!(take(&dispatch, "q").len(), 1);
    let mut waiter = wait(&dispatch, "q");
    assert!(waiter.is_complete(), "the store need not be asked again");
    dispatch.offer([row(2, "q")]);
    assert!(!is_woken(&mut waiter));
}

#[test]
fn a_refilled_token_wakes_a_waiting_claim() {
    let rate = Rate { count: 1, per_ms: 100, burst: None };
    let limits = QueueLimits { rate: Some(rate), ..QueueLimits::default() };
    let dispatch = limited(limits, vec![row(1, "q"), row(2, "q")], Vec::new());
    let TakeResult::Jobs(taken) = attempt(&dispatch, &of_queue("q"), 9) else { panic!("nothing was taken") };
    assert_eq!((taken.rows.len(), taken.is_sooner), (1, true));
    assert_eq!(taken.spent[0].full_at, Timestamp(105));
    let mut waiter = wait(&dispatch, "q");
    assert_eq!(dispatch.next_wake(), Some(Timestamp(105)));
    dispatch.refill_limits(Timestamp(104));
    assert!(!is_woken(&mut waiter));
    dispatch.refill_limits(Timestamp(105));
    assert!(is_woken(&mut waiter));
    assert_eq!(dispatch.next_wake(), None);
}

#[test]
fn a_claim_that_leaves_jobs_wakes_the_next() {
    let rows = (1..=9).map(|id| row(id, "q")).collect();
    let rate = Rate { count: 3, per_ms: 300, burst: None };
    let limits = QueueLimits { rate: Some(rate), ..QueueLimits::default() };
    let dispatch = limited(limits, rows, Vec::new());
    assert_eq!(take(&dispatch, "q").len(), 3);
    let (mut first, mut second) = (wait(&dispatch, "q"), wait(&dispatch, "q"));
    // Two tokens are there by then, and one waiting claim is woken.
    dispatch.refill_limits(Timestamp(205));
    assert!(is_woken(&mut first) && !is_woken(&mut second));
    let one = dispatch.take(&of_queue("q"), 1, true, None, Timestamp(205));
    assert!(matches!(one, TakeResult::Jobs(taken) if taken.rows.len() == 1));
    assert!(is_woken(&mut second));
}

#[test]
fn removed_limits_hold_no_claim_back() {
    let dispatch = limited(at_once(1), vec![row(1, "q"), row(2, "q")], Vec::new());
    assert_eq!(take(&dispatch, "q").len(), 1);
    let mut waiter = wait(&dispatch, "q");
    dispatch.limit("q", QueueLimits::default(), Timestamp(5));
    assert!(is_woken(&mut waiter));
    drop(waiter);
    fill(&dispatch, "q", vec![row(1, "q"), row(2, "q")]);
    assert_eq!(take(&dispatch, "q").len(), 1, "the other is being handed out");
}
