//! Signals of a server or worker: the first one starts a graceful stop, the second one ends the process.

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::exit::Exit;
use crate::output;

/// Cancels `stop` at the first SIGINT or SIGTERM; the second one ends the process.
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
                output::message("stopped at once: open calls are made again after the next start");
                std::process::exit(Exit::Interrupted as i32);
            }
            output::message("stopping: waiting for open calls (interrupt again to stop at once)");
            stop.cancel();
        }
    });
    Ok(())
}
