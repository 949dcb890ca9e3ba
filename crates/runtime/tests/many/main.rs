//! Several servers on one store: changes of one reach the others, another takes over from a dead one, and nothing is
//! done twice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod classes;
mod cluster;
mod deaths;
mod hints;
mod limits;
mod redis;
mod services;
mod storm;
mod troubles;
