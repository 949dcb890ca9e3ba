//! A run of the real engine on the store under test. The driver decides, projects and commits as a server does; after
//! every commit it loads the run again and compares it with the run in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use windlass_engine::counter::{Fence, Seq};
use windlass_engine::definition::{Strictness, compile};
use windlass_engine::effect::Effect;
use windlass_engine::event::{Event, Start};
use windlass_engine::id::RunId;
use windlass_engine::input::{CallOutcome, Given, Input};
use windlass_engine::journal;
use windlass_engine::path::NodePath;
use windlass_engine::plan::Plan;
use windlass_engine::project::Project;
use windlass_engine::run::{Run, RunStep};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, Unmoved};
use windlass_store::flow::{FlowChoice, VersionDraft};
use windlass_store::outbox::{Delivery, Note};
use windlass_store::projection::{Projection, Rows, cancelled, project, reopened};
use windlass_store::run::{Origin, Owner, RunRef, Since};
use windlass_store::{Refusal, StoreError};

use crate::fixture::{StoreFixture, flow_draft, flow_id, origin, run_id, server, version_draft, version_id};

pub(crate) struct Driver<'b, 's> {
    fixture: &'b StoreFixture<'s>,
    pub(crate) plan: Arc<Plan>,
    pub(crate) run: Run,
    pub(crate) len: Seq,
    projection: Projection,
    pub(crate) origin: Origin,
    pub(crate) server: Owner,
    /// Whether every commit carries a snapshot.
    pub(crate) snapshots: bool,
    /// Accounts that calls wait for, with their revisions at that decision.
    pub(crate) relied_on: Vec<Unmoved>,
}

impl<'b, 's> Driver<'b, 's> {
    /// A run that has not been started, of a flow of its own.
    pub(crate) async fn new(fixture: &'b StoreFixture<'s>, n: u64, definition: &str) -> Self {
        let compiled = compile(definition, Strictness::Strict);
        let plan = compiled.plan.unwrap_or_else(|| panic!("{:#?}", compiled.problems));
        let (definition, form) = (definition.to_owned(), plan.form);
        let draft = VersionDraft { definition, form, ..version_draft(100 + n) };
        let flow = FlowChoice::Create(flow_draft(100 + n, &format!("flow of run {n}")));
        fixture.publish(flow, Some(draft)).await.unwrap();
        Driver {
            fixture,
            plan,
            run: Run::new(run_id(n)),
            len: Seq::ZERO,
            projection: Projection::default(),
            origin: Origin { flow: flow_id(100 + n), version: version_id(100 + n), ..origin(Timestamp(0)) },
            server: server(1, 1),
            snapshots: false,
            relied_on: Vec::new(),
        }
    }

    pub(crate) async fn start(&mut self, start: Start, now: i64) -> Vec<Effect> {
        self.origin.created_at = Timestamp(now);
        self.origin.account = start.account.clone();
        self.origin.parent = start.parent.clone();
        self.submit(Input::Start(Box::new(start)), now).await.unwrap()
    }

    pub(crate) async fn done(&mut self, node: &str, fence: u64, value: Value, now: i64) -> Vec<Effect> {
        let outcome = CallOutcome::Done(Arc::new(value));
        let input =
            Input::CallEnded { node: NodePath::from(node), fence: Fence(fence), outcome, worker: None };
        self.submit(input, now).await.unwrap()
    }

    pub(crate) async fn submit(&mut self, input: Input, now: i64) -> Result<Vec<Effect>, StoreError> {
        let nothing = Commit::new(&Project::DEFAULT, self.fixture.command(), Timestamp(now));
        self.submit_with(input, now, nothing).await
    }

    /// Submits an input and commits its result together with `more`.
    pub(crate) async fn submit_with(
        &mut self,
        input: Input,
        now: i64,
        more: Commit,
    ) -> Result<Vec<Effect>, StoreError> {
        let mut given = Given::at(Timestamp(now));
        loop {
            let (mut run, mut projection) = (self.run.clone(), self.projection.clone());
            let step = run.submit(&self.plan, &input, &given).unwrap_or_else(|refusal| panic!("{refusal}"));
            let rows = project(&mut projection, &run, &step, Some(self.server), given.now);
            let postings = rows.postings.clone();
            let effects = step.effects.clone();
            let commit = self.commit(rows, &run, step, more.clone()).await;
            match self.fixture.commit(commit).await {
                Ok(committed) => {
                    self.len = self.len.next();
                    assert_eq!(committed.run, Some((run.id, self.len)));
                    (self.run, self.projection) = (run, projection);
                    self.check().await;
                    return Ok(effects);
                }
                Err(StoreError::Refused(Refusal::InsufficientFunds { account, keys, revision, .. })) => {
                    let short = postings.iter().filter(|posting| keys.contains(&posting.movement.key));
                    let nodes: BTreeSet<NodePath> = short.filter_map(|posting| posting.node()).collect();
                    assert!(
                        !nodes.is_subset(&given.insufficient_funds),
                        "a call that is short is not charged again"
                    );
                    given.insufficient_funds.extend(nodes);
                    self.relied_on.push(Unmoved { account, revision });
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn commit(&self, rows: Rows, run: &Run, step: RunStep, more: Commit) -> Commit {
        let mut jobs = Vec::new();
        for id in &rows.cancel {
            jobs.extend(self.fixture.store.job(&Project::DEFAULT, *id).await.unwrap());
        }
        jobs.retain(|row| more.jobs.iter().all(|change| change.job.id != row.job.id));
        let cancel = cancelled(jobs, more.now);
        let create = (self.len == Seq::ZERO).then(|| self.origin.clone());
        let reopened = reopened(&self.plan, run, &step.events);
        let mut commit = rows.into_commit(more.command, more.now, run, self.len, step, create);
        commit.run.as_mut().unwrap().reopened = reopened;
        commit.jobs.extend(cancel);
        commit.jobs.extend(more.jobs);
        commit.delivered = more.delivered;
        commit.unmoved = self.relied_on.clone();
        if self.snapshots {
            let change = commit.run.as_mut().unwrap();
            change.snapshot = Some(journal::encode_snapshot(run));
        }
        commit
    }

    /// The run as the store has it, and the length of its journal.
    pub(crate) async fn load(&self, since: Since) -> (Run, Seq) {
        let journal =
            self.fixture.store.journal(&Project::DEFAULT, self.run.id, since, 10_000).await.unwrap();
        let mut len = Seq::ZERO;
        let mut run = match &journal.snapshot {
            Some(snapshot) => {
                len = snapshot.seq;
                journal::decode_snapshot(&snapshot.bytes).unwrap()
            }
            None => Run::new(self.run.id),
        };
        for (seq, entry) in &journal.entries {
            assert_eq!(*seq, len.next(), "the journal is dense");
            len = *seq;
            entry.events.iter().for_each(|event: &Event| run.apply(&self.plan, event, entry.at));
        }
        (run, len)
    }

    /// Loads entries that another writer has appended meanwhile.
    pub(crate) async fn reload(&mut self) {
        (self.run, self.len) = self.load(Since::Entry(Seq::ZERO)).await;
        let row = self.fixture.store.run(&Project::DEFAULT, RunRef::Id(self.run.id)).await.unwrap().unwrap();
        self.projection = Projection::resume(&self.plan, &self.run, &row.projection);
    }

    /// The stored run equals the run in memory: journal, snapshot, row and calls in flight.
    async fn check(&self) {
        let live = as_json(&self.run);
        for since in [Since::Entry(Seq::ZERO), Since::Snapshot] {
            let (run, len) = self.load(since).await;
            assert_eq!(len, self.len);
            assert_eq!(as_json(&run), live, "{since:?}");
        }
        let row = self.fixture.store.run(&Project::DEFAULT, RunRef::Id(self.run.id)).await.unwrap().unwrap();
        assert_eq!(row.len, self.len);
        let run_projection = &row.projection;
        assert_eq!(run_projection.status, windlass_store::projection::status(&self.run));
        assert_eq!((run_projection.wake_at, run_projection.round), (self.run.wake_at(), self.run.round));
        assert_eq!((run_projection.cost, &run_projection.error), (self.run.cost, &self.run.error));
        assert_eq!(self.projection.n_in_flight(), self.run.n_granted);
        assert_eq!(Projection::resume(&self.plan, &self.run, run_projection), self.projection);
    }
}

fn as_json(run: &Run) -> Value {
    serde_json::to_value(run).unwrap()
}

/// The start of a run with these params.
pub(crate) fn start_with(params: Value) -> Start {
    Start { params: params.as_object().cloned().unwrap_or_default().into(), ..Start::default() }
}

/// The start of a child run.
pub(crate) fn child_of(parent: RunId, node: &str, fence: Fence) -> Start {
    let node = NodePath::from(node);
    Start {
        parent: Some(windlass_engine::event::Parent { run: parent, node, fence, depth: 1, root: None }),
        ..start_with(json!({}))
    }
}

/// The input of a message to an existing run.
pub(crate) fn delivered_input(note: &Note) -> Input {
    match note.delivery() {
        Delivery::Submit(input) => input,
        Delivery::Create(child) => panic!("it creates {child:?}"),
    }
}
