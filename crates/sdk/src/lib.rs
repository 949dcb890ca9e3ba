//! Says. The HTTP contract as types, a typed client and the worker loop.

pub mod types;
