//! The settings of a server.

use std::sync::Arc;
use std::time::Duration;

use windlass_engine::plan::Script;
use windlass_engine::project::Project;
use windlass_queue::redis::Redis;
use windlass_tls::ClientTls;
use windlass_tls::rustls::ClientConfig;

use crate::calls::function::Functions;
use crate::calls::script::{ScriptLimits, ScriptUser};

/// Which scripts a server runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ScriptPolicy {
    Off,
    /// Only scripts that equal one of these, in every field: `windlass dev` runs those of its own examples.
    Only(Arc<[Script]>),
    All,
}

impl ScriptPolicy {
    /// Why the server does not run the script; `None` = it does.
    pub(crate) fn refusal(&self, script: &Script) -> Option<&'static str> {
        match self {
            ScriptPolicy::All => None,
            ScriptPolicy::Off => Some("scripts are off: start the server with --allow-scripts"),
            ScriptPolicy::Only(allowed) if allowed.contains(script) => None,
            ScriptPolicy::Only(_) => Some(
                "this server runs only the scripts of its own examples: start one with `windlass serve --allow-scripts`",
            ),
        }
    }
}

/// Settings of one server. Every limit is there: nothing grows without bound.
#[derive(Debug, Clone)]
pub struct Settings {
    /// How people call this server.
    pub name: String,
    /// Which scripts flows may run on this machine.
    pub scripts: ScriptPolicy,
    /// The command line that runs [`launcher::run`](crate::calls::script::launcher::run) with the word of a stage as its
    /// last argument; empty = none, and scripts fail.
    pub script_launcher: Vec<String>,
    /// Limits of each script.
    pub script_limits: ScriptLimits,
    /// The user of scripts, if the server is root; `None` = the server's own.
    pub script_user: Option<ScriptUser>,
    /// Scripts that run at once: each is a process, or many, on the server's own machine.
    pub scripts_max: usize,
    /// Whether every run needs an account that pays for it: its own, or that of its flow.
    pub require_account: bool,
    /// Whether workers at private addresses are called; loopback always is, link-local never.
    pub allow_worker_net: bool,
    /// The authorities of push workers with https, and the certificate that they are shown.
    pub worker_tls: Arc<ClientConfig>,
    /// How long a worker counts as alive after its last heartbeat.
    pub worker_ttl: Duration,
    /// How long a worker that polls for jobs and sends no heartbeats has each of them.
    pub poll_lease: Duration,
    /// How often workers are read from the store.
    pub worker_refresh: Duration,
    /// The time limit of an attempt without one of its own.
    pub call_timeout: Duration,
    /// Calls of one service at once; others wait, the more urgent first.
    pub service_calls_max: usize,
    /// Calls to one push worker at once, unless it reported its capacity.
    pub worker_calls_max: usize,
    /// Runs kept in memory.
    pub hot_runs_max: usize,
    /// How long a run that nothing happens to is kept in memory.
    pub hot_run_idle: Duration,
    /// Inputs from outside that wait at once, over all runs; more are turned away until there is room.
    pub inputs_max: usize,
    /// Runs below one root that are open at once, at any depth, at least 64; others wait in the store. Each level of the
    /// tree leaves a part of it to the levels below, here and in the bounds of flows and of the project.
    pub tree_open_runs_max: usize,
    /// Runs that exist below one root; the calls of others fail.
    pub tree_runs_max: usize,
    /// Open runs of one flow, at least 64; starts beyond are turned away, child runs wait in the store.
    pub flow_open_runs_max: usize,
    /// The same for all runs of the project.
    pub open_runs_max: usize,
    /// How long runs and jobs are kept after their end, at least an hour; `None` = for ever.
    pub retain_for: Option<Duration>,
    /// How long a worker without heartbeats is remembered; `None` = for ever.
    pub worker_retain_for: Option<Duration>,
    /// How long a queue without settings and jobs is remembered after its last change; `None` = for ever.
    pub empty_queue_retain_for: Option<Duration>,
    /// The project that the server works for.
    pub project: Project,
    /// Where ready jobs wait for whichever server pops them; `None` = in memory, over the store.
    pub redis: Option<Redis>,
    /// Functions that flows can call in this process.
    pub functions: Functions,
    /// Calls of registered handlers at once.
    pub handlers_max: usize,
}

/// Trust in the authorities of the system.
fn system_tls() -> Arc<ClientConfig> {
    let config = ClientTls::default().config();
    Arc::new(
        config.expect("nothing is read that could be missing, and the provider knows the usual versions"),
    )
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            name: "windlass".to_owned(),
            scripts: ScriptPolicy::Off,
            script_launcher: Vec::new(),
            script_limits: ScriptLimits::default(),
            script_user: None,
            scripts_max: 32,
            require_account: false,
            allow_worker_net: false,
            worker_tls: system_tls(),
            worker_ttl: Duration::from_secs(15),
            poll_lease: Duration::from_secs(600),
            worker_refresh: Duration::from_secs(5),
            call_timeout: Duration::from_secs(300),
            service_calls_max: 256,
            worker_calls_max: 64,
            hot_runs_max: 5_000,
            hot_run_idle: Duration::from_secs(5),
            inputs_max: 20_000,
            tree_open_runs_max: 10_000,
            tree_runs_max: 100_000,
            flow_open_runs_max: 1_000_000,
            open_runs_max: 2_000_000,
            retain_for: Some(Duration::from_secs(30 * 24 * 3_600)),
            worker_retain_for: Some(Duration::from_secs(24 * 3_600)),
            empty_queue_retain_for: Some(Duration::from_secs(7 * 24 * 3_600)),
            project: Project::DEFAULT,
            redis: None,
            functions: Functions::built_in(),
            handlers_max: 64,
        }
    }
}
