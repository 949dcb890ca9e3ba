//! Decides. Pure and synchronous: no I/O, no clock, no randomness, no async. The product's meaning lives here.
//!
//! Read in this order: what a definition says (`definition`), what it becomes (`plan`), what can be asked
//! (`input`), what happened (`event`), how one leads to the other (`run`), what must be done in the world because
//! of it (`effect`).

pub mod id;
pub mod limits;
pub mod number;
pub mod params;
pub mod path;
pub mod problem;
pub mod text;
pub mod time;
pub mod weight;

pub mod definition;
pub mod expr;
pub mod plan;
pub mod reference;

pub mod effect;
pub mod event;
pub mod input;
pub mod journal;
pub mod log;
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
pub mod share;
