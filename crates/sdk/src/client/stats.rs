//! Statistics of the server, of flows and of runs.

use super::Client;
use crate::contract::{FlowStatsInfo, RunStats, StatsResponse};
use crate::error::ClientError;

impl Client {
    /// How everything on the server went since it started.
    pub async fn stats(&self) -> Result<StatsResponse, ClientError> {
        self.get(self.native(&["stats"])).await
    }

    /// How a flow went since the server started.
    pub async fn flow_stats(&self, flow: &str) -> Result<FlowStatsInfo, ClientError> {
        self.get(self.native(&["flows", flow, "stats"])).await
    }

    /// How many calls of a run went on at once, and how long its nodes took.
    pub async fn run_stats(&self, run: &str) -> Result<RunStats, ClientError> {
        self.get(self.native(&["runs", run, "stats"])).await
    }
}
