//! Queues as clients see them: depth, settings and recent activity.

use windlass_store::page::NameRange;
use windlass_store::queue::QueueDepth;

use crate::RuntimeError;
use crate::jobs::Jobs;
use crate::part::RuntimePart;
use crate::stats::RecentActivity;

/// The current state of a queue.
#[derive(Debug, Clone)]
pub struct QueueView {
    /// The counts of its jobs, its limits, and whether it is paused.
    pub depth: QueueDepth,
    pub activity: RecentActivity,
}

impl Jobs {
    /// Queues that have settings, open jobs or dead letters, by name.
    pub async fn queues(&self, names: NameRange) -> Result<Vec<QueueView>, RuntimeError> {
        let now = self.clock().now();
        let depths = self.store().queues(self.project(), names, now).await?;
        let view = |depth: QueueDepth| QueueView { activity: self.stats().queue(&depth.name, now), depth };
        Ok(depths.into_iter().map(view).collect())
    }

    /// One queue; an unknown one is empty.
    pub async fn queue(&self, name: &str) -> Result<QueueView, RuntimeError> {
        let found = self.queues(NameRange::One(name.to_owned())).await?.pop();
        let empty = || QueueView {
            depth: QueueDepth { name: name.to_owned(), ..QueueDepth::default() },
            activity: self.stats().queue(name, self.clock().now()),
        };
        Ok(found.unwrap_or_else(empty))
    }
}
