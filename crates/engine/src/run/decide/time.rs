//! Time: due waits, one at a time. Never early; late is as good as on time.

use super::Decider;
use super::node::opened;
use crate::counter::Fence;
use crate::event::{Event, Waiting};
use crate::path::NodePath;
use crate::plan::NodeKind;
use crate::retry::{Fault, FaultKind};
use crate::run::state::{Activity, Phase, Status};
use crate::server_time::{SKEW_SHOWN_MS, at_wall};
use crate::time::Timestamp;

impl Decider<'_> {
    /// The events of the earliest due wait; none when nothing is due.
    pub(super) fn time_passed(&self) -> Vec<Event> {
        if let Some(event) = self.set_back() {
            return vec![event];
        }
        if !matches!(self.run.status, Status::Running | Status::Canceling) {
            return Vec::new();
        }
        self.due()
    }

    /// The events of the earliest due wait, whatever the status of the run.
    pub(super) fn due(&self) -> Vec<Event> {
        let Some((at, path)) = self.run.wakes.first() else { return Vec::new() };
        if *at > self.given.now {
            return Vec::new();
        }
        // The grace of a cancel is filed under the root.
        if path.is_root() {
            return self.end_cancel();
        }
        let spot = self.spot(path);
        match spot.phase() {
            Phase::Open(Activity::Call(work)) => self.call(&spot, path).due(work),
            // The wall clock has gone back since: the wait is as long as that takes.
            Phase::Open(Activity::Timer { wall: Some(wall), .. }) if *wall > self.given.wall => {
                vec![self.wait_for_wall(path, *wall)]
            }
            Phase::Open(Activity::Timer { .. }) => {
                vec![spot.done(path, spot.state.input.clone(), None)]
            }
            Phase::Open(Activity::Signal { .. } | Activity::Approval { .. }) => {
                let what = match &spot.node.kind {
                    NodeKind::Approval(_) => "the decision did not come in time",
                    _ => "the signal did not come in time",
                };
                vec![spot.failed(path, Fence::ZERO, Fault::new(FaultKind::Timeout, what).permanent(), None)]
            }
            Phase::Open(Activity::Restart { .. }) => {
                vec![opened(path, 0)]
            }
            Phase::Open(Activity::Nest | Activity::Beginning) => {
                let mut events = self.drop_inside(path);
                let message = format!("not finished within {} ms", spot.node.timeout_ms);
                let fault = Fault::new(FaultKind::Timeout, message).permanent();
                events.push(spot.failed(path, Fence::ZERO, fault, None));
                events
            }
            Phase::Pending | Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => Vec::new(),
        }
    }

    /// Server time never goes back, unless the store was repaired after a clock that was wrong: the times that a run
    /// waits for come from that clock, too.
    fn set_back(&self) -> Option<Event> {
        let by_ms = self.run.updated_at.since(self.given.now);
        let is_waiting = self.run.wake_at().is_some();
        (is_waiting && by_ms > SKEW_SHOWN_MS).then_some(Event::SetBack { by_ms })
    }

    /// A timer waits until the wall clock shows this moment.
    pub(super) fn wait_for_wall(&self, path: &NodePath, moment: Timestamp) -> Event {
        let until = at_wall(moment, self.given.now, self.given.wall);
        Event::Waiting { node: path.clone(), wait: Waiting::Timer { until, wall: Some(moment) } }
    }
}
