//! Queries of claimable jobs, and of the jobs that workers hold of a queue.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use windlass_engine::counter::Revision;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;

use crate::job::{JobRow, due_at};

/// The source of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ReadyQuery {
    /// A job matches by its queue, or by its name as a service.
    pub queues: Vec<String>,
    pub services: Vec<String>,
    /// Or by both: the queue and the service.
    pub pairs: Vec<(String, String)>,
    /// These jobs, if they can be claimed: then nothing else that the query says is asked.
    pub ids: Vec<JobId>,
    /// Queues whose jobs do not match by their service alone.
    pub except: Vec<String>,
    /// Only jobs of runs.
    pub is_of_runs: bool,
    /// Only this portion of the jobs; a store that only one server has may answer with all.
    pub portion: Option<Portion>,
    /// Not those that come before this place.
    pub from: Option<ReadyCursor>,
    pub now: Timestamp,
    pub limit: usize,
}

/// One of so many portions that all jobs fall into, about as large as the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    pub at: usize,
    pub of: usize,
}

impl Portion {
    /// Whether the job is in it. Ids end in chance.
    pub fn has(self, id: JobId) -> bool {
        usize::from(id.uuid().as_bytes()[15]) % self.of.max(1) == self.at
    }
}

/// A place among jobs that can be claimed: higher priority first, then the earlier due, then the smaller id.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReadyCursor {
    pub priority: i32,
    pub due_at: Timestamp,
    pub id: JobId,
}

impl ReadyCursor {
    fn order(self) -> (Reverse<i32>, Timestamp, JobId) {
        (Reverse(self.priority), self.due_at, self.id)
    }
}

/// A question about one queue, limit key by limit key: a key with a million jobs hides none of the others. Jobs
/// without a key are those of the empty key. Only jobs that are queued count, not those whose wait has just ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeyQuery {
    pub queue: String,
    /// Only jobs of this service.
    pub service: Option<String>,
    /// Keys that are not asked about.
    pub except: HashSet<Arc<str>>,
    /// Jobs to leave out: a claim is getting them.
    pub taken: HashSet<JobId>,
    /// Among keys of one priority, begins after this one and goes around.
    pub after: Option<Arc<str>>,
    pub now: Timestamp,
    /// Jobs at most, as many of each key as of any other.
    pub limit: usize,
}

/// Claimable jobs, higher priorities first.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct KeyRows {
    pub turns: Vec<KeyBatch>,
    /// There are more keys: of this priority some are missing, and of lower ones all.
    pub rest: Option<i32>,
}

/// Jobs of one key and one priority, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct KeyBatch {
    pub key: String,
    pub priority: i32,
    /// Never empty.
    pub rows: Vec<JobRow>,
    /// There are no more of this key and this priority.
    pub is_all: bool,
}

/// A job that a worker has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldRow {
    pub job: JobId,
    pub rev: Revision,
    pub limit_key: String,
}

impl JobRow {
    /// Whether the claim may have it; a paused queue aside.
    pub fn is_ready(&self, query: &ReadyQuery) -> bool {
        let spec = &self.job.spec;
        let is_due = due_at(&self.job).is_some_and(|due| due <= query.now);
        if !query.ids.is_empty() {
            return is_due && query.ids.contains(&self.id());
        }
        let is_pair = |(queue, service): &(String, String)| *queue == spec.queue && *service == spec.name;
        let by_service = query.services.contains(&spec.name) && !query.except.contains(&spec.queue);
        (query.queues.contains(&spec.queue) || by_service || query.pairs.iter().any(is_pair))
            && is_due
            && (spec.run.is_some() || !query.is_of_runs)
            && query.portion.is_none_or(|portion| portion.has(self.id()))
            && query.from.is_none_or(|from| self.ready_cursor().order() >= from.order())
    }

    /// Its place among others that can be claimed.
    pub fn ready_cursor(&self) -> ReadyCursor {
        let due_at = due_at(&self.job).unwrap_or_default();
        ReadyCursor { priority: self.job.spec.priority, due_at, id: self.id() }
    }
}
