//! The runtime connects the engine, the store, the dispatcher and the clock: it takes inputs to runs and jobs, commits
//! the decisions, and carries out their effects.
//!
//! Everything goes through `submit`: inputs of a run wait in its mailbox, are decided in one batch, committed once,
//! and only then answered and acted upon.

pub mod body_budget;
pub mod bulks;
pub mod clock;
pub mod error;
pub mod grant;
pub mod settings;

pub mod calls;
pub mod cluster;
pub mod jobs;
pub mod money;
pub mod runs;
pub mod schedules;
pub mod stats;
pub mod workers;

pub mod access;
pub mod audit;
pub mod doctor;
pub mod feed;

mod bounded;
mod ctx;
mod keyed_lock;
mod long_work;
mod part;
mod retention;
mod runtime;
mod wait_queue;

pub use error::{RuntimeError, SubmitError};
pub use runtime::Runtime;
pub use settings::{ScriptPolicy, Settings};
