//! Listens. HTTP routes over the runtime.

pub mod scheduler;
