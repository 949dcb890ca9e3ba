//! Dead letters: jobs that failed for good, until somebody replays or discards them.
//!
//! They are taken a part at a time, and each part is one commit: whatever goes wrong, a letter is either moved or
//! still where it was. The parts of a replay are commands with names made from its id, and so is its end: the same
//! replay again goes on where it stopped, and one that has ended moves nothing.

mod pick;

use serde_json::Value;
use windlass_engine::id::{CommandId, JobId};
use windlass_engine::job::{JobInput, JobRefusal};
use windlass_engine::money::job_of_key;
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;
use windlass_store::job::{JobRow, LetterGroup};
use windlass_store::{Duplicate, Refusal, StoreError};

use super::change::{moved, new_command};
use super::finish::{AGAIN, TRIES};
use crate::{Runtime, RuntimeError};
use pick::Pick;

/// Dead letters that one request can be about; what is more is not looked at.
pub const LETTERS_MAX: usize = 10_000;
/// Letters in one commit: others who write wait for no more than these, and their payloads are in memory together.
const PART_MAX: usize = 100;

/// Which dead letters of a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Letters {
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
pub struct Replay {
    pub queue: String,
    pub letters: Letters,
    /// The same request again replays nothing again.
    pub id: String,
    pub priority: Option<i32>,
    /// Laid over each payload; null in it removes a field.
    pub patch: Option<Value>,
    /// At most so many begin per second, the others later; `None` = all at once.
    pub per_second: Option<u32>,
}

/// What became of dead letters.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Moved {
    /// In the order in which they were taken.
    pub moved: Vec<JobId>,
    /// Those that stay as they are: asked for by id and not dead letters of this queue, or, however they were picked,
    /// would not go, such as one whose deduplication key is taken.
    pub refused: Vec<(JobId, Option<JobRefusal>)>,
}

/// What is done to each letter.
pub(super) enum Deed {
    Replay { replay: Replay, since: Timestamp },
    Discard { reason: String },
}

impl Deed {
    /// What the `n`th letter that is moved is told.
    fn input(&self, n: usize) -> JobInput {
        match self {
            Deed::Replay { replay, since } => JobInput::Replay {
                replay_id: replay.id.clone(),
                priority: replay.priority,
                patch: replay.patch.clone(),
                due: replay.per_second.map(|rate| since.after(n as u64 * 1_000 / u64::from(rate.max(1)))),
            },
            Deed::Discard { reason } => JobInput::Discard { reason: reason.clone() },
        }
    }

    /// A part was moved by the same request before: its letters keep their place in time.
    fn pass_over(&mut self) {
        if let Deed::Replay { replay: Replay { per_second: Some(rate), .. }, since } = self {
            *since = since.after(PART_MAX as u64 * 1_000 / u64::from((*rate).max(1)));
        }
    }

    /// The name of the command that moves a part, or that ends it all, if it has one. Letters that are named remember
    /// themselves that they were replayed.
    pub(super) fn command(&self, part: &str) -> Option<CommandId> {
        match self {
            Deed::Replay { replay: Replay { queue, letters, id, .. }, .. } => match letters {
                Letters::Oldest(_) | Letters::Group { .. } => {
                    Some(CommandId::of_text(&format!("replay\n{queue}\n{id}\n{part}")))
                }
                Letters::Ids(_) => None,
            },
            Deed::Discard { .. } => None,
        }
    }
}

impl Runtime {
    /// Tries dead letters again. Whatever goes wrong, each of them is either tried again or still a dead letter.
    pub async fn replay_letters(&self, replay: Replay) -> Result<Moved, RuntimeError> {
        let (queue, letters) = (replay.queue.clone(), replay.letters.clone());
        let deed = Deed::Replay { replay, since: self.clock().now() };
        self.move_letters(Pick::new(queue, letters), deed).await
    }

    /// Gives dead letters up, for a reason.
    pub async fn discard_letters(
        &self,
        queue: &str,
        letters: Letters,
        reason: &str,
    ) -> Result<Moved, RuntimeError> {
        let deed = Deed::Discard { reason: reason.to_owned() };
        self.move_letters(Pick::new(queue.to_owned(), letters), deed).await
    }

    /// The dead letters of a queue by what went wrong, the largest group first.
    pub async fn letter_groups(&self, queue: &str) -> Result<Vec<LetterGroup>, RuntimeError> {
        Ok(self.store().letter_groups(queue.to_owned()).await?)
    }

    async fn move_letters(&self, pick: Pick, deed: Deed) -> Result<Moved, RuntimeError> {
        self.admit()?;
        let runtime = self.clone();
        self.to_the_end(async move { runtime.move_all(pick, deed).await }).await?
    }

    async fn move_all(&self, mut pick: Pick, mut deed: Deed) -> Result<Moved, RuntimeError> {
        let _alone = self.jobs().moving.lock().await;
        let mut moved = Moved::default();
        let end = deed.command("end");
        if self.was_done(end).await? {
            return Ok(moved);
        }
        for part in 0u64.. {
            let command = deed.command(&part.to_string());
            if self.was_done(command).await? {
                pick.pass_over();
                deed.pass_over();
                continue;
            }
            let Some(rows) = pick.next(self, &mut moved).await? else { break };
            self.move_part(rows, &deed, command, &mut moved).await?;
        }
        if let Some(end) = end {
            self.commit_once(end, Vec::new()).await?;
        }
        Ok(moved)
    }

    async fn was_done(&self, command: Option<CommandId>) -> Result<bool, RuntimeError> {
        match command {
            Some(command) => Ok(self.store().command(command).await?.is_some()),
            None => Ok(false),
        }
    }

    /// Moves those of the rows that go. What somebody else wrote meanwhile is read and decided again.
    pub(super) async fn move_part(
        &self,
        mut rows: Vec<JobRow>,
        deed: &Deed,
        command: Option<CommandId>,
        so_far: &mut Moved,
    ) -> Result<(), RuntimeError> {
        for _ in 0..TRIES {
            let changes = self.decided(&mut rows, deed, so_far);
            if changes.is_empty() {
                return Ok(());
            }
            match self.commit_once(command.unwrap_or_else(new_command), changes.clone()).await {
                Ok(()) => {
                    so_far.moved.extend(changes.iter().map(|change| change.job.id));
                    self.tell_of(changes);
                    return Ok(());
                }
                Err(StoreError::Refused(Refusal::Duplicates(duplicates))) => {
                    rows.retain(|row| duplicates.iter().all(|duplicate| duplicate.job != row.id()));
                    so_far.refused.extend(duplicates.into_iter().map(taken));
                }
                Err(StoreError::Refused(Refusal::Short { account, needed, balance, keys, .. })) => {
                    let short: Vec<JobId> = keys.iter().filter_map(|key| job_of_key(key)).collect();
                    rows.retain(|row| !short.contains(&row.id()));
                    let refusal = JobRefusal::Short { account, needed, balance };
                    so_far.refused.extend(short.into_iter().map(|job| (job, Some(refusal.clone()))));
                }
                Err(StoreError::Conflict { .. }) => {
                    let ids = rows.iter().map(JobRow::id).collect();
                    rows = pick::stored(self, ids).await?.into_iter().filter_map(|(_, row)| row).collect();
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(RuntimeError::Busy { retry_after: AGAIN })
    }

    /// What becomes of the rows that go; the others say why and are left out.
    fn decided(&self, rows: &mut Vec<JobRow>, deed: &Deed, so_far: &mut Moved) -> Vec<JobChange> {
        let now = self.clock().now();
        let mut changes = Vec::with_capacity(rows.len());
        rows.retain(|row| {
            let refusal = match moved(row, deed.input(so_far.moved.len() + changes.len()), now) {
                // Heard before.
                Ok(None) => return false,
                Ok(Some(change)) if row.job.is_dead_letter() => {
                    changes.push(change);
                    return true;
                }
                // Cancelled or discarded: it could be opened again, but not as a dead letter.
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
