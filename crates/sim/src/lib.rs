//! Seeded simulator that checks the promises of Windlass under faults. It is never shipped.
//!
//! Real code in it: the engine (compiling definitions, deciding, applying and replaying runs, and the rules for jobs,
//! retries, schedules, money and recovery), `store::projection`, and the in-memory store with its checks of a commit
//! (revisions, journal lengths, request ids, balances).
//!
//! Modelled here, as one sequential program: servers with their cached runs, commits, retries after conflicts, timers,
//! reaping, schedules, outbox delivery, heartbeats and takeover (`server`, `world`, `simulation`); push and pull workers; clients;
//! the network; and the clock.
//!
//! Not run: the crates `runtime`, `queue`, `server`, `sdk` and `cli`, so no asynchronous tasks, mailboxes, dispatcher,
//! queue limits, priorities, HTTP or scripts; SQLite, PostgreSQL and Redis.
//!
//! A seed determines a world: played twice, it must give the same trace. The checker keeps its own record and never
//! asks the engine whether the engine is right. Planted bugs prove that the checker finds broken promises.

pub mod bug;
pub mod checker;
mod event;
pub mod fault;
pub mod plans;
pub mod rng;
pub mod server;
pub mod shrink;
pub mod simulation;
pub mod store;
pub mod trace;
pub mod worker;
pub mod world;
