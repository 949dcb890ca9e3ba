//! Limits on the work that a server takes on at once.

use std::time::Duration;

use clap::Args;
use windlass_runtime::Settings;

use super::settings::{SettingReader, number};

/// The smallest bound on open runs: twice the levels of a tree of runs.
const OPEN_RUNS_MIN: u64 = 64;
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(24 * 3_600);

/// Limits from the command line and the environment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Args)]
pub(super) struct LimitArgs {
    /// Bytes of a request's body at most [default: 4194304].
    #[arg(long, value_name = "BYTES", env = "WINDLASS_BODY_BYTES_MAX")]
    pub(super) body_bytes_max: Option<String>,
    /// Seconds of an attempt at most, where its node names no time limit [default: 300].
    #[arg(long, value_name = "SECONDS", env = "WINDLASS_CALL_TIMEOUT_SEC")]
    pub(super) call_timeout_sec: Option<String>,
    /// Parallel calls of one service at most; more calls wait [default: 256].
    #[arg(long, value_name = "N", env = "WINDLASS_SERVICE_CALLS_MAX")]
    pub(super) service_calls_max: Option<String>,
    /// Parallel calls to one worker at most, unless the worker states its capacity [default: 64].
    #[arg(long, value_name = "N", env = "WINDLASS_WORKER_CALLS_MAX")]
    pub(super) worker_calls_max: Option<String>,
    /// Runs in memory at most [default: 5000].
    #[arg(long, value_name = "N", env = "WINDLASS_HOT_RUNS_MAX")]
    pub(super) hot_runs_max: Option<String>,
    /// Open runs below one root at most, at any depth; more child runs wait [default: 10000].
    #[arg(long, value_name = "N", env = "WINDLASS_TREE_OPEN_RUNS_MAX")]
    pub(super) tree_open_runs_max: Option<String>,
    /// Runs below one root at most, open and ended; the calls of more child runs fail [default: 100000].
    #[arg(long, value_name = "N", env = "WINDLASS_TREE_RUNS_MAX")]
    pub(super) tree_runs_max: Option<String>,
    /// Open runs of one flow at most; more starts are refused, more child runs wait [default: 1000000].
    #[arg(long, value_name = "N", env = "WINDLASS_FLOW_OPEN_RUNS_MAX")]
    pub(super) flow_open_runs_max: Option<String>,
    /// Open runs at most; more starts are refused, more child runs wait [default: 2000000].
    #[arg(long, value_name = "N", env = "WINDLASS_OPEN_RUNS_MAX")]
    pub(super) open_runs_max: Option<String>,
    /// Open connections at most; more connections wait [default: 10000].
    #[arg(long, value_name = "N", env = "WINDLASS_CONNECTIONS_MAX")]
    pub(super) connections_max: Option<String>,
    /// Open connections of one client address at most, or open requests of one behind a trusted proxy; 0 = no limit. Clients
    /// on this machine have none [default: 1000].
    #[arg(long, value_name = "N", env = "WINDLASS_CONNECTIONS_PER_ADDRESS_MAX")]
    pub(super) connections_per_address_max: Option<String>,
    /// Days for which ended runs and jobs are kept; 0 = for ever [default: 30].
    #[arg(long, value_name = "DAYS", env = "WINDLASS_RETAIN_DAYS")]
    pub(super) retain_days: Option<String>,
    /// Hours for which workers without heartbeats are remembered; 0 = for ever [default: 24].
    #[arg(long, value_name = "HOURS", env = "WINDLASS_WORKER_RETAIN_HOURS")]
    pub(super) worker_retain_hours: Option<String>,
    /// Days for which queues without settings and jobs are remembered; 0 = for ever [default: 7].
    #[arg(long, value_name = "DAYS", env = "WINDLASS_EMPTY_QUEUE_RETAIN_DAYS")]
    pub(super) empty_queue_retain_days: Option<String>,
}

/// Limits on the work that a server takes on at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerLimits {
    pub(crate) body_bytes: usize,
    pub(crate) call_timeout: Duration,
    pub(crate) service_calls: usize,
    pub(crate) worker_calls: usize,
    pub(crate) hot_runs: usize,
    pub(crate) tree_open_runs: usize,
    pub(crate) tree_runs: usize,
    pub(crate) flow_open_runs: usize,
    pub(crate) open_runs: usize,
    pub(crate) connections: usize,
    /// 0 = no limit.
    pub(crate) connections_per_address: usize,
    /// `None` = for ever, as for the other two.
    pub(crate) retain_for: Option<Duration>,
    pub(crate) worker_retain_for: Option<Duration>,
    pub(crate) empty_queue_retain_for: Option<Duration>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        let (settings, surface) = (Settings::default(), windlass_server::Options::default());
        ServerLimits {
            body_bytes: surface.body_bytes_max,
            call_timeout: settings.call_timeout,
            service_calls: settings.service_calls_max,
            worker_calls: settings.worker_calls_max,
            hot_runs: settings.hot_runs_max,
            tree_open_runs: settings.tree_open_runs_max,
            tree_runs: settings.tree_runs_max,
            flow_open_runs: settings.flow_open_runs_max,
            open_runs: settings.open_runs_max,
            connections: surface.connections_max,
            connections_per_address: surface.connections_per_address_max,
            retain_for: settings.retain_for,
            worker_retain_for: settings.worker_retain_for,
            empty_queue_retain_for: settings.empty_queue_retain_for,
        }
    }
}

impl ServerLimits {
    /// Whole days for which ended runs and jobs are kept; 0 = for ever.
    pub(super) fn retain_days(&self) -> u64 {
        whole(self.retain_for, DAY)
    }

    /// Whole hours for which workers without heartbeats are remembered; 0 = for ever.
    pub(super) fn worker_retain_hours(&self) -> u64 {
        whole(self.worker_retain_for, HOUR)
    }

    /// Whole days for which queues without settings and jobs are remembered; 0 = for ever.
    pub(super) fn empty_queue_retain_days(&self) -> u64 {
        whole(self.empty_queue_retain_for, DAY)
    }
}

fn whole(kept: Option<Duration>, unit: Duration) -> u64 {
    kept.map_or(0, |kept| kept.as_secs() / unit.as_secs())
}

/// Reads a number of days or hours; 0 = for ever.
fn kept(text: &str, unit: Duration) -> Result<Option<Duration>, String> {
    let n = number(text, 0)?;
    let n = u32::try_from(n).map_err(|_| format!("{n} is too large: write at most {}", u32::MAX))?;
    Ok((n > 0).then(|| unit.saturating_mul(n)))
}

impl LimitArgs {
    pub(super) fn read(self, settings: &mut SettingReader<'_>) -> ServerLimits {
        let default = ServerLimits::default();
        // With a limit of zero the server would never do anything.
        let count = |text: &str| number(text, 1).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        // Fewer would leave no room for the levels of a tree.
        let open_runs =
            |text: &str| number(text, OPEN_RUNS_MIN).map(|n| usize::try_from(n).unwrap_or(usize::MAX));
        let seconds = |text: &str| number(text, 1).map(Duration::from_secs);
        let days = |text: &str| kept(text, DAY);
        ServerLimits {
            body_bytes: settings.read("body_bytes_max", self.body_bytes_max, default.body_bytes, count),
            call_timeout: settings.read(
                "call_timeout_sec",
                self.call_timeout_sec,
                default.call_timeout,
                seconds,
            ),
            service_calls: settings.read(
                "service_calls_max",
                self.service_calls_max,
                default.service_calls,
                count,
            ),
            worker_calls: settings.read(
                "worker_calls_max",
                self.worker_calls_max,
                default.worker_calls,
                count,
            ),
            hot_runs: settings.read("hot_runs_max", self.hot_runs_max, default.hot_runs, count),
            tree_open_runs: settings.read(
                "tree_open_runs_max",
                self.tree_open_runs_max,
                default.tree_open_runs,
                open_runs,
            ),
            tree_runs: settings.read("tree_runs_max", self.tree_runs_max, default.tree_runs, count),
            flow_open_runs: settings.read(
                "flow_open_runs_max",
                self.flow_open_runs_max,
                default.flow_open_runs,
                open_runs,
            ),
            open_runs: settings.read("open_runs_max", self.open_runs_max, default.open_runs, open_runs),
            connections: settings.read("connections_max", self.connections_max, default.connections, count),
            connections_per_address: settings.read(
                "connections_per_address_max",
                self.connections_per_address_max,
                default.connections_per_address,
                |text| number(text, 0).map(|n| usize::try_from(n).unwrap_or(usize::MAX)),
            ),
            retain_for: settings.read("retain_days", self.retain_days, default.retain_for, days),
            worker_retain_for: settings.read(
                "worker_retain_hours",
                self.worker_retain_hours,
                default.worker_retain_for,
                |text| kept(text, HOUR),
            ),
            empty_queue_retain_for: settings.read(
                "empty_queue_retain_days",
                self.empty_queue_retain_days,
                default.empty_queue_retain_for,
                days,
            ),
        }
    }
}
