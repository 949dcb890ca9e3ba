//! What becomes of jobs, as far as Redis shows it.

use redis::ToRedisArgs;
use uuid::Uuid;
use uuid::fmt::Simple;
use windlass_engine::id::JobId;
use windlass_engine::job::{Job, State, attempt_id};
use windlass_engine::time::Timestamp;

/// Dead letters of a queue that are shown, the latest: the others are in the store only.
const DEAD_MAX: usize = 10_000;

/// A job in the list of its queue and its priority.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spot {
    pub queue: String,
    pub priority: i32,
    pub job: JobId,
    /// Whether it is the job of a run, which leaves some turns to those of lower classes.
    pub is_run: bool,
}

impl Spot {
    /// Where a job is when it is ready.
    pub fn of(job: &Job) -> Self {
        let (queue, is_run) = (job.spec.queue.clone(), job.spec.run.is_some());
        Spot { queue, priority: job.spec.priority, job: job.id, is_run }
    }

    /// The id as it stands in lists: without hyphens if it is of a run. Whoever does not know of the difference reads
    /// both.
    pub(super) fn spelled(&self) -> String {
        match self.is_run {
            true => self.job.uuid().simple().to_string(),
            false => shown(self.job.uuid()),
        }
    }

    /// A job as it was popped; `None` = nonsense.
    pub(super) fn read(words: &[Vec<u8>]) -> Option<Spot> {
        let [queue, priority, id] = words else { return None };
        Some(Spot {
            queue: String::from_utf8(queue.clone()).ok()?,
            priority: std::str::from_utf8(priority).ok()?.parse().ok()?,
            job: JobId::new(Uuid::try_parse_ascii(id).ok()?),
            is_run: id.len() == Simple::LENGTH,
        })
    }
}

/// Where a job is from now on. An attempt that is named has nobody who works at it any more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Move {
    /// At the end of its list.
    Ready {
        at: Spot,
        ended: Option<Uuid>,
        has_waited: bool,
        was_dead: bool,
    },
    /// At the head of its list, where it was.
    Back(Spot),
    Delayed {
        at: Spot,
        ended: Option<Uuid>,
        due: Timestamp,
        was_dead: bool,
    },
    /// In the hands of a worker, for so long.
    Held {
        at: Spot,
        attempt: Uuid,
        worker: String,
        ms: u64,
    },
    Ended {
        at: Spot,
        ended: Option<Uuid>,
    },
    /// Among the dead letters.
    Dead {
        at: Spot,
        ended: Option<Uuid>,
    },
    Discarded(Spot),
    /// No job: a worker lives, for so long.
    Beat {
        worker: String,
        at: Timestamp,
        ms: u64,
    },
}

impl Move {
    /// Where a job is that has just been written.
    pub fn of(job: &Job, now: Timestamp) -> Move {
        let (at, ended) = (Spot::of(job), last_granted(job));
        let was_dead = job.round.number > 1;
        match &job.state {
            State::Queued { .. } => {
                let has_waited = job.fence > 0 || job.spec.run_at.is_some();
                Move::Ready { at, ended, has_waited, was_dead }
            }
            State::Pending { until } | State::Suspended { until } | State::Retrying { until } => {
                Move::Delayed { at, ended, due: *until, was_dead }
            }
            State::Running { worker, lease_until, .. } => {
                let attempt = ended.unwrap_or_else(|| attempt_id(job.id, job.latest().number));
                Move::Held { at, attempt, worker: worker.clone(), ms: lease_until.since(now).max(1) }
            }
            State::Failed { .. } if job.is_dead_letter() => Move::Dead { at, ended },
            State::Failed { discarded: Some(_), .. } => Move::Discarded(at),
            State::Succeeded | State::Failed { .. } | State::Cancelled => Move::Ended { at, ended },
        }
    }

    /// The seven words of the script.
    pub(super) fn write(&self, out: &mut Vec<Vec<u8>>) {
        let flag = |is: bool| if is { "1".to_owned() } else { String::new() };
        let attempt = |ended: &Option<Uuid>| ended.map(shown).unwrap_or_default();
        let none = String::new;
        match self {
            Move::Ready { at, ended, has_waited, was_dead } => {
                words("ready", at, attempt(ended), flag(*has_waited), flag(*was_dead), out);
            }
            Move::Back(at) => words("back", at, none(), none(), none(), out),
            Move::Delayed { at, ended, due, was_dead } => {
                words("delayed", at, attempt(ended), due.0.to_string(), flag(*was_dead), out);
            }
            Move::Held { at, attempt, worker, ms } => {
                words("held", at, shown(*attempt), worker.clone(), ms.to_string(), out);
            }
            Move::Ended { at, ended } => words("ended", at, attempt(ended), none(), none(), out),
            Move::Dead { at, ended } => {
                words("dead", at, attempt(ended), DEAD_MAX.to_string(), none(), out);
            }
            Move::Discarded(at) => words("discarded", at, none(), none(), none(), out),
            Move::Beat { worker, at, ms } => {
                let seven = ["beat", "", "", worker, "", &ms.to_string(), &at.0.to_string()];
                seven.iter().for_each(|word| word.write_redis_args(out));
            }
        }
    }
}

fn words(what: &str, at: &Spot, lease: String, one: String, other: String, out: &mut Vec<Vec<u8>>) {
    let (priority, job) = (at.priority.to_string(), at.spelled());
    let seven = [what, &at.queue, &priority, &job, &lease, &one, &other];
    seven.iter().for_each(|word| word.write_redis_args(out));
}

/// An id as it stands in Redis: as the queue platform writes it.
pub(super) fn shown(id: Uuid) -> String {
    id.hyphenated().to_string()
}

/// The attempt that was last given to somebody.
fn last_granted(job: &Job) -> Option<Uuid> {
    let is_last = |fence: u64| fence > 0 && fence == job.fence;
    let attempt = job.attempts.iter().rev().find(|attempt| is_last(attempt.fence))?;
    Some(attempt_id(job.id, attempt.number))
}
