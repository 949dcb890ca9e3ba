//! What people do to a job.

use windlass_engine::id::JobId;
use windlass_engine::job::JobRefusal;
use windlass_store::job::JobRow;

use crate::{Runtime, RuntimeError};

/// Why a job stays as it is.
#[derive(Debug, thiserror::Error)]
pub enum JobError {
    #[error("there is no job {0}")]
    Unknown(JobId),
    /// The job says no; nothing was lost.
    #[error(transparent)]
    Refused(#[from] JobRefusal),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runtime {
    /// Cancels a job; one that somebody works on is cancelled when they have stopped, or had the time to.
    pub async fn cancel_job(&self, _job: JobId) -> Result<JobRow, JobError> {
        unimplemented!()
    }

    /// Ends the wait of a job, or opens a failed or cancelled one again.
    pub async fn retry_job(&self, _job: JobId) -> Result<JobRow, JobError> {
        unimplemented!()
    }
}
