//! Recovery: which servers are dead, and the fate of the calls that a dead server made. Pure, so that
//! the simulator drives the very decisions that the runtime carries out.
//!
//! Every start of a server is an *epoch*, numbered by the store. A grant names the epoch of the server that makes the
//! call.

use std::collections::BTreeSet;

use crate::counter::{Epoch, Fence};
use crate::path::NodePath;
use crate::plan::{Exec, Plan};
use crate::run::Run;
use crate::time::Timestamp;

/// The interval between heartbeats of a server.
pub const BEAT_MS: u64 = 2_000;
/// A server without a heartbeat for this long is dead: other servers take over its runs.
pub const DEAD_MS: u64 = 10_000;

/// Whether a server whose last heartbeat was at `beat` counts as dead.
pub fn is_dead(beat: Timestamp, now: Timestamp) -> bool {
    now.since(beat) >= DEAD_MS
}

/// Whether a server may still make calls. One without a heartbeat for half of [`DEAD_MS`] makes none, because another
/// server may be about to take over.
pub fn may_call(last_beat: Timestamp, now: Timestamp) -> bool {
    now.since(last_beat) < DEAD_MS / 2
}

/// The action for a call of a dead server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// No answer will come: report the server as lost.
    ReportLost { node: NodePath, fence: Fence },
}

/// Actions for the calls that dead servers made for a run. Jobs and child runs need nothing: the store has the job
/// or the message that creates the child.
pub fn plan(run: &Run, plan: &Plan, dead: &BTreeSet<Epoch>) -> Vec<Recovery> {
    let calls = run.granted_calls(plan).into_iter().filter(|(.., by)| dead.contains(by));
    calls
        .filter_map(|(node, fence, exec, _)| match exec {
            Exec::Queue | Exec::Flow { .. } => None,
            Exec::Http | Exec::Func { .. } | Exec::Script(_) => Some(Recovery::ReportLost { node, fence }),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_stops_calling_before_others_take_over() {
        let beat = Timestamp(1_000);
        assert!(may_call(beat, Timestamp(5_999)));
        assert!(!may_call(beat, Timestamp(6_000)));
        assert!(!is_dead(beat, Timestamp(10_999)));
        assert!(is_dead(beat, Timestamp(11_000)));
        assert!(!is_dead(beat, Timestamp(0)), "a clock that jumped back makes no server dead");
    }
}
