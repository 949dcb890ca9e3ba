//! Commits are atomic; a refused commit does not affect the rest of its group.

use windlass_engine::counter::{Revision, Seq};
use windlass_engine::job::{JobInput, JobSpec};
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::audit::{AuditQuery, AuditRow};
use windlass_store::commit::{Commit, JobChange};
use windlass_store::error::Subject;
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::run::{RunStatus, Since};
use windlass_store::{Refusal, Store, StoreError};

use crate::executor::side_by_side;
use crate::fixture::{StoreFixture, at, job_id, movement, run_id, undelivered};

/// A commit with all parts: an entry of a run, a job, money, a message, a line in the audit.
fn everything(fixture: &StoreFixture<'_>, run: u64, expected_len: u64, charge: i64) -> Commit {
    let mut commit = fixture.entry(run, expected_len, RunStatus::Running, at(5));
    commit.jobs = fixture.job(run, JobSpec::new("demo", "default"), at(5)).jobs;
    let charge = Movement::charge(format!("charge:{}/a/{expected_len}", run_id(run)), Amount(charge));
    commit.postings.push(movement("payer", charge));
    let id = MessageId::new(Party::Run(run_id(run)), Seq(1));
    let to = Party::Run(run_id(99));
    commit.messages.push(Message { id, to, at: at(5), note: Note::BalanceChanged });
    commit.audit.push(AuditRow {
        at: at(5),
        who: "me".to_owned(),
        what: "run.create".to_owned(),
        subject: run_id(run).to_string(),
        detail: serde_json::Value::Null,
    });
    commit
}

/// The rows of `everything` in a store.
async fn traces(fixture: &StoreFixture<'_>, run: u64) -> (u64, bool, i64, usize, usize, usize) {
    let store = fixture.store;
    let len = fixture.run(run).await.map_or(0, |row| row.len.0);
    let entries =
        store.journal(&Project::DEFAULT, run_id(run), Since::Entry(Seq::ZERO), 100).await.unwrap().entries;
    assert_eq!(entries.len() as u64, len);
    let job = store.job(&Project::DEFAULT, job_id(run)).await.unwrap().is_some();
    let (balance, _) = fixture.balance("payer").await;
    let ledger = windlass_store::account::LedgerQuery { account: "payer".to_owned(), ..Default::default() };
    let n_movements = store.ledger(&Project::DEFAULT, ledger).await.unwrap().len();
    let n_messages = undelivered(store, at(1_000), 100).await.len();
    let n_audited = store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap().len();
    (len, job, balance, n_movements, n_messages, n_audited)
}

pub async fn an_entry_a_row_a_job_and_money_are_written_together(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let commit = everything(&fixture, 1, 0, 30);
    let committed = fixture.commit(commit.clone()).await.unwrap();
    assert_eq!((committed.command, committed.at), (commit.command, at(5)));
    assert_eq!(committed.run, Some((run_id(1), Seq(1))));
    assert_eq!(committed.balances.into_iter().collect::<Vec<_>>(), [("payer".to_owned(), Amount(70))]);
    assert_eq!(traces(&fixture, 1).await, (1, true, 70, 2, 1, 1));
    let journal = store.journal(&Project::DEFAULT, run_id(1), Since::Entry(Seq::ZERO), 100).await.unwrap();
    assert_eq!(journal.entries, [(Seq(1), commit.run.unwrap().entry)]);
}

pub async fn a_commit_with_an_old_length_is_refused_and_writes_nothing(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.commit(fixture.entry(1, 0, RunStatus::Running, at(1))).await.unwrap();
    fixture.commit(fixture.entry(1, 1, RunStatus::Running, at(2))).await.unwrap();
    let refused = fixture.commit(everything(&fixture, 1, 1, 30)).await.unwrap_err();
    let StoreError::Conflict { what, expected, found } = refused else { panic!("{refused}") };
    assert_eq!((what, expected, found), (Subject::Run(run_id(1)), 1, 2));
    assert_eq!(traces(&fixture, 1).await, (2, false, 100, 1, 0, 0));
    let again = fixture.commit(everything(&fixture, 1, 0, 30)).await.unwrap_err();
    assert!(again.is_conflict(), "a second creation: {again}");
}

pub async fn a_commit_from_the_future_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    assert!(fixture.commit(fixture.entry(1, 1, RunStatus::Running, at(1))).await.unwrap_err().is_conflict());
    assert_eq!(fixture.run(1).await, None);
    fixture.commit(fixture.entry(1, 0, RunStatus::Running, at(1))).await.unwrap();
    assert!(fixture.commit(fixture.entry(1, 2, RunStatus::Running, at(1))).await.unwrap_err().is_conflict());
    assert_eq!(fixture.run(1).await.unwrap().len, Seq(1));
}

pub async fn one_commits_conflict_does_not_spoil_its_group(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.commit(fixture.entry(1, 0, RunStatus::Running, at(1))).await.unwrap();
    let group = vec![
        everything(&fixture, 2, 0, 10),
        everything(&fixture, 1, 0, 10),
        everything(&fixture, 3, 0, 500),
        everything(&fixture, 4, 0, 10),
    ];
    let answers = store.commit(group).await;
    assert_eq!(answers.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, false, false, true]);
    assert!(answers[1].as_ref().unwrap_err().is_conflict());
    assert!(matches!(answers[2].as_ref().unwrap_err().refusal(), Some(Refusal::InsufficientFunds { .. })));
    assert_eq!(traces(&fixture, 3).await, (0, false, 80, 3, 2, 2));
    assert_eq!(fixture.run(2).await.unwrap().len.0 + fixture.run(4).await.unwrap().len.0, 2);
}

pub async fn commits_of_a_group_see_those_before_them(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let group = (0..3).map(|len| fixture.entry(1, len, RunStatus::Running, at(1))).collect();
    let answers = store.commit(group).await;
    let lens: Vec<u64> = answers.into_iter().map(|answer| answer.unwrap().run.unwrap().1.0).collect();
    assert_eq!(lens, [1, 2, 3]);
}

pub async fn the_same_command_twice_is_one_commit(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let commit = everything(&fixture, 1, 0, 30);
    let first = fixture.commit(commit.clone()).await.unwrap();
    fixture.commit(fixture.entry(1, 1, RunStatus::Running, at(6))).await.unwrap();
    fixture.post("payer", Movement::deposit("more", Amount(5))).await.unwrap();
    // The answer is that of the first commit, although the run has more entries now.
    assert_eq!(fixture.commit(commit).await.unwrap(), first);
    assert_eq!(traces(&fixture, 1).await, (2, true, 75, 3, 1, 1));
}

pub async fn the_same_command_twice_in_one_group_is_one_commit(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    let commit = everything(&fixture, 1, 0, 30);
    let answers = store.commit(vec![commit.clone(), commit]).await;
    assert_eq!(answers[0].as_ref().unwrap(), answers[1].as_ref().unwrap());
    assert_eq!(traces(&fixture, 1).await, (1, true, 70, 2, 1, 1));
}

pub async fn an_unknown_outcome_is_looked_up_by_its_command(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let commit = fixture.entry(1, 0, RunStatus::Running, at(1));
    assert_eq!(store.command(&Project::DEFAULT, commit.command).await.unwrap(), None);
    let committed = fixture.commit(commit.clone()).await.unwrap();
    assert_eq!(store.command(&Project::DEFAULT, commit.command).await.unwrap(), Some(committed));
}

pub async fn a_refused_command_leaves_no_trace_and_may_be_tried_again(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 10).await;
    let commit = everything(&fixture, 1, 0, 30);
    fixture.commit(commit.clone()).await.unwrap_err();
    assert_eq!(store.command(&Project::DEFAULT, commit.command).await.unwrap(), None);
    fixture.post("payer", Movement::deposit("more", Amount(20))).await.unwrap();
    fixture.commit(commit).await.unwrap();
    assert_eq!(traces(&fixture, 1).await, (1, true, 0, 3, 1, 1));
}

pub async fn a_short_balance_writes_nothing(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 20).await;
    let refused = fixture.commit(everything(&fixture, 1, 0, 30)).await.unwrap_err();
    let short = Refusal::InsufficientFunds {
        account: "payer".to_owned(),
        needed: Amount(30),
        balance: Amount(20),
        keys: vec![format!("charge:{}/a/0", run_id(1))],
        revision: Revision(1),
    };
    assert_eq!(refused.refusal(), Some(&short));
    assert_eq!(traces(&fixture, 1).await, (0, false, 20, 1, 0, 0));
}

pub async fn a_lost_job_race_writes_nothing(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.create_job(7, JobSpec::new("demo", "default"), at(1)).await.unwrap();
    let claim = JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 };
    let stale = fixture.change(7, claim.clone(), at(2)).await;
    fixture.submit(7, claim, at(2)).await.unwrap();
    let mut commit = everything(&fixture, 1, 0, 30);
    commit.jobs.push(stale);
    let refused = fixture.commit(commit).await.unwrap_err();
    assert!(
        matches!(refused, StoreError::Conflict { what: Subject::Job(id), expected: 1, found: 2 } if id == job_id(7))
    );
    assert_eq!(traces(&fixture, 1).await, (0, false, 100, 1, 0, 0));
}

pub async fn a_commit_that_contradicts_itself_is_refused(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    let mut no_origin = fixture.entry(1, 0, RunStatus::Running, at(1));
    no_origin.run.as_mut().unwrap().create = None;
    let mut other_command = fixture.entry(1, 0, RunStatus::Running, at(1));
    other_command.command = fixture.command();
    let mut wakes_after_its_end = fixture.entry(1, 0, RunStatus::Completed, at(1));
    wakes_after_its_end.run.as_mut().unwrap().projection.wake_at = Some(at(5));
    let mut job_twice = fixture.job(1, JobSpec::new("demo", "default"), at(1));
    job_twice.jobs.push(JobChange { expected_rev: Revision(1), ..job_twice.jobs[0].clone() });
    for commit in [no_origin, other_command, wakes_after_its_end, job_twice] {
        let refused = fixture.commit(commit.clone()).await.unwrap_err();
        assert!(matches!(refused.refusal(), Some(Refusal::Malformed(_))), "{commit:?}");
    }
    assert_eq!((fixture.run(1).await, store.job(&Project::DEFAULT, job_id(1)).await.unwrap()), (None, None));
}

pub async fn an_empty_group_is_answered_with_nothing(store: &dyn Store) {
    assert!(store.commit(Vec::new()).await.is_empty());
}

pub async fn one_of_many_concurrent_entries_wins(store: &dyn Store) {
    let fixture = StoreFixture::new(store).await;
    fixture.commit(fixture.entry(1, 0, RunStatus::Running, at(1))).await.unwrap();
    for len in 1..6 {
        let now = Timestamp(10 + len);
        let len = u64::try_from(len).unwrap();
        let rivals = (0..20).map(|_| fixture.commit(fixture.entry(1, len, RunStatus::Running, now)));
        let answers = side_by_side(rivals.collect::<Vec<_>>()).await;
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 1);
        assert!(answers.iter().flat_map(|answer| answer.as_ref().err()).all(StoreError::is_conflict));
    }
    let entries =
        store.journal(&Project::DEFAULT, run_id(1), Since::Entry(Seq::ZERO), 100).await.unwrap().entries;
    assert_eq!(entries.iter().map(|(seq, _)| seq.0).collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6]);
}
