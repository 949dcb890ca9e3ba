//! Decides. Pure and synchronous: no I/O, no clock, no randomness, no async. The product's meaning lives here.
//!
//! Read in this order: the text of a definition (`definition`), its compiled form (`plan`), requests and reports
//! (`input`), facts (`event`), the step from one to the other (`run`), actions in the world because
//! of it (`effect`).

pub mod access;
pub mod counter;
pub mod id;
pub mod json;
pub mod limits;
pub mod number;
pub mod params;
pub mod path;
pub mod problem;
pub mod project;
pub mod raw_json;
pub mod text;
pub mod time;
pub mod weight;

pub mod definition;
pub mod expr;
pub mod layout;
pub mod plan;
pub mod reference;

pub mod effect;
pub mod event;
pub mod input;
pub mod journal;
pub mod log;
pub mod meter;
pub mod run;

pub mod compute;
pub mod function;

pub mod job;
pub mod limit;
pub mod money;
pub mod parallelism;
pub mod recovery;
pub mod retry;
pub mod schedule;
pub mod server_time;
pub mod share;
