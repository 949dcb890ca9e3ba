//! Hints: notices that another server has just written to the same store, and where.
//!
//! A hint promises nothing. It may come late, twice or never, and may be outdated: a reader that needs
//! certainty asks the store. Unread hints are merged, so that a slow reader costs no memory.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Poll, Waker};

use windlass_engine::id::RunId;

/// Runs, or queues, that a hint names; of more it says only that there are many.
pub const NAMED_MAX: usize = 1_024;

/// How long a ready job is left to the server that wrote it, if workers claim there: no hint names it for so long, and
/// other servers that know of it do not hand it out.
pub const LEFT_MS: u64 = 500;

/// Where something has changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hint {
    /// Their journals have grown.
    pub runs: BTreeSet<RunId>,
    /// Queues with jobs that can be claimed, now or later, and that no worker claims where they were written.
    pub queues: BTreeSet<String>,
    /// The same, although workers claim there: some jobs have to wait.
    pub overdue: BTreeSet<String>,
    /// A message waits to be delivered.
    pub outbox: bool,
    pub schedules: bool,
    /// A price, the settings of a queue, or a worker.
    pub settings: bool,
    /// Something was missed, or there was too much to name: anything may have changed.
    pub everything: bool,
}

impl Hint {
    /// Whether there is nothing to look at.
    pub fn is_empty(&self) -> bool {
        *self == Hint::default()
    }

    /// Merges another hint into this one.
    pub fn merge(&mut self, other: Hint) {
        self.runs.extend(other.runs);
        self.queues.extend(other.queues);
        self.overdue.extend(other.overdue);
        self.outbox |= other.outbox;
        self.schedules |= other.schedules;
        self.settings |= other.settings;
        self.everything |= other.everything;
        if self.runs.len() > NAMED_MAX || self.queues.len() > NAMED_MAX || self.overdue.len() > NAMED_MAX {
            self.everything = true;
            (self.runs, self.queues, self.overdue) = Default::default();
        }
    }
}

#[derive(Debug, Default)]
struct PendingHint {
    hint: Hint,
    waker: Option<Waker>,
    is_over: bool,
}

/// One who listens.
#[derive(Debug)]
pub struct Hints(Arc<Mutex<PendingHint>>);

fn open(state: &Mutex<PendingHint>) -> MutexGuard<'_, PendingHint> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hints {
    /// Waits for something to look at; everything since the last time at once. `None` = the store is gone.
    pub async fn next(&mut self) -> Option<Hint> {
        poll_fn(|context| {
            let mut state = open(&self.0);
            if !state.hint.is_empty() {
                return Poll::Ready(Some(std::mem::take(&mut state.hint)));
            }
            if state.is_over {
                return Poll::Ready(None);
            }
            state.waker = Some(context.waker().clone());
            Poll::Pending
        })
        .await
    }
}

/// Those who listen.
#[derive(Debug, Default)]
pub struct Listeners(Mutex<Vec<Weak<Mutex<PendingHint>>>>);

impl Listeners {
    /// One more.
    pub fn add(&self) -> Hints {
        let state = Arc::new(Mutex::new(PendingHint::default()));
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|one| one.strong_count() > 0);
        all.push(Arc::downgrade(&state));
        Hints(state)
    }

    /// Whether no listener exists.
    pub fn is_empty(&self) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().all(|one| one.strong_count() == 0)
    }

    /// Sends the hint to all listeners; an empty hint is not sent.
    pub fn tell(&self, hint: &Hint) {
        if hint.is_empty() {
            return;
        }
        self.each(|state| state.hint.merge(hint.clone()));
    }

    fn each(&self, change: impl Fn(&mut PendingHint)) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for state in all.iter().filter_map(Weak::upgrade) {
            let waker = {
                let mut state = open(&state);
                change(&mut state);
                state.waker.take()
            };
            waker.into_iter().for_each(Waker::wake);
        }
    }
}

impl Drop for Listeners {
    fn drop(&mut self) {
        self.each(|state| state.is_over = true);
    }
}

#[cfg(test)]
mod tests {
    use windlass_conformance::block_on;

    use super::*;

    fn of_run(n: usize) -> Hint {
        let run: RunId = format!("run_{n:032x}").parse().unwrap();
        Hint { runs: [run].into(), ..Hint::default() }
    }

    #[test]
    fn hints_that_were_not_read_come_at_once() {
        let listeners = Listeners::default();
        let (mut one, mut other) = (listeners.add(), listeners.add());
        listeners.tell(&of_run(1));
        listeners.tell(&Hint { outbox: true, ..of_run(2) });
        let hint = block_on(one.next()).unwrap();
        assert_eq!((hint.runs.len(), hint.outbox, hint.everything), (2, true, false));
        assert_eq!(block_on(other.next()), Some(hint));
        drop(listeners);
        assert_eq!(block_on(one.next()), None);
    }

    #[test]
    fn too_many_names_are_everything() {
        let mut hint = Hint::default();
        (0..=NAMED_MAX).for_each(|n| hint.merge(of_run(n)));
        assert_eq!(hint, Hint { everything: true, ..Hint::default() });
    }
}
