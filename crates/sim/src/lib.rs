//! Doubts. A seeded simulator of the engine, the store and everything around them under faults: it plays whole
//! worlds of clients, servers, workers and clocks, and a checker with its own record looks for promises that were
//! not kept. Never shipped.
//!
//! A seed is a world: played twice it must give the very same trace. Planted bugs prove that the checker finds what
//! it is for.

pub mod bug;
pub mod checker;
pub mod disk;
pub mod fault;
pub mod plans;
pub mod rng;
pub mod server;
pub mod shrink;
pub mod worker;
pub mod world;
