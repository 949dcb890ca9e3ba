//! Wake-ups of runs: a heap for the next minute, filled from the store, which holds all of them.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use windlass_engine::id::RunId;
use windlass_engine::input::Input;
use windlass_engine::time::{LATEST, Timestamp};

use crate::part::RuntimePart;
use crate::runs::Runs;
use crate::runs::mailbox::Envelope;

/// Wake-ups that come later than this are left to the store.
const HORIZON_MS: u64 = 60_000;
/// How often the store is asked for those that come soon: twice within the horizon, so that none is overslept.
const POLL_INTERVAL_MS: u64 = HORIZON_MS / 2;
/// The delay before a failed read is retried.
const RETRY_MS: u64 = 1_000;
/// Entries of the heap that may be out of date before it is made anew.
const SLACK: usize = 10_000;
/// Wake-ups taken from the store at once.
const READ_LIMIT: usize = 10_000;

/// The wake-ups of runs.
#[derive(Default)]
pub(crate) struct RunTimers {
    soon: Mutex<TimerHeap>,
    sooner: Notify,
    /// The store is to be asked now.
    pub(crate) look: Notify,
}

#[derive(Default)]
struct TimerHeap {
    heap: BinaryHeap<Reverse<(Timestamp, RunId)>>,
    /// The valid wake-ups: a heap entry that differs is out of date.
    wakes: HashMap<RunId, WakeUp>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct WakeUp {
    at: Timestamp,
    /// It was read from the store: another server may have it too, and know better.
    is_read: bool,
}

impl RunTimers {
    fn soon(&self) -> MutexGuard<'_, TimerHeap> {
        self.soon.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the wake-up of a run; `None` = it has none.
    pub(crate) fn set(&self, run: RunId, at: Option<Timestamp>, now: Timestamp) {
        self.put(run, at, false, now);
    }

    fn put(&self, run: RunId, at: Option<Timestamp>, is_read: bool, now: Timestamp) {
        let mut soon = self.soon();
        let Some(at) = at.filter(|at| at.since(now) <= HORIZON_MS) else {
            if !soon.wakes.is_empty() {
                soon.wakes.remove(&run);
            }
            return;
        };
        if soon.wakes.insert(run, WakeUp { at, is_read }).is_some_and(|before| before.at == at) {
            return;
        }
        let is_first = soon.heap.peek().is_none_or(|Reverse((first, _))| at < *first);
        soon.heap.push(Reverse((at, run)));
        if soon.heap.len() > 2 * soon.wakes.len() + SLACK {
            let entries = soon.wakes.iter().map(|(run, wake)| Reverse((wake.at, *run))).collect();
            soon.heap = entries;
        }
        drop(soon);
        if is_first {
            self.sooner.notify_one();
        }
    }

    /// A wake-up that was read from the store; a known one is newer.
    fn suggest(&self, run: RunId, at: Timestamp, now: Timestamp) {
        let is_known = self.soon().wakes.contains_key(&run);
        if !is_known {
            self.put(run, Some(at), true, now);
        }
    }

    /// Another server has written to these runs and keeps their wake-ups: those that were read before are out of date.
    pub(crate) fn forget_written<'r>(&self, runs: impl IntoIterator<Item = &'r RunId>) {
        let mut soon = self.soon();
        for run in runs {
            if soon.wakes.get(run).is_some_and(|wake| wake.is_read) {
                soon.wakes.remove(run);
            }
        }
    }

    fn next(&self) -> Option<Timestamp> {
        self.soon().heap.peek().map(|Reverse((at, _))| *at)
    }

    fn take_due(&self, now: Timestamp) -> Vec<RunId> {
        let mut soon = self.soon();
        let mut due = Vec::new();
        while let Some(Reverse((at, run))) = soon.heap.peek().copied().filter(|Reverse((at, _))| *at <= now) {
            soon.heap.pop();
            if soon.wakes.get(&run).is_some_and(|wake| wake.at == at) {
                soon.wakes.remove(&run);
                due.push(run);
            }
        }
        due
    }
}

impl Runs {
    /// Wakes runs when their time has come.
    pub(crate) async fn run_timers(self) {
        loop {
            let next = self.state().timers.next().unwrap_or(LATEST);
            tokio::select! {
                () = self.clock().sleep_until(next) => {}
                () = self.state().timers.sooner.notified() => {}
                () = self.stopped() => return,
            }
            for run in self.state().timers.take_due(self.clock().now()) {
                self.send(run, Envelope::of(Input::TimePassed));
            }
        }
    }

    /// Reads the wake-ups that come soon from the store, again and again.
    pub(crate) async fn poll_due(self) {
        loop {
            let now = self.clock().now();
            let wait_ms = match self.store().due(now.after(HORIZON_MS), READ_LIMIT).await {
                Ok(due) => {
                    for wake in &due.runs {
                        let at = wake.at.after(self.cluster().delay_ms(wake.id.uuid()));
                        self.state().timers.suggest(wake.id, at, now);
                    }
                    if due.runs.len() < READ_LIMIT { POLL_INTERVAL_MS } else { RETRY_MS }
                }
                Err(error) => {
                    tracing::warn!(%error, "wake-ups could not be read");
                    RETRY_MS
                }
            };
            tokio::select! {
                // After a jump ahead, later wake-ups are due at once.
                () = self.clock().sleep_until(now.after(wait_ms)) => {}
                () = self.state().timers.look.notified() => {}
                () = self.stopped() => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn run(n: u128) -> RunId {
        RunId::new(Uuid::from_u128(n))
    }

    #[test]
    fn a_run_is_due_at_its_latest_wake_up_only() {
        let timers = RunTimers::default();
        timers.set(run(1), Some(Timestamp(10)), Timestamp(0));
        timers.set(run(1), Some(Timestamp(20)), Timestamp(0));
        timers.set(run(2), Some(Timestamp(10)), Timestamp(0));
        assert_eq!(timers.take_due(Timestamp(9)), []);
        assert_eq!(timers.take_due(Timestamp(10)), [run(2)]);
        assert_eq!(timers.take_due(Timestamp(20)), [run(1)]);
        assert_eq!(timers.take_due(Timestamp(30)), []);
    }

    #[test]
    fn a_wake_up_that_is_taken_back_does_not_come() {
        let timers = RunTimers::default();
        timers.set(run(1), Some(Timestamp(10)), Timestamp(0));
        timers.set(run(1), None, Timestamp(0));
        assert_eq!(timers.take_due(Timestamp(20)), []);
    }

    #[test]
    fn a_wake_up_that_was_read_is_forgotten_when_another_server_writes() {
        let timers = RunTimers::default();
        timers.set(run(1), Some(Timestamp(10)), Timestamp(0));
        timers.suggest(run(1), Timestamp(5), Timestamp(0));
        timers.suggest(run(2), Timestamp(10), Timestamp(0));
        timers.suggest(run(3), Timestamp(10), Timestamp(0));
        timers.forget_written(&[run(1), run(2)]);
        assert_eq!(timers.take_due(Timestamp(20)), [run(1), run(3)]);
    }

    #[test]
    fn late_wake_ups_are_left_to_the_store() {
        let timers = RunTimers::default();
        timers.set(run(1), Some(Timestamp(0).after(HORIZON_MS + 1)), Timestamp(0));
        assert_eq!(timers.next(), None);
    }
}
