//! Metric events of a journal entry: calls that begin and end, nodes that end, the run itself.

use windlass_engine::counter::Fence;
use windlass_engine::event::{Ending, Event};
use windlass_engine::path::NodePath;

/// Something that is counted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetricEvent {
    /// A round of the run began.
    Begun,
    /// The call of this node was granted.
    Granted { node: NodePath, fence: Fence },
    /// An attempt answered that it is not finished: it is asked again, or reported.
    Suspended(NodePath),
    /// An attempt failed, and the node is tried again.
    Deferred(NodePath),
    /// The node, or the branch, is over.
    Settled { node: NodePath, is_ok: bool },
    /// Everything at this place and inside it was given up.
    Dropped(NodePath),
    /// The round of the run is over.
    Ended(Ending),
}

/// The metric events of these events, in order.
pub fn metric_events(events: &[Event]) -> Vec<MetricEvent> {
    events.iter().filter_map(moment).collect()
}

fn moment(event: &Event) -> Option<MetricEvent> {
    Some(match event {
        Event::Started(_) | Event::Retried { .. } | Event::Rerun { .. } => MetricEvent::Begun,
        Event::Granted { node, fence, .. } => MetricEvent::Granted { node: node.clone(), fence: *fence },
        Event::Suspended { node, .. } => MetricEvent::Suspended(node.clone()),
        Event::Deferred { node, .. } => MetricEvent::Deferred(node.clone()),
        Event::Done { node, .. } => MetricEvent::Settled { node: node.clone(), is_ok: true },
        Event::Failed { node, .. } => MetricEvent::Settled { node: node.clone(), is_ok: false },
        Event::Dropped { node } => MetricEvent::Dropped(node.clone()),
        Event::Ended { status, .. } => MetricEvent::Ended(*status),
        Event::Entered { .. }
        | Event::Expiring { .. }
        | Event::Skipped { .. }
        | Event::Judged { .. }
        | Event::Opened { .. }
        | Event::Draining { .. }
        | Event::Turned { .. }
        | Event::Waiting { .. }
        | Event::Signaled { .. }
        | Event::Decided { .. }
        | Event::Canceling { .. }
        | Event::Paused
        | Event::Resumed
        | Event::Stepped
        | Event::SetBack { .. }
        | Event::Funded { .. }
        | Event::Billed { .. }
        | Event::Logged { .. } => return None,
    })
}
