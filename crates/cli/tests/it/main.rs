//! End to end: the real binary, real files, real processes that are killed.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up should stop")]

mod anywhere;
mod audit;
mod cancel;
mod children;
mod cluster;
mod commands;
mod copy;
mod database;
mod examples;
mod extend;
mod fold;
mod full;
mod http;
mod jobs;
mod kill;
mod kinds;
mod lost;
mod memory;
mod money;
mod nonsense;
mod outcomes;
mod paid;
mod params;
mod platform;
mod queues;
mod races;
mod redis;
mod routes;
mod schedules;
mod server;
mod shell;
mod steps;
mod store;
