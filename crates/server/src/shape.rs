//! From rows and states to the words of the native surface.

mod account;
mod audit;
mod flow;
mod node;
mod page;
mod round;
mod run;
mod stats;
mod trace;
mod why;

use windlass_engine::time::Timestamp;
use windlass_sdk::types::Time;

pub(crate) use account::{account, ledger_entry};
pub(crate) use audit::audit_line;
pub(crate) use flow::{definition, flow, form, severity_problems, version, version_summary};
pub(crate) use node::{Found, each_node};
pub(crate) use page::{counted, label, limit, list, order, part, slice};
pub(crate) use round::round_plan;
pub(crate) use run::{priority, run, run_state, status, summary};
pub(crate) use stats::{
    node_durations, node_pace, parallelism, quotient, redis, run_pace, spread, spread_of,
};
pub(crate) use trace::{attempt, entry};
pub(crate) use why::reason;

pub(crate) fn time(at: Timestamp) -> Time {
    Time(at.0)
}
