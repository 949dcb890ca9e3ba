//! Several servers on one store: what one does, the others hear of; what one leaves, another takes up; and nothing is
//! done twice.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod classes;
mod cluster;
mod deaths;
mod limits;
mod news;
mod redis;
mod services;
mod storm;
mod troubles;
