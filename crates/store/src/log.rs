//! What those who were called wrote while they worked.

use serde::{Deserialize, Serialize};
use windlass_engine::id::RunId;
use windlass_engine::time::Timestamp;

/// What is read of the logs of one run at once: whoever wants a certain one asks for it by its fence.
pub const LOGS_MAX: usize = 1_000;

/// The log of one attempt. Deleted with its run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRow {
    pub run: RunId,
    /// The grant of the attempt: it never comes again within the run.
    pub fence: u64,
    /// When it was written last.
    pub at: Timestamp,
    pub text: String,
}
