//! Projection of events and effects to rows: the only code outside the engine that looks into them, shared by all
//! backends.
//!
//! A [`Projection`] is kept beside a cached run. It holds facts that the rows need and the state of the run does not
//! have at hand, and costs the size of the change, never the size of the run.

pub mod attempts;
mod in_flight;
pub mod metric_event;
mod reopened;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};
use windlass_engine::counter::{Fence, Revision, Seq};
use windlass_engine::effect::{CallSpec, Effect};
use windlass_engine::event::{Event, Parent};
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::job::{Job, JobEvent, JobInput, JobSpec};
use windlass_engine::journal::Entry;
use windlass_engine::params::{ParamLayer, Params};
use windlass_engine::path::NodePath;
use windlass_engine::plan::{Exec, Plan, Priority};
use windlass_engine::project::Project;
use windlass_engine::run::state::Status;
use windlass_engine::run::{Run, RunStep};
use windlass_engine::time::Timestamp;

use crate::account::Posting;
use crate::blob::call_payload;
use crate::commit::{Commit, JobChange, RunChange};
use crate::job::{CallRef, JobOrigin, JobRow};
use crate::outbox::{Child, Message, MessageId, Note, Party};
use crate::run::{Origin, Owner, RunProjection, RunStatus};

use in_flight::InFlightCalls;
pub use reopened::{Reopened, reopened};
pub use writes::{PathPart, Write, writes};

/// Facts that are carried from one entry of a journal to the next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Projection {
    node: Option<NodePath>,
    action: Option<String>,
    in_flight: InFlightCalls,
}

/// The rows of an entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows {
    pub projection: RunProjection,
    /// Jobs to be created.
    pub jobs: Vec<JobChange>,
    /// Jobs to be canceled in the same commit, as far as they are open: see [`cancelled`].
    pub cancel: Vec<JobId>,
    pub postings: Vec<Posting>,
    pub messages: Vec<Message>,
    /// Large parameters that the entry, the jobs and the messages refer to.
    pub blobs: Vec<Arc<ParamLayer>>,
}

/// The jobs that a step makes and cancels, so that none has to be looked for among all of them.
#[derive(Default)]
struct Seen {
    /// Where each stands among those to be created.
    made: BTreeMap<JobId, usize>,
    gone: BTreeSet<JobId>,
}

impl Projection {
    /// The projection of a run that was loaded, from its row.
    pub fn resume(plan: &Plan, run: &Run, run_projection: &RunProjection) -> Self {
        let (node, action) = (run_projection.node.clone(), run_projection.action.clone());
        Projection { node, action, in_flight: InFlightCalls::of(plan, run) }
    }

    /// Calls that are granted.
    pub fn n_in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn follow(&mut self, step: &RunStep) {
        self.in_flight.follow(step);
        // The node of the outermost scope that settled last.
        let mut last = None;
        for event in &step.events {
            match event {
                Event::Done { node, .. } | Event::Failed { node, .. } if is_outermost(node) => {
                    last = Some(node);
                }
                // At the end, the node and the action are those of the last step.
                Event::Ended { .. } => self.node = last.cloned().or_else(|| self.node.take()),
                _ => {}
            }
            match event {
                Event::Entered { node, .. } => self.node = Some(node.clone()),
                Event::Done { node, action, .. } if is_outermost(node) => {
                    self.action = Some(action.as_deref().unwrap_or("default").to_owned());
                }
                Event::Failed { node, route, .. } if is_outermost(node) => {
                    self.action = Some(route.as_deref().unwrap_or("error").to_owned());
                }
                Event::Started(_)
                | Event::Done { .. }
                | Event::Failed { .. }
                | Event::Granted { .. }
                | Event::Suspended { .. }
                | Event::Deferred { .. }
                | Event::Expiring { .. }
                | Event::Skipped { .. }
                | Event::Dropped { .. }
                | Event::Judged { .. }
                | Event::Opened { .. }
                | Event::Draining { .. }
                | Event::Turned { .. }
                | Event::Waiting { .. }
                | Event::Signaled { .. }
                | Event::Decided { .. }
                | Event::Canceling { .. }
                | Event::Paused
                | Event::Resumed
                | Event::Stepped
                | Event::SetBack { .. }
                | Event::Retried { .. }
                | Event::Rerun { .. }
                | Event::Funded { .. }
                | Event::Billed { .. }
                | Event::Logged { .. }
                | Event::Ended { .. } => {}
            }
        }
    }
}

/// The rows that belong to `step`, where `run` is the state after it. Steps of several inputs may be joined before
/// they are projected, as long as they are committed together. `by` is the server that will make the calls.
pub fn project(
    projection: &mut Projection,
    run: &Run,
    step: &RunStep,
    by: Option<Owner>,
    now: Timestamp,
) -> Rows {
    projection.follow(step);
    let mut rows = Rows {
        projection: run_projection(projection, run, by),
        jobs: Vec::new(),
        cancel: Vec::new(),
        postings: Vec::new(),
        messages: Vec::new(),
        blobs: large_params(step),
    };
    let first = run.length.saturating_sub(step.events.len() as u64);
    let is_end = |event: &Event| matches!(event, Event::Ended { .. });
    let ends = step.events.iter().zip(first + 1..).filter(|(event, _)| is_end(event));
    // Every end of a run with a parent tells, so that the numbers of the ends are those of the messages.
    let mut ends = ends.map(|(_, number)| number);
    let mut seen = Seen::default();
    for effect in &step.effects {
        match effect {
            Effect::Call(spec) => match &spec.exec {
                Exec::Queue => rows.make_job(&mut seen, job_of(spec, now)),
                Exec::Flow { flow, version } => {
                    let note = Note::StartChild(Box::new(child_of(run, spec, flow, *version)));
                    rows.tell_child(run, spec.fence, note, now);
                }
                Exec::Http | Exec::Func { .. } | Exec::Script(_) => {}
            },
            Effect::Cancel { fence, exec, .. } => match exec {
                Exec::Queue => rows.cancel_job(&mut seen, JobId::of_call(run.id, *fence), now),
                Exec::Flow { .. } => rows.tell_child(run, *fence, Note::CancelChild, now),
                Exec::Http | Exec::Func { .. } | Exec::Script(_) => {}
            },
            // The batch that drains a place ends the calls of unclaimed jobs itself.
            Effect::Withdraw { .. } => {}
            Effect::Move { account, movement } => {
                rows.postings.push(Posting { account: account.clone(), movement: movement.clone() });
            }
            Effect::Tell { parent, status, result, error, bill } => {
                let seq = Seq(ends.next().unwrap_or(run.length));
                rows.messages.push(Message {
                    id: MessageId::new(Party::Run(run.id), seq),
                    to: Party::Run(parent.run),
                    at: now,
                    note: Note::CallEnded {
                        node: parent.node.clone(),
                        fence: parent.fence,
                        ending: *status,
                        result: result.clone(),
                        error: error.clone(),
                        bill: *bill,
                    },
                });
            }
            Effect::Bill { parent, bill } => {
                let (node, fence) = (parent.node.clone(), parent.fence);
                rows.tell_run(run, parent.run, Note::Billed { node, fence, bill: *bill }, now);
            }
            Effect::Raise { fence, budget } => {
                rows.tell_child(run, *fence, Note::ReserveRaised { budget: *budget }, now);
            }
        }
    }
    rows
}

impl Rows {
    fn make_job(&mut self, seen: &mut Seen, change: JobChange) {
        seen.made.insert(change.job.id, self.jobs.len());
        self.jobs.push(change);
    }

    /// A job that was to be created only now is created canceled, so that its watchers see its end.
    fn cancel_job(&mut self, seen: &mut Seen, id: JobId, now: Timestamp) {
        match seen.made.get(&id).and_then(|at| self.jobs.get_mut(*at)) {
            Some(change) => {
                for event in change.job.decide(JobInput::Cancel, now).unwrap_or_default() {
                    change.job.apply(&event, now);
                }
            }
            None if seen.gone.insert(id) => self.cancel.push(id),
            None => {}
        }
    }

    fn tell_child(&mut self, run: &Run, fence: Fence, note: Note, now: Timestamp) {
        self.tell_run(run, RunId::of_call(run.id, fence), note, now);
    }

    /// Messages to other runs are numbered by the end of their commit: messages of one event to many runs, and messages
    /// to one child, keep their order. Part 0 is reserved for the message of the run's own end.
    fn tell_run(&mut self, run: &Run, to: RunId, note: Note, now: Timestamp) {
        let part = u32::try_from(self.messages.len()).unwrap_or(u32::MAX).saturating_add(1);
        let id = MessageId { part, ..MessageId::new(Party::Run(run.id), Seq(run.length)) };
        self.messages.push(Message { id, to: Party::Run(to), at: now, note });
    }

    /// The commit that appends `step` to the journal with these rows. Jobs to be canceled are not in it.
    pub fn into_commit(
        self,
        command: CommandId,
        now: Timestamp,
        run: &Run,
        expected_len: Seq,
        step: RunStep,
        create: Option<Origin>,
    ) -> Commit {
        Commit {
            run: Some(RunChange {
                run: run.id,
                expected_len,
                create,
                entry: Entry::new(now, command, step.events),
                projection: self.projection,
                snapshot: None,
                reopened: None,
            }),
            jobs: self.jobs,
            postings: self.postings,
            messages: self.messages,
            blobs: self.blobs,
            ..Commit::new(&Project::DEFAULT, command, now)
        }
    }
}

/// The changes that cancel these jobs; ended jobs stay as they are.
pub fn cancelled(jobs: Vec<JobRow>, now: Timestamp) -> Vec<JobChange> {
    let cancel = |JobRow { rev, mut job, origin }: JobRow| {
        let events = job.decide(JobInput::Cancel, now).ok().filter(|events| !events.is_empty())?;
        events.iter().for_each(|event| job.apply(event, now));
        Some(JobChange { expected_rev: rev, job, origin })
    };
    jobs.into_iter().filter_map(cancel).collect()
}

/// Postings of plain jobs as they stand. Repeated postings are no-ops.
pub fn job_postings(changes: &[JobChange]) -> Vec<Posting> {
    let posting = |change: &JobChange| {
        let (account, movement) = (change.job.spec.account.clone()?, change.job.movement()?);
        Some(Posting { account, movement })
    };
    changes.iter().filter_map(posting).collect()
}

/// The status of a run in tables, lists and answers.
pub fn status(run: &Run) -> RunStatus {
    match run.status {
        Status::Pending => RunStatus::Pending,
        Status::Running if run.n_granted == 0 && !run.is_unfinished() => RunStatus::Waiting,
        Status::Running => RunStatus::Running,
        Status::Paused => RunStatus::Paused,
        Status::Canceling => RunStatus::Canceling,
        Status::Completed => RunStatus::Completed,
        Status::Failed => RunStatus::Failed,
        Status::Canceled => RunStatus::Canceled,
    }
}

fn run_projection(projection: &Projection, run: &Run, by: Option<Owner>) -> RunProjection {
    let ended = run.status.is_ended();
    let shared = || {
        let fields = run.root.shared.iter().flatten();
        let fields: Map<String, Value> =
            fields.map(|(key, value)| (key.clone(), (**value).clone())).collect();
        Arc::new(Value::Object(fields))
    };
    RunProjection {
        status: status(run),
        round: run.round,
        node: projection.node.clone(),
        action: projection.action.clone(),
        step_count: run.entries,
        wake_at: run.wake_at(),
        owner: by.filter(|_| !ended && projection.in_flight.n_direct() > 0),
        cost: run.cost,
        needs: run.needs(),
        error: run.error.clone(),
        shared: ended.then(shared),
        result: run.result.clone().filter(|_| ended),
        updated_at: run.updated_at,
        ended_at: run.ended_at.filter(|_| ended),
    }
}

/// The job that carries a call: its name and its queue are the service, its one attempt is the run's.
fn job_of(call: &CallSpec, now: Timestamp) -> JobChange {
    let spec = JobSpec {
        priority: priority(call.priority),
        payload: call_payload(call),
        max_retries: 1,
        timeout_ms: call.timeout_ms,
        run: Some(call.run),
        ..JobSpec::new(call.service.clone(), call.service.clone())
    };
    let id = JobId::of_call(call.run, call.fence);
    // Built from its creation rather than checked like a client's: the names in a plan were checked when it was
    // published, by rules of their own.
    let created = JobEvent::Created { spec: Arc::new(spec), due: None };
    let mut job = Job::replay(id, &[(created, now)]).expect("a journal of one creation makes a job");
    job.memo = call.memo.as_deref().cloned();
    let origin_call = CallRef { run: call.run, node: call.node.clone(), fence: call.fence };
    JobChange {
        expected_rev: Revision(0),
        job,
        origin: JobOrigin { call: Some(origin_call), schedule: None },
    }
}

/// The large parameters that the rows of a step refer to: of its start, its jobs and its child runs.
fn large_params(step: &RunStep) -> Vec<Arc<ParamLayer>> {
    let starts = step.events.iter().filter_map(|event| match event {
        Event::Started(start) => Some(&start.params),
        _ => None,
    });
    let calls = step.effects.iter().filter_map(|effect| match effect {
        Effect::Call(spec) => match spec.exec {
            Exec::Queue | Exec::Flow { .. } => Some(&spec.params),
            Exec::Http | Exec::Func { .. } | Exec::Script(_) => None,
        },
        _ => None,
    });
    let mut found: Vec<Arc<ParamLayer>> = Vec::new();
    for layer in starts.chain(calls).flat_map(Params::large) {
        if !found.iter().any(|known| Arc::ptr_eq(known, layer)) {
            found.push(layer.clone());
        }
    }
    found
}

/// The child run that makes a call.
fn child_of(run: &Run, spec: &CallSpec, flow: &str, version: Option<u32>) -> Child {
    let start = &run.start;
    Child {
        child: RunId::of_call(spec.run, spec.fence),
        flow: flow.to_owned(),
        version,
        params: spec.params.clone(),
        params_in: Vec::new(),
        parent: Parent {
            run: spec.run,
            node: spec.node.clone(),
            fence: spec.fence,
            depth: spec.depth,
            root: start.parent.as_ref().map(Parent::root),
        },
        account: start.account.clone(),
        budget: run.reserve_of(spec.fence),
        on_short_balance: start.on_short_balance,
        priority: start.priority,
        chain: start.chain.iter().cloned().chain([flow.to_owned()]).collect(),
    }
}

/// The five classes of runs among the priorities of jobs: the middle one is the default of both.
fn priority(class: Priority) -> i32 {
    match class {
        Priority::Lowest => -2,
        Priority::Low => -1,
        Priority::Medium => 0,
        Priority::High => 1,
        Priority::Highest => 2,
    }
}

fn is_outermost(node: &NodePath) -> bool {
    node.segments().nth(1).is_none()
}

#[cfg(test)]
mod tests;
