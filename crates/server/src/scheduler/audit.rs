//! The changes of the scheduler surface that the audit log records, in the names of the native surface.

use super::id::{flow_id, run_id};
use crate::audit::AuditSubject::{Body, ForeignId};
use crate::audit::{AuditedChange, audited_changes};

/// Recorded changes, without the prefix of the surface.
pub(crate) const AUDITED: &[AuditedChange] = audited_changes! {
    "POST" "/flows" "flow.create" Body("name");
    "POST" "/flows/version" "flow.publish" ForeignId("flowid", flow_id);
    "POST" "/tasks/run_once" "run.step" ForeignId("id", run_id);
    "POST" "/tasks/cancel" "run.cancel" ForeignId("id", run_id);
    "POST" "/tasks/signal" "run.signal" ForeignId("taskid", run_id);
};

/// Routes that change something and are not recorded: starts of runs, and the work of workers.
#[cfg(test)]
pub(crate) const UNAUDITED: [&str; 8] = [
    "POST /tasks",
    "POST /workers/register",
    "POST /register",
    "POST /workers/heartbeat",
    "POST /heartbeat",
    "POST /queue/poll",
    "POST /queue/complete",
    "POST /queue/update_run",
];
