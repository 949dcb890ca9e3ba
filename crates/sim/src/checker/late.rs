//! Record of everything that time alone ends: waits of runs, times of jobs and slots of schedules. It is built from
//! accepted commits. The invariant: servers handle each within a bound, counted while servers work undisturbed.
//!
//! The bound follows from the rule of server time (`docs/adr/0017-server-time.md`), and not from the server time of the
//! world: server time runs at half pace at worst, so a wait takes at most twice as long in time that passes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use windlass_engine::event::{Event, Waiting};
use windlass_engine::id::{JobId, RunId, ScheduleId};
use windlass_engine::path::NodePath;
use windlass_engine::server_time::SKEW_SHOWN_MS;
use windlass_engine::time::Timestamp;
use windlass_store::commit::Commit;

use super::{CheckResult, broken};

/// The bound beyond the wait itself: servers look at the clock at least once a second, a few of them may have an
/// outdated row at first, and both clocks round to milliseconds.
const LATE_MS_MAX: u64 = 5_000;

/// The clocks of a world at one moment.
#[derive(Debug, Clone, Copy)]
pub struct SimMoment {
    /// Time that passes.
    pub passed: Timestamp,
    /// Server time.
    pub now: Timestamp,
    pub wall: Timestamp,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum TimedWork {
    Node(RunId, NodePath),
    Job(JobId),
}

/// A wait that time alone ends.
struct TimedWait {
    /// When it is due, in server time.
    due: Timestamp,
    /// Until when it has to be due, in time that passes.
    due_by: Timestamp,
    /// The time since then in which servers worked undisturbed.
    late_ms: u64,
}

/// A schedule that decides on its slots by the wall clock.
struct TimedSchedule {
    next_at: Timestamp,
    every_ms: u64,
    late_ms: u64,
}

#[derive(Default)]
pub struct LateChecker {
    waits: BTreeMap<TimedWork, TimedWait>,
    schedules: BTreeMap<ScheduleId, TimedSchedule>,
    paused: BTreeSet<RunId>,
}

impl LateChecker {
    /// Records a schedule with the distance of its slots.
    pub fn scheduled(&mut self, schedule: ScheduleId, every_ms: u64, next_at: Timestamp) {
        self.schedules.insert(schedule, TimedSchedule { next_at, every_ms, late_ms: 0 });
    }

    /// Records that a schedule ended.
    pub fn unscheduled(&mut self, schedule: ScheduleId) {
        self.schedules.remove(&schedule);
    }

    /// Records the waits that an accepted commit begins and ends.
    pub fn committed(&mut self, commit: &Commit, moment: SimMoment) {
        if let Some(change) = &commit.run {
            for event in &change.entry.events {
                self.event(change.run, event, moment);
            }
        }
        for change in &commit.jobs {
            self.wait(TimedWork::Job(change.job.id), change.job.wake_at(), moment);
        }
        for change in &commit.schedules {
            let kept = self.schedules.get_mut(&change.row.id());
            if let (Some(kept), Some(next_at)) = (kept, change.row.next_at) {
                (kept.next_at, kept.late_ms) = (next_at, 0);
            }
        }
    }

    /// Counts time in which servers worked undisturbed, and checks that nothing is late by more than the bound.
    pub fn undisturbed(&mut self, ms: u64, moment: SimMoment) -> CheckResult {
        for (work, wait) in &mut self.waits {
            let is_held = matches!(work, TimedWork::Node(run, _) if self.paused.contains(run));
            if is_held || moment.passed < wait.due_by {
                continue;
            }
            wait.late_ms += ms;
            if wait.late_ms > LATE_MS_MAX {
                let (due, now, late_ms) = (wait.due.0, moment.now.0, wait.late_ms);
                return broken("I16", format!("{work} was due at {due}, is late by {late_ms} ms at {now}"));
            }
        }
        for (id, schedule) in &mut self.schedules {
            // A clock that went back far makes servers decide on the slots again.
            let is_far = schedule.next_at.since(moment.wall) > schedule.every_ms + SKEW_SHOWN_MS;
            schedule.late_ms =
                if is_far || schedule.next_at <= moment.wall { schedule.late_ms + ms } else { 0 };
            if schedule.late_ms > LATE_MS_MAX {
                let (due, wall, late_ms) = (schedule.next_at.0, moment.wall.0, schedule.late_ms);
                return broken("J10", format!("the slot {due} of {id} is late by {late_ms} ms at {wall}"));
            }
        }
        Ok(())
    }

    fn event(&mut self, run: RunId, event: &Event, moment: SimMoment) {
        match event {
            Event::Waiting { node, wait } => self.wait_of_node(run, node, until(wait), moment),
            Event::Suspended { node, until, .. } => self.wait_of_node(run, node, *until, moment),
            Event::Deferred { node, until, .. } | Event::Expiring { node, until, .. } => {
                self.wait_of_node(run, node, Some(*until), moment);
            }
            Event::Granted { node, deadline, .. } => self.wait_of_node(run, node, *deadline, moment),
            Event::Entered { node, .. }
            | Event::Opened { node, .. }
            | Event::Done { node, .. }
            | Event::Failed { node, .. }
            | Event::Skipped { node }
            | Event::Dropped { node } => self.forget(run, node),
            // Only the grace of the cancel counts from now on.
            Event::Canceling { until, .. } => {
                self.paused.remove(&run);
                self.forget(run, &NodePath::root());
                self.wait_of_node(run, &NodePath::root(), Some(*until), moment);
            }
            Event::Paused => drop(self.paused.insert(run)),
            Event::Resumed => drop(self.paused.remove(&run)),
            Event::Retried { .. } | Event::Rerun { .. } | Event::SetBack { .. } | Event::Ended { .. } => {
                self.paused.remove(&run);
                self.forget(run, &NodePath::root());
            }
            Event::Started(_)
            | Event::Judged { .. }
            | Event::Draining { .. }
            | Event::Turned { .. }
            | Event::Signaled { .. }
            | Event::Decided { .. }
            | Event::Stepped
            | Event::Funded { .. }
            | Event::Billed { .. }
            | Event::Logged { .. } => {}
        }
    }

    fn wait_of_node(&mut self, run: RunId, node: &NodePath, due: Option<Timestamp>, moment: SimMoment) {
        self.wait(TimedWork::Node(run, node.clone()), due, moment);
    }

    fn wait(&mut self, work: TimedWork, due: Option<Timestamp>, moment: SimMoment) {
        match due {
            Some(due) => {
                let due_by = moment.passed.after(2 * due.since(moment.now));
                self.waits.insert(work, TimedWait { due, due_by, late_ms: 0 });
            }
            None => drop(self.waits.remove(&work)),
        }
    }

    /// Ends all waits at a place and inside it.
    fn forget(&mut self, run: RunId, place: &NodePath) {
        self.waits.retain(|work, _| match work {
            TimedWork::Node(of, node) => *of != run || !place.holds(node),
            TimedWork::Job(_) => true,
        });
    }
}

impl fmt::Display for TimedWork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TimedWork::Node(run, node) => write!(f, "{run}: `{node}`"),
            TimedWork::Job(job) => write!(f, "{job}"),
        }
    }
}

/// When a wait ends by itself, if it does.
fn until(wait: &Waiting) -> Option<Timestamp> {
    match wait {
        Waiting::Timer { until, .. } => Some(*until),
        Waiting::Signal { until } | Waiting::Approval { until } => *until,
        Waiting::Balance { .. } | Waiting::Budget { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    const WAIT_MS: u64 = 60_000;

    /// A timer that begins at 0 by all clocks.
    fn timer() -> LateChecker {
        let mut late = LateChecker::default();
        let begin = SimMoment { passed: Timestamp(0), now: Timestamp(0), wall: Timestamp(0) };
        let wait = Waiting::Timer { until: Timestamp(0).after(WAIT_MS), wall: None };
        let run = RunId::new(Uuid::from_u128(1));
        late.event(run, &Event::Waiting { node: NodePath::from("t"), wait }, begin);
        late
    }

    /// The first second at which the timer is late if server time passes at this share of the pace.
    fn late_at(late: &mut LateChecker, percent: i64) -> Option<i64> {
        (1..600).find(|second| {
            let (passed, now) = (Timestamp(second * 1_000), Timestamp(second * 10 * percent));
            late.undisturbed(1_000, SimMoment { passed, now, wall: now }).is_err()
        })
    }

    #[test]
    fn a_timer_that_is_not_handled_after_twice_its_wait_is_late() {
        for percent in [25, 50, 100] {
            assert_eq!(late_at(&mut timer(), percent), Some(125));
        }
    }

    #[test]
    fn a_timer_that_is_handled_or_paused_is_not_late() {
        let run = RunId::new(Uuid::from_u128(1));
        let moment = SimMoment { passed: Timestamp(0), now: Timestamp(0), wall: Timestamp(0) };
        for event in [Event::Paused, Event::Dropped { node: NodePath::root() }] {
            let mut late = timer();
            late.event(run, &event, moment);
            assert_eq!(late_at(&mut late, 50), None, "{event:?}");
        }
    }

    #[test]
    fn a_slot_that_does_not_fire_is_late() {
        let mut late = LateChecker::default();
        late.scheduled(ScheduleId::new(Uuid::from_u128(1)), 20_000, Timestamp(20_000));
        assert_eq!(late_at(&mut late, 100), Some(25));
    }

    #[test]
    fn a_schedule_that_stays_far_ahead_of_the_clock_is_late() {
        let mut late = LateChecker::default();
        late.scheduled(ScheduleId::new(Uuid::from_u128(1)), 20_000, Timestamp(3_600_000));
        assert_eq!(late_at(&mut late, 100), Some(6));
    }
}
