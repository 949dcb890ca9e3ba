//! Jobs: who gets them, and what becomes of them.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use windlass_engine::id::JobId;
use windlass_engine::input::Outcome;
use windlass_engine::time::Timestamp;
use windlass_store::job::CallRef;

use crate::{Runtime, RuntimeError};

/// Somebody asks for work.
#[derive(Debug, Clone)]
pub struct Claim {
    pub worker: String,
    /// A job matches by its queue or by its service.
    pub queues: Vec<String>,
    pub services: Vec<String>,
    pub max: usize,
    /// How long to wait when there is nothing.
    pub wait: Duration,
    pub lease: Duration,
}

/// A job that somebody has now.
#[derive(Debug, Clone)]
pub struct Claimed {
    pub job: JobId,
    /// Together with the job's id, names this claim.
    pub fence: u64,
    pub attempt: u32,
    /// The same for every attempt.
    pub key: String,
    pub queue: String,
    pub service: String,
    pub input: Arc<Value>,
    pub params: Arc<Value>,
    pub memo: Option<Value>,
    pub created_at: Timestamp,
    pub started_at: Timestamp,
    pub lease_until: Timestamp,
    pub deadline: Option<Timestamp>,
    /// The call of a run that it carries.
    pub call: Option<CallRef>,
}

/// How a job that somebody had ended.
#[derive(Debug, Clone)]
pub struct Finish {
    pub job: JobId,
    pub fence: u64,
    pub outcome: Outcome,
    pub worker: Option<String>,
    pub log: Option<String>,
}

/// What becomes of a claim, in a word for whoever holds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    Ok,
    /// Somebody else has it, or it is over.
    Lost,
    /// Nobody wants it any more: stop.
    Canceled,
}

impl Runtime {
    pub(crate) fn committed_jobs(&self, _changes: &[windlass_store::commit::JobChange]) {}

    /// Hands out jobs; waits for some when there are none.
    pub async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, RuntimeError> {
        let _ = claim;
        unimplemented!()
    }

    /// Takes the ends of jobs, each for itself.
    pub async fn finish(&self, ends: Vec<Finish>) -> Vec<Result<Verdict, RuntimeError>> {
        let _ = ends;
        unimplemented!()
    }

    /// Keeps claims alive, each for itself, and says which of them nobody wants any more.
    pub async fn extend(
        &self,
        claims: Vec<(JobId, u64)>,
        lease: Duration,
    ) -> Vec<Result<Verdict, RuntimeError>> {
        let _ = (claims, lease);
        unimplemented!()
    }
}
