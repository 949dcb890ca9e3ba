//! Looking at something again and again, past a server that restarts.

use std::time::{Duration, Instant};

use windlass_sdk::ClientError;

use crate::output;

/// What a wait that was too long ends a command with.
pub(crate) const TIMED_OUT: u8 = 124;

/// How long to wait before a server that could not be asked is asked again.
const PAUSE: Duration = Duration::from_millis(500);

/// Somebody who looks until something has ended or patience has.
pub(crate) struct Asking {
    began: Instant,
    timeout: Option<Duration>,
    has_answered: bool,
}

impl Asking {
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        Asking { began: Instant::now(), timeout, has_answered: false }
    }

    /// What is left of the patience; `None` = it has no end.
    pub(crate) fn left(&self) -> Option<Duration> {
        self.timeout.map(|timeout| timeout.saturating_sub(self.began.elapsed()))
    }

    /// What there is to see. A server that cannot be asked is waited for as long as patience lasts; one that never
    /// answered only if somebody said how long.
    pub(crate) async fn look<T>(
        &mut self,
        ask: impl AsyncFn() -> Result<T, ClientError>,
    ) -> Result<T, ClientError> {
        let mut is_told = false;
        loop {
            let error = match ask().await {
                Ok(seen) => {
                    self.has_answered = true;
                    return Ok(seen);
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
