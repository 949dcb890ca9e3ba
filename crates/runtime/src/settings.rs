//! What whoever starts the server decides.

use std::time::Duration;

use windlass_queue::redis::Redis;

use crate::function::Functions;

/// Settings of one server. Every limit is there: nothing grows without bound.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How people call this server.
    pub name: String,
    /// Whether flows may run scripts on this machine.
    pub allow_scripts: bool,
    /// Whether workers at private addresses are called; loopback always is, link-local never.
    pub allow_worker_net: bool,
    /// How long a worker counts as alive after its last sign of life.
    pub worker_ttl: Duration,
    /// How often workers are looked at.
    pub worker_refresh: Duration,
    /// The time limit of an attempt whose node names none.
    pub call_timeout: Duration,
    /// Calls of one service at once; others wait, the more urgent first.
    pub service_calls_max: usize,
    /// Calls to one push worker at once, unless it told its capacity.
    pub worker_calls_max: usize,
    /// Runs kept in memory.
    pub hot_runs_max: usize,
    /// How long a run that nothing happens to is kept in memory.
    pub hot_run_idle: Duration,
    /// Inputs that wait at once, over all runs; more are turned away until there is room.
    pub inputs_max: usize,
    /// How long runs and jobs are kept after their end, at least an hour; `None` = for ever.
    pub retain_for: Option<Duration>,
    /// Whether nobody else uses the store, so that what is in memory is the last word.
    pub is_alone: bool,
    /// Where ready jobs wait for whichever server pops them; `None` = in memory, over the store.
    pub redis: Option<Redis>,
    /// Functions that flows can call in this process.
    pub functions: Functions,
    /// Calls of registered handlers at once.
    pub handlers_max: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            name: "windlass".to_owned(),
            allow_scripts: false,
            allow_worker_net: false,
            worker_ttl: Duration::from_secs(15),
            worker_refresh: Duration::from_secs(5),
            call_timeout: Duration::from_secs(300),
            service_calls_max: 256,
            worker_calls_max: 64,
            hot_runs_max: 5_000,
            hot_run_idle: Duration::from_secs(5),
            inputs_max: 20_000,
            retain_for: Some(Duration::from_secs(30 * 24 * 3_600)),
            is_alone: true,
            redis: None,
            functions: Functions::built_in(),
            handlers_max: 64,
        }
    }
}
