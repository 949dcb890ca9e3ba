//! Time: due waits, one at a time. Never early; late is as good as on time.

use super::Decider;
use crate::counter::Fence;
use crate::event::Event;
use crate::path::NodePath;
use crate::plan::NodeKind;
use crate::retry::{Fault, FaultKind, WATCHDOG_MS};
use crate::run::state::{Activity, Phase, Stage, Status, Work};
use crate::run::view::Spot;

impl Decider<'_> {
    /// The events of the earliest due wait; none when nothing is due.
    pub(super) fn time_passed(&self) -> Vec<Event> {
        let Some((at, path)) = self.run.wakes.first() else { return Vec::new() };
        if *at > self.given.now || !matches!(self.run.status, Status::Running | Status::Canceling) {
            return Vec::new();
        }
        // The grace of a cancel is filed under the root.
        if path.is_root() {
            return self.end_cancel();
        }
        let spot = self.spot(path);
        match spot.phase() {
            Phase::Open(Activity::Call(work)) => self.call_due(&spot, path, work),
            Phase::Open(Activity::Timer { .. }) => {
                vec![self.done(&spot, path, spot.state.input.clone(), None)]
            }
            Phase::Open(Activity::Signal { .. } | Activity::Approval { .. }) => {
                let what = match &spot.node.kind {
                    NodeKind::Approval(_) => "nobody decided in time",
                    _ => "the signal did not come in time",
                };
                vec![self.failed(
                    &spot,
                    path,
                    Fence::ZERO,
                    Fault::new(FaultKind::Timeout, what).permanent(),
                    None,
                )]
            }
            Phase::Open(Activity::Restart { .. }) => {
                vec![Event::Opened { node: path.clone(), n: 0, names: Vec::new() }]
            }
            Phase::Open(Activity::Nest | Activity::Beginning) => {
                let mut events = self.drop_inside(path);
                let message = format!("not finished within {} ms", spot.node.timeout_ms);
                events.push(self.failed(
                    &spot,
                    path,
                    Fence::ZERO,
                    Fault::new(FaultKind::Timeout, message).permanent(),
                    None,
                ));
                events
            }
            Phase::Pending | Phase::Done | Phase::Failed | Phase::Skipped | Phase::Canceled => Vec::new(),
        }
    }

    fn call_due(&self, spot: &Spot<'_, '_>, path: &NodePath, work: &Work) -> Vec<Event> {
        let now = self.given.now;
        let passed = |at: Option<crate::time::Timestamp>| at.is_some_and(|at| at <= now);
        let total = passed(work.total_deadline);
        let fence = work.fence().unwrap_or_default();
        match work.stage {
            Stage::Granted { expiring: Some(_), .. } => {
                let message = format!("watchdog: no answer {} s after the time-out", WATCHDOG_MS / 1_000);
                vec![self.failed(
                    spot,
                    path,
                    fence,
                    Fault::new(FaultKind::Watchdog, message).permanent(),
                    None,
                )]
            }
            Stage::Granted { expiring: None, fence, .. } if total => {
                vec![Event::Expiring { node: path.clone(), fence, until: now.after(WATCHDOG_MS) }]
            }
            _ if total => {
                let message = format!("not finished within {} ms over all attempts", total_ms(spot));
                vec![self.failed(
                    spot,
                    path,
                    fence,
                    Fault::new(FaultKind::Timeout, message).permanent(),
                    None,
                )]
            }
            Stage::Granted { .. } | Stage::Suspended { .. } if passed(work.deadline) => {
                let fault = Fault::new(FaultKind::Timeout, "the attempt took too long");
                vec![self.after_fault(spot, path, work, fault, None)]
            }
            Stage::Suspended { .. } | Stage::Backoff { .. } => self.grant(spot, path),
            Stage::Granted { .. } | Stage::Parked { .. } => Vec::new(),
        }
    }
}

fn total_ms(spot: &Spot<'_, '_>) -> u64 {
    spot.call().map_or(0, |call| call.total_timeout_ms)
}
