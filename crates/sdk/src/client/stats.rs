//! How things went.

use super::Client;
use crate::error::ClientError;
use crate::types::{FlowStats, RunStats, Stats};

impl Client {
    /// How everything on the server went since it started.
    pub async fn stats(&self) -> Result<Stats, ClientError> {
        self.get(self.native(&["stats"])).await
    }

    /// How a flow went since the server started.
    pub async fn flow_stats(&self, flow: &str) -> Result<FlowStats, ClientError> {
        self.get(self.native(&["flows", flow, "stats"])).await
    }

    /// How many calls of a run went on at once, and how long its nodes took.
    pub async fn run_stats(&self, run: &str) -> Result<RunStats, ClientError> {
        self.get(self.native(&["runs", run, "stats"])).await
    }
}
