//! Hands out. Who gets which job next; it may lose everything and nothing breaks.
//!
//! The store is the truth about jobs. [`Dispatch`] is an index over it, in memory: which jobs can be claimed and in
//! which order, who waits for one, and when time will change something about a job. It is told what became durable
//! and never decides anything; a job that it hands out wrongly is refused by the store, and one that it does not know
//! of is found there.

mod timers;

mod line;
mod list;
mod lists;
mod runs;

mod gate;
mod view;

mod index;

mod dispatch;

pub mod redis;

pub use dispatch::{Answer, Dispatch, Fill, Limits, Query, Question, Take, Taken, Turn, Waiter};
