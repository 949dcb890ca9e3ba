//! Dead letters: jobs that failed for good, until somebody replays or discards them.

use serde_json::Value;
use windlass_engine::id::JobId;
use windlass_engine::job::JobRefusal;
use windlass_store::job::LetterGroup;

use crate::{Runtime, RuntimeError};

/// Dead letters that one request can be about.
pub const LETTERS_MAX: usize = 10_000;

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
    /// Those that were asked for by id and are not dead letters of this queue, or would not go; they stay as they are.
    pub refused: Vec<(JobId, Option<JobRefusal>)>,
}

impl Runtime {
    /// Tries dead letters again. Whatever goes wrong, each of them is either tried again or still a dead letter.
    pub async fn replay_letters(&self, _replay: Replay) -> Result<Moved, RuntimeError> {
        unimplemented!()
    }

    /// Gives dead letters up, for a reason.
    pub async fn discard_letters(
        &self,
        _queue: &str,
        _letters: Letters,
        _reason: &str,
    ) -> Result<Moved, RuntimeError> {
        unimplemented!()
    }

    /// The dead letters of a queue by what went wrong, the largest group first.
    pub async fn letter_groups(&self, queue: &str) -> Result<Vec<LetterGroup>, RuntimeError> {
        Ok(self.store().letter_groups(queue.to_owned()).await?)
    }
}
