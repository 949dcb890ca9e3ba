//! Invariants of a store after any sequence of commits.

use std::collections::BTreeSet;

use proptest::prelude::*;
use windlass_engine::counter::{Revision, Seq};
use windlass_engine::event::{Event, Level};
use windlass_engine::id::{JobId, RunId};
use windlass_engine::job::{Job, JobInput, JobSpec};
use windlass_engine::journal::Entry;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::project::Project;
use windlass_engine::raw_json::RawJson;
use windlass_engine::time::Timestamp;
use windlass_store::Memory;
use windlass_store::account::{LedgerQuery, Posting};
use windlass_store::commit::{Commit, JobChange, RunChange};
use windlass_store::job::{JobOrigin, JobQuery};
use windlass_store::run::{Journal, RunQuery, RunRef, RunStatus, Since};

use windlass_conformance::fixture::{origin, projection, publication};

fn id<I: std::str::FromStr<Err: std::fmt::Debug>>(prefix: &str, n: u64) -> I {
    format!("{prefix}_{n:032x}").parse().unwrap()
}

pub(crate) fn run() -> RunId {
    id("run", 1)
}

pub(crate) fn publish(store: &Memory) {
    store.publish_now(&Project::DEFAULT, publication(1, "flow")).unwrap();
}

pub(crate) fn len(store: &Memory) -> u64 {
    store.run_now(&Project::DEFAULT, RunRef::Id(run())).unwrap().map_or(0, |row| row.len.0)
}

pub(crate) fn entry(command: u64, expected_len: u64) -> Commit {
    run_entry(command, run(), expected_len)
}

fn run_entry(command: u64, run: RunId, expected_len: u64) -> Commit {
    let (command, now) = (id("cmd", command), Timestamp(1));
    let message = expected_len.to_string();
    let events = vec![Event::Logged { level: Level::Info, node: None, message }];
    Commit {
        run: Some(RunChange {
            run,
            expected_len: Seq(expected_len),
            create: (expected_len == 0).then(|| origin(now)),
            entry: Entry::new(now, command, events),
            projection: projection(RunStatus::Running, now),
            snapshot: None,
            reopened: None,
        }),
        ..Commit::new(&Project::DEFAULT, command, now)
    }
}

/// A random commit; the ranges of its numbers are small, so that commits conflict often.
#[derive(Debug, Clone)]
struct RandomRequest {
    command: u64,
    run: Option<(u64, u64)>,
    job: Option<(u64, u8, JobAsk)>,
    movements: Vec<(bool, Movement)>,
}

#[derive(Debug, Clone)]
enum JobAsk {
    Create,
    Claim,
    Finish,
    Cancel,
    Stale,
}

fn movement() -> impl Strategy<Value = Movement> {
    let key = (0u8..4).prop_map(|n| format!("charge:call/{n}"));
    prop_oneof![
        key.clone().prop_map(|key| Movement::charge(key, Amount(30))),
        key.clone().prop_map(|key| Movement::settle(&key, Amount(30), Amount(10))),
        key.prop_map(|key| Movement::refund(&key, Amount(30))),
        (0u8..6, 1i64..60).prop_map(|(n, amount)| Movement::deposit(&n.to_string(), Amount(amount))),
    ]
}

fn ask() -> impl Strategy<Value = RandomRequest> {
    let job = prop_oneof![
        3 => Just(JobAsk::Create),
        1 => Just(JobAsk::Claim),
        1 => Just(JobAsk::Finish),
        1 => Just(JobAsk::Cancel),
        1 => Just(JobAsk::Stale),
    ];
    (
        0u64..60,
        prop::option::of((1u64..4, 0u64..6)),
        prop::option::of((1u64..6, 0u8..3, job)),
        prop::collection::vec((any::<bool>(), movement()), 0..3),
    )
        .prop_map(|(command, run, job, movements)| RandomRequest { command, run, job, movements })
}

fn job_change(store: &Memory, n: u64, key: u8, ask: &JobAsk) -> Option<JobChange> {
    let job: JobId = id("job", n);
    let now = Timestamp(1);
    let row = store.job_now(&Project::DEFAULT, job).unwrap();
    let (input, rev) = match (ask, &row) {
        (JobAsk::Create, _) => {
            let dedup_key = if key == 0 { String::new() } else { key.to_string() };
            let (job, _) = Job::create(job, JobSpec { dedup_key, ..JobSpec::new("a", "q") }, now).unwrap();
            return Some(JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() });
        }
        (_, None) => return None,
        (JobAsk::Claim, Some(row)) => (JobInput::Claim { worker: "w".to_owned(), lease_ms: 0 }, row.rev),
        (JobAsk::Finish, Some(row)) => {
            let outcome = windlass_engine::job::JobOutcome::Done {
                result: RawJson::from(serde_json::Value::from(key)),
            };
            (JobInput::Finish { fence: row.job.fence, outcome }, row.rev)
        }
        (JobAsk::Cancel, Some(row)) => (JobInput::Cancel, row.rev),
        (JobAsk::Stale, Some(row)) => (JobInput::Cancel, row.rev.next()),
    };
    let mut job = row?.job;
    let events = job.decide(input, now).unwrap_or_default();
    events.iter().for_each(|event| job.apply(event, now));
    Some(JobChange { expected_rev: rev, job, origin: JobOrigin::default() })
}

fn commit_of(store: &Memory, ask: &RandomRequest) -> Commit {
    let mut commit = match ask.run {
        Some((run, len)) => run_entry(ask.command, id("run", run), len),
        None => Commit::new(&Project::DEFAULT, id("cmd", ask.command), Timestamp(1)),
    };
    commit.jobs.extend(ask.job.as_ref().and_then(|(n, key, ask)| job_change(store, *n, *key, ask)));
    commit.postings = ask
        .movements
        .iter()
        .map(|(first, movement)| Posting {
            account: if *first { "a" } else { "b" }.to_owned(),
            movement: movement.clone(),
        })
        .collect();
    commit
}

/// Everything that a commit can change.
fn dump(store: &Memory) -> impl PartialEq + std::fmt::Debug + use<> {
    let runs = store.runs_now(&Project::DEFAULT, RunQuery::default()).unwrap().items;
    let journals: Vec<Journal> = runs
        .iter()
        .map(|row| store.journal_now(&Project::DEFAULT, row.id, Since::Entry(Seq::ZERO), 1_000).unwrap())
        .collect();
    let jobs = store.jobs_now(&Project::DEFAULT, JobQuery::default()).unwrap().items;
    let ledger = |account: &str| {
        store
            .ledger_now(
                &Project::DEFAULT,
                LedgerQuery { account: account.to_owned(), limit: 1_000, ..Default::default() },
            )
            .unwrap()
    };
    let accounts = store.accounts_now(&Project::DEFAULT).unwrap();
    (runs, journals, jobs, ledger("a"), ledger("b"), accounts)
}

fn check_books(store: &Memory) -> Result<(), TestCaseError> {
    for account in store.accounts_now(&Project::DEFAULT).unwrap() {
        let query = LedgerQuery { account: account.id.clone(), limit: 1_000, ..Default::default() };
        let rows = store.ledger_now(&Project::DEFAULT, query).unwrap();
        prop_assert_eq!(rows.iter().map(|row| row.posting.movement.amount.0).sum::<i64>(), account.balance.0);
        prop_assert_eq!(rows.iter().map(|row| row.posting.movement.held.0).sum::<i64>(), account.held.0);
        prop_assert_eq!(rows.last().map_or(0, |row| row.balance_after.0), account.balance.0);
        prop_assert_eq!(rows.len() as u64, account.revision.0);
        prop_assert!(account.balance >= Amount::ZERO && account.held >= Amount::ZERO);
        let keys: BTreeSet<&String> = rows.iter().map(|row| &row.posting.movement.key).collect();
        prop_assert_eq!(keys.len(), rows.len());
    }
    Ok(())
}

fn check_jobs(store: &Memory) -> Result<(), TestCaseError> {
    let mut active = BTreeSet::new();
    for row in store.jobs_now(&Project::DEFAULT, JobQuery::default()).unwrap().items {
        let key = row.job.spec.dedup_key.clone();
        if row.job.is_open() && !key.is_empty() {
            prop_assert!(active.insert(key), "two open jobs share a key");
        }
    }
    Ok(())
}

fn check_runs(store: &Memory) -> Result<(), TestCaseError> {
    for row in store.runs_now(&Project::DEFAULT, RunQuery::default()).unwrap().items {
        let journal = store.journal_now(&Project::DEFAULT, row.id, Since::Entry(Seq::ZERO), 1_000).unwrap();
        prop_assert_eq!(journal.entries.len() as u64, row.len.0);
        for ((seq, entry), n) in journal.entries.iter().zip((1..).map(Seq)) {
            prop_assert_eq!(*seq, n);
            let committed = store.command_now(&Project::DEFAULT, entry.command).unwrap();
            prop_assert_eq!(committed.and_then(|committed| committed.run), Some((row.id, n)));
        }
    }
    Ok(())
}

proptest! {
    #[test]
    fn any_sequence_of_commits_leaves_books_journals_and_keys_in_order(
        asks in prop::collection::vec(ask(), 0..120),
    ) {
        let store = Memory::new();
        publish(&store);
        for account in ["a", "b"] {
            let (id, name) = (account.to_owned(), String::new());
            store.open_account_now(&Project::DEFAULT, &id, &name, Timestamp(0)).unwrap();
        }
        for ask in asks {
            let commit = commit_of(&store, &ask);
            let before = dump(&store);
            let known = store.command_now(&Project::DEFAULT, commit.command).unwrap();
            match (store.commit_now(vec![commit.clone()]).remove(0), known) {
                (Ok(committed), Some(known)) => {
                    prop_assert_eq!(committed, known);
                    prop_assert!(dump(&store) == before, "a command that was known wrote something");
                }
                (Ok(committed), None) => {
                    let after = dump(&store);
                    prop_assert_eq!(store.commit_now(vec![commit]).remove(0).unwrap(), committed);
                    prop_assert!(dump(&store) == after, "the second time wrote something");
                }
                (Err(_), known) => {
                    prop_assert_eq!(known, None);
                    prop_assert!(dump(&store) == before, "a refused commit wrote something");
                }
            }
            check_books(&store)?;
        }
        check_runs(&store)?;
        check_jobs(&store)?;
    }
}
