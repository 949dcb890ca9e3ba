//! The commit of a turn: everything that was decided, and what became of writing it.

use std::collections::BTreeSet;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::effect::Effect;
use windlass_engine::id::{CommandId, JobId, RunId};
use windlass_engine::input::Refusal;
use windlass_engine::money::node_of_key;
use windlass_engine::path::NodePath;
use windlass_engine::run::{Run, Step};
use windlass_engine::time::Timestamp;
use windlass_store::commit::{Commit, JobChange, Unmoved};
use windlass_store::error::Subject;
use windlass_store::outbox::Message;
use windlass_store::project::moments::{Moment, moments};
use windlass_store::project::{cancelled, project, reopened};
use windlass_store::run::Standing;
use windlass_store::{Refusal as Forbidden, StoreError};

use crate::Runtime;
use crate::hot::Hot;
use crate::mailbox::Letter;
use crate::run::Along;

/// How often an unknown outcome is looked up before somebody is told that it is unknown.
const LOOK_UPS: u32 = 6;

/// What came of trying to write a turn.
pub(super) enum Written {
    Yes,
    /// Load what is new and decide again.
    Again,
    /// The account is no longer as it was when calls were found short: decide anew.
    Moved,
    Short(Lack),
    /// The letters that this is about cannot be taken; the others are decided again.
    Without(Out),
    /// Something is wrong with the whole commit.
    No(StoreError),
}

/// What is known of an account that could not bear what was decided.
pub(super) struct Lack {
    nodes: BTreeSet<NodePath>,
    balance: i64,
    /// While it is at this revision.
    pub(super) at: Unmoved,
}

impl Lack {
    /// With what was found before, at the same revision.
    pub(super) fn beside(mut self, before: Option<Lack>) -> Lack {
        self.nodes.extend(before.into_iter().flat_map(|before| before.nodes));
        self
    }

    /// The calls that are short, and what the run may have paid for others with what is there.
    pub(super) fn facts(&self, run: &Run) -> (BTreeSet<NodePath>, Option<i64>) {
        (self.nodes.clone(), Some(run.paid().saturating_add(self.balance)))
    }
}

/// Letters that are answered without being taken.
pub(super) enum Out {
    Job(JobId),
    Delivered(windlass_store::outbox::MessageId),
    Request {
        run: RunId,
        same_request: bool,
    },
    /// Anything that went along.
    Company,
}

/// A commit, and what to do when it is durable.
pub(super) struct Draft {
    pub(super) commit: Commit,
    pub(super) after: After,
}

/// What follows from a commit that is durable.
#[derive(Default)]
pub(crate) struct After {
    pub(crate) effects: Vec<Effect>,
    /// Where the run stands now, if anything happened to it.
    pub(crate) standing: Option<Standing>,
    pub(crate) jobs: Vec<JobChange>,
    pub(crate) messages: Vec<Message>,
    /// What is counted of it.
    pub(crate) moments: Vec<Moment>,
}

impl Runtime {
    pub(super) async fn draft(
        &self,
        hot: &mut Hot,
        mut step: Step,
        letters: &[Letter],
        refusals: &[Option<Refusal>],
        now: Timestamp,
    ) -> Result<Draft, StoreError> {
        let command = CommandId::new(Uuid::now_v7());
        if step.events.is_empty() {
            let mut commit = Commit::new(command, now);
            for along in joins(letters, refusals) {
                along.join(&mut commit);
            }
            let after = After { jobs: commit.jobs.clone(), ..After::default() };
            return Ok(Draft { commit, after });
        }
        let rows = project(&mut hot.projection, &hot.run, &step, Some(self.owner()), now);
        let (cancel, standing) = (rows.cancel.clone(), rows.standing.clone());
        let create = letters.iter().find_map(|letter| letter.along.create.clone()).filter(|_| hot.len == 0);
        let (effects, moments) = (std::mem::take(&mut step.effects), moments(&step.events));
        let reopened = reopened(&hot.plan, &hot.run, &step.events);
        let mut commit = rows.into_commit(command, now, &hot.run, hot.len, step, create);
        if let Some(change) = &mut commit.run {
            (change.snapshot, change.reopened) = (hot.snapshot(), reopened);
        }
        for along in joins(letters, refusals) {
            along.join(&mut commit);
        }
        if !cancel.is_empty() {
            let own: BTreeSet<JobId> = commit.jobs.iter().map(|change| change.job.id).collect();
            let mut open = Vec::new();
            for id in cancel.into_iter().filter(|id| !own.contains(id)) {
                open.extend(self.store().job(id).await?);
            }
            commit.jobs.extend(cancelled(open, now));
        }
        let (jobs, messages) = (commit.jobs.clone(), commit.messages.clone());
        Ok(Draft { commit, after: After { effects, standing: Some(standing), jobs, messages, moments } })
    }

    pub(super) async fn write(&self, commit: Commit) -> Written {
        let command = commit.command;
        match self.store().commit_one(commit).await {
            Ok(_) => Written::Yes,
            Err(StoreError::Refused(Forbidden::Short { keys, account, balance, revision, .. })) => {
                let nodes = keys.iter().filter_map(|key| node_of_key(key)).collect();
                Written::Short(Lack { nodes, balance, at: Unmoved { account, revision } })
            }
            Err(StoreError::Refused(Forbidden::RequestTaken { existing, same_request, .. })) => {
                Written::Without(Out::Request { run: existing, same_request })
            }
            Err(StoreError::Refused(Forbidden::AlreadyDelivered(id))) => Written::Without(Out::Delivered(id)),
            Err(StoreError::Refused(Forbidden::AlreadyFired(_) | Forbidden::UnknownSchedule(_))) => {
                Written::Without(Out::Company)
            }
            Err(StoreError::Conflict { what: Subject::Run(_), .. }) => Written::Again,
            Err(StoreError::Conflict { what: Subject::Account(_), .. }) => Written::Moved,
            Err(StoreError::Conflict { what: Subject::Job(id), .. }) => Written::Without(Out::Job(id)),
            Err(StoreError::Conflict {
                what: Subject::Schedule(_) | Subject::Server(_) | Subject::Queue(_),
                ..
            }) => Written::Without(Out::Company),
            Err(error @ StoreError::Unavailable(_)) => self.look_up(command, error).await,
            Err(error) => Written::No(error),
        }
    }

    /// An unknown outcome is looked up, never guessed.
    async fn look_up(&self, command: CommandId, error: StoreError) -> Written {
        for nth in 0..LOOK_UPS {
            match self.store().command(command).await {
                Ok(Some(_)) => return Written::Yes,
                Ok(None) => return Written::No(error),
                Err(_) => tokio::time::sleep(Duration::from_millis(50 << nth)).await,
            }
        }
        Written::No(error)
    }
}

/// What goes along with the letters that were not refused.
pub(super) fn joins<'a>(
    letters: &'a [Letter],
    refusals: &'a [Option<Refusal>],
) -> impl Iterator<Item = &'a Along> {
    let taken = letters.iter().zip(refusals).filter(|(_, refusal)| refusal.is_none());
    taken.map(|(letter, _)| &letter.along)
}
