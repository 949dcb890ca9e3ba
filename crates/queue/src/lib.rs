//! Dispatch of jobs: which claim gets which job next. It may lose all its state without harm.
//!
//! The store is the source of truth. [`Dispatcher`] is an index over it in memory: ready jobs in dispatch order, claims
//! that wait, and the times at which jobs need attention. The runtime tells it of every durable change. It decides
//! nothing: the store rejects a job that was dispatched wrongly, and has the jobs that the index does not know.

mod timers;

mod ready_list;
mod ready_lists;
mod run_jobs;
mod wait_queue;

mod limited_ready_list;
mod queue_limiter;
mod queue_limiters;

mod index;

mod dispatcher;

pub mod redis;

pub use dispatcher::{
    ClaimQuery, DispatchLimits, Dispatcher, QueueTurn, StoreRead, StoreReadQuery, StoreReadResult,
    TakeResult, TakenJobs, Waiter,
};
