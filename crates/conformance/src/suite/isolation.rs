//! Projects: rows of one are neither seen nor changed from another.

use serde_json::json;
use uuid::Uuid;
use windlass_engine::counter::{Fence, Revision, Seq};
use windlass_engine::event::{Event, Level};
use windlass_engine::id::CommandId;
use windlass_engine::job::{Job, JobInput, JobOutcome, JobSpec};
use windlass_engine::journal::Entry;
use windlass_engine::money::{Amount, Movement, Price};
use windlass_engine::path::NodePath;
use windlass_engine::project::Project;
use windlass_engine::retry::{Fault, FaultKind};
use windlass_engine::schedule::Firing;
use windlass_store::account::{LedgerQuery, PriceRow};
use windlass_store::audit::{AuditQuery, AuditRow};
use windlass_store::commit::{Commit, JobChange, QueueGuard, RunChange, ScheduleChange, Unmoved};
use windlass_store::flow::{FlowChoice, FlowQuery, FlowRef, Publication, VersionRef};
use windlass_store::job::{JobOrigin, JobQuery, KeyQuery, OutlineQuery, ReadyQuery};
use windlass_store::log::{LogRow, LogsOf};
use windlass_store::outbox::{Message, MessageId, Note, Party};
use windlass_store::page::{NameRange, Part};
use windlass_store::queue::{QueueLimits, QueueSettings, Spent};
use windlass_store::run::{Origin, Request, RunGroup, RunProjection, RunQuery, RunRef, RunStatus, Since};
use windlass_store::schedule::{FiringRow, Started};
use windlass_store::service::{ServiceRow, ServiceSettings};
use windlass_store::worker::{WorkerBeat, WorkerQuery, WorkerRow};
use windlass_store::{Refusal, Store, StoreError};

use crate::fixture::{
    at, flow_draft, flow_id, job_id, movement, origin, projection, run_id, schedule_id, schedule_row,
    version_draft, version_id,
};

/// A project whose rows have their own ids, and the same names as the rows of all other projects.
struct Tenant<'s> {
    store: &'s dyn Store,
    project: Project,
    /// The first number of its ids.
    first: u64,
}

fn tenants(store: &dyn Store) -> (Tenant<'_>, Tenant<'_>) {
    let other = Project::new("other").unwrap();
    (Tenant { store, project: Project::DEFAULT, first: 10 }, Tenant { store, project: other, first: 20 })
}

fn job_of(n: u64, key: &str, inputs: Vec<JobInput>) -> Job {
    let spec = JobSpec { dedup_key: key.to_owned(), max_retries: 1, ..JobSpec::new("demo", "q") };
    let (mut job, _) = Job::create(job_id(n), spec, at(5)).unwrap();
    for input in inputs {
        let events = job.decide(input, at(6)).unwrap();
        events.iter().for_each(|event| job.apply(event, at(6)));
    }
    job
}

fn created(job: Job) -> JobChange {
    JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() }
}

impl Tenant<'_> {
    fn command(&self, n: u64) -> CommandId {
        CommandId::new(Uuid::from_u128(u128::from(self.first * 1_000 + n)))
    }

    fn commit(&self, n: u64) -> Commit {
        Commit::new(&self.project, self.command(n), at(5))
    }

    fn entry(&self, n: u64, run: u64, expected_len: u64) -> Commit {
        let event = Event::Logged { level: Level::Info, node: None, message: "here".to_owned() };
        let origin = Origin {
            flow: flow_id(self.first),
            version: version_id(self.first),
            request: Some(Request::new("request", &json!(null))),
            account: Some("payer".to_owned()),
            ..origin(at(5))
        };
        let change = RunChange {
            run: run_id(run),
            expected_len: Seq(expected_len),
            create: (expected_len == 0).then_some(origin),
            entry: Entry::new(at(5), self.command(n), vec![event]),
            projection: RunProjection {
                wake_at: Some(at(7)),
                needs: Some(Amount(3)),
                ..projection(RunStatus::Waiting, at(5))
            },
            snapshot: Some(vec![1, 2, 3]),
            reopened: None,
        };
        Commit { run: Some(change), ..self.commit(n) }
    }

    async fn write(&self, commit: Commit) -> Result<(), StoreError> {
        self.store.commit_one(commit).await.map(drop)
    }

    /// Writes a row into every table, under names that all projects use.
    async fn fill(&self) {
        let (store, project, n) = (self.store, &self.project, self.first);
        let (flow, version) = (FlowChoice::Create(flow_draft(n, "flow")), Some(version_draft(n)));
        store.publish(project, Publication { flow, version, now: at(1) }).await.unwrap();
        store.open_account(project, "payer", &format!("payer of {project}"), at(1)).await.unwrap();
        let units = json!(1);
        let price = Price { unit_price: Amount(3), min_unit: 1, units, actual_units: None };
        let price = PriceRow { service: "demo".to_owned(), price, updated_at: at(1) };
        store.set_price(project, price).await.unwrap();
        store.create_api_key(project, super::api_keys::key_row(n)).await.unwrap();
        let settings = ServiceSettings { recheck_ms: Some(9), ..ServiceSettings::default() };
        let service = ServiceRow { name: "demo".to_owned(), settings, updated_at: at(1) };
        store.save_service(project, service).await.unwrap();
        store.save_queue(project, self.queue(false)).await.unwrap();
        store.save_spent(project, vec![self.spent(100)], at(1)).await.unwrap();
        store.save_worker(project, worker()).await.unwrap();
        self.write(self.everything()).await.unwrap();
        let fault = Fault::new(FaultKind::Error, "it broke");
        let dead = JobOutcome::Failed { fault, retry_after_ms: None };
        let claim = || JobInput::Claim { worker: "w".to_owned(), lease_ms: 1_000 };
        let jobs = vec![
            created(job_of(n + 1, "", vec![claim()])),
            created(job_of(n + 2, "", vec![claim(), JobInput::Finish { fence: Fence(1), outcome: dead }])),
        ];
        self.write(Commit { jobs, ..self.commit(2) }).await.unwrap();
    }

    /// A commit with all parts.
    fn everything(&self) -> Commit {
        let n = self.first;
        let sender = MessageId::new(Party::Account("payer".to_owned()), Seq(1));
        let to = Party::Account("payer".to_owned());
        let firing = Firing { schedule: schedule_id(n), slot: at(5), manual: false };
        Commit {
            jobs: vec![created(job_of(n, "key", Vec::new()))],
            turns: vec![QueueGuard { queue: "q".to_owned(), expected: 0, spent: Vec::new() }],
            postings: vec![movement("payer", Movement::deposit("deposit", Amount(50)))],
            messages: vec![Message { id: sender, to, at: at(5), note: Note::BalanceChanged }],
            schedules: vec![ScheduleChange {
                expected_rev: Revision(0),
                row: schedule_row(n, Some(at(9)), at(5)),
                delete: false,
            }],
            firings: vec![FiringRow { firing, started: Started::Job(job_id(n)) }],
            audit: vec![AuditRow {
                at: at(5),
                who: "me".to_owned(),
                what: "run.create".to_owned(),
                subject: "subject".to_owned(),
                detail: json!(null),
            }],
            logs: vec![self.log(n)],
            ..self.entry(1, n, 0)
        }
    }

    fn log(&self, run: u64) -> LogRow {
        LogRow {
            run: run_id(run),
            entry: Seq(1),
            fence: Fence(self.first),
            node: NodePath::from("a"),
            at: at(5),
            text: "a line".to_owned(),
            lines: Vec::new(),
        }
    }

    fn queue(&self, is_paused: bool) -> QueueSettings {
        let limits = QueueLimits::default();
        QueueSettings { name: "q".to_owned(), is_paused, limits, updated_at: at(1) }
    }

    fn spent(&self, ms: i64) -> Spent {
        Spent { queue: "q".to_owned(), limit_key: String::new(), full_at: at(ms) }
    }

    /// The answers of every verb that reads rows of a project, about these ids.
    async fn answers(&self, ids: u64) -> Vec<String> {
        let (store, project) = (self.store, &self.project);
        let mut answers = Vec::new();
        macro_rules! ask {
            ($($verb:ident($($arg:expr),*);)*) => {
                $(
                    let answer = store.$verb(project $(, $arg)*).await.unwrap();
                    answers.push(format!("{}: {answer:?}", stringify!($verb)));
                )*
            };
        }
        let at_hand = ReadyQuery { now: at(99), limit: 9, ..ReadyQuery::default() };
        let ready = ReadyQuery { queues: vec!["q".to_owned()], ..at_hand.clone() };
        let by_service = ReadyQuery { services: vec!["demo".to_owned()], ..at_hand.clone() };
        let by_id = ReadyQuery { ids: vec![job_id(ids)], ..at_hand };
        ask! {
            flows(FlowQuery::default());
            flow(FlowRef::Id(flow_id(ids)));
            flow(FlowRef::Name("flow".to_owned()));
            version(VersionRef::Id(version_id(ids)));
            version(VersionRef::Latest { flow: flow_id(ids) });
            version(VersionRef::Number { flow: flow_id(ids), number: 1 });
            versions(flow_id(ids));
            command(CommandId::new(Uuid::from_u128(u128::from(ids * 1_000 + 1))));
            command(CommandId::new(Uuid::from_u128(u128::from(ids * 1_000 + 2))));
            journal(run_id(ids), Since::Entry(Seq::ZERO), 9);
            journal(run_id(ids), Since::Snapshot, 9);
            run(RunRef::Id(run_id(ids)));
            run(RunRef::Request("request".to_owned()));
            runs(RunQuery::default());
            count_runs(RunGroup::Open, 9);
            count_runs(RunGroup::OpenOfFlow(flow_id(ids)), 9);
            job(job_id(ids));
            jobs(JobQuery::default());
            attempts(job_id(ids), 0, 9);
            attempts(job_id(ids + 1), 0, 9);
            ready(ready.clone());
            ready(by_service);
            ready(by_id);
            ready_cursors(ready);
            ready_by_key(KeyQuery { queue: "q".to_owned(), now: at(99), limit: 9, ..KeyQuery::default() });
            job_outlines(OutlineQuery::Ids(vec![job_id(ids)]));
            job_outlines(OutlineQuery::Delayed { queue: "q".to_owned(), now: at(0), limit: 9 });
            job_outlines(OutlineQuery::DeadLetters { queue: "q".to_owned(), limit: 9 });
            outbox_to(Party::Account("payer".to_owned()));
            ledger(LedgerQuery { account: "payer".to_owned(), ..LedgerQuery::default() });
            account("payer");
            accounts();
            accounts_after(None, 9);
            accounts_with_waiters(None);
            accounts_with_waiters(Some("payer".to_owned()));
            balance_waiters("payer".to_owned(), Amount(100), 9);
            prices();
            api_keys(None, 9);
            services(NameRange::All);
            live_services(at(0), NameRange::All);
            queues(NameRange::All, at(99));
            held("q".to_owned());
            spent();
            dead_letter_groups("q".to_owned());
            schedules(Part::default());
            schedule(schedule_id(ids));
            audit(AuditQuery::default());
            audit_head();
            logs(run_id(ids), LogsOf::Attempt(Fence(ids)));
            logs(run_id(ids), LogsOf::After { entry: Seq::ZERO, fence: Fence(0) });
            workers(WorkerQuery::default());
        }
        answers
    }
}

fn worker() -> WorkerRow {
    WorkerRow {
        id: "w".to_owned(),
        name: "w".to_owned(),
        url: String::new(),
        kind: "async".to_owned(),
        services: vec!["demo".to_owned()],
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

pub async fn rows_of_another_project_are_not_seen(store: &dyn Store) {
    let (one, other) = tenants(store);
    let before = other.answers(one.first).await;
    one.fill().await;
    assert_eq!(other.answers(one.first).await, before);
}

pub async fn names_are_unique_in_their_project_only(store: &dyn Store) {
    let (one, other) = tenants(store);
    one.fill().await;
    let before = one.answers(one.first).await;
    other.fill().await;
    assert_eq!(one.answers(one.first).await, before);
    let (mine, theirs) = (one.answers(one.first).await.len(), other.answers(other.first).await);
    assert_eq!(mine, theirs.len());
    let account = store.account(&other.project, "payer").await.unwrap().unwrap();
    assert_eq!((account.name.as_str(), account.balance.0), ("payer of other", 50));
}

pub async fn settings_of_another_project_are_not_changed(store: &dyn Store) {
    let (one, other) = tenants(store);
    one.fill().await;
    let before = one.answers(one.first).await;
    let project = &other.project;
    store.save_queue(project, other.queue(true)).await.unwrap();
    store.save_spent(project, vec![other.spent(900)], at(800)).await.unwrap();
    store.delete_price(project, "demo").await.unwrap();
    let cleared =
        ServiceRow { name: "demo".to_owned(), settings: ServiceSettings::default(), updated_at: at(9) };
    store.save_service(project, cleared).await.unwrap();
    let unknown = Refusal::UnknownWorker("w".to_owned());
    let beat = WorkerBeat { id: "w".to_owned(), url: None, load: Some(4), at: at(9) };
    assert_eq!(store.beat_worker(project, beat).await.unwrap_err().refusal(), Some(&unknown));
    assert_eq!(store.drain_worker(project, "w", true).await.unwrap_err().refusal(), Some(&unknown));
    let version = Publication {
        flow: FlowChoice::Existing(flow_id(one.first)),
        version: Some(version_draft(77)),
        now: at(9),
    };
    let refused = store.publish(project, version).await.unwrap_err();
    assert_eq!(refused.refusal(), Some(&Refusal::UnknownFlow(flow_id(one.first))));
    assert_eq!(one.answers(one.first).await, before);
}

pub async fn a_commit_of_another_project_finds_nothing_to_change(store: &dyn Store) {
    let (one, other) = tenants(store);
    one.fill().await;
    let before = one.answers(one.first).await;
    let n = one.first;
    let claim = JobInput::Claim { worker: "v".to_owned(), lease_ms: 1_000 };
    let claimed = JobChange { expected_rev: Revision(1), ..created(job_of(n, "key", vec![claim])) };
    let schedule =
        ScheduleChange { expected_rev: Revision(1), row: schedule_row(n, None, at(5)), delete: true };
    let firing = Firing { schedule: schedule_id(n), slot: at(6), manual: false };
    let sent = MessageId::new(Party::Account("payer".to_owned()), Seq(1));
    let unmoved = Unmoved { account: "payer".to_owned(), revision: Revision(1) };
    let charge = Movement::charge("charge:x".to_owned(), Amount(1));
    let commits = [
        other.entry(1, n, 1),
        Commit { jobs: vec![claimed], ..other.commit(2) },
        Commit { postings: vec![movement("payer", charge)], ..other.commit(3) },
        Commit { unmoved: vec![unmoved], ..other.commit(4) },
        Commit { delivered: vec![sent], ..other.commit(5) },
        Commit { schedules: vec![schedule], ..other.commit(6) },
        Commit { firings: vec![FiringRow { firing, started: Started::Job(job_id(n)) }], ..other.commit(7) },
        Commit {
            turns: vec![QueueGuard { queue: "q".to_owned(), expected: 1, spent: Vec::new() }],
            ..other.commit(8)
        },
    ];
    for (nth, commit) in commits.into_iter().enumerate() {
        assert!(other.write(commit).await.is_err(), "commit {nth}");
    }
    other
        .write(Commit { logs: vec![LogRow { fence: Fence(99), ..other.log(n) }], ..other.commit(9) })
        .await
        .unwrap();
    assert_eq!(one.answers(n).await, before);
}

pub async fn wake_ups_and_messages_name_their_projects(store: &dyn Store) {
    let (one, other) = tenants(store);
    one.fill().await;
    other.fill().await;
    let due = store.due(at(9_000), 99).await.unwrap();
    let of_run = |tenant: &Tenant<'_>| {
        let wake = due.runs.iter().find(|wake| wake.id == run_id(tenant.first)).unwrap();
        wake.project.clone()
    };
    assert_eq!((of_run(&one), of_run(&other)), (one.project.clone(), other.project.clone()));
    let jobs: Vec<_> = due.jobs.iter().map(|wake| (wake.id, wake.project.as_str())).collect();
    assert_eq!(jobs.len(), 2);
    assert!(jobs.contains(&(job_id(11), "default")) && jobs.contains(&(job_id(21), "other")), "{jobs:?}");
    let schedules: Vec<_> = due.schedules.iter().map(|due| (due.row.id(), due.project.as_str())).collect();
    assert!(schedules.contains(&(schedule_id(20), "other")), "{schedules:?}");
    let mut messages = store.outbox(at(99), None, 99).await.unwrap();
    messages.sort_by(|one, other| one.project.cmp(&other.project));
    assert_eq!(messages.iter().map(|sent| sent.project.as_str()).collect::<Vec<_>>(), ["default", "other"]);
}

pub async fn a_group_may_hold_commits_of_several_projects(store: &dyn Store) {
    let (one, other) = tenants(store);
    for tenant in [&one, &other] {
        store.open_account(&tenant.project, "payer", "payer", at(1)).await.unwrap();
    }
    let deposit = |tenant: &Tenant<'_>, n: u64, amount| Commit {
        postings: vec![movement("payer", Movement::deposit(&format!("deposit {n}"), amount))],
        ..tenant.commit(n)
    };
    let commits = vec![
        deposit(&one, 1, Amount(1)),
        deposit(&other, 1, Amount(10)),
        deposit(&one, 2, Amount(100)),
        deposit(&other, 2, Amount(1_000)),
    ];
    let expected: Vec<CommandId> = commits.iter().map(|commit| commit.command).collect();
    let answers = store.commit(commits).await;
    let answered: Vec<CommandId> = answers.iter().map(|answer| answer.as_ref().unwrap().command).collect();
    assert_eq!(answered, expected);
    for (tenant, balance) in [(&one, 101), (&other, 1_010)] {
        let account = store.account(&tenant.project, "payer").await.unwrap().unwrap();
        assert_eq!(account.balance, Amount(balance));
    }
}

pub async fn retention_deletes_in_every_project(store: &dyn Store) {
    let (one, other) = tenants(store);
    for tenant in [&one, &other] {
        let (flow, version) =
            (FlowChoice::Create(flow_draft(tenant.first, "flow")), Some(version_draft(tenant.first)));
        store.publish(&tenant.project, Publication { flow, version, now: at(1) }).await.unwrap();
        let mut commit = tenant.entry(1, tenant.first, 0);
        commit.run.as_mut().unwrap().projection = projection(RunStatus::Completed, at(5));
        tenant.write(commit).await.unwrap();
    }
    assert_eq!(store.retain(at(99), 10).await.unwrap().n_runs, 2);
    for tenant in [&one, &other] {
        let run = store.run(&tenant.project, RunRef::Id(run_id(tenant.first))).await.unwrap();
        assert_eq!(run, None);
    }
}
