//! Runs that wait for money, with servers that die in between, and prices that other servers set.

mod rest;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::definition::Strictness;
use windlass_engine::event::{InsufficientFundsAction, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::money::{Amount, Price};
use windlass_engine::project::Project;
use windlass_store::Memory;
use windlass_store::Store;
use windlass_store::flow::VersionStatus;
use windlass_store::run::RunStatus;

use super::*;
use crate::jobs::{ClaimRequest, JobEnd, LeasedJob};
use crate::runs::RunSpec;
use crate::runs::flow::{FlowSpec, VersionSpec};
use crate::{Runtime, Settings};
use windlass_conformance::faulty_store::{FaultyStore, unavailable};

/// Longer than anything takes that is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

async fn server<S: Store + 'static>(store: &Arc<S>) -> Runtime {
    Runtime::start_up(store.clone() as Arc<dyn Store>, Settings::default()).await.unwrap()
}

/// An account with some money, and a flow of one call that costs fifty.
async fn stage(server: &Runtime, amount: i64) -> RunSpec {
    server.money().open_account("acme", None).await.unwrap();
    if amount > 0 {
        server.money().deposit("acme", Amount(amount), "first").await.unwrap();
    }
    server.money().set_price("tts", price(50)).await.unwrap();
    let definition = json!({ "nodes": [{ "id": "a", "type": "tts", "config": {} }], "edges": [] });
    published(server, "speak", &definition).await
}

async fn published(server: &Runtime, name: &str, definition: &Value) -> RunSpec {
    let version = VersionSpec {
        definition: definition.to_string(),
        strictness: Strictness::Strict,
        number: None,
        status: VersionStatus::Published,
        note: String::new(),
    };
    let flow = FlowSpec { name: name.to_owned(), ..FlowSpec::default() };
    let published = server.runs().publish_flow(flow, Some(version)).await.unwrap().published;
    RunSpec {
        flow: published.flow,
        version: published.version.unwrap().0,
        request: None,
        labels: BTreeMap::new(),
        schedule: None,
        start: Start {
            account: Some("acme".to_owned()),
            on_short_balance: InsufficientFundsAction::Wait,
            ..Start::default()
        },
    }
}

fn price(unit_price: i64) -> Price {
    Price {
        unit_price: Amount(unit_price),
        min_unit: 0,
        units: json!(1),
        actual_units: Some(json!("$result.n")),
    }
}

impl Runtime {
    async fn waits(&self, new: &RunSpec) -> RunId {
        let started = self.runs().start(new.clone()).await.unwrap();
        assert_eq!(started.status, RunStatus::Waiting);
        started.run
    }

    async fn job_of(&self, run: RunId) -> LeasedJob {
        let claimed = self.next_job().await;
        assert_eq!(claimed.call.as_ref().map(|call| call.run), Some(run));
        claimed
    }

    async fn next_job(&self) -> LeasedJob {
        let services = vec!["tts".to_owned()];
        let (worker, wait, lease) = ("w".to_owned(), PATIENCE, PATIENCE);
        let claim = ClaimRequest { worker, queues: Vec::new(), services, max: 1, wait, lease };
        self.jobs().claim(claim).await.unwrap().pop().expect("nobody was let go")
    }

    async fn says(&self, claimed: &LeasedJob, value: Value) {
        let outcome = windlass_engine::input::CallOutcome::Done(value.into());
        let (job, fence) = (claimed.job, claimed.fence);
        let end = JobEnd {
            job,
            fence,
            outcome,
            worker: None,
            log: crate::calls::log::Log::default(),
            retry_after_ms: None,
        };
        self.jobs().finish(vec![end]).await.pop().unwrap().unwrap();
    }
}

/// Money that arrived while no server ran.
async fn comes_in(store: &Memory, amount: i64, with_message: bool) {
    let now = windlass_engine::time::Timestamp(1);
    let (account, movement) = ("acme".to_owned(), Movement::deposit("unseen", Amount(amount)));
    let postings = vec![Posting { account: account.clone(), movement }];
    let party = || Party::Account(account.clone());
    let message =
        Message { id: MessageId::new(party(), Seq(7)), to: party(), at: now, note: Note::BalanceChanged };
    let messages = if with_message { vec![message] } else { Vec::new() };
    let commit =
        Commit { postings, messages, ..Commit::new(&Project::DEFAULT, CommandId::new(Uuid::now_v7()), now) };
    store.commit(vec![commit]).await.pop().unwrap().unwrap();
}

#[tokio::test]
async fn a_deposit_that_woke_no_run_is_followed_up_by_the_next_server() {
    for with_message in [true, false] {
        let store = Arc::new(Memory::new());
        let before = server(&store).await;
        let new = stage(&before, 0).await;
        let run = before.waits(&new).await;
        before.stop();
        comes_in(&store, 50, with_message).await;
        let after = server(&store).await;
        let job = after.job_of(run).await;
        after.says(&job, json!({ "n": 1 })).await;
        assert_eq!(after.runs().wait_ended(run, PATIENCE).await.unwrap(), Some(RunStatus::Completed));
        assert_eq!(after.money().account("acme").await.unwrap().balance, Amount::ZERO);
        assert!(after.store().accounts_with_waiters(after.project(), None).await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn the_refund_of_a_settlement_wakes_the_next_run() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    let new = stage(&server, 70).await;
    let first = server.runs().start(new.clone()).await.unwrap().run;
    let second = server.waits(&new).await;
    let job = server.job_of(first).await;
    server.says(&job, json!({ "n": 0 })).await;
    let job = server.job_of(second).await;
    server.says(&job, json!({ "n": 1 })).await;
    assert_eq!(server.runs().wait_ended(second, PATIENCE).await.unwrap(), Some(RunStatus::Completed));
    assert_eq!(server.money().account("acme").await.unwrap().balance, Amount(20));
}

#[tokio::test]
async fn a_deposit_lets_as_many_runs_go_as_it_bears_oldest_first() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    let new = stage(&server, 0).await;
    let mut runs = Vec::new();
    for _ in 0..5 {
        runs.push(server.waits(&new).await);
    }
    let lengths = async || {
        let mut lengths = Vec::new();
        for run in &runs {
            let row =
                server.store().run(server.project(), windlass_store::run::RunRef::Id(*run)).await.unwrap();
            lengths.push(row.unwrap().len);
        }
        lengths
    };
    let before = lengths().await;
    server.money().deposit("acme", Amount(149), "two of them").await.unwrap();
    // Both are let go at once, and either may be first to have its job.
    let let_go = [server.next_job().await, server.next_job().await].map(|claimed| claimed.call.unwrap().run);
    assert!(let_go == runs[..2] || let_go == [runs[1], runs[0]], "{let_go:?} of {runs:?}");
    let after = lengths().await;
    assert_eq!((&after[2..], after[0] > before[0], after[1] > before[1]), (&before[2..], true, true));
    assert_eq!(server.money().account("acme").await.unwrap().balance, Amount(49));
    let found = server.doctor().examine(false).await.unwrap();
    assert!(found.findings.is_empty(), "{:?}", found.findings);
}

#[tokio::test]
async fn money_and_prices_are_the_same_on_every_server() {
    let store = Arc::new(Memory::shared());
    let (one, other) = (server(&store).await, server(&store).await);
    let new = stage(&one, 0).await;
    let run = other.waits(&new).await;
    one.money().deposit("acme", Amount(50), "elsewhere").await.unwrap();
    let job = one.job_of(run).await;
    one.says(&job, json!({ "n": 1 })).await;
    other.money().set_price("tts", price(7)).await.unwrap();
    one.money().deposit("acme", Amount(7), "more").await.unwrap();
    let cheap = one.runs().start(new.clone()).await.unwrap().run;
    one.job_of(cheap).await;
    assert_eq!(one.money().account("acme").await.unwrap().held, Amount(7));
    assert!(one.money().delete_price("tts").await.unwrap());
    let free = other.runs().start(new).await.unwrap().run;
    other.job_of(free).await;
    assert_eq!(other.money().account("acme").await.unwrap().held, Amount(7));
    assert!(!other.money().delete_price("tts").await.unwrap());
}

#[tokio::test]
async fn a_run_carries_the_prices_of_the_services_it_can_call() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    let new = stage(&server, 100).await;
    for n in 0..50 {
        server.money().set_price(&format!("other-{n}"), price(1)).await.unwrap();
    }
    let run = server.runs().start(new).await.unwrap().run;
    let view = server.runs().view(run).await.unwrap().unwrap();
    assert_eq!(view.state.start.prices.keys().collect::<Vec<_>>(), ["tts"]);
}

#[tokio::test]
async fn a_look_that_failed_is_made_again() {
    let is_away = Arc::new(AtomicBool::new(false));
    let away = is_away.clone();
    let on_accounts_with_waiters = move |account: Option<&str>| match account {
        Some(_) if away.swap(false, Ordering::SeqCst) => Err(unavailable()),
        Some(_) | None => Ok(()),
    };
    let on_accounts_with_waiters = Box::new(on_accounts_with_waiters);
    let store = Arc::new(FaultyStore { on_accounts_with_waiters, ..FaultyStore::default() });
    let server = server(&store).await;
    let new = stage(&server, 70).await;
    let first = server.runs().start(new.clone()).await.unwrap().run;
    let second = server.waits(&new).await;
    let job = server.job_of(first).await;
    while server.money().is_checking("acme") {
        tokio::task::yield_now().await;
    }
    is_away.store(true, Ordering::SeqCst);
    server.says(&job, json!({ "n": 0 })).await;
    server.job_of(second).await;
    assert!(!is_away.load(Ordering::SeqCst));
}

#[tokio::test]
async fn an_account_that_moves_between_two_looks_is_looked_at_anew() {
    let n_moved = AtomicU64::new(0);
    let on_commit = move |memory: &Memory, commits: &[Commit]| {
        // A deposit arrives just before the run is parked: its commit relies on the earlier balance.
        if commits.iter().any(|commit| !commit.unmoved.is_empty())
            && n_moved.fetch_add(1, Ordering::SeqCst) < 3
        {
            let key = format!("meanwhile {}", n_moved.load(Ordering::SeqCst));
            let (account, movement) = ("acme".to_owned(), Movement::deposit(&key, Amount(5)));
            let postings = vec![Posting { account, movement }];
            let now = windlass_engine::time::Timestamp(1);
            let commit =
                Commit { postings, ..Commit::new(&Project::DEFAULT, CommandId::new(Uuid::now_v7()), now) };
            memory.commit_now(vec![commit]).pop().unwrap().unwrap();
        }
        true
    };
    let store = Arc::new(FaultyStore { on_commit: Box::new(on_commit), ..FaultyStore::default() });
    let server = server(&store).await;
    let new = stage(&server, 0).await;
    server.waits(&new).await;
    assert_eq!(server.money().account("acme").await.unwrap().balance, Amount(15));
}

#[tokio::test]
async fn a_hundred_calls_without_funds_are_found_at_once() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    stage(&server, 120).await;
    let definition = json!({ "start": "f", "nodes": { "f": {
        "kind": "foreach", "service": "tts", "exec_type": "queue", "prep": { "input_key": "$params.items" },
        "failure_strategy": "continue"
    } } });
    let mut new = published(&server, "many", &definition).await;
    new.start.on_short_balance = InsufficientFundsAction::Fail;
    new.start.params = serde_json::from_value(json!({"items": vec![0; 100]})).unwrap();
    server.money().set_price("tts", price(150)).await.unwrap();
    let started = server.runs().start(new.clone()).await.unwrap();
    assert_eq!(started.status, RunStatus::Completed);
    assert_eq!(server.money().account("acme").await.unwrap().balance, Amount(120));
    server.money().set_price("tts", price(50)).await.unwrap();
    let run = server.runs().start(new).await.unwrap().run;
    for _ in 0..2 {
        let job = server.job_of(run).await;
        server.says(&job, json!({ "n": 1 })).await;
    }
    assert_eq!(server.runs().wait_ended(run, PATIENCE).await.unwrap(), Some(RunStatus::Completed));
    assert_eq!(server.money().account("acme").await.unwrap().balance, Amount(20));
}

#[tokio::test]
async fn money_that_a_paused_run_does_not_take_is_there_for_others() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    let new = stage(&server, 0).await;
    let first = server.waits(&new).await;
    let second = server.waits(&new).await;
    server.runs().submit(first, Input::Pause).await.unwrap();
    server.money().deposit("acme", Amount(50), "for one").await.unwrap();
    server.job_of(second).await;
    server.runs().submit(first, Input::Resume).await.unwrap();
    server.money().deposit("acme", Amount(50), "for the other").await.unwrap();
    server.job_of(first).await;
}

#[tokio::test]
async fn one_of_two_equal_deposits_was_made() {
    let store = Arc::new(FaultyStore::default());
    let server = server(&store).await;
    server.money().open_account("acme", None).await.unwrap();
    let deposit = || server.money().deposit("acme", Amount(5), "once");
    let (one, other) = tokio::join!(deposit(), deposit());
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one.entry, other.entry);
    assert!(one.created != other.created);
    assert_eq!(server.money().account("acme").await.unwrap().balance, Amount(5));
}

#[tokio::test]
async fn a_price_that_was_saved_is_known() {
    let is_away = Arc::new(AtomicBool::new(false));
    let away = is_away.clone();
    let on_prices = move || if away.load(Ordering::SeqCst) { Err(unavailable()) } else { Ok(()) };
    let store = Arc::new(FaultyStore { on_prices: Box::new(on_prices), ..FaultyStore::default() });
    let server = server(&store).await;
    server.money().set_price("tts", price(50)).await.unwrap();
    is_away.store(true, Ordering::SeqCst);
    server.money().set_price("tts", price(7)).await.unwrap();
    assert_eq!(server.money().price_list().await.unwrap()["tts"], price(7));
}

#[tokio::test]
async fn an_unnoticed_credit_is_found_and_followed_up() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    let new = stage(&server, 0).await;
    let run = server.waits(&new).await;
    while server.money().is_checking("acme") {
        tokio::task::yield_now().await;
    }
    comes_in(&store, 50, false).await;
    for repair in [false, true] {
        let found = server.doctor().examine(repair).await.unwrap().findings;
        let [finding] = found.as_slice() else { panic!("{found:?}") };
        assert_eq!((&finding.subject, finding.repaired), (&run.to_string(), repair));
        assert!(finding.what.contains("calls wait for 50, and account `acme` has 50"), "{}", finding.what);
    }
    server.job_of(run).await;
    assert!(server.doctor().examine(false).await.unwrap().findings.is_empty());
}

#[tokio::test]
async fn a_larger_budget_reaches_the_child_that_waits_for_it() {
    let store = Arc::new(Memory::new());
    let server = server(&store).await;
    stage(&server, 100).await;
    let call = json!({ "id": "c", "type": "flow_ref", "config": { "flow": "speak" } });
    let mut new = published(&server, "parent", &json!({ "nodes": [call], "edges": [] })).await;
    new.start.budget = Some(Amount(40));
    let mut changes = server.runs().changes();
    let parent = server.runs().start(new).await.unwrap().run;
    let child = RunId::of_call(parent, Fence(1));
    while {
        let change = changes.recv().await.unwrap();
        (change.run, change.status) != (child, RunStatus::Waiting)
    } {}
    let raise = |run, budget| {
        server.runs().submit(run, Input::BalanceChanged { budget: Some(budget), balance: None })
    };
    let refused = raise(child, Amount(50)).await.unwrap_err().to_string();
    assert!(refused.contains(&format!("windlass run budget {parent} AMOUNT")), "{refused}");
    raise(parent, Amount(50)).await.unwrap();
    let job = server.job_of(child).await;
    server.says(&job, json!({ "n": 1 })).await;
    assert_eq!(server.runs().wait_ended(parent, PATIENCE).await.unwrap(), Some(RunStatus::Completed));
    let refused =
        server.runs().submit(child, Input::Rerun { from: "a".into(), shared: None }).await.unwrap_err();
    assert!(refused.to_string().contains(&format!("windlass run rerun {parent} --from c")), "{refused}");
}
