//! Events that are scheduled in a world.

use windlass_engine::counter::{Epoch, Fence};
use windlass_engine::effect::CallSpec;
use windlass_engine::id::{JobId, RunId};
use windlass_engine::input::CallOutcome;
use windlass_engine::job::JobOutcome;
use windlass_engine::path::NodePath;

/// An event at a time. The order of variants is only a tie-breaker.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SimEvent {
    /// A server checks the clock.
    Tick(usize),
    /// A server starts again.
    Start(usize),
    /// A client takes its next action.
    Client(usize),
    /// A call reaches its worker.
    Arrive { by: (usize, Epoch), order: Unordered<CallSpec> },
    /// An answer arrives. `by`: over the connection of this epoch of a server; else through the API.
    Return {
        run: RunId,
        node: NodePath,
        fence: Fence,
        attempt: u32,
        by: Option<(usize, Epoch)>,
        outcome: Unordered<CallOutcome>,
    },
    /// A pull worker asks for a job.
    Poll(usize),
    /// A pull worker extends its lease.
    Extend { job: JobId, fence: Fence },
    /// A pull worker reports its result.
    Finish { job: JobId, fence: Fence, outcome: Unordered<CallOutcome> },
    /// An action on plain jobs.
    Plain(PlainAction),
}

/// An action on plain jobs.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PlainAction {
    /// A client creates jobs.
    Create,
    /// An operator cancels, retries, replays or discards a job.
    Operate,
    /// A worker asks for a job.
    Poll(usize),
    /// A worker extends its lease.
    Extend { job: JobId, fence: Fence },
    /// A worker reports its result.
    Finish { job: JobId, fence: Fence, outcome: Unordered<JobOutcome> },
}

impl PlainAction {
    /// Whether the action adds work: none is added while the world settles.
    pub(crate) fn is_new_work(&self) -> bool {
        match self {
            PlainAction::Create | PlainAction::Operate => true,
            PlainAction::Poll(_) | PlainAction::Extend { .. } | PlainAction::Finish { .. } => false,
        }
    }
}

/// A value that takes no part in the order.
#[derive(Debug, Clone)]
pub(crate) struct Unordered<T>(pub(crate) Box<T>);

impl<T> PartialEq for Unordered<T> {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl<T> Eq for Unordered<T> {}

impl<T> PartialOrd for Unordered<T> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<T> Ord for Unordered<T> {
    fn cmp(&self, _: &Self) -> std::cmp::Ordering {
        std::cmp::Ordering::Equal
    }
}
