//! Polling of the server, past a restart of it.

use std::time::{Duration, Instant};

use windlass_sdk::ClientError;

use crate::output;

/// The pause before a server that did not answer is asked again.
const RETRY_DELAY: Duration = Duration::from_millis(500);

/// Polls the server until the caller has seen enough or the time-out has passed.
pub(crate) struct ServerPoller {
    began: Instant,
    timeout: Option<Duration>,
    has_answered: bool,
}

impl ServerPoller {
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        ServerPoller { began: Instant::now(), timeout, has_answered: false }
    }

    /// The time until the time-out; `None` = there is none.
    pub(crate) fn time_left(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_sub(self.began.elapsed()))
    }

    /// Sends a request. A server that cannot be reached is waited for until the time-out; without a time-out, only if it
    /// answered before.
    pub(crate) async fn poll<T>(
        &mut self,
        request: impl AsyncFn() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut is_reported = false;
        loop {
            let error = match request().await {
                Ok(response) => {
                    self.has_answered = true;
                    return Ok(response);
                }
                Err(error) => error,
            };
            let left = self.time_left();
            let may_wait = self.has_answered || left.is_some();
            if !error.is_temporary() || !may_wait || left.is_some_and(|left| left.is_zero()) {
                return Err(error);
            }
            if !is_reported {
                output::message(&format!("waiting for the server: {error}"));
                is_reported = true;
            }
            tokio::time::sleep(RETRY_DELAY.min(left.unwrap_or(RETRY_DELAY))).await;
        }
    }
}
