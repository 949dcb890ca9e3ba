//! Jobs: claiming, keeping and finishing them; reports about calls.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat};
use crate::error::ClientError;
use crate::types::{CallReport, Claim, Claimed, Extend, Extended, Finish, Finished, Reported};

impl Client {
    /// Asks for jobs; waits for some as long as the claim says.
    pub async fn claim(&self, claim: &Claim) -> Result<Claimed, ClientError> {
        let wait = Duration::from_millis(claim.wait_ms.unwrap_or(0));
        let url = self.native(&["jobs", "claim"]);
        self.call(Method::POST, url, Some(claim), wait, Repeat::Never).await
    }

    /// Says how jobs ended. The same end said twice is taken once.
    pub async fn finish(&self, finish: &Finish) -> Result<Finished, ClientError> {
        self.post(self.native(&["jobs", "finish"]), finish, Repeat::Harmless).await
    }

    /// Keeps claims alive, and learns which of them nobody wants any more.
    pub async fn extend(&self, extend: &Extend) -> Result<Extended, ClientError> {
        self.post(self.native(&["jobs", "extend"]), extend, Repeat::Harmless).await
    }

    /// Says how a call ended that was suspended.
    pub async fn report(&self, call: &str, report: &CallReport) -> Result<Reported, ClientError> {
        self.post(self.native(&["calls", call, "report"]), report, Repeat::Harmless).await
    }
}
