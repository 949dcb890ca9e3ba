//! Times that a run waits for, set back after a clock that was wrong.

use super::Applier;
use crate::path::NodePath;
use crate::run::state::{Activity, Phase, Stage, Work};
use crate::time::Timestamp;

impl Applier<'_> {
    pub(super) fn set_back(&mut self, by_ms: u64) {
        self.run.updated_at = self.at;
        for (at, path) in std::mem::take(&mut self.run.wakes) {
            let wake = at.before(by_ms);
            self.set_node_back(&path, wake, by_ms);
            self.run.wakes.insert((wake, path));
        }
    }

    /// The grace of a cancel is filed under the root, which is no node.
    fn set_node_back(&mut self, path: &NodePath, wake: Timestamp, by_ms: u64) {
        if let Some(spot) = self.run.root.spot_mut(&self.plan.root, path) {
            *spot.into_wake() = Some(wake);
        }
        let Some(spot) = self.run.root.spot_mut(&self.plan.root, path) else { return };
        let Phase::Open(activity) = spot.into_phase() else { return };
        match activity {
            Activity::Timer { until, .. } | Activity::Restart { until } => *until = until.before(by_ms),
            Activity::Signal { until } | Activity::Approval { until } => {
                *until = until.map(|until| until.before(by_ms));
            }
            Activity::Call(work) => work.set_back(by_ms),
            Activity::Beginning | Activity::Nest => {}
        }
    }
}

impl Work {
    fn set_back(&mut self, by_ms: u64) {
        self.deadline = self.deadline.map(|at| at.before(by_ms));
        self.total_deadline = self.total_deadline.map(|at| at.before(by_ms));
        match &mut self.stage {
            Stage::Granted { expiring: until, .. } | Stage::Suspended { until, .. } => {
                *until = until.map(|at| at.before(by_ms));
            }
            Stage::Backoff { until } => *until = until.before(by_ms),
            Stage::Parked { .. } => {}
        }
    }
}
