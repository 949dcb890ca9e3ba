//! How queues went lately: counted in memory as changes of jobs become durable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_engine::job::{Attempt, AttemptStatus, Job, State};
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;

use super::QueueStats;
use super::ring::{News, Ring};

/// Queues that are counted, some 26 KB each; of more, the one that was quiet longest is forgotten.
const QUEUES_MAX: usize = 1_000;

/// How all queues went.
#[derive(Debug, Default)]
pub(crate) struct Tallies {
    queues: Mutex<HashMap<String, Tally>>,
}

/// How one thing went, in three stretches of time.
#[derive(Debug)]
pub(crate) struct Tally {
    last_at: Timestamp,
    last_10s: Ring,
    last_minute: Ring,
    last_hour: Ring,
}

impl Tally {
    pub(crate) fn new() -> Self {
        Tally {
            last_at: Timestamp(i64::MIN),
            last_10s: Ring::of(10_000),
            last_minute: Ring::of(60_000),
            last_hour: Ring::of(3_600_000),
        }
    }

    pub(crate) fn note(&mut self, news: News, now: Timestamp) {
        self.last_at = self.last_at.max(now);
        for ring in [&mut self.last_10s, &mut self.last_minute, &mut self.last_hour] {
            ring.note(news, now);
        }
    }

    pub(crate) fn stats(&self, now: Timestamp) -> QueueStats {
        QueueStats {
            last_10s: self.last_10s.stretch(now),
            last_minute: self.last_minute.stretch(now),
            last_hour: self.last_hour.stretch(now),
        }
    }

    /// When something was last heard.
    pub(crate) fn last_at(&self) -> Timestamp {
        self.last_at
    }
}

impl Tallies {
    /// Changes of jobs that have become durable; claims are told apart, by [`Tallies::started`].
    pub(crate) fn changed<'a>(&self, changes: impl IntoIterator<Item = &'a JobChange>, now: Timestamp) {
        let news =
            changes.into_iter().filter_map(|change| Some((change.job.spec.queue.as_str(), news(change)?)));
        let mut news = news.peekable();
        if news.peek().is_none() {
            return;
        }
        let mut queues = self.lock();
        news.for_each(|(queue, news)| tally(&mut queues, queue).note(news, now));
    }

    /// Jobs that somebody has got, each with its queue and how long it could have been had before.
    pub(crate) fn started<'a>(&self, jobs: impl IntoIterator<Item = (&'a str, u64)>, now: Timestamp) {
        let mut queues = self.lock();
        for (queue, wait_ms) in jobs {
            tally(&mut queues, queue).note(News::Started { wait_ms: Some(wait_ms) }, now);
        }
    }

    pub(crate) fn of(&self, queue: &str, now: Timestamp) -> QueueStats {
        let queues = self.lock();
        queues.get(queue).map(|tally| tally.stats(now)).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Tally>> {
        // Counts may be wrong without harm, so that a panic elsewhere spoils nothing.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn tally<'a>(queues: &'a mut HashMap<String, Tally>, queue: &str) -> &'a mut Tally {
    if !queues.contains_key(queue) {
        if queues.len() >= QUEUES_MAX {
            let quiet = queues.iter().min_by_key(|(_, tally)| tally.last_at).map(|(name, _)| name.clone());
            quiet.and_then(|name| queues.remove(&name));
        }
        return queues.entry(queue.to_owned()).or_insert_with(Tally::new);
    }
    queues.get_mut(queue).expect("it was found a moment ago")
}

/// What a change tells, looked at alone: the attempt that has just ended is the last one, or, when another one has
/// begun, the one before it.
fn news(change: &JobChange) -> Option<News> {
    let job = &change.job;
    match &job.state {
        State::Pending { .. } | State::Queued { .. } if change.expected_rev == 0 => Some(News::Created),
        State::Succeeded => Some(News::Succeeded { work_ms: Some(work_ms(job.latest())) }),
        State::Failed { discarded: None, .. } => {
            Some(News::Failed { work_ms: Some(work_ms(job.latest())), is_dead: job.is_dead_letter() })
        }
        State::Retrying { .. } => Some(before_latest(job)?),
        // Tried again at once.
        State::Queued { since } => {
            let is_now = |attempt: &Attempt| attempt.finished_at == Some(*since);
            job.attempts
                .iter()
                .rev()
                .nth(1)
                .filter(|attempt| is_now(attempt))
                .and_then(|_| before_latest(job))
        }
        State::Pending { .. }
        | State::Running { .. }
        | State::Suspended { .. }
        | State::Failed { .. }
        | State::Cancelled => None,
    }
}

fn before_latest(job: &Job) -> Option<News> {
    let attempt = job.attempts.iter().rev().nth(1)?;
    let is_followed = attempt.status == AttemptStatus::Retrying;
    is_followed.then(|| News::Failed { work_ms: Some(work_ms(attempt)), is_dead: false })
}

fn work_ms(attempt: &Attempt) -> u64 {
    attempt.finished_at.zip(attempt.started_at).map_or(0, |(end, start)| end.since(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_that_was_quiet_longest_is_forgotten() {
        let tallies = Tallies::default();
        for n in 0..i64::try_from(QUEUES_MAX).unwrap() {
            tallies.started([(format!("q{n}").as_str(), 1)], Timestamp(n));
        }
        tallies.started([("q0", 1)], Timestamp(5_000));
        tallies.started([("new", 1)], Timestamp(5_000));
        let n_started = |queue: &str| tallies.of(queue, Timestamp(5_000)).last_minute.n_started;
        assert_eq!(["q0", "q1", "q2", "new"].map(n_started), [2, 0, 1, 1]);
        assert_eq!(tallies.lock().len(), QUEUES_MAX);
    }

    #[test]
    fn a_queue_that_nobody_used_has_nothing_to_tell() {
        assert_eq!(Tallies::default().of("q", Timestamp(1)), QueueStats::default());
    }
}
