//! Runs of the real engine: a run that is decided, projected and committed is the same after it was loaded and replayed.

use std::collections::BTreeMap;

use serde_json::json;
use windlass_engine::counter::{Fence, Revision, Seq};
use windlass_engine::effect::Effect;
use windlass_engine::event::{InsufficientFundsAction, Start};
use windlass_engine::id::JobId;
use windlass_engine::input::{CallOutcome, Input};
use windlass_engine::job::{self, JobInput};
use windlass_engine::money::{Amount, Movement, Price};
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::retry::FaultKind;
use windlass_store::Store;
use windlass_store::account::LedgerQuery;
use windlass_store::commit::{Commit, JobChange};
use windlass_store::job::{JobQuery, JobStatus, ReadyQuery};
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::run::{RunStatus, Since};

use crate::driver::{Driver, delivered_input, start_with};
use crate::fixture::{StoreFixture, at, movement, run_id, server, undelivered};

const PUSH: &str = r#"{"start": "a", "nodes": {"a": {"service": "s", "post": {"output_key": "x"}}, "b": {"service": "t"}},
    "edges": [{"from": "a", "to": "b"}]}"#;
const ONE: &str = r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#;
const PULL: &str =
    r#"{"start": "a", "nodes": {"a": {"service": "resize", "exec_type": "queue", "timeout_ms": 5000}}}"#;

fn ended(node: &str, fence: u64, outcome: CallOutcome) -> Input {
    Input::CallEnded { node: NodePath::from(node), fence: Fence(fence), outcome, worker: None }
}

pub async fn a_run_replays_from_its_journal(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut driver = Driver::new(&fixture, 1, PUSH).await;
    driver.start(start_with(json!({"text": "hi"})), 10).await;
    driver.done("a", 1, json!("HI"), 20).await;
    let row = fixture.run(1).await.unwrap();
    assert_eq!(
        (row.projection.status, row.projection.action.as_deref()),
        (RunStatus::Running, Some("default"))
    );
    assert_eq!((row.projection.node, row.projection.step_count), (Some(NodePath::from("b")), 2));
    assert_eq!((row.projection.shared, row.projection.ended_at), (None, None));
    driver.done("b", 2, json!(null), 30).await;
    let row = fixture.run(1).await.unwrap();
    assert_eq!((row.projection.status, row.projection.ended_at), (RunStatus::Completed, Some(at(30))));
    assert_eq!(row.projection.shared.as_deref(), Some(&json!({"x": "HI"})));
    assert_eq!((row.origin.created_at, row.projection.updated_at, row.len), (at(10), at(30), Seq(3)));
    // A new round has no end yet.
    driver.submit(Input::Rerun { from: NodePath::from("b"), shared: None }, 40).await.unwrap();
    let row = fixture.run(1).await.unwrap();
    assert_eq!((row.projection.status, row.projection.round), (RunStatus::Running, 2));
    assert_eq!((row.projection.ended_at, row.projection.shared), (None, None));
}

pub async fn a_run_replays_from_a_snapshot(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut driver = Driver::new(&fixture, 1, PUSH).await;
    driver.snapshots = true;
    driver.start(start_with(json!({})), 1).await;
    driver.snapshots = false;
    driver.done("a", 1, json!([1, null]), 2).await;
    let journal = store.journal(&Project::DEFAULT, run_id(1), Since::Snapshot, 10).await.unwrap();
    assert_eq!(journal.snapshot.map(|snapshot| snapshot.seq), Some(Seq(1)));
    assert_eq!(journal.entries.len(), 1);
    driver.done("b", 2, json!(1), 3).await;
}

pub async fn a_call_through_the_queue_makes_a_job_that_can_be_claimed(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut driver = Driver::new(&fixture, 1, PULL).await;
    driver.start(start_with(json!({"w": 3})), 10).await;
    let query = ReadyQuery {
        queues: vec![],
        services: vec!["resize".to_owned()],
        now: at(10),
        limit: 10,
        ..ReadyQuery::default()
    };
    let ready = store.ready(&Project::DEFAULT, query).await.unwrap();
    assert_eq!(ready.iter().map(|row| row.id()).collect::<Vec<_>>(), [JobId::of_call(run_id(1), Fence(1))]);
    let call = ready[0].origin.call.clone().unwrap();
    assert_eq!((call.run, call.node.as_str(), call.fence.0), (run_id(1), "a", 1));
    let spec = &ready[0].job.spec;
    assert_eq!((spec.run, spec.timeout_ms, spec.attempts_max()), (Some(run_id(1)), 5_000, 1));
    assert_eq!(spec.payload.value()["params"], json!({"w": 3}));
}

/// The claimed job of a call, ended with this result.
async fn finished(store: &dyn Store, id: JobId, now: i64) -> Vec<JobChange> {
    let mut row = store.job(&Project::DEFAULT, id).await.unwrap().unwrap();
    for input in [
        JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 },
        JobInput::Finish {
            fence: Fence(1),
            outcome: job::JobOutcome::Done { result: json!("small").into() },
        },
    ] {
        let events = row.job.decide(input, at(now)).unwrap();
        events.iter().for_each(|event| row.job.apply(event, at(now)));
    }
    vec![JobChange { expected_rev: row.rev, job: row.job, origin: row.origin }]
}

pub async fn an_answer_ends_the_job_and_moves_the_run_in_one_commit(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut driver = Driver::new(&fixture, 1, PULL).await;
    driver.start(start_with(json!({})), 10).await;
    let id = JobId::of_call(run_id(1), Fence(1));
    let jobs = finished(store, id, 20).await;
    let more = Commit { jobs, ..Commit::new(&Project::DEFAULT, fixture.command(), at(20)) };
    let answer = ended("a", 1, CallOutcome::Done(json!("small").into()));
    driver.submit_with(answer, 20, more).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Completed);
    assert_eq!(
        JobStatus::of(&store.job(&Project::DEFAULT, id).await.unwrap().unwrap().job),
        JobStatus::Completed
    );
}

pub async fn a_cancelled_run_cancels_its_jobs(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut driver = Driver::new(&fixture, 1, PULL).await;
    driver.start(start_with(json!({})), 10).await;
    driver.submit(Input::Cancel { reason: None, by: None }, 20).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Canceling);
    let row = store.job(&Project::DEFAULT, JobId::of_call(run_id(1), Fence(1))).await.unwrap().unwrap();
    assert_eq!(JobStatus::of(&row.job), JobStatus::Canceled);
    driver.submit(ended("a", 1, CallOutcome::Canceled), 21).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Canceled);
    let open = JobQuery { statuses: vec![JobStatus::Queued], ..JobQuery::default() };
    assert!(store.jobs(&Project::DEFAULT, open).await.unwrap().items.is_empty());
}

/// A start that pays 30 for every call of `s`.
fn paying(on_short_balance: InsufficientFundsAction) -> Start {
    let actual_units = Some(json!("$result.units"));
    let price = Price { unit_price: Amount(30), min_unit: 1, units: json!(2), actual_units };
    Start {
        account: Some("payer".to_owned()),
        prices: BTreeMap::from([("s".to_owned(), price)]).into(),
        on_short_balance,
        ..start_with(json!({}))
    }
}

pub async fn a_priced_call_is_charged_and_settled_with_its_run(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let mut driver = Driver::new(&fixture, 1, PUSH).await;
    driver.start(paying(InsufficientFundsAction::Fail), 10).await;
    assert_eq!(fixture.balance("payer").await, (40, 60));
    driver.done("a", 1, json!({"units": 1}), 20).await;
    assert_eq!(fixture.balance("payer").await, (70, 0));
    let cost = fixture.run(1).await.unwrap().projection.cost;
    assert_eq!((cost.estimated.0, cost.actual.0), (60, 30));
    let query = LedgerQuery { account: "payer".to_owned(), run: Some(run_id(1)), ..LedgerQuery::default() };
    let rows = store.ledger(&Project::DEFAULT, query).await.unwrap();
    assert_eq!(
        rows.iter().map(|row| row.posting.movement.kind.word()).collect::<Vec<_>>(),
        ["charge", "settle"]
    );
    assert!(rows.iter().all(|row| row.posting.node() == Some(NodePath::from("a"))));
}

pub async fn a_short_balance_fails_the_call_or_parks_it(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 50).await;
    let mut failing = Driver::new(&fixture, 1, ONE).await;
    failing.start(paying(InsufficientFundsAction::Fail), 10).await;
    let row = fixture.run(1).await.unwrap();
    assert_eq!(row.projection.status, RunStatus::Failed);
    assert_eq!(row.projection.error.unwrap().fault.kind, FaultKind::Balance);
    let mut waiting = Driver::new(&fixture, 2, PUSH).await;
    waiting.start(paying(InsufficientFundsAction::Wait), 10).await;
    assert_eq!(fixture.run(2).await.unwrap().projection.status, RunStatus::Waiting);
    assert_eq!(fixture.balance("payer").await, (50, 0));
    fixture.post("payer", Movement::deposit("more", Amount(10))).await.unwrap();
    waiting.relied_on.clear();
    let effects = waiting.submit(delivered_input(&Note::BalanceChanged), 20).await.unwrap();
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Call(_))), "{effects:?}");
    assert_eq!(fixture.balance("payer").await, (0, 60));
}

pub async fn a_deposit_after_the_read_undoes_the_parking(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 50).await;
    let mut driver = Driver::new(&fixture, 1, PUSH).await;
    // A server reads a balance that is too small and parks the call after the deposit: no later commit would wake the run.
    let look = windlass_store::commit::Unmoved { account: "payer".to_owned(), revision: Revision(1) };
    let mut deposit = Commit::new(&Project::DEFAULT, fixture.command(), at(5));
    deposit.postings = vec![movement("payer", Movement::deposit("more", Amount(10)))];
    let party = || Party::Account("payer".to_owned());
    let id = MessageId::new(party(), Seq(2));
    deposit.messages = vec![Message { id, to: party(), at: at(5), note: Note::BalanceChanged }];
    fixture.commit(deposit).await.unwrap();
    driver.relied_on = vec![look];
    let start = Input::Start(Box::new(paying(InsufficientFundsAction::Wait)));
    driver.origin.account = Some("payer".to_owned());
    assert!(driver.submit(start.clone(), 10).await.unwrap_err().is_conflict());
    driver.relied_on.clear();
    driver.submit(start, 10).await.unwrap();
    assert_eq!(fixture.balance("payer").await, (0, 60));
    assert_eq!(undelivered(store, at(9), 10).await.len(), 1);
}

pub async fn a_run_has_an_owner_only_while_a_server_makes_a_call(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mixed = r#"{"start": "a", "nodes": {"a": {"service": "s", "max_retries": 1, "wait_ms": 50},
        "b": {"service": "q", "exec_type": "queue"}}, "edges": [{"from": "a", "to": "b"}]}"#;
    let mut driver = Driver::new(&fixture, 1, mixed).await;
    driver.start(start_with(json!({})), 10).await;
    let owner = async || fixture.run(1).await.unwrap().projection.owner;
    assert_eq!(owner().await, Some(server(1, 1)));
    let fault = windlass_engine::retry::Fault::new(FaultKind::Error, "boom");
    driver.submit(ended("a", 1, CallOutcome::Failed(fault)), 20).await.unwrap();
    assert_eq!(owner().await, None);
    driver.server = server(2, 5);
    driver.submit(Input::TimePassed, 70).await.unwrap();
    assert_eq!(owner().await, Some(server(2, 5)));
    driver.done("a", 2, json!(1), 80).await;
    assert_eq!(owner().await, None);
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Running);
    driver.done("b", 3, json!(1), 90).await;
    assert_eq!(owner().await, None);
}

pub async fn a_run_that_waits_says_so_and_wakes(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let timer = r#"{"start": "t", "nodes": {"t": {"kind": "timer", "params": {"delay_ms": 100}}, "w": {"kind": "wait_event", "params": {"signal_key": "go"}}},
        "edges": [{"from": "t", "to": "w"}]}"#;
    let mut driver = Driver::new(&fixture, 1, timer).await;
    driver.start(start_with(json!({})), 10).await;
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Waiting);
    assert!(store.due(at(109), 10).await.unwrap().runs.is_empty());
    let due = store.due(at(110), 10).await.unwrap().runs;
    assert_eq!((due.len(), due[0].at, due[0].id), (1, at(110), run_id(1)));
    driver.submit(Input::TimePassed, 110).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.wake_at, None);
    let signal = Input::Signal { id: None, key: "go".to_owned(), value: json!(true), by: None };
    driver.submit(signal, 120).await.unwrap();
    assert_eq!(fixture.run(1).await.unwrap().projection.status, RunStatus::Completed);
}

pub async fn two_servers_on_one_run_agree(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut one = Driver::new(&fixture, 1, PUSH).await;
    let mut two = Driver::new(&fixture, 2, PUSH).await;
    one.start(start_with(json!({})), 10).await;
    (two.run, two.server) = (one.run.clone(), server(2, 1));
    two.reload().await;
    one.done("a", 1, json!(1), 20).await;
    // The other server has not read the entry, decides the same again, and gets a conflict.
    let late = two.submit(ended("a", 1, CallOutcome::Done(json!(2).into())), 21).await;
    assert!(late.unwrap_err().is_conflict());
    two.reload().await;
    two.done("b", 2, json!(3), 22).await;
    one.reload().await;
    assert_eq!(one.load(Since::Entry(Seq::ZERO)).await.1, Seq(3));
    let row = fixture.run(1).await.unwrap();
    assert_eq!(
        (row.projection.status, row.projection.shared.as_deref()),
        (RunStatus::Completed, Some(&json!({"x": 1})))
    );
}

pub async fn a_wide_fan_is_followed_to_its_end(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for (n, exec) in [(1, "http"), (2, "queue")] {
        let fan = format!(
            r#"{{"start": "f", "nodes": {{"f": {{"kind": "foreach", "service": "t", "exec_type": "{exec}",
            "failure_strategy": "fail_fast", "prep": {{"input_key": "$params.items"}}, "parallel_mode": "concurrent"}}}}}}"#
        );
        let mut driver = Driver::new(&fixture, n, &fan).await;
        let items: Vec<u64> = (0..20).collect();
        driver.start(start_with(json!({ "items": items })), 10).await;
        for index in 0..5 {
            driver.done(&format!("f/{index}"), index + 1, json!(index), 11).await;
        }
        let fault = windlass_engine::retry::Fault::new(FaultKind::Error, "boom").permanent();
        driver.submit(ended("f/7", 8, CallOutcome::Failed(fault)), 20).await.unwrap();
        assert_eq!(fixture.run(n).await.unwrap().projection.status, RunStatus::Running);
        for index in (5..20).filter(|index| *index != 7) {
            driver.submit(ended(&format!("f/{index}"), index + 1, CallOutcome::Canceled), 21).await.unwrap();
        }
        let row = fixture.run(n).await.unwrap();
        assert_eq!((row.projection.status, row.projection.owner), (RunStatus::Failed, None));
    }
    let open = JobQuery { statuses: vec![JobStatus::Queued], ..JobQuery::default() };
    // The jobs of canceled branches are canceled with them; those of the others were not ended.
    let left = store.jobs(&Project::DEFAULT, open).await.unwrap().items;
    assert!(left.iter().all(|row| [1, 2, 3, 4, 5, 8].contains(&row.origin.call.as_ref().unwrap().fence.0)));
}
