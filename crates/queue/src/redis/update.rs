//! Updates of Redis after changes of jobs.

use uuid::Uuid;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, State, attempt_id};
use windlass_engine::time::Timestamp;

use super::message::JobMessage;

/// How long a heartbeat is shown.
pub const HEARTBEAT_MS: u64 = 30_000;

/// The new state of a job. The lease of the attempt in `ended` is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisUpdate {
    /// In its place in the list.
    Ready {
        message: JobMessage,
        /// A run created the job.
        is_run: bool,
        /// It may be among the delayed jobs.
        was_delayed: bool,
        ended: Option<Uuid>,
        /// It may be among the dead letters.
        revived: Option<JobId>,
    },
    /// Back at the head of its list.
    Back(JobMessage),
    Delayed {
        message: JobMessage,
        due: Timestamp,
        ended: Option<Uuid>,
        revived: Option<JobId>,
    },
    /// Held by a worker for `ms` milliseconds.
    Held {
        message: JobMessage,
        was_ready: bool,
        was_delayed: bool,
        attempt: Uuid,
        worker: String,
        ms: u64,
    },
    Ended {
        message: JobMessage,
        was_ready: bool,
        ended: Option<Uuid>,
    },
    /// Among the dead letters.
    Dead {
        message: JobMessage,
        ended: Option<Uuid>,
    },
    Discarded {
        queue: String,
        job: JobId,
    },
    /// Not a job: the heartbeat of a worker.
    Heartbeat {
        worker: String,
        at: Timestamp,
    },
}

impl RedisUpdate {
    /// The update for a job that has just been written. `is_popped`: the claim took it from its list.
    pub fn of(job: &Job, is_popped: bool, now: Timestamp) -> RedisUpdate {
        let (queue, ended) = (job.spec.queue.clone(), last_granted(job));
        let message = || JobMessage::of(job);
        // The first attempt of a later round has not been granted yet.
        let is_first = job.round.n_attempts <= 1 && job.latest().fence == Fence::ZERO;
        let is_reopened = job.round.number > 1 && is_first;
        let revived = is_reopened.then_some(job.id);
        match &job.state {
            State::Queued { .. } => RedisUpdate::Ready {
                message: message(),
                is_run: job.spec.run.is_some(),
                was_delayed: job.fence > Fence::ZERO || job.spec.run_at.is_some(),
                ended,
                revived,
            },
            State::Pending { until } | State::Suspended { until } | State::Retrying { until } => {
                RedisUpdate::Delayed { message: message(), due: *until, ended, revived }
            }
            State::Running { worker, lease_until, .. } => RedisUpdate::Held {
                message: message(),
                // An extension of the lease comes later.
                was_ready: !is_popped && job.latest().started_at == Some(job.updated_at),
                was_delayed: job.fence > Fence(1) || job.spec.run_at.is_some(),
                attempt: ended.unwrap_or_else(|| attempt_id(job.id, job.latest().number)),
                worker: worker.clone(),
                ms: lease_until.since(now).max(1),
            },
            State::Failed { .. } if job.is_dead_letter() => RedisUpdate::Dead { message: message(), ended },
            State::Failed { discarded: Some(_), .. } => RedisUpdate::Discarded { queue, job: job.id },
            State::Succeeded | State::Failed { .. } | State::Canceled => RedisUpdate::Ended {
                message: message_while_open(job),
                was_ready: job.latest().started_at.is_none(),
                ended,
            },
        }
    }
}

impl RedisUpdate {
    /// The queue that it is about.
    pub(super) fn queue(&self) -> Option<&str> {
        match self {
            RedisUpdate::Ready { message, .. }
            | RedisUpdate::Back(message)
            | RedisUpdate::Delayed { message, .. }
            | RedisUpdate::Held { message, .. }
            | RedisUpdate::Ended { message, .. }
            | RedisUpdate::Dead { message, .. } => Some(&message.queue),
            RedisUpdate::Discarded { queue, .. } => Some(queue),
            RedisUpdate::Heartbeat { .. } => None,
        }
    }
}

/// The message that an ended job had before, without its error.
fn message_while_open(job: &Job) -> JobMessage {
    match &job.state {
        State::Failed { .. } => JobMessage::of(&Job { state: State::Canceled, ..job.clone() }),
        _ => JobMessage::of(job),
    }
}

/// The latest attempt that a worker was given.
fn last_granted(job: &Job) -> Option<Uuid> {
    let is_last = |fence: Fence| fence > Fence::ZERO && fence == job.fence;
    let attempt = job.attempts.iter().rev().find(|attempt| is_last(attempt.fence))?;
    Some(attempt_id(job.id, attempt.number))
}
