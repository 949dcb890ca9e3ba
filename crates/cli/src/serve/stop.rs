//! Signals: the first asks politely, the second does not.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::output;

/// What a process that was interrupted twice ends with: 128 and the number of SIGINT.
const INTERRUPTED: i32 = 130;

/// Cancels `stop` at the first SIGINT or SIGTERM; a second one ends the process at once.
pub(crate) fn stop_on_signals(stop: CancellationToken) -> Result<()> {
    let mut interrupts = signal(SignalKind::interrupt()).context("cannot listen for signals")?;
    let mut ends = signal(SignalKind::terminate()).context("cannot listen for signals")?;
    tokio::spawn(async move {
        let mut n_signals = 0;
        loop {
            tokio::select! {
                _ = interrupts.recv() => {}
                _ = ends.recv() => {}
            }
            n_signals += 1;
            if n_signals > 1 {
                output::message("stopped at once: calls that were open are made again after the next start");
                std::process::exit(INTERRUPTED);
            }
            output::message("stopping: letting calls end (once more to stop at once)");
            stop.cancel();
        }
    });
    Ok(())
}
