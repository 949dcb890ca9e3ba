//! End to end: the real binary, real files, real processes that are killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod commands;
mod kill;
mod server;
