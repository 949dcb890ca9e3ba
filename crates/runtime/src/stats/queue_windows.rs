//! Recent events of each queue, recorded as changes of jobs become durable.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use windlass_engine::counter::Revision;
use windlass_engine::job::{Attempt, AttemptStatus, Job, State};
use windlass_engine::time::Timestamp;
use windlass_store::commit::JobChange;

use super::sample::EventFigures;
use super::window::{EventWindows, RecentActivity, WindowEvent};

/// Queues with windows of their own, up to 50 KB each; a new queue takes the place of the one without events for longest.
const QUEUES_MAX: usize = 1_000;

#[derive(Debug, Default)]
pub(super) struct QueueWindows {
    queues: Mutex<HashMap<String, EventWindows>>,
}

impl QueueWindows {
    /// Records the changes of jobs in one commit. Claims are recorded by [`QueueWindows::record_claims`].
    pub(super) fn record_changes(&self, changes: &[JobChange], now: Timestamp) {
        let events =
            changes.iter().filter_map(|change| Some((change.job.spec.queue.as_str(), event(change)?)));
        let mut events = events.peekable();
        if events.peek().is_none() {
            return;
        }
        let mut queues = self.lock();
        events.for_each(|(queue, event)| windows(&mut queues, queue).record(event, now));
    }

    /// Records claimed jobs, each with its queue and the time for which it could have been claimed.
    pub(super) fn record_claims<'a>(&self, jobs: impl IntoIterator<Item = (&'a str, u64)>, now: Timestamp) {
        let mut queues = self.lock();
        for (queue, wait_ms) in jobs {
            windows(&mut queues, queue).record(WindowEvent::Started { wait_ms: Some(wait_ms) }, now);
        }
    }

    pub(super) fn activity(&self, queue: &str, now: Timestamp) -> RecentActivity {
        let queues = self.lock();
        queues.get(queue).map(|windows| windows.activity(now)).unwrap_or_default()
    }

    /// The figures of a minute, by queue; queues without events in it are left out.
    pub(super) fn minute(&self, begin: Timestamp) -> Vec<(String, EventFigures)> {
        let queues = self.lock();
        let each = queues.iter().map(|(name, windows)| (name.clone(), windows.minute(begin)));
        each.filter(|(_, figures)| *figures != EventFigures::default()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, EventWindows>> {
        // A panic while it is held leaves at worst one event uncounted.
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn windows<'a>(queues: &'a mut HashMap<String, EventWindows>, queue: &str) -> &'a mut EventWindows {
    if !queues.contains_key(queue) {
        if queues.len() >= QUEUES_MAX {
            let quiet = queues.iter().min_by_key(|(_, windows)| windows.last_at());
            let quiet = quiet.map(|(name, _)| name.clone());
            quiet.and_then(|name| queues.remove(&name));
        }
        return queues.entry(queue.to_owned()).or_insert_with(EventWindows::new);
    }
    queues.get_mut(queue).expect("the queue was found above")
}

/// The event of a change, derived from the job after it: the attempt that has just ended is the latest one or, when a
/// retry has begun, the one before it.
fn event(change: &JobChange) -> Option<WindowEvent> {
    let job = &change.job;
    match &job.state {
        State::Pending { .. } | State::Queued { .. } if change.expected_rev == Revision::ZERO => {
            Some(WindowEvent::Created)
        }
        State::Succeeded => Some(WindowEvent::Succeeded { work_ms: Some(work_ms(job.latest())) }),
        State::Failed { discarded: None, .. } => {
            Some(WindowEvent::Failed { work_ms: Some(work_ms(job.latest())), is_dead: job.is_dead_letter() })
        }
        State::Retrying { .. } => Some(failed_before_latest(job)?),
        // Retried at once.
        State::Queued { since } => {
            let ended_now = |attempt: &Attempt| attempt.finished_at == Some(*since);
            job.attempts
                .iter()
                .rev()
                .nth(1)
                .filter(|attempt| ended_now(attempt))
                .and_then(|_| failed_before_latest(job))
        }
        State::Pending { .. }
        | State::Running { .. }
        | State::Suspended { .. }
        | State::Failed { .. }
        | State::Canceled => None,
    }
}

fn failed_before_latest(job: &Job) -> Option<WindowEvent> {
    let attempt = job.attempts.iter().rev().nth(1)?;
    let is_retried = attempt.status == AttemptStatus::Retrying;
    is_retried.then(|| WindowEvent::Failed { work_ms: Some(work_ms(attempt)), is_dead: false })
}

fn work_ms(attempt: &Attempt) -> u64 {
    attempt.finished_at.zip(attempt.started_at).map_or(0, |(end, start)| end.since(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_queue_takes_the_place_of_the_one_without_events_for_longest() {
        let queues = QueueWindows::default();
        for n in 0..i64::try_from(QUEUES_MAX).unwrap() {
            queues.record_claims([(format!("q{n}").as_str(), 1)], Timestamp(n));
        }
        queues.record_claims([("q0", 1)], Timestamp(5_000));
        queues.record_claims([("new", 1)], Timestamp(5_000));
        let started = |queue: &str| queues.activity(queue, Timestamp(5_000)).last_minute.counts.started;
        assert_eq!(["q0", "q1", "q2", "new"].map(started), [2, 0, 1, 1]);
        assert_eq!(queues.lock().len(), QUEUES_MAX);
    }

    #[test]
    fn an_unused_queue_has_no_activity() {
        assert_eq!(QueueWindows::default().activity("q", Timestamp(1)), RecentActivity::default());
    }
}
