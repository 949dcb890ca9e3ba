//! Deletion of rows that ended long ago, and of no others.

use windlass_engine::counter::{Fence, Seq};
use windlass_engine::job::{JobInput, JobSpec};
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_store::account::LedgerQuery;
use windlass_store::audit::{AuditQuery, AuditRow};
use windlass_store::commit::Commit;
use windlass_store::log::{LogRow, LogsOf};
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::run::{Request, RunRef, RunStatus, Since};
use windlass_store::{Refusal, Store};

use crate::fixture::{StoreFixture, at, job_id, movement, run_id, undelivered};

pub async fn rows_that_ended_long_ago_are_deleted_a_part_at_a_time(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for n in 1..=5 {
        let ended_at = at(10 * i64::try_from(n).unwrap());
        fixture.create(n, RunStatus::Completed, ended_at, |_, _| {}).await.unwrap();
        let spec = JobSpec { run: Some(run_id(n)), ..JobSpec::new("demo", "demo") };
        fixture.create_job(n, spec, at(1)).await.unwrap();
    }
    fixture.create_job(11, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    fixture.submit(11, JobInput::Cancel, at(5)).await.unwrap();
    let gone = store.retain(at(40), 2).await.unwrap();
    assert_eq!((gone.n_runs, gone.n_jobs), (2, 3));
    assert!(gone.n_commands <= 2);
    assert_eq!((fixture.run(1).await, fixture.run(2).await), (None, None));
    assert!(
        store
            .journal(&Project::DEFAULT, run_id(1), Since::Entry(Seq::ZERO), 10)
            .await
            .unwrap()
            .entries
            .is_empty()
    );
    assert_eq!(
        (
            store.job(&Project::DEFAULT, job_id(1)).await.unwrap(),
            store.job(&Project::DEFAULT, job_id(11)).await.unwrap()
        ),
        (None, None)
    );
    assert!(store.attempts(&Project::DEFAULT, job_id(11), 0, 10).await.unwrap().is_empty());
    assert!(
        fixture.run(3).await.is_some() && store.job(&Project::DEFAULT, job_id(3)).await.unwrap().is_some()
    );
    assert_eq!(store.retain(at(40), 2).await.unwrap().n_runs, 1);
    assert_eq!(store.retain(at(40), 2).await.unwrap().n_runs, 0);
    assert!(fixture.run(4).await.is_some());
}

pub async fn open_runs_and_recent_ones_stay(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.create(1, RunStatus::Waiting, at(1), |_, _| {}).await.unwrap();
    fixture.create(2, RunStatus::Failed, at(50), |_, _| {}).await.unwrap();
    fixture.create_job(1, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    let kept = fixture.entry(1, 1, RunStatus::Waiting, at(2));
    fixture.commit(kept.clone()).await.unwrap();
    let gone = store.retain(at(50), 100).await.unwrap();
    assert_eq!((gone.n_runs, gone.n_jobs), (0, 0));
    assert!(fixture.run(1).await.is_some() && fixture.run(2).await.is_some());
    assert!(store.job(&Project::DEFAULT, job_id(1)).await.unwrap().is_some());
    assert!(store.command(&Project::DEFAULT, kept.command).await.unwrap().is_some());
}

pub async fn dead_letters_the_ledger_and_the_audit_stay(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let mut commit = fixture.entry(1, 0, RunStatus::Completed, at(1));
    let charge = Movement::charge(format!("charge:{}/a/1", run_id(1)), Amount(30));
    commit.postings = vec![movement("payer", charge)];
    commit.audit = vec![AuditRow {
        at: at(1),
        who: "me".to_owned(),
        what: "run.create".to_owned(),
        subject: run_id(1).to_string(),
        detail: serde_json::Value::Null,
    }];
    fixture.commit(commit).await.unwrap();
    fixture
        .create_job(1, JobSpec { max_retries: 1, ..JobSpec::new("demo", "default") }, at(1))
        .await
        .unwrap();
    fixture.submit(1, JobInput::Claim { worker: "w".to_owned(), lease_ms: 1 }, at(1)).await.unwrap();
    fixture.submit(1, JobInput::LeaseExpired { fence: Fence(1) }, at(9)).await.unwrap();
    assert_eq!(store.retain(at(1_000), 100).await.unwrap().n_runs, 1);
    let query = LedgerQuery { account: "payer".to_owned(), ..LedgerQuery::default() };
    assert_eq!(store.ledger(&Project::DEFAULT, query).await.unwrap().len(), 2);
    assert_eq!(fixture.balance("payer").await, (70, 30));
    assert_eq!(store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap().len(), 1);
    assert!(store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap().job.is_dead_letter());
    fixture.submit(1, JobInput::Discard { reason: "old".to_owned() }, at(10)).await.unwrap();
    assert_eq!(store.retain(at(1_000), 100).await.unwrap().n_jobs, 1);
}

pub async fn a_run_is_kept_until_its_messages_are_delivered(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut commit = fixture.entry(1, 0, RunStatus::Completed, at(1));
    let id = MessageId::new(Party::Run(run_id(1)), Seq(1));
    let to = Party::Run(run_id(2));
    let message = Message { id, to, at: at(1), note: Note::BalanceChanged };
    commit.messages = vec![message.clone()];
    fixture.commit(commit).await.unwrap();
    // It holds up no other run, however small the part.
    fixture.create(3, RunStatus::Completed, at(2), |_, _| {}).await.unwrap();
    assert_eq!(store.retain(at(1_000), 1).await.unwrap().n_runs, 1);
    assert!(store.run(&Project::DEFAULT, RunRef::Id(run_id(3))).await.unwrap().is_none());
    assert_eq!(store.retain(at(1_000), 100).await.unwrap().n_runs, 0);
    assert_eq!(undelivered(store, at(9), 10).await, std::slice::from_ref(&message));
    let delivered = vec![message.id];
    let commit = Commit { delivered, ..Commit::new(&Project::DEFAULT, fixture.command(), at(5)) };
    fixture.commit(commit).await.unwrap();
    assert_eq!(store.retain(at(1_000), 100).await.unwrap().n_runs, 1);
}

pub async fn a_deleted_run_frees_its_request_id(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let create = |n: u64| {
        let request = Request { id: "r".to_owned(), digest: "d".to_owned() };
        fixture.create(n, RunStatus::Completed, at(1), |origin, _| origin.request = Some(request))
    };
    create(1).await.unwrap();
    let refused = create(2).await.unwrap_err();
    assert!(matches!(refused.refusal(), Some(Refusal::RequestTaken { .. })), "{refused}");
    store.retain(at(1_000), 100).await.unwrap();
    create(2).await.unwrap();
}

pub async fn logs_are_deleted_with_their_run(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    for run in [1, 2] {
        let ended_at = at(10 * i64::try_from(run).unwrap());
        fixture.create(run, RunStatus::Completed, ended_at, |_, _| {}).await.unwrap();
        let text = "done".to_owned();
        let (run, node) = (run_id(run), "a".into());
        let log = LogRow { run, entry: Seq(1), fence: Fence(1), node, at: at(5), text, lines: Vec::new() };
        fixture
            .commit(Commit { logs: vec![log], ..Commit::new(&Project::DEFAULT, fixture.command(), at(5)) })
            .await
            .unwrap();
    }
    assert_eq!(store.retain(at(20), 10).await.unwrap().n_runs, 1);
    let all = LogsOf::After { entry: Seq::ZERO, fence: Fence(0) };
    assert!(store.logs(&Project::DEFAULT, run_id(1), all).await.unwrap().is_empty());
    assert_eq!(store.logs(&Project::DEFAULT, run_id(2), all).await.unwrap().len(), 1);
}
