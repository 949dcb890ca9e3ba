mod limits;
mod via_redis;

use uuid::Uuid;
use windlass_engine::counter::Revision;
use windlass_engine::id::RunId;
use windlass_engine::job::{Job, JobInput, JobSpec};
use windlass_store::job::ReadyQuery;

use super::*;

fn row(id: u128, queue: &str) -> JobRow {
    let id = JobId::new(Uuid::from_u128(id));
    let (job, _) = Job::create(id, JobSpec::new("service", queue), Timestamp(1)).unwrap();
    JobRow { rev: Revision(1), job, origin: Default::default() }
}

fn of_queue(queue: &str) -> Arc<ClaimQuery> {
    Arc::new(ClaimQuery { queues: vec![queue.to_owned()], services: Vec::new() })
}

/// A dispatcher that knows that the store has no jobs.
fn known(queues: &[&str]) -> Dispatcher {
    let dispatch = Dispatcher::new(DispatchLimits::default());
    for queue in queues {
        fill(&dispatch, queue, Vec::new());
    }
    dispatch
}

fn fill(dispatch: &Dispatcher, queue: &str, rows: Vec<JobRow>) {
    let TakeResult::Read(mut fill) = attempt(dispatch, &of_queue(queue), 1) else {
        panic!("nothing to fill")
    };
    assert_eq!(asked(&fill).queues, [queue]);
    fill.add_result(StoreReadResult::Ready(rows));
}

fn asked(fill: &StoreRead<'_>) -> ReadyQuery {
    match fill.query(Timestamp(5)) {
        Some(StoreReadQuery::Ready(query)) => query,
        other @ (Some(StoreReadQuery::ReadyByKey(_) | StoreReadQuery::Held(_)) | None) => panic!("{other:?}"),
    }
}

fn attempt<'a>(dispatch: &'a Dispatcher, query: &Arc<ClaimQuery>, max: usize) -> TakeResult<'a> {
    dispatch.take(query, max, true, None, Timestamp(5))
}

fn wait<'a>(dispatch: &'a Dispatcher, queue: &str) -> Waiter<'a> {
    match attempt(dispatch, &of_queue(queue), 1) {
        TakeResult::Wait(waiter) => waiter,
        other @ (TakeResult::Jobs(_) | TakeResult::Read(_) | TakeResult::Crowded) => panic!("{other:?}"),
    }
}

fn take(dispatch: &Dispatcher, queue: &str) -> Vec<Arc<JobRow>> {
    match attempt(dispatch, &of_queue(queue), 9) {
        TakeResult::Jobs(taken) => taken.rows,
        TakeResult::Wait(_) => Vec::new(),
        other @ (TakeResult::Read(_) | TakeResult::Crowded) => panic!("{other:?}"),
    }
}

fn is_woken(waiter: &mut Waiter<'_>) -> bool {
    waiter.woken.try_recv().is_ok()
}

#[test]
fn an_unknown_list_is_read_from_the_store_first() {
    let dispatch = Dispatcher::new(DispatchLimits::default());
    dispatch.offer([row(2, "q")]);
    fill(&dispatch, "q", vec![row(1, "q"), row(2, "q")]);
    let ids: Vec<JobId> = take(&dispatch, "q").iter().map(|row| row.id()).collect();
    assert_eq!(ids, [1, 2].map(|id| JobId::new(Uuid::from_u128(id))));
    assert!(take(&dispatch, "q").is_empty(), "what is taken is nobody else's");
}

#[test]
fn one_new_job_wakes_one_waiting_claim() {
    let dispatch = known(&["q", "other"]);
    let (mut first, mut second, mut other) =
        (wait(&dispatch, "q"), wait(&dispatch, "q"), wait(&dispatch, "other"));
    dispatch.offer([row(1, "q")]);
    assert!(is_woken(&mut first) && !is_woken(&mut second) && !is_woken(&mut other));
    dispatch.offer([row(2, "q")]);
    assert!(is_woken(&mut second) && !is_woken(&mut other));
}

#[test]
fn a_woken_claim_that_leaves_passes_the_wake_up_on() {
    let dispatch = known(&["q"]);
    let (first, mut second) = (wait(&dispatch, "q"), wait(&dispatch, "q"));
    dispatch.offer([row(1, "q")]);
    assert!(!is_woken(&mut second));
    drop(first);
    assert!(is_woken(&mut second));
}

#[test]
fn a_claim_that_leaves_before_it_is_woken_wakes_no_other() {
    let dispatch = known(&["q"]);
    let (first, mut second) = (wait(&dispatch, "q"), wait(&dispatch, "q"));
    drop(first);
    assert!(!is_woken(&mut second));
    dispatch.offer([row(1, "q")]);
    assert!(is_woken(&mut second));
}

#[test]
fn a_failed_claim_gives_the_job_to_another() {
    let dispatch = known(&["q"]);
    dispatch.offer([row(1, "q")]);
    let taken = take(&dispatch, "q");
    let mut waiter = wait(&dispatch, "q");
    dispatch.put_back(&taken);
    assert!(is_woken(&mut waiter));
    drop(waiter);
    assert_eq!(take(&dispatch, "q"), taken);
}

#[test]
fn a_durable_claim_is_over() {
    let dispatch = known(&["q"]);
    dispatch.offer([row(1, "q")]);
    let [taken] = take(&dispatch, "q").try_into().unwrap();
    let mut claimed = JobRow { rev: Revision(2), ..(*taken).clone() };
    let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 100 };
    for event in taken.job.decide(claim, Timestamp(10)).unwrap() {
        claimed.job.apply(&event, Timestamp(10));
    }
    assert!(dispatch.offer([claimed.clone()]), "its lease is the next thing to end");
    dispatch.put_back(std::slice::from_ref(&taken));
    assert!(take(&dispatch, "q").is_empty());
    assert_eq!(dispatch.row(taken.id()).as_deref(), Some(&claimed));
    assert_eq!(dispatch.next_wake(), Some(Timestamp(110)));
    assert!(!dispatch.offer([(*taken).clone()]), "older news is no news");
    assert_eq!(dispatch.due(Timestamp(110), 9), [taken.id()]);
}

#[test]
fn a_failed_read_is_left_to_the_next_claim() {
    let dispatch = Dispatcher::new(DispatchLimits::default());
    let TakeResult::Read(first) = attempt(&dispatch, &of_queue("q"), 1) else { panic!("nothing to fill") };
    let mut waiter = wait(&dispatch, "q");
    assert!(!waiter.is_complete());
    drop(first);
    assert!(is_woken(&mut waiter));
    fill(&dispatch, "q", vec![row(1, "q")]);
    assert_eq!(take(&dispatch, "q").len(), 1);
}

#[test]
fn every_claim_that_waited_for_a_read_gets_a_job_of_it() {
    let dispatch = Dispatcher::new(DispatchLimits::default());
    let TakeResult::Read(mut reading) = attempt(&dispatch, &of_queue("q"), 1) else {
        panic!("nothing to fill")
    };
    let mut waiters = [wait(&dispatch, "q"), wait(&dispatch, "q"), wait(&dispatch, "q")];
    reading.add_result(StoreReadResult::Ready(vec![row(1, "q"), row(2, "q")]));
    assert_eq!(waiters.each_mut().map(is_woken), [true, true, false]);
}

#[test]
fn a_paused_queue_dispatches_nothing_until_it_is_resumed() {
    let dispatch = known(&["q"]);
    dispatch.pause("q", true);
    let by_service = Arc::new(ClaimQuery { queues: Vec::new(), services: vec!["service".to_owned()] });
    let TakeResult::Read(mut reading) = attempt(&dispatch, &by_service, 1) else { panic!("nothing to fill") };
    reading.add_result(StoreReadResult::Ready(Vec::new()));
    let mut waiter = wait(&dispatch, "q");
    dispatch.offer([row(1, "q")]);
    assert!(!is_woken(&mut waiter));
    assert!(matches!(attempt(&dispatch, &by_service, 1), TakeResult::Wait(_)));
    dispatch.pause("q", false);
    assert!(is_woken(&mut waiter));
    drop(waiter);
    fill(&dispatch, "q", vec![row(1, "q")]);
    assert_eq!(take(&dispatch, "q").len(), 1);
}

#[test]
fn an_invalidated_list_is_read_again() {
    let dispatch = known(&["q"]);
    let (mut first, mut second) = (wait(&dispatch, "q"), wait(&dispatch, "q"));
    dispatch.invalidate();
    assert!(is_woken(&mut first) && !is_woken(&mut second));
    drop((first, second));
    fill(&dispatch, "q", vec![row(1, "q")]);
    assert_eq!(take(&dispatch, "q").len(), 1);
}

#[test]
fn claims_beyond_the_limit_are_refused() {
    let dispatch = Dispatcher::new(DispatchLimits { waiters: 1, ..DispatchLimits::default() });
    fill(&dispatch, "q", Vec::new());
    let _waiter = wait(&dispatch, "q");
    assert!(matches!(attempt(&dispatch, &of_queue("q"), 1), TakeResult::Crowded));
}

#[test]
fn a_dispatcher_alone_reads_only_jobs_from_before_its_start() {
    let dispatch = Dispatcher::alone(DispatchLimits::default());
    dispatch.invalidate_queues(&["old".to_owned()]);
    dispatch.offer([row(1, "new")]);
    assert_eq!(take(&dispatch, "new").len(), 1);
    assert!(take(&dispatch, "none").is_empty());
    dispatch.offer([row(3, "old")]);
    fill(&dispatch, "old", vec![row(2, "old"), row(3, "old")]);
    assert_eq!(take(&dispatch, "old").len(), 2);
}

#[test]
fn the_store_is_read_ahead() {
    let limits = DispatchLimits { read_rows: 20, ..DispatchLimits::default() };
    let dispatch = Dispatcher::new(limits);
    let rows: Vec<JobRow> = (1..=20).map(|id| row(id, "q")).collect();
    fill(&dispatch, "q", rows);
    assert!(!dispatch.is_low(&of_queue("q")));
    let TakeResult::Jobs(taken) = attempt(&dispatch, &of_queue("q"), 15) else { panic!("nothing was taken") };
    assert_eq!(taken.rows.len(), 15);
    assert!(dispatch.is_low(&of_queue("q")), "the last one that was read may not be the next");
    let mut fill = dispatch.read_ahead(&of_queue("q"), Timestamp(0)).unwrap();
    assert!(!dispatch.is_low(&of_queue("q")), "somebody reads already");
    assert_eq!(asked(&fill).limit, 35, "those that are taken are read again");
    fill.add_result(StoreReadResult::Ready((16..=30).map(|id| row(id, "q")).collect()));
    assert_eq!(take(&dispatch, "q").len(), 9);
    assert_eq!(take(&dispatch, "q").len(), 6);
    assert!(take(&dispatch, "q").is_empty());
}

#[test]
fn only_jobs_of_runs_are_read_from_lower_classes() {
    let dispatch = Dispatcher::new(DispatchLimits { read_rows: 20, ..DispatchLimits::default() });
    let of_run = |id: u128| {
        let mut row = row(id, "q");
        let spec = Arc::make_mut(&mut row.job.spec);
        (spec.run, spec.priority) = (Some(RunId::new(Uuid::from_u128(id))), 1);
        row
    };
    fill(&dispatch, "q", (1..=20).map(of_run).collect());
    let TakeResult::Read(mut fill) = attempt(&dispatch, &of_queue("q"), 1) else { panic!("nothing to read") };
    for class in [-2, -1, 0] {
        let query = asked(&fill);
        assert_eq!((query.from.map(|from| from.priority), query.is_of_runs), (Some(class), true));
        fill.add_result(StoreReadResult::Ready(Vec::new()));
    }
    assert!(fill.query(Timestamp(5)).is_none());
}
