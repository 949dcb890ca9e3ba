//! Updates of Redis after changes of jobs.

use redis::ToRedisArgs;
use uuid::Uuid;
use uuid::fmt::Simple;
use windlass_engine::counter::Fence;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, State, attempt_id};
use windlass_engine::time::Timestamp;

/// Dead letters of a queue in Redis, the latest ones; the store has all.
const DEAD_MAX: usize = 10_000;

/// A job in the list of its queue and priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyEntry {
    pub queue: String,
    pub priority: i32,
    pub job: JobId,
    /// Whether a run created the job, so that it leaves turns to lower classes.
    pub is_run: bool,
}

impl ReadyEntry {
    /// The list entry of a job.
    pub fn of(job: &Job) -> Self {
        let (queue, is_run) = (job.spec.queue.clone(), job.spec.run.is_some());
        ReadyEntry { queue, priority: job.spec.priority, job: job.id, is_run }
    }

    /// The id in a list: without hyphens if a run created the job. Both forms parse as a UUID.
    pub(super) fn encoded_id(&self) -> String {
        match self.is_run {
            true => self.job.uuid().simple().to_string(),
            false => shown(self.job.uuid()),
        }
    }

    /// Parses a popped entry; `None` if it is not a job id.
    pub(super) fn read(words: &[Vec<u8>]) -> Option<ReadyEntry> {
        let [queue, priority, id] = words else { return None };
        Some(ReadyEntry {
            queue: String::from_utf8(queue.clone()).ok()?,
            priority: std::str::from_utf8(priority).ok()?.parse().ok()?,
            job: JobId::new(Uuid::try_parse_ascii(id).ok()?),
            is_run: id.len() == Simple::LENGTH,
        })
    }
}

/// The new state of a job. The lease of the attempt in `ended` is removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedisUpdate {
    /// At the end of its list.
    Ready {
        at: ReadyEntry,
        ended: Option<Uuid>,
        has_waited: bool,
        was_dead: bool,
    },
    /// Back at the head of its list.
    Back(ReadyEntry),
    Delayed {
        at: ReadyEntry,
        ended: Option<Uuid>,
        due: Timestamp,
        was_dead: bool,
    },
    /// Held by a worker for `ms` milliseconds.
    Held {
        at: ReadyEntry,
        attempt: Uuid,
        worker: String,
        ms: u64,
    },
    Ended {
        at: ReadyEntry,
        ended: Option<Uuid>,
    },
    /// Among the dead letters.
    Dead {
        at: ReadyEntry,
        ended: Option<Uuid>,
    },
    Discarded(ReadyEntry),
    /// Not a job: the heartbeat of a worker, valid for `ms` milliseconds.
    Heartbeat {
        worker: String,
        at: Timestamp,
        ms: u64,
    },
}

impl RedisUpdate {
    /// The update for a job that has just been written.
    pub fn of(job: &Job, now: Timestamp) -> RedisUpdate {
        let (at, ended) = (ReadyEntry::of(job), last_granted(job));
        let was_dead = job.round.number > 1;
        match &job.state {
            State::Queued { .. } => {
                let has_waited = job.fence > Fence::ZERO || job.spec.run_at.is_some();
                RedisUpdate::Ready { at, ended, has_waited, was_dead }
            }
            State::Pending { until } | State::Suspended { until } | State::Retrying { until } => {
                RedisUpdate::Delayed { at, ended, due: *until, was_dead }
            }
            State::Running { worker, lease_until, .. } => {
                let attempt = ended.unwrap_or_else(|| attempt_id(job.id, job.latest().number));
                RedisUpdate::Held { at, attempt, worker: worker.clone(), ms: lease_until.since(now).max(1) }
            }
            State::Failed { .. } if job.is_dead_letter() => RedisUpdate::Dead { at, ended },
            State::Failed { discarded: Some(_), .. } => RedisUpdate::Discarded(at),
            State::Succeeded | State::Failed { .. } | State::Canceled => RedisUpdate::Ended { at, ended },
        }
    }

    /// Writes the seven arguments of the script.
    pub(super) fn write(&self, out: &mut Vec<Vec<u8>>) {
        let flag = |is: bool| if is { "1".to_owned() } else { String::new() };
        let attempt = |ended: &Option<Uuid>| ended.map(shown).unwrap_or_default();
        let none = String::new;
        match self {
            RedisUpdate::Ready { at, ended, has_waited, was_dead } => {
                words("ready", at, attempt(ended), flag(*has_waited), flag(*was_dead), out);
            }
            RedisUpdate::Back(at) => words("back", at, none(), none(), none(), out),
            RedisUpdate::Delayed { at, ended, due, was_dead } => {
                words("delayed", at, attempt(ended), due.0.to_string(), flag(*was_dead), out);
            }
            RedisUpdate::Held { at, attempt, worker, ms } => {
                words("held", at, shown(*attempt), worker.clone(), ms.to_string(), out);
            }
            RedisUpdate::Ended { at, ended } => words("ended", at, attempt(ended), none(), none(), out),
            RedisUpdate::Dead { at, ended } => {
                words("dead", at, attempt(ended), DEAD_MAX.to_string(), none(), out);
            }
            RedisUpdate::Discarded(at) => words("discarded", at, none(), none(), none(), out),
            RedisUpdate::Heartbeat { worker, at, ms } => {
                let seven = ["beat", "", "", worker, "", &ms.to_string(), &at.0.to_string()];
                seven.iter().for_each(|word| word.write_redis_args(out));
            }
        }
    }
}

fn words(what: &str, at: &ReadyEntry, lease: String, one: String, other: String, out: &mut Vec<Vec<u8>>) {
    let (priority, job) = (at.priority.to_string(), at.encoded_id());
    let seven = [what, &at.queue, &priority, &job, &lease, &one, &other];
    seven.iter().for_each(|word| word.write_redis_args(out));
}

/// An id in the form of the queue platform.
pub(super) fn shown(id: Uuid) -> String {
    id.hyphenated().to_string()
}

/// The latest attempt that a worker was given.
fn last_granted(job: &Job) -> Option<Uuid> {
    let is_last = |fence: Fence| fence > Fence::ZERO && fence == job.fence;
    let attempt = job.attempts.iter().rev().find(|attempt| is_last(attempt.fence))?;
    Some(attempt_id(job.id, attempt.number))
}
