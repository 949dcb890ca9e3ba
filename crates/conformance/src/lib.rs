//! Tests that every backend of [`windlass_store::Store`] passes, and the tools that tests of all crates share: private
//! database servers, empty stores of a chosen backend, a store that fails on request.
//!
//! Only tests use this crate: no library or program depends on it. The store takes it as a dev-dependency too, and its
//! unit tests then link two builds of the store; they may share strings and paths with this crate, and no types.
#![allow(clippy::unwrap_used, reason = "a fixture that fails has failed its test")]

#[macro_use]
pub mod suite;

pub mod store_fillers;

pub mod entries;
pub mod fixture;

mod driver;
mod executor;

pub mod backend;
pub mod certificates;
pub mod faulty_store;

pub mod postgres_server;
pub mod redis_server;
pub mod server_guard;
pub mod test_directory;

pub use executor::{block_on, block_on_tokio};
