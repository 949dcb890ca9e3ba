//! One try at a job, as it is shown and stored: a row.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::counter::Fence;
use crate::id::JobId;
use crate::raw_json::RawJson;
use crate::retry::Fault;
use crate::time::Timestamp;

use super::JobOutcome;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AttemptStatus {
    Queued,
    Running,
    Succeeded,
    Failed,
    /// Failed, and another one follows.
    Retrying,
    Canceled,
}

impl AttemptStatus {
    pub fn word(self) -> &'static str {
        match self {
            AttemptStatus::Queued => "queued",
            AttemptStatus::Running => "running",
            AttemptStatus::Succeeded => "succeeded",
            AttemptStatus::Failed => "failed",
            AttemptStatus::Retrying => "retrying",
            AttemptStatus::Canceled => "canceled",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// From 1, over all rounds.
    pub number: u32,
    /// The fence of the last grant; 0 before the first.
    pub fence: Fence,
    pub status: AttemptStatus,
    pub worker: Option<String>,
    pub created_at: Timestamp,
    pub started_at: Option<Timestamp>,
    pub finished_at: Option<Timestamp>,
    pub result: Option<RawJson>,
    pub error: Option<Fault>,
    pub next_retry_at: Option<Timestamp>,
}

impl Attempt {
    /// The attempt of a job that was not granted yet.
    pub fn first(created_at: Timestamp) -> Self {
        Attempt::queued(1, created_at)
    }

    pub(super) fn queued(number: u32, at: Timestamp) -> Self {
        Self {
            number,
            fence: Fence(0),
            status: AttemptStatus::Queued,
            worker: None,
            created_at: at,
            started_at: None,
            finished_at: None,
            result: None,
            error: None,
            next_retry_at: None,
        }
    }

    pub(super) fn end(&mut self, status: AttemptStatus, at: Timestamp) {
        self.status = status;
        self.finished_at = Some(at);
    }

    /// Whether it has ended with just this outcome, so that a repeated report is a no-op.
    pub(super) fn ended_with(&self, outcome: &JobOutcome) -> bool {
        match outcome {
            // Null is kept as nothing: stores cannot tell the two apart.
            JobOutcome::Done { result } => match self.status {
                AttemptStatus::Succeeded | AttemptStatus::Canceled => {
                    let known = self.result.as_ref();
                    self.error.is_none() && known.map_or_else(|| result.is_null(), |known| known == result)
                }
                AttemptStatus::Queued
                | AttemptStatus::Running
                | AttemptStatus::Failed
                | AttemptStatus::Retrying => false,
            },
            JobOutcome::Failed { fault, .. } => {
                self.finished_at.is_some() && self.error.as_ref() == Some(fault)
            }
            JobOutcome::Suspended { .. } => false,
        }
    }
}

/// The id of an attempt: that of its job, with the number in the place of the last 32 bits. Those are random, and the
/// others tell plain jobs apart without them; of the calls of one run, 32 bits are left to do so.
pub fn attempt_id(job: JobId, number: u32) -> Uuid {
    let mut bytes = *job.uuid().as_bytes();
    bytes[12..].copy_from_slice(&number.to_be_bytes());
    Uuid::from_bytes(bytes)
}
