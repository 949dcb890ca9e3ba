//! Dead letters: jobs that failed for good, until an operator replays or discards them.
//!
//! They are moved a part at a time, and each part is one commit, so after any failure a letter is either moved or still
//! where it was. The parts of a replay, and its end, are commands with ids derived from the replay id: the same replay
//! continues where it stopped, and a completed one moves nothing.

mod pick;

use serde_json::Value;
use windlass_engine::id::{CommandId, JobId};
use windlass_engine::job::{JobInput, JobRefusal};
use windlass_engine::money::job_of_key;
use windlass_engine::project::Project;
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::job::{DeadLetterGroup, JobRow};
use windlass_store::{Duplicate, Refusal, StoreError};

use super::change::{moved, new_command};
use super::finish::{ATTEMPTS_MAX, RETRY_DELAY};
use crate::RuntimeError;
use crate::jobs::JobsState;
use crate::part::{RuntimePart, part};
use pick::DeadLetterPicker;

/// Dead letters that one request can select; the rest is ignored.
pub const DEAD_LETTERS_MAX: usize = 10_000;
/// Letters in one commit: other writers wait for no more than these, and their payloads are in memory together.
const PART_MAX: usize = 100;

/// Which dead letters of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeadLetterSelector {
    /// The oldest ones, at most so many.
    Oldest(usize),
    Ids(Vec<JobId>),
    /// Those of one group, the oldest ones, at most so many.
    Group {
        fingerprint: String,
        max: usize,
    },
}

/// A request to try dead letters again.
#[derive(Debug, Clone)]
pub struct ReplayRequest {
    pub queue: String,
    pub letters: DeadLetterSelector,
    /// The same request again replays nothing again.
    pub id: String,
    pub priority: Option<i32>,
    /// Laid over each payload; null in it removes a field.
    pub patch: Option<Value>,
    /// At most so many begin per second, the others later; `None` = all at once.
    pub per_second: Option<u32>,
}

/// The result of a replay or a discard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MovedDeadLetters {
    /// In the order in which they were taken.
    pub moved: Vec<JobId>,
    /// Letters that stay: ids that are not dead letters of this queue, and letters that cannot be moved, for example
    /// because their deduplication key is taken.
    pub refused: Vec<(JobId, Option<JobRefusal>)>,
}

/// The action on each letter.
pub(super) enum DeadLetterAction {
    Replay { replay: ReplayRequest, since: Timestamp },
    Discard { reason: String },
}

impl DeadLetterAction {
    /// The input for the `n`th moved letter.
    fn input(&self, n: usize) -> JobInput {
        match self {
            DeadLetterAction::Replay { replay, since } => JobInput::Replay {
                replay_id: replay.id.clone(),
                priority: replay.priority,
                patch: replay.patch.clone(),
                due: replay.per_second.map(|rate| since.after(n as u64 * 1_000 / u64::from(rate.max(1)))),
            },
            DeadLetterAction::Discard { reason } => JobInput::Discard { reason: reason.clone() },
        }
    }

    /// A part was moved by the same request before: its letters keep their place in time.
    fn pass_over(&mut self) {
        if let DeadLetterAction::Replay { replay: ReplayRequest { per_second: Some(rate), .. }, since } = self
        {
            *since = since.after(PART_MAX as u64 * 1_000 / u64::from((*rate).max(1)));
        }
    }

    /// The name of the command that moves a part, or that ends it all, if it has one. Letters that are named remember
    /// themselves that they were replayed.
    pub(super) fn command(&self, project: &Project, part: &str) -> Option<CommandId> {
        match self {
            DeadLetterAction::Replay { replay: ReplayRequest { queue, letters, id, .. }, .. } => {
                match letters {
                    DeadLetterSelector::Oldest(_) | DeadLetterSelector::Group { .. } => {
                        Some(CommandId::of_text(&format!("replay\n{project}\n{queue}\n{id}\n{part}")))
                    }
                    DeadLetterSelector::Ids(_) => None,
                }
            }
            DeadLetterAction::Discard { .. } => None,
        }
    }
}

part! {
    /// The dead letters of all queues.
    pub DeadLetters, jobs: JobsState
}

impl DeadLetters {
    /// Replays dead letters. After any failure, each of them is either replayed or still a dead letter.
    pub async fn replay(&self, replay: ReplayRequest) -> Result<MovedDeadLetters, RuntimeError> {
        let (queue, letters) = (replay.queue.clone(), replay.letters.clone());
        let action = DeadLetterAction::Replay { replay, since: self.clock().now() };
        self.move_dead_letters(DeadLetterPicker::new(queue, letters), action).await
    }

    /// Gives dead letters up, for a reason.
    pub async fn discard(
        &self,
        queue: &str,
        letters: DeadLetterSelector,
        reason: &str,
    ) -> Result<MovedDeadLetters, RuntimeError> {
        let action = DeadLetterAction::Discard { reason: reason.to_owned() };
        self.move_dead_letters(DeadLetterPicker::new(queue.to_owned(), letters), action).await
    }

    /// The dead letters of a queue by error, the largest group first.
    pub async fn groups(&self, queue: &str) -> Result<Vec<DeadLetterGroup>, RuntimeError> {
        Ok(self.store().dead_letter_groups(self.project(), queue.to_owned()).await?)
    }

    async fn move_dead_letters(
        &self,
        pick: DeadLetterPicker,
        action: DeadLetterAction,
    ) -> Result<MovedDeadLetters, RuntimeError> {
        self.runs().admit()?;
        let letters = self.clone();
        self.ctx().to_the_end(async move { letters.move_all(pick, action).await }).await?
    }

    async fn move_all(
        &self,
        mut pick: DeadLetterPicker,
        mut action: DeadLetterAction,
    ) -> Result<MovedDeadLetters, RuntimeError> {
        let _alone = self.state().moving.lock().await;
        let mut moved = MovedDeadLetters::default();
        let end = action.command(self.project(), "end");
        if self.was_done(end).await? {
            return Ok(moved);
        }
        for part in 0u64.. {
            let command = action.command(self.project(), &part.to_string());
            if self.was_done(command).await? {
                pick.pass_over();
                action.pass_over();
                continue;
            }
            let Some(rows) = pick.next(&self.jobs(), &mut moved).await? else { break };
            self.move_part(rows, &action, command, &mut moved).await?;
        }
        if let Some(end) = end {
            self.jobs().commit_once(end, Vec::new()).await?;
        }
        Ok(moved)
    }

    async fn was_done(&self, command: Option<CommandId>) -> Result<bool, RuntimeError> {
        match command {
            Some(command) => Ok(self.store().command(self.project(), command).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Moves the rows that can be moved. Rows that changed meanwhile are read and decided again.
    pub(super) async fn move_part(
        &self,
        mut rows: Vec<JobRow>,
        action: &DeadLetterAction,
        command: Option<CommandId>,
        so_far: &mut MovedDeadLetters,
    ) -> Result<(), RuntimeError> {
        for _ in 0..ATTEMPTS_MAX {
            let changes = self.decided(&mut rows, action, so_far);
            if changes.is_empty() {
                return Ok(());
            }
            match self.jobs().commit_once(command.unwrap_or_else(new_command), changes.clone()).await {
                Ok(()) => {
                    so_far.moved.extend(changes.iter().map(|change| change.job.id));
                    self.jobs().offer_created(changes);
                    return Ok(());
                }
                Err(StoreError::Refused(Refusal::Duplicates(duplicates))) => {
                    rows.retain(|row| duplicates.iter().all(|duplicate| duplicate.job != row.id()));
                    so_far.refused.extend(duplicates.into_iter().map(taken));
                }
                Err(StoreError::Refused(Refusal::InsufficientFunds {
                    account,
                    needed,
                    balance,
                    keys,
                    ..
                })) => {
                    let short: Vec<JobId> = keys.iter().filter_map(|key| job_of_key(key)).collect();
                    rows.retain(|row| !short.contains(&row.id()));
                    let refusal = JobRefusal::InsufficientFunds { account, needed, balance };
                    so_far.refused.extend(short.into_iter().map(|job| (job, Some(refusal.clone()))));
                }
                Err(StoreError::Conflict { .. }) => {
                    let ids = rows.iter().map(JobRow::id).collect();
                    rows = pick::stored(&self.jobs(), ids)
                        .await?
                        .into_iter()
                        .filter_map(|(_, row)| row)
                        .collect();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY })
    }

    /// The changes of the rows that can be moved; the others are removed, with the reason.
    fn decided(
        &self,
        rows: &mut Vec<JobRow>,
        action: &DeadLetterAction,
        so_far: &mut MovedDeadLetters,
    ) -> Vec<JobChange> {
        let now = self.clock().now();
        let mut changes = Vec::with_capacity(rows.len());
        rows.retain(|row| {
            let refusal = match moved(row, action.input(so_far.moved.len() + changes.len()), now) {
                // Heard before.
                Ok(None) => return false,
                Ok(Some(change)) if row.job.is_dead_letter() => {
                    changes.push(change);
                    return true;
                }
                // Canceled or discarded: it could be opened again, but not as a dead letter.
                Ok(Some(_)) => JobRefusal::NotDead { status: row.job.display_status() },
                Err(refusal) => refusal,
            };
            so_far.refused.push((row.id(), Some(refusal)));
            false
        });
        changes
    }
}

fn taken(duplicate: Duplicate) -> (JobId, Option<JobRefusal>) {
    let Duplicate { job, key, existing, .. } = duplicate;
    (job, Some(JobRefusal::KeyTaken { key, existing }))
}
