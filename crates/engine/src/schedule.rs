//! Schedules: which slots of a cron expression fire now, and which pass.
//!
//! `plan` is a rule, not a loop: its arguments are the decisions so far, the time and the number of running starts,
//! and its answer names firings, cancellations, the progress to store and the next time to ask. Asked twice with the
//! same memory it gives the same answer, and every firing has an id that is unique per slot; so two servers that
//! ask at the same time start one job.

pub mod cron;

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::id::{JobId, RunId, ScheduleId, derive_at};
use crate::time::Timestamp;

pub use cron::{Cron, Dst};

/// Slots that fire, or wait, because of one schedule at one time. More would be a flood, not a catch-up.
pub const FIRINGS_MAX: usize = 1_000;
/// A slot decided within this time is on time: ticks are late now and then, and a restart takes a moment.
pub const ON_TIME_MS: u64 = 60_000;
/// How far the clock may go back before slots are decided again: the clocks of several servers differ by less.
pub const BACK_MS_MAX: u64 = 60_000;
/// How far back missed slots are looked for unless the schedule says otherwise: one day.
pub const WINDOW_MS_DEFAULT: u64 = 86_400_000;

/// A rule that starts a job or a run at certain times; it does not know which.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    pub id: ScheduleId,
    pub cron: Cron,
    pub enabled: bool,
    #[serde(default)]
    pub overlap: Overlap,
    #[serde(default)]
    pub catchup: Catchup,
    /// How late a missed slot may still be caught up; 0 = [`WINDOW_MS_DEFAULT`].
    #[serde(default)]
    pub window_ms: u64,
}

/// The rule for a slot while the start of an earlier slot is still running.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Overlap {
    /// It passes without firing.
    #[default]
    Skip,
    /// It waits, in order, until nothing is running.
    Queue,
    /// The running start is canceled, and the slot fires.
    Cancel,
    /// It fires all the same.
    Allow,
}

/// The rule for slots that passed while no server ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Catchup {
    /// They pass.
    #[default]
    None,
    /// The latest of them fires, unless a slot that is on time does.
    Last,
    /// They all fire, the latest [`FIRINGS_MAX`] of them.
    All,
}

/// Progress that a schedule stores between two questions.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// Everything up to this moment is decided. `None` for a schedule that was never asked about.
    pub last_slot: Option<Timestamp>,
    /// Slots that wait for a running start, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Timestamp>,
}

impl Progress {
    /// Whether it was decided by a clock that was wrong: this one is far behind it, or a slot waits that is still to come.
    pub fn is_ahead_of(&self, now: Timestamp) -> bool {
        self.last_slot.is_some_and(|decided| decided.since(now) > BACK_MS_MAX)
            || self.waiting.last().is_some_and(|slot| *slot > now)
    }
}

/// One start. Its id is unique per slot, so that it can happen only once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Firing {
    pub schedule: ScheduleId,
    pub slot: Timestamp,
    /// A user triggered it; it is not a slot of the schedule.
    pub manual: bool,
}

impl Firing {
    /// The job that it starts: the same firing always has the same job.
    pub fn job(&self) -> JobId {
        JobId::new(derive_at(self.schedule.uuid(), self.slot.0, u64::from(self.manual)))
    }

    /// The run that it starts: the same firing always has the same run.
    pub fn run(&self) -> RunId {
        RunId::new(derive_at(self.schedule.uuid(), self.slot.0, 2 + u64::from(self.manual)))
    }
}

impl fmt::Display for Firing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}@{}{}", self.schedule, self.slot, if self.manual { "!" } else { "" })
    }
}

/// Decisions about a schedule at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// To be started, oldest first.
    pub fire: Vec<Firing>,
    /// Whether running starts are to be canceled first.
    pub cancel_running: bool,
    /// Slots that pass without firing; counted up to [`FIRINGS_MAX`].
    pub n_passed: usize,
    /// To be remembered in the same transaction.
    pub progress: Progress,
    /// When to ask again; also whenever something that it started ends, if slots are waiting.
    pub next_at: Option<Timestamp>,
}

impl Decision {
    /// Progress and the next time to ask once the first `n` firings have happened and the others have not: for a
    /// caller that cannot start all of them in one transaction. `before` is the progress so far.
    pub fn after(&self, before: &Progress, n: usize) -> (Progress, Option<Timestamp>) {
        let (done, rest) = self.fire.split_at(n.min(self.fire.len()));
        let Some(next) = rest.first() else { return (self.progress.clone(), self.next_at) };
        let is_open = |slot: &&Timestamp| rest.iter().any(|firing| firing.slot == **slot);
        let waiting = before.waiting.iter().filter(is_open).copied().collect();
        let last_slot = done.iter().map(|firing| firing.slot).max().max(before.last_slot);
        (Progress { last_slot, waiting }, Some(next.slot))
    }
}

impl Schedule {
    /// Decides about every slot up to `now`, given that `n_running` of its starts have not ended.
    pub fn plan(&self, progress: &Progress, now: Timestamp, n_running: usize) -> Decision {
        // A new schedule owes nothing to the past. After a clock that was wrong, slots are decided again at their time;
        // one that fired has its job or run already and starts no other.
        let decided = progress.last_slot.filter(|_| !progress.is_ahead_of(now)).unwrap_or(now);
        let until = decided.max(now);
        let mut decision = Decision {
            fire: Vec::new(),
            cancel_running: false,
            n_passed: 0,
            progress: Progress { last_slot: Some(until), waiting: Vec::new() },
            next_at: None,
        };
        if !self.enabled {
            decision.n_passed = progress.waiting.len();
            return decision;
        }
        decision.next_at = self.cron.next_after(until);
        let (due, n_missed) = self.due(decided, now);
        decision.n_passed = n_missed;
        self.overlap(progress, now, due, n_running, &mut decision);
        decision
    }

    /// Starts one now on request, although earlier starts run and even if it is disabled. Slots are not
    /// touched by it. The second value says whether running starts are to be canceled first.
    pub fn trigger(&self, now: Timestamp, n_running: usize) -> (Firing, bool) {
        let firing = Firing { schedule: self.id, slot: now, manual: true };
        (firing, self.overlap == Overlap::Cancel && n_running > 0)
    }

    /// The slots in `(decided, now]` that fire as far as lateness goes, and how many do not.
    fn due(&self, decided: Timestamp, now: Timestamp) -> (Vec<Timestamp>, usize) {
        let back = |ms: u64| Timestamp(now.0.saturating_sub(i64::try_from(ms).unwrap_or(i64::MAX)));
        let window = if self.window_ms == 0 { WINDOW_MS_DEFAULT } else { self.window_ms };
        // Just before the window, so that a slot exactly as late as allowed still counts.
        let (window_start, late_before) = (Timestamp(back(window).0.saturating_sub(1)), back(ON_TIME_MS));
        let (n_all, _) = self.cron.latest(decided, now, FIRINGS_MAX);
        let from = match self.catchup {
            Catchup::None => decided.max(late_before),
            Catchup::Last | Catchup::All => decided.max(window_start.min(late_before)),
        };
        let (mut due, _) = self.cron.latest(from, now, FIRINGS_MAX);
        if self.catchup == Catchup::Last {
            let n_late = due.iter().take_while(|slot| **slot <= late_before).count();
            due.drain(..if n_late == due.len() { n_late.saturating_sub(1) } else { n_late });
        }
        let n_missed = n_all.len().saturating_sub(due.len());
        (due, n_missed)
    }

    /// Applies the overlap rule to the slots that are due.
    fn overlap(
        &self,
        progress: &Progress,
        now: Timestamp,
        due: Vec<Timestamp>,
        n_running: usize,
        decision: &mut Decision,
    ) {
        let mut slots = progress.waiting.clone();
        // Slots to come, which a clock that was wrong decided, are decided again at their time.
        slots.retain(|slot| *slot <= now);
        slots.extend(due);
        let kept = match self.overlap {
            Overlap::Allow => slots.len(),
            Overlap::Skip if n_running > 0 => 0,
            // Several at once would overlap each other; the latest is the one that still matters.
            Overlap::Skip | Overlap::Cancel => slots.len().min(1),
            Overlap::Queue => {
                let n_fired = usize::from(n_running == 0).min(slots.len());
                let mut rest = slots.split_off(n_fired);
                decision.n_passed += rest.len().saturating_sub(FIRINGS_MAX);
                rest.truncate(FIRINGS_MAX);
                decision.progress.waiting = rest;
                slots.len()
            }
        };
        decision.n_passed = (decision.n_passed + slots.len() - kept).min(FIRINGS_MAX);
        let fired = slots.split_off(slots.len() - kept);
        decision.cancel_running = self.overlap == Overlap::Cancel && n_running > 0 && !fired.is_empty();
        decision.fire =
            fired.into_iter().map(|slot| Firing { schedule: self.id, slot, manual: false }).collect();
    }
}

#[cfg(test)]
mod tests;
