//! Samples for charts: the figures of one server in one minute.

use serde::{Deserialize, Serialize};
use windlass_engine::id::ServerId;
use windlass_engine::time::Timestamp;

/// The figures of one minute.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SampleRow {
    /// The subject: empty for the whole server, the name of a queue otherwise.
    pub scope: String,
    /// The beginning of the minute.
    pub at: Timestamp,
    pub server: ServerId,
    /// JSON in the form of the writer.
    pub figures: String,
}

/// The samples of a subject in a span of time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SampleQuery {
    pub scope: String,
    /// At or after.
    pub since: Timestamp,
    /// Before.
    pub until: Timestamp,
}
