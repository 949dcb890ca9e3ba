//! How much a server takes on at once.

use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use windlass_runtime::Settings;

/// What somebody says about limits; what is left open is said elsewhere, or built in.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct LimitFlags {
    /// Bytes of the body of a request [default: 4194304].
    #[arg(long, value_name = "BYTES", env = "WINDLASS_BODY_BYTES_MAX")]
    pub(super) body_bytes_max: Option<usize>,
    /// Seconds that an attempt may take whose node names no time limit [default: 300].
    #[arg(long, value_name = "SECONDS", env = "WINDLASS_CALL_TIMEOUT_SEC")]
    pub(super) call_timeout_sec: Option<u64>,
    /// Calls of one service at once; others wait [default: 256].
    #[arg(long, value_name = "N", env = "WINDLASS_SERVICE_CALLS_MAX")]
    pub(super) service_calls_max: Option<usize>,
    /// Calls to one worker at once, unless it says its capacity [default: 64].
    #[arg(long, value_name = "N", env = "WINDLASS_WORKER_CALLS_MAX")]
    pub(super) worker_calls_max: Option<usize>,
    /// Runs kept in memory [default: 5000].
    #[arg(long, value_name = "N", env = "WINDLASS_HOT_RUNS_MAX")]
    pub(super) hot_runs_max: Option<usize>,
    /// Connections at once; more wait until there is room [default: 10000].
    #[arg(long, value_name = "N", env = "WINDLASS_CONNECTIONS_MAX")]
    pub(super) connections_max: Option<usize>,
}

/// How much a server takes on at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Limits {
    pub(crate) body_bytes: usize,
    pub(crate) call_timeout: Duration,
    pub(crate) service_calls: usize,
    pub(crate) worker_calls: usize,
    pub(crate) hot_runs: usize,
    pub(crate) connections: usize,
}

impl Default for Limits {
    fn default() -> Self {
        let (settings, surface) = (Settings::default(), windlass_server::Options::default());
        Limits {
            body_bytes: surface.body_bytes_max,
            call_timeout: settings.call_timeout,
            service_calls: settings.service_calls_max,
            worker_calls: settings.worker_calls_max,
            hot_runs: settings.hot_runs_max,
            connections: surface.connections_max,
        }
    }
}

impl LimitFlags {
    /// What is said here, and what is said there where nothing is said here.
    pub(super) fn or(self, other: LimitFlags) -> LimitFlags {
        LimitFlags {
            body_bytes_max: self.body_bytes_max.or(other.body_bytes_max),
            call_timeout_sec: self.call_timeout_sec.or(other.call_timeout_sec),
            service_calls_max: self.service_calls_max.or(other.service_calls_max),
            worker_calls_max: self.worker_calls_max.or(other.worker_calls_max),
            hot_runs_max: self.hot_runs_max.or(other.hot_runs_max),
            connections_max: self.connections_max.or(other.connections_max),
        }
    }

    /// The limits; with one of zero nothing would ever be done.
    pub(super) fn limits(&self) -> Result<Limits> {
        let built_in = Limits::default();
        let at_least_one = |said: Option<usize>, built_in: usize, what: &str| match said {
            Some(0) => bail!("{what} must be at least 1"),
            said => Ok(said.unwrap_or(built_in)),
        };
        let call_timeout = match self.call_timeout_sec {
            Some(0) => bail!("call_timeout_sec must be at least 1 second"),
            said => said.map_or(built_in.call_timeout, Duration::from_secs),
        };
        Ok(Limits {
            body_bytes: at_least_one(self.body_bytes_max, built_in.body_bytes, "body_bytes_max")?,
            call_timeout,
            service_calls: at_least_one(self.service_calls_max, built_in.service_calls, "service_calls_max")?,
            worker_calls: at_least_one(self.worker_calls_max, built_in.worker_calls, "worker_calls_max")?,
            hot_runs: at_least_one(self.hot_runs_max, built_in.hot_runs, "hot_runs_max")?,
            connections: at_least_one(self.connections_max, built_in.connections, "connections_max")?,
        })
    }
}
