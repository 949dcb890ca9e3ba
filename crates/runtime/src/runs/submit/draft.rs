//! The commit of a batch: everything that was decided, and the result of writing it.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::counter::Seq;
use windlass_engine::effect::Effect;
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::input::Refusal;
use windlass_engine::money::{Amount, node_of_key};
use windlass_engine::path::NodePath;
use windlass_engine::run::{Run, RunStep};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange, Unmoved};
use windlass_store::error::Subject;
use windlass_store::outbox::Message;
use windlass_store::projection::metric_event::{MetricEvent, metric_events};
use windlass_store::projection::{cancelled, project, reopened};
use windlass_store::run::RunProjection;
use windlass_store::{Refusal as Forbidden, StoreError};

use crate::part::RuntimePart;
use crate::runs::ExtraWrites;
use crate::runs::Runs;
use crate::runs::cached_run::CachedRun;
use crate::runs::mailbox::Envelope;

/// How often an unknown outcome is looked up before the caller gets an error.
const LOOK_UPS: u32 = 6;

/// The result of writing a batch.
pub(super) enum WriteOutcome {
    Yes,
    /// Load the new entries and decide again.
    Again,
    /// The account is no longer as it was when calls were found short: decide anew.
    Moved,
    InsufficientFunds(InsufficientFunds),
    /// The envelopes that this is about cannot be taken; the others are decided again.
    Without(Excluded),
    /// Something is wrong with the whole commit.
    No(StoreError),
}

/// An account that cannot pay for the decided calls.
pub(super) struct InsufficientFunds {
    nodes: BTreeSet<NodePath>,
    balance: Amount,
    /// While it is at this revision.
    pub(super) at: Unmoved,
}

impl InsufficientFunds {
    /// Adds calls that were found before, at the same revision.
    pub(super) fn beside(mut self, before: Option<InsufficientFunds>) -> InsufficientFunds {
        self.nodes.extend(before.into_iter().flat_map(|before| before.nodes));
        self
    }

    /// The calls that cannot be paid, and the amount that the run may have paid in total.
    pub(super) fn facts(&self, run: &Run) -> (BTreeSet<NodePath>, Option<Amount>) {
        (self.nodes.clone(), Some(run.paid().saturating_add(self.balance)))
    }
}

/// Envelopes that are answered without being taken.
pub(super) enum Excluded {
    Job(JobId),
    Delivered(windlass_store::outbox::MessageId),
    Request {
        run: RunId,
        same_request: bool,
    },
    /// The extra writes of a caller.
    ExtraWrites,
}

/// A commit, and its effects.
pub(super) struct CommitDraft {
    pub(super) commit: Commit,
    pub(super) after: CommitEffects,
}

/// The effects of a durable commit.
#[derive(Default)]
pub(crate) struct CommitEffects {
    pub(crate) effects: Vec<Effect>,
    /// Where the run stands now, if anything happened to it.
    pub(crate) projection: Option<RunProjection>,
    pub(crate) jobs: Vec<JobChange>,
    pub(crate) messages: Vec<Message>,
    /// Events for the metrics.
    pub(crate) metric_events: Vec<MetricEvent>,
}

impl Runs {
    pub(super) async fn draft(
        &self,
        cached: &mut CachedRun,
        mut step: RunStep,
        envelopes: &[Envelope],
        refusals: &[Option<Refusal>],
        now: Timestamp,
    ) -> Result<CommitDraft, StoreError> {
        let command = CommandId::new(Uuid::now_v7());
        if step.events.is_empty() {
            let mut commit = Commit::new(self.project(), command, now);
            for extra in accepted_writes(envelopes, refusals) {
                extra.join(&mut commit);
            }
            let after = CommitEffects { jobs: commit.jobs.clone(), ..CommitEffects::default() };
            return Ok(CommitDraft { commit, after });
        }
        let rows = project(&mut cached.projection, &cached.run, &step, Some(self.owner()), now);
        let (cancel, run_projection) = (rows.cancel.clone(), rows.projection.clone());
        let create = envelopes
            .iter()
            .find_map(|envelope| envelope.extra.create.clone())
            .filter(|_| cached.len == Seq::ZERO);
        let (effects, metric_events) = (std::mem::take(&mut step.effects), metric_events(&step.events));
        let reopened = reopened(&cached.plan, &cached.run, &step.events);
        let mut commit = rows.into_commit(command, now, &cached.run, cached.len, step, create);
        commit.project = self.project().clone();
        if let Some(change) = &mut commit.run {
            (change.snapshot, change.reopened) = (cached.snapshot(), reopened);
        }
        for extra in accepted_writes(envelopes, refusals) {
            extra.join(&mut commit);
        }
        if !cancel.is_empty() {
            let own: BTreeSet<JobId> = commit.jobs.iter().map(|change| change.job.id).collect();
            let mut open = Vec::new();
            for id in cancel.into_iter().filter(|id| !own.contains(id)) {
                match self.store().job(self.project(), id).await {
                    Ok(job) => open.extend(job),
                    // A job that cannot be read is never handed out: there is nothing to cancel.
                    Err(StoreError::Corrupt(_)) => {}
                    Err(error) => return Err(error),
                }
            }
            commit.jobs.extend(cancelled(open, now));
        }
        let (jobs, messages) = (commit.jobs.clone(), commit.messages.clone());
        Ok(CommitDraft {
            commit,
            after: CommitEffects { effects, projection: Some(run_projection), jobs, messages, metric_events },
        })
    }

    pub(super) async fn write(&self, commit: Commit) -> WriteOutcome {
        let command = commit.command;
        match self.store().commit_one(commit).await {
            Ok(_) => WriteOutcome::Yes,
            Err(StoreError::Refused(Forbidden::InsufficientFunds {
                keys,
                account,
                balance,
                revision,
                ..
            })) => {
                let nodes = keys.iter().filter_map(|key| node_of_key(key)).collect();
                WriteOutcome::InsufficientFunds(InsufficientFunds {
                    nodes,
                    balance,
                    at: Unmoved { account, revision },
                })
            }
            Err(StoreError::Refused(Forbidden::RequestTaken { existing, same_request, .. })) => {
                WriteOutcome::Without(Excluded::Request { run: existing, same_request })
            }
            Err(StoreError::Refused(Forbidden::AlreadyDelivered(id))) => {
                WriteOutcome::Without(Excluded::Delivered(id))
            }
            Err(StoreError::Refused(Forbidden::AlreadyFired(_) | Forbidden::UnknownSchedule(_))) => {
                WriteOutcome::Without(Excluded::ExtraWrites)
            }
            Err(StoreError::Conflict { what: Subject::Run(_), .. }) => WriteOutcome::Again,
            Err(StoreError::Conflict { what: Subject::Account(_), .. }) => WriteOutcome::Moved,
            Err(StoreError::Conflict { what: Subject::Job(id), .. }) => {
                WriteOutcome::Without(Excluded::Job(id))
            }
            Err(StoreError::Conflict {
                what: Subject::Schedule(_) | Subject::Server(_) | Subject::Queue(_),
                ..
            }) => WriteOutcome::Without(Excluded::ExtraWrites),
            Err(error @ StoreError::Unavailable(_)) => self.look_up(command, error).await,
            Err(error) => WriteOutcome::No(error),
        }
    }

    /// An unknown outcome is looked up, never guessed.
    async fn look_up(&self, command: CommandId, error: StoreError) -> WriteOutcome {
        for nth in 0..LOOK_UPS {
            match self.store().command(self.project(), command).await {
                Ok(Some(_)) => return WriteOutcome::Yes,
                Ok(None) => return WriteOutcome::No(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(50 << nth)).await,
            }
        }
        WriteOutcome::No(error)
    }
}

/// The extra writes of the envelopes that were not refused.
pub(super) fn accepted_writes<'a>(
    envelopes: &'a [Envelope],
    refusals: &'a [Option<Refusal>],
) -> impl Iterator<Item = &'a ExtraWrites> {
    let taken = envelopes.iter().zip(refusals).filter(|(_, refusal)| refusal.is_none());
    taken.map(|(envelope, _)| &envelope.extra)
}
