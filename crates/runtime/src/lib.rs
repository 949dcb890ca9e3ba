//! Drives. Connects the engine, the store, the queue and the clock: takes inputs to runs and jobs, commits what was
//! decided, and carries out what must be done in the world because of it.
//!
//! Everything goes through `submit`: inputs of a run wait in its mailbox, are decided in one batch, committed once,
//! and only then answered and acted upon.

pub mod clock;
pub mod error;
pub mod settings;

pub mod flow;
pub mod run;

pub mod account;
pub mod price;

pub mod job;
pub mod queue;
pub mod schedule;
pub mod service;
pub mod stats;
pub mod worker;

pub mod call;
pub mod function;
mod handler;
pub mod log;

pub mod audit;
pub mod doctor;
pub mod feed;

mod effect;
mod hint;
mod hot;
mod mailbox;
mod outbox;
mod peers;
mod recovery;
mod retain;
mod round;
mod runtime;
mod submit;
mod timer;
mod turnstile;
mod waiting;

pub use error::{RuntimeError, SubmitError};
pub use runtime::Runtime;
pub use settings::Settings;
