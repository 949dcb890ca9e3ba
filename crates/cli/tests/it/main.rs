//! End to end: the real binary, real files, real processes that are killed.

mod commands;
mod kill;
mod server;
