//! What servers do about one another: who is dead, and what becomes of the calls a dead server made. Pure, so that
//! the simulator drives the very decisions that the runtime carries out.
//!
//! Every start of a server is a *life*, numbered by the store; a restarted server is another life. A grant names the
//! life that makes the call.

use std::collections::BTreeSet;

use crate::path::NodePath;
use crate::plan::{Exec, Plan};
use crate::run::Run;
use crate::time::Timestamp;

/// How often a server says that it lives.
pub const BEAT_MS: u64 = 2_000;
/// A server that has not said so for this long is dead: others take over its runs.
pub const DEAD_MS: u64 = 10_000;

/// Whether a life that last beat at `beat` counts as dead.
pub fn is_dead(beat: Timestamp, now: Timestamp) -> bool {
    now.since(beat) >= DEAD_MS
}

/// Whether a server may still make calls. One that could not beat for half the time others wait makes none: they
/// may be about to make them.
pub fn may_call(last_beat: Timestamp, now: Timestamp) -> bool {
    now.since(last_beat) < DEAD_MS / 2
}

/// What has to be done about a call whose maker is dead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Nobody will answer: report the server as lost.
    ReportLost { node: NodePath, fence: u64 },
}

/// What becomes of the calls that dead lives made for a run. Jobs and child runs need nothing: the store has the one
/// or the message that creates the other.
pub fn plan(run: &Run, plan: &Plan, dead: &BTreeSet<u64>) -> Vec<Recovery> {
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
        assert!(!is_dead(beat, Timestamp(0)), "a clock that jumped back kills nobody");
    }
}
