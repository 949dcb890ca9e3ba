//! End to end: the real binary, real files, real processes that are killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod cancel;
mod commands;
mod fold;
mod full;
mod kill;
mod kinds;
mod nonsense;
mod races;
mod routes;
mod server;
mod talk;
