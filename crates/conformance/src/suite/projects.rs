//! Projects: rows of one are unknown to the verbs of another, and both may use the same names.

use serde_json::json;
use windlass_engine::counter::{Fence, Revision, Seq};
use windlass_engine::job::JobSpec;
use windlass_engine::money::{Amount, Movement, Price};
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_store::account::{LedgerQuery, PriceRow};
use windlass_store::audit::{AuditHead, AuditQuery, AuditRow};
use windlass_store::commit::{Commit, ScheduleChange, Unmoved};
use windlass_store::flow::{FlowChoice, FlowQuery, FlowRef, Publication, VersionRef};
use windlass_store::job::{JobQuery, KeyQuery, OutlineQuery, ReadyQuery};
use windlass_store::log::{LogRow, LogsOf};
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::page::{NameRange, Part};
use windlass_store::queue::{QueueLimits, QueueSettings, Spent};
use windlass_store::run::{Origin, Request, RunProjection, RunQuery, RunRef, RunStatus, Since};
use windlass_store::service::{ServiceRow, ServiceSettings};
use windlass_store::worker::{WorkerBeat, WorkerQuery, WorkerRow};
use windlass_store::{Refusal, Store};

use crate::fixture::{
    FLOW, StoreFixture, VERSION, at, flow_draft, flow_id, job_id, movement, run_id, schedule_id,
    schedule_row, version_draft, version_id,
};

fn other() -> Project {
    Project::new("other").unwrap()
}

fn price(unit_price: i64) -> PriceRow {
    let price = Price { unit_price: Amount(unit_price), min_unit: 1, units: json!(1), actual_units: None };
    PriceRow { service: "sum".to_owned(), price, updated_at: at(1) }
}

fn service(recheck_ms: u64) -> ServiceRow {
    let settings = ServiceSettings { recheck_ms: Some(recheck_ms), ..ServiceSettings::default() };
    ServiceRow { name: "sum".to_owned(), settings, updated_at: at(1) }
}

fn worker(url: &str) -> WorkerRow {
    WorkerRow {
        id: "w".to_owned(),
        name: "w".to_owned(),
        url: url.to_owned(),
        kind: "http".to_owned(),
        services: vec!["sum".to_owned()],
        queues: Vec::new(),
        load: 0,
        capacity: 4,
        is_draining: false,
        peer: String::new(),
        replaced: Vec::new(),
        secret: None,
        registered_at: at(1),
        beat_at: at(1),
    }
}

fn queue(is_paused: bool) -> QueueSettings {
    let limits = QueueLimits::default();
    QueueSettings { name: "q".to_owned(), is_paused, limits, updated_at: at(1) }
}

fn spent() -> Vec<Spent> {
    vec![Spent { queue: "q".to_owned(), limit_key: "k".to_owned(), full_at: at(50) }]
}

fn dedup_spec() -> JobSpec {
    JobSpec { dedup_key: "once".to_owned(), ..JobSpec::new("demo", "q") }
}

fn message() -> Message {
    let party = || Party::Account("payer".to_owned());
    Message { id: MessageId::new(party(), Seq(1)), to: party(), at: at(1), note: Note::BalanceChanged }
}

fn audit_row() -> AuditRow {
    AuditRow {
        at: at(1),
        who: "me".to_owned(),
        what: "run.start".to_owned(),
        subject: "it".to_owned(),
        detail: json!({}),
    }
}

fn requested(origin: &mut Origin, projection: &mut RunProjection) {
    origin.request = Some(Request::new("req", &json!(1)));
    origin.account = Some("payer".to_owned());
    (projection.needs, projection.wake_at) = (Some(Amount(5)), Some(at(3)));
}

/// Rows of every kind in the default project.
async fn fill(store: &dyn Store) -> StoreFixture<'_> {
    let fixture = StoreFixture::new(store).await;
    fixture.account("payer", 100).await;
    fixture.create(1, RunStatus::Waiting, at(1), requested).await.unwrap();
    let mut commit = fixture.job(1, dedup_spec(), at(1));
    commit.messages = vec![message()];
    commit.audit = vec![audit_row()];
    commit.schedules = vec![ScheduleChange {
        expected_rev: Revision(0),
        row: schedule_row(1, Some(at(3)), at(1)),
        delete: false,
    }];
    let node = NodePath::from("a");
    commit.logs = vec![LogRow {
        run: run_id(1),
        entry: Seq(1),
        fence: Fence(1),
        node,
        at: at(1),
        text: "hello".to_owned(),
        lines: Vec::new(),
    }];
    fixture.commit(commit).await.unwrap();
    let project = &Project::DEFAULT;
    store.set_price(project, price(1)).await.unwrap();
    store.save_service(project, service(1_000)).await.unwrap();
    store.save_worker(project, worker("one")).await.unwrap();
    store.save_queue(project, queue(true)).await.unwrap();
    store.save_spent(project, spent(), at(1)).await.unwrap();
    fixture
}

pub async fn rows_of_another_project_are_unknown(store: &dyn Store) {
    let fixture = fill(store).await;
    let command = fixture.entry(1, 1, RunStatus::Waiting, at(2));
    let id = command.command;
    fixture.commit(command).await.unwrap();
    let other = &other();
    assert!(store.flows(other, FlowQuery::default()).await.unwrap().items.is_empty());
    assert!(store.flow(other, FlowRef::Id(flow_id(FLOW))).await.unwrap().is_none());
    assert!(store.version(other, VersionRef::Id(version_id(VERSION))).await.unwrap().is_none());
    let latest = VersionRef::Latest { flow: flow_id(FLOW) };
    assert!(store.version(other, latest).await.unwrap().is_none());
    assert!(store.versions(other, flow_id(FLOW)).await.unwrap().is_empty());
    assert!(store.command(other, id).await.unwrap().is_none());
    let journal = store.journal(other, run_id(1), Since::Snapshot, 10).await.unwrap();
    assert!(journal.entries.is_empty() && journal.snapshot.is_none());
    assert!(store.run(other, RunRef::Id(run_id(1))).await.unwrap().is_none());
    assert!(store.run(other, RunRef::Request("req".to_owned())).await.unwrap().is_none());
    assert!(store.runs(other, RunQuery::default()).await.unwrap().items.is_empty());
    assert!(store.logs(other, run_id(1), LogsOf::Attempt(Fence(1))).await.unwrap().is_empty());
    assert!(store.schedules(other, Part::default()).await.unwrap().items.is_empty());
    assert!(store.schedule(other, schedule_id(1)).await.unwrap().is_none());
    assert!(store.audit(other, AuditQuery::default()).await.unwrap().is_empty());
    assert_eq!(store.audit_head(other).await.unwrap(), AuditHead::EMPTY);
    assert_eq!(store.audit(&Project::DEFAULT, AuditQuery::default()).await.unwrap().len(), 1);
    assert_eq!(store.logs(&Project::DEFAULT, run_id(1), LogsOf::Attempt(Fence(1))).await.unwrap().len(), 1);
}

pub async fn jobs_and_queues_of_another_project_are_unknown(store: &dyn Store) {
    fill(store).await;
    let other = &other();
    assert!(store.job(other, job_id(1)).await.unwrap().is_none());
    assert!(store.jobs(other, JobQuery::default()).await.unwrap().items.is_empty());
    assert!(store.attempts(other, job_id(1), 0, 10).await.unwrap().is_empty());
    // The queue is paused in one project and unknown in the other.
    store.save_queue(&Project::DEFAULT, queue(false)).await.unwrap();
    let ready = |ids| ReadyQuery {
        queues: vec!["q".to_owned()],
        ids,
        now: at(9),
        limit: 10,
        ..ReadyQuery::default()
    };
    for ids in [Vec::new(), vec![job_id(1)]] {
        assert_eq!(store.ready(&Project::DEFAULT, ready(ids.clone())).await.unwrap().len(), 1);
        assert!(store.ready(other, ready(ids.clone())).await.unwrap().is_empty());
        assert!(store.ready_cursors(other, ready(ids)).await.unwrap().is_empty());
    }
    let outlines = async |project: &Project| {
        store.job_outlines(project, OutlineQuery::Ids(vec![job_id(1)])).await.unwrap().len()
    };
    assert_eq!((outlines(&Project::DEFAULT).await, outlines(other).await), (1, 0));
    let keys = KeyQuery { queue: "q".to_owned(), now: at(9), limit: 10, ..KeyQuery::default() };
    assert!(store.ready_by_key(other, keys).await.unwrap().turns.is_empty());
    assert!(store.queues(other, NameRange::All, at(9)).await.unwrap().is_empty());
    assert!(store.spent(other).await.unwrap().is_empty());
    assert!(store.held(other, "q".to_owned()).await.unwrap().spent.is_empty());
    assert!(store.dead_letter_groups(other, "q".to_owned()).await.unwrap().is_empty());
    assert!(store.workers(other, WorkerQuery::default()).await.unwrap().is_empty());
    assert!(store.drain_worker(other, "w", true).await.is_err());
    let beat = WorkerBeat { id: "w".to_owned(), url: None, load: None, at: at(2) };
    assert!(store.beat_worker(other, beat).await.is_err());
    assert!(store.services(other, NameRange::All).await.unwrap().is_empty());
    assert!(store.prices(other).await.unwrap().is_empty());
}

pub async fn money_of_another_project_is_unknown(store: &dyn Store) {
    let fixture = fill(store).await;
    let other = &other();
    assert!(store.account(other, "payer").await.unwrap().is_none());
    assert!(store.accounts(other).await.unwrap().is_empty());
    assert!(store.accounts_after(other, None, 10).await.unwrap().is_empty());
    assert!(store.accounts_with_waiters(other, None).await.unwrap().is_empty());
    assert!(store.accounts_with_waiters(other, Some("payer".to_owned())).await.unwrap().is_empty());
    assert!(store.balance_waiters(other, "payer".to_owned(), Amount(1_000), 10).await.unwrap().is_empty());
    assert_eq!(
        store.balance_waiters(&Project::DEFAULT, "payer".to_owned(), Amount(1_000), 10).await.unwrap().len(),
        1
    );
    let ledger = |key| LedgerQuery { account: "payer".to_owned(), key, ..LedgerQuery::default() };
    assert!(store.ledger(other, ledger(None)).await.unwrap().is_empty());
    assert!(store.ledger(other, ledger(Some("deposit:first".to_owned()))).await.unwrap().is_empty());
    assert!(store.outbox_to(other, Party::Account("payer".to_owned())).await.unwrap().is_empty());
    let commit = || Commit::new(other, fixture.command(), at(3));
    let postings = vec![movement("payer", Movement::deposit("second", Amount(5)))];
    let refused = fixture.commit(Commit { postings, ..commit() }).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownAccount("payer".to_owned())));
    let unmoved = vec![Unmoved { account: "payer".to_owned(), revision: Revision(1) }];
    assert!(fixture.commit(Commit { unmoved, ..commit() }).await.is_err());
    let delivered = vec![message().id];
    let refused = fixture.commit(Commit { delivered, ..commit() }).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownMessage(message().id)));
    assert_eq!(fixture.balance("payer").await, (100, 0));
}

pub async fn a_commit_changes_no_row_of_another_project(store: &dyn Store) {
    let fixture = fill(store).await;
    let of_other = |commit: Commit| Commit { project: other(), ..commit };
    let entry = of_other(fixture.entry(1, 1, RunStatus::Running, at(2)));
    assert!(fixture.commit(entry).await.unwrap_err().is_conflict());
    let job = fixture.change(1, windlass_engine::job::JobInput::Cancel, at(2)).await;
    let cancel = Commit { jobs: vec![job], ..Commit::new(&other(), fixture.command(), at(2)) };
    assert!(fixture.commit(cancel).await.unwrap_err().is_conflict());
    let row = schedule_row(1, Some(at(9)), at(2));
    let schedules = vec![ScheduleChange { expected_rev: Revision(1), row, delete: true }];
    let delete = Commit { schedules, ..Commit::new(&other(), fixture.command(), at(2)) };
    assert!(fixture.commit(delete).await.unwrap_err().is_conflict());
    // A run of a version of another project.
    let refused = fixture.commit(of_other(fixture.entry(2, 0, RunStatus::Running, at(2)))).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownVersion(version_id(VERSION))));
    store.delete_price(&other(), "sum").await.unwrap();
    assert_eq!(store.prices(&Project::DEFAULT).await.unwrap(), [price(1)]);
    assert_eq!(fixture.run(1).await.unwrap().len, Seq(1));
    assert!(store.job(&Project::DEFAULT, job_id(1)).await.unwrap().unwrap().job.is_open());
    assert_eq!(store.schedules(&Project::DEFAULT, Part::default()).await.unwrap().items.len(), 1);
}

pub async fn two_projects_use_the_same_names(store: &dyn Store) {
    let fixture = fill(store).await;
    let other = &other();
    let (flow, version) = (FlowChoice::Create(flow_draft(7, "first")), Some(version_draft(7)));
    store.publish(other, Publication { flow, version, now: at(2) }).await.unwrap();
    store.open_account(other, "payer", "another name", at(2)).await.unwrap();
    let mut commit = fixture.entry(2, 0, RunStatus::Waiting, at(2));
    let change = commit.run.as_mut().unwrap();
    let origin = change.create.as_mut().unwrap();
    requested(origin, &mut change.projection);
    (origin.flow, origin.version) = (flow_id(7), version_id(7));
    commit.project = other.clone();
    commit.postings = vec![movement("payer", Movement::deposit("first", Amount(7)))];
    commit.jobs = fixture.job(2, dedup_spec(), at(2)).jobs;
    commit.messages = vec![message()];
    commit.audit = vec![audit_row()];
    fixture.commit(commit).await.unwrap();
    store.set_price(other, price(2)).await.unwrap();
    store.save_service(other, service(2_000)).await.unwrap();
    store.save_worker(other, worker("two")).await.unwrap();
    store.save_queue(other, queue(false)).await.unwrap();
    for (project, run, job, balance, n) in [(&Project::DEFAULT, 1, 1, 100, 1), (other, 2, 2, 7, 2)] {
        let found = store.run(project, RunRef::Request("req".to_owned())).await.unwrap().unwrap();
        assert_eq!((found.id, &found.project), (run_id(run), project));
        let jobs = store.jobs(project, JobQuery::default()).await.unwrap().items;
        assert_eq!(jobs.iter().map(|row| row.id()).collect::<Vec<_>>(), [job_id(job)]);
        assert_eq!(store.account(project, "payer").await.unwrap().unwrap().balance, Amount(balance));
        assert_eq!(store.prices(project).await.unwrap(), [price(n)]);
        assert_eq!(store.workers(project, WorkerQuery::default()).await.unwrap().len(), 1);
        let depth = &store.queues(project, NameRange::All, at(9)).await.unwrap()[0];
        assert_eq!((depth.is_paused, depth.open.values().sum::<u64>()), (n == 1, 1));
        let lines = store.audit(project, AuditQuery::default()).await.unwrap();
        assert_eq!(lines.iter().map(|line| line.seq.0).collect::<Vec<_>>(), [1]);
    }
    // The verbs of the whole store name the project of each row.
    let due = store.due(at(9), 10).await.unwrap();
    let runs: Vec<_> = due.runs.iter().map(|wake| (wake.project.clone(), wake.id)).collect();
    assert_eq!(runs, [(Project::DEFAULT, run_id(1)), (other.clone(), run_id(2))]);
    let messages = store.outbox(at(9), None, 10).await.unwrap();
    assert_eq!(messages.iter().map(|row| &row.project).collect::<Vec<_>>(), [&Project::DEFAULT, other]);
}
