//! The queue platform surface, route by route, on a store on disk.

#![allow(clippy::unwrap_used, clippy::disallowed_methods, reason = "a test that cannot go on fails")]

#[path = "platform/audit.rs"]
mod audit;
#[path = "platform/bad_fields.rs"]
mod bad_fields;
#[path = "platform/client.rs"]
mod client;
#[path = "platform/dead_letters.rs"]
mod dead_letters;
#[path = "platform/money.rs"]
mod money;
#[path = "platform/pages.rs"]
mod pages;
#[path = "platform/queues.rs"]
mod queues;
#[path = "platform/schedules.rs"]
mod schedules;
#[path = "platform/support.rs"]
mod support;
#[path = "platform/tasks.rs"]
mod tasks;
#[allow(dead_code, reason = "the tests of the native surface use the rest")]
#[path = "native/test_server.rs"]
mod test_server;
#[path = "platform/workers.rs"]
mod workers;
