//! Rows for tests: ids by number, rows with default values, and commits of them. The suite uses them through
//! [`StoreFixture`]; tests of single backends use the public functions.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::str::FromStr;

use serde_json::json;
use windlass_engine::counter::{Epoch, Revision, Seq};
use windlass_engine::event::{Event, Level};
use windlass_engine::id::{CommandId, FlowId, JobId, RunId, ScheduleId, ServerId, VersionId};
use windlass_engine::job::{Job, JobInput, JobSpec};
use windlass_engine::journal::Entry;
use windlass_engine::money::{Amount, Movement};
use windlass_engine::plan::Form;
use windlass_engine::project::Project;
use windlass_engine::run::Totals;
use windlass_engine::schedule::{Cron, Progress, Schedule};
use windlass_engine::time::Timestamp;

use windlass_store::account::Posting;
use windlass_store::commit::{Commit, Committed, JobChange, RunChange};
use windlass_store::flow::{FlowChoice, FlowDraft, Publication, Published, VersionDraft, VersionStatus};
use windlass_store::job::{JobOrigin, JobRow};
use windlass_store::outbox::{Message, WaitingTree};
use windlass_store::run::{Origin, Owner, RunProjection, RunRef, RunRow, RunStatus};
use windlass_store::schedule::ScheduleRow;
use windlass_store::{Store, StoreError};

pub(crate) const FLOW: u64 = 1;
pub(crate) const VERSION: u64 = 1;

fn id<I: FromStr>(prefix: &str, n: u64) -> I
where
    I::Err: std::fmt::Debug,
{
    // The time-ordered head of a UUIDv7, so that ids derived from it stay apart.
    format!("{prefix}_0190a1b2c3d4700080000000{n:08x}").parse().unwrap()
}

pub(crate) fn flow_id(n: u64) -> FlowId {
    id("flow", n)
}

pub(crate) fn version_id(n: u64) -> VersionId {
    id("ver", n)
}

pub(crate) fn run_id(n: u64) -> RunId {
    id("run", n)
}

pub(crate) fn job_id(n: u64) -> JobId {
    id("job", n)
}

pub(crate) fn schedule_id(n: u64) -> ScheduleId {
    id("sched", n)
}

/// Messages that were not delivered, also those that create child runs; all are of the default project.
pub(crate) async fn undelivered(store: &dyn Store, now: Timestamp, limit: usize) -> Vec<Message> {
    let rows = store.outbox(now, None, limit).await.unwrap();
    assert!(rows.iter().all(|row| row.project == Project::DEFAULT));
    let mut messages: Vec<Message> = rows.into_iter().map(|row| row.message).collect();
    for WaitingTree { project, root } in store.waiting_trees(None, limit).await.unwrap() {
        let children = store.waiting_children(&project, root, limit).await.unwrap();
        messages.extend(children.into_iter().filter(|message| message.at <= now));
    }
    messages.sort_by(|one, other| (one.at, &one.id).cmp(&(other.at, &other.id)));
    messages.truncate(limit);
    messages
}

pub(crate) fn server(n: u64, epoch: u64) -> Owner {
    Owner { server: id::<ServerId>("srv", n), epoch: Epoch(epoch) }
}

pub(crate) fn at(ms: i64) -> Timestamp {
    Timestamp(ms)
}

pub(crate) fn flow_draft(n: u64, name: &str) -> FlowDraft {
    FlowDraft {
        id: flow_id(n),
        name: name.to_owned(),
        description: format!("What {name} does"),
        labels: BTreeMap::new(),
        is_template: false,
        allow_same_name: false,
    }
}

pub(crate) fn version_draft(n: u64) -> VersionDraft {
    VersionDraft {
        id: version_id(n),
        number: None,
        definition: r#"{"start": "a", "nodes": {"a": {"service": "s"}}}"#.to_owned(),
        plan: None,
        form: Form::Graph,
        lenient: false,
        status: VersionStatus::Published,
        note: String::new(),
    }
}

/// A publication of a flow with one version.
pub fn publication(n: u64, name: &str) -> Publication {
    let flow = FlowChoice::Create(flow_draft(n, name));
    Publication { flow, version: Some(version_draft(n)), now: at(0) }
}

/// The origin of a run of flow 1.
pub fn origin(now: Timestamp) -> Origin {
    Origin {
        flow: flow_id(FLOW),
        version: version_id(VERSION),
        request: None,
        labels: BTreeMap::new(),
        account: None,
        parent: None,
        schedule: None,
        created_at: now,
    }
}

/// The projection of a run with this status.
pub fn projection(status: RunStatus, now: Timestamp) -> RunProjection {
    RunProjection {
        status,
        round: 1,
        node: None,
        action: None,
        step_count: 0,
        wake_at: None,
        owner: None,
        cost: Totals::default(),
        needs: None,
        error: None,
        shared: None,
        result: None,
        updated_at: now,
        ended_at: (!status.is_open()).then_some(now),
    }
}

pub(crate) fn movement(account: &str, movement: Movement) -> Posting {
    Posting { account: account.to_owned(), movement }
}

pub(crate) fn schedule_row(n: u64, next_at: Option<Timestamp>, now: Timestamp) -> ScheduleRow {
    let cron = Cron::parse("*/5 * * * *", "UTC").unwrap();
    ScheduleRow {
        schedule: Schedule {
            id: schedule_id(n),
            cron,
            enabled: true,
            overlap: Default::default(),
            catchup: Default::default(),
            window_ms: 0,
        },
        name: format!("schedule {n}"),
        target: json!({ "queue": "default" }),
        progress: Progress::default(),
        next_at,
        history: Default::default(),
        created_at: now,
        updated_at: now,
    }
}

/// A store under test that numbers its commands.
pub(crate) struct StoreFixture<'s> {
    pub(crate) store: &'s dyn Store,
    n_commands: Cell<u64>,
}

impl<'s> StoreFixture<'s> {
    /// Publishes one flow with one version.
    pub(crate) async fn new(store: &'s dyn Store) -> Self {
        let fixture = StoreFixture { store, n_commands: Cell::new(0) };
        fixture
            .publish(FlowChoice::Create(flow_draft(FLOW, "first")), Some(version_draft(VERSION)))
            .await
            .unwrap();
        fixture
    }

    pub(crate) fn command(&self) -> CommandId {
        self.n_commands.set(self.n_commands.get() + 1);
        id("cmd", self.n_commands.get())
    }

    pub(crate) async fn publish(
        &self,
        flow: FlowChoice,
        version: Option<VersionDraft>,
    ) -> Result<Published, StoreError> {
        self.store.publish(&Project::DEFAULT, Publication { flow, version, now: at(0) }).await
    }

    /// A commit of one entry in a run's journal; the first one creates the run.
    pub(crate) fn entry(&self, run: u64, expected_len: u64, status: RunStatus, now: Timestamp) -> Commit {
        let command = self.command();
        let message = format!("entry {}", expected_len + 1);
        let event = Event::Logged { level: Level::Info, node: None, message };
        Commit {
            run: Some(RunChange {
                run: run_id(run),
                expected_len: Seq(expected_len),
                create: (expected_len == 0).then(|| origin(now)),
                entry: Entry::new(now, command, vec![event]),
                projection: projection(status, now),
                snapshot: None,
                reopened: None,
            }),
            ..Commit::new(&Project::DEFAULT, command, now)
        }
    }

    /// Creates a run after a change to its origin and projection.
    pub(crate) async fn create(
        &self,
        run: u64,
        status: RunStatus,
        now: Timestamp,
        change: impl FnOnce(&mut Origin, &mut RunProjection),
    ) -> Result<Committed, StoreError> {
        let mut commit = self.entry(run, 0, status, now);
        let row = commit.run.as_mut().unwrap();
        change(row.create.as_mut().unwrap(), &mut row.projection);
        self.commit(commit).await
    }

    /// A commit that creates a job.
    pub(crate) fn job(&self, n: u64, spec: JobSpec, now: Timestamp) -> Commit {
        let (job, _) = Job::create(job_id(n), spec, now).unwrap();
        let change = JobChange { expected_rev: Revision(0), job, origin: JobOrigin::default() };
        Commit { jobs: vec![change], ..Commit::new(&Project::DEFAULT, self.command(), now) }
    }

    pub(crate) async fn create_job(
        &self,
        n: u64,
        spec: JobSpec,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        self.commit(self.job(n, spec, now)).await
    }

    /// The change of a job by an input.
    pub(crate) async fn change(&self, n: u64, input: JobInput, now: Timestamp) -> JobChange {
        let JobRow { rev, mut job, origin } =
            self.store.job(&Project::DEFAULT, job_id(n)).await.unwrap().unwrap();
        let events = job.decide(input, now).unwrap();
        events.iter().for_each(|event| job.apply(event, now));
        JobChange { expected_rev: rev, job, origin }
    }

    /// Submits an input to a job and commits the result.
    pub(crate) async fn submit(
        &self,
        n: u64,
        input: JobInput,
        now: Timestamp,
    ) -> Result<Committed, StoreError> {
        let jobs = vec![self.change(n, input, now).await];
        self.commit(Commit { jobs, ..Commit::new(&Project::DEFAULT, self.command(), now) }).await
    }

    pub(crate) async fn commit(&self, commit: Commit) -> Result<Committed, StoreError> {
        self.store.commit_one(commit).await
    }

    /// Opens an account and deposits this balance.
    pub(crate) async fn account(&self, account: &str, balance: i64) {
        let name = account.to_uppercase();
        self.store.open_account(&Project::DEFAULT, account, &name, at(0)).await.unwrap();
        if balance > 0 {
            self.post(account, Movement::deposit("first", Amount(balance))).await.unwrap();
        }
    }

    pub(crate) async fn post(&self, account: &str, posted: Movement) -> Result<Committed, StoreError> {
        let postings = vec![movement(account, posted)];
        self.commit(Commit { postings, ..Commit::new(&Project::DEFAULT, self.command(), at(1)) }).await
    }

    pub(crate) async fn balance(&self, account: &str) -> (i64, i64) {
        let row = self.store.account(&Project::DEFAULT, account).await.unwrap().unwrap();
        (row.balance.0, row.held.0)
    }

    pub(crate) async fn run(&self, n: u64) -> Option<RunRow> {
        self.store.run(&Project::DEFAULT, RunRef::Id(run_id(n))).await.unwrap()
    }
}

/// The queries that the documentation of an older queue platform shows, word for word, with this task in place of theirs.
pub fn documented_queries(task: &str) -> [String; 3] {
    let text = include_str!("../fixtures/queue-platform.sql").replace("YOUR_TASK_ID", task);
    let queries: Vec<String> = text.split_inclusive(';').map(str::to_owned).collect();
    let [tasks, attempts, workers, _end_of_file] = queries.try_into().expect("there are three");
    [tasks, attempts, workers]
}
