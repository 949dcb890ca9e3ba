//! Client and worker, against a server that speaks the contract.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod fake;
mod pull;
mod push;
