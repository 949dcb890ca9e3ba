//! Durable state. The [`Store`] trait, its rows and queries, and the backends behind it; the suite in
//! `crates/conformance` holds all of them to the same behaviour.
//!
//! Everything a transition implies is written in one [`commit::Commit`], guarded by the length of the run's journal
//! and by command id, or not at all. Plain owned data goes in and comes out: no transaction is ever lent to a
//! caller, so that a backend is free to write many commits at once. Time is an argument. The store never looks
//! into events: `projection` alone turns them into rows, the same for every backend.

pub mod condition;
pub mod durability;
pub mod error;
pub mod page;

pub mod flow;
pub mod run;

pub mod job;
pub mod queue;
pub mod ready;

pub mod account;
pub mod api_key;
pub mod blob;
pub mod bulk;
pub mod outbox;
pub mod sample;
pub mod schedule;

pub mod audit;
pub mod log;
pub mod server;
pub mod service;
pub mod signing;
mod store_key;
pub mod worker;

pub mod commit;
pub mod hint;
pub mod projection;
pub mod store;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod table;

#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod column;
#[cfg(any(feature = "postgres", feature = "sqlite"))]
mod decode;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(feature = "sqlite")]
pub mod sqlite;

#[cfg(all(feature = "postgres", feature = "sqlite"))]
pub mod copy;

pub use durability::Durability;
pub use error::{Duplicate, Refusal, StoreError};
pub use memory::Memory;
#[cfg(feature = "postgres")]
pub use postgres::Postgres;
#[cfg(feature = "sqlite")]
pub use sqlite::Sqlite;
pub use store::Store;
pub use store_key::StoreKey;
