//! The scheduler surface, call by call, with and without its prefix, on a real store.
#![allow(clippy::unwrap_used, unreachable_pub, reason = "a test that cannot go on fails, and has no users")]

#[path = "scheduler/support.rs"]
mod support;

#[path = "scheduler/audit.rs"]
mod audit;
#[path = "scheduler/bad_input.rs"]
mod bad_input;
#[path = "scheduler/flows.rs"]
mod flows;
#[path = "scheduler/node_runs.rs"]
mod node_runs;
#[path = "scheduler/queue.rs"]
mod queue;
#[path = "scheduler/tasks.rs"]
mod tasks;
#[path = "scheduler/workers.rs"]
mod workers;
