//! The permissions of the routes of the scheduler surface, for both of its eras.

use crate::access::{AccessRule, access_rules};

/// The rules, without the prefix of the surface.
pub(crate) const ACCESS: &[AccessRule] = access_rules! {
    // Handlers check the services and queues of the key.
    "POST" "/workers/register" Work;
    "POST" "/register" Work;
    "POST" "/workers/heartbeat" Work;
    "POST" "/heartbeat" Work;
    "POST" "/queue/poll" Work;
    "POST" "/queue/complete" Work;
    "POST" "/queue/update_run" Work;
    "GET" "/workers" Read;
    "GET" "/workers/list" Read;
    "GET" "/list" Read;
    "GET" "/workers/allocate" Read;
    "GET" "/allocate" Read;
    "GET" "/flows" Read;
    "POST" "/flows" Author;
    "GET" "/flows/version" Read;
    "POST" "/flows/version" Author;
    "GET" "/flows/version/get" Read;
    "GET" "/tasks" Read;
    "POST" "/tasks" Run;
    "GET" "/tasks/get" Read;
    "POST" "/tasks/run_once" Run;
    "POST" "/tasks/cancel" Run;
    "GET" "/tasks/runs" Read;
    "GET" "/tasks/logs" Read;
    "POST" "/tasks/signal" Run;
};
