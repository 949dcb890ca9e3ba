//! The native surface, route by route, on a store on disk.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

#[path = "native/access.rs"]
mod access;
#[path = "native/action.rs"]
mod action;
#[path = "native/audit.rs"]
mod audit;
#[path = "native/back_pressure.rs"]
mod back_pressure;
#[path = "native/body.rs"]
mod body;
#[path = "native/bulk.rs"]
mod bulk;
#[path = "native/children.rs"]
mod children;
#[path = "native/contract.rs"]
mod contract;
#[path = "native/dag.rs"]
mod dag;
#[path = "native/document.rs"]
mod document;
#[path = "native/documents.rs"]
mod documents;
#[path = "native/exchange.rs"]
mod exchange;
#[path = "native/fault.rs"]
mod fault;
#[path = "native/flow.rs"]
mod flow;
#[path = "native/grant.rs"]
mod grant;
#[path = "native/graph.rs"]
mod graph;
#[path = "native/hostile.rs"]
mod hostile;
#[path = "native/job.rs"]
mod job;
#[path = "native/log.rs"]
mod log;
#[path = "native/money.rs"]
mod money;
#[path = "native/overview.rs"]
mod overview;
#[path = "native/refunds.rs"]
mod refunds;
#[path = "native/round.rs"]
mod round;
#[path = "native/run.rs"]
mod run;
#[path = "native/search.rs"]
mod search;
#[path = "native/service.rs"]
mod service;
#[path = "native/stats.rs"]
mod stats;
#[path = "native/stream.rs"]
mod stream;
#[path = "native/template.rs"]
mod template;
#[path = "native/test_server.rs"]
mod test_server;
#[path = "native/trouble.rs"]
mod trouble;
#[path = "native/work.rs"]
mod work;
