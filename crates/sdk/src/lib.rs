//! The SDK: the HTTP contract as types, a typed client and the worker loop.

pub mod contract;

pub mod client;
pub mod error;

pub mod worker;

pub use client::Client;
pub use error::ClientError;
pub use windlass_tls::{ClientTls, IdentityFiles};
pub use worker::Worker;
