//! The output of a script: read as it comes, kept within bounds.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio_util::sync::CancellationToken;

/// Bytes read at once.
const CHUNK: usize = 16 << 10;

/// The treatment of output beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ExcessOutput {
    /// It is an error: reading stops.
    Stops,
    /// The oldest is forgotten.
    Scrolls,
}

/// A stream of a script. Cheap to clone: one reads, one looks.
#[derive(Debug, Clone)]
pub(super) struct ScriptOutput {
    kept: Arc<Mutex<Vec<u8>>>,
    bytes_max: usize,
    excess: ExcessOutput,
    /// Canceled when there is more than may be.
    pub(super) is_over: CancellationToken,
}

impl ScriptOutput {
    pub(super) fn new(bytes_max: usize, excess: ExcessOutput) -> Self {
        ScriptOutput { kept: Arc::default(), bytes_max, excess, is_over: CancellationToken::new() }
    }

    /// Reads to the end of the stream, or until there is too much.
    pub(super) async fn read(self, mut from: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; CHUNK];
        // A pipe that breaks has ended.
        while let Ok(n) = from.read(&mut chunk).await {
            if n == 0 || !self.keep(&chunk[..n]) {
                return;
            }
        }
    }

    fn keep(&self, chunk: &[u8]) -> bool {
        let mut kept = self.kept();
        match self.excess {
            ExcessOutput::Stops if kept.len() + chunk.len() > self.bytes_max => {
                self.is_over.cancel();
                return false;
            }
            ExcessOutput::Stops => kept.extend_from_slice(chunk),
            ExcessOutput::Scrolls => {
                kept.extend_from_slice(chunk);
                // Moving the kept bytes costs as much as reading them, so they are moved once per buffer.
                if kept.len() > 2 * self.bytes_max {
                    let excess = kept.len() - self.bytes_max;
                    kept.drain(..excess);
                }
            }
        }
        true
    }

    /// Takes the output that was read so far.
    pub(super) fn take(&self) -> Vec<u8> {
        let mut kept = std::mem::take(&mut *self.kept());
        let excess = kept.len().saturating_sub(self.bytes_max);
        kept.drain(..excess);
        kept
    }

    fn kept(&self) -> MutexGuard<'_, Vec<u8>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_log_keeps_its_end() {
        let output = ScriptOutput::new(8, ExcessOutput::Scrolls);
        let text = (0..100_000).map(|n| format!("{n},")).collect::<String>();
        output.clone().read(text.as_bytes()).await;
        assert_eq!(output.take(), b"8,99999,");
        assert!(!output.is_over.is_cancelled());
    }

    #[tokio::test]
    async fn a_result_that_is_too_large_is_noticed() {
        let output = ScriptOutput::new(8, ExcessOutput::Stops);
        output.clone().read(&b"12345678"[..]).await;
        assert!(!output.is_over.is_cancelled());
        output.clone().read(&b"9"[..]).await;
        assert!(output.is_over.is_cancelled());
        assert_eq!(output.take(), b"12345678");
    }
}
