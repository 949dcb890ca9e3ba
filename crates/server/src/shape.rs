//! Conversions from rows and states to the native contract.

mod account;
mod audit;
mod flow;
mod graph;
mod job;
mod key;
mod node;
mod page;
mod round;
mod run;
mod stats;
mod trace;
mod view;
mod why;

use windlass_engine::time::Timestamp;
use windlass_sdk::contract::Time;

pub(crate) use account::{account, ledger_entry};
pub(crate) use audit::{audit_head, audit_line};
pub(crate) use flow::{definition, flow, form, severity_problems, version, version_summary};
pub(crate) use graph::{direction, flow_graph};
pub(crate) use job::{job_attempt, job_created, job_detail, job_due_at, job_error, job_fault, job_summary};
pub(crate) use key::{key, role};
pub(crate) use node::{NodeAt, each_node, node_heads, node_states};
pub(crate) use page::{
    counted, label, limit, list, name_range, named_page, order, part, slice, wide_limit, wide_range,
};
pub(crate) use round::dry_run;
pub(crate) use run::{priority, priority_word, run, run_change, run_state, shared, status, summary};
pub(crate) use stats::{
    exact_percentiles, node_durations, node_pace, parallelism, percentiles, quotient, redis, run_pace,
};
pub(crate) use trace::{attempt, entry};
pub(crate) use view::{attempt_head, live_summary, run_page};
pub(crate) use why::reason;

pub(crate) fn time(at: Timestamp) -> Time {
    Time(at.0)
}
