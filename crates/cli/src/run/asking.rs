//! Looking at a run again and again, past a server that restarts.

use std::time::{Duration, Instant};

use windlass_sdk::types::Run;
use windlass_sdk::{Client, ClientError};

use crate::output;

/// How long to wait before a server that could not be asked is asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// Somebody who looks at one run until it ends or patience does.
pub(super) struct Asking<'c> {
    client: &'c Client,
    run: &'c str,
    began: Instant,
    timeout: Option<Duration>,
    has_answered: bool,
}

impl<'c> Asking<'c> {
    pub(super) fn new(client: &'c Client, run: &'c str, timeout: Option<Duration>) -> Self {
        Asking { client, run, began: Instant::now(), timeout, has_answered: false }
    }

    /// What is left of the patience; `None` = it has no end.
    pub(super) fn left(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_sub(self.began.elapsed()))
    }

    /// The run. A server that cannot be asked is waited for as long as patience lasts; one that never answered only if
    /// somebody said how long.
    pub(super) async fn look(&mut self) -> Result<Run, ClientError> {
        let mut is_told = false;
        loop {
            let error = match self.client.run(self.run).await {
                Ok(run) => {
                    self.has_answered = true;
                    return Ok(run);
                }
                Err(error) => error,
            };
            let left = self.left();
            let may_wait = self.has_answered || left.is_some();
            if !error.is_temporary() || !may_wait || left.is_some_and(|left| left.is_zero()) {
                return Err(error);
            }
            if !is_told {
                output::message(&format!("waiting for the server: {error}"));
                is_told = true;
            }
            tokio::time::sleep(PAUSE.min(left.unwrap_or(PAUSE))).await;
        }
    }
}
