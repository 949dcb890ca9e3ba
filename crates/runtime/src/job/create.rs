//! New jobs.

use windlass_engine::id::JobId;
use windlass_engine::job::JobSpec;
use windlass_engine::problem::Problem;

use crate::{Runtime, RuntimeError};

/// Jobs that can be created at once.
pub const BATCH_MAX: usize = 10_000;

/// What became of a request to create a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Created {
    pub job: JobId,
    /// Of the job as a whole: `queued`, or `pending` before its time; of one that was there, whatever it is.
    pub status: &'static str,
    /// `false`: one with the same deduplication key was there.
    pub created: bool,
}

/// Why no job was created.
#[derive(Debug, thiserror::Error)]
pub enum CreateError {
    /// Everything that is wrong; paths begin with `$.`, or with `$[n].` when several were asked for.
    #[error("the job cannot be created: {} problems", .0.len())]
    Problems(Vec<Problem>),
    #[error(transparent)]
    Runtime(#[from] RuntimeError),
}

impl Runtime {
    /// Creates a job; answered when it is durable.
    pub async fn create_job(&self, _spec: JobSpec) -> Result<Created, CreateError> {
        unimplemented!()
    }

    /// Creates jobs, at most [`BATCH_MAX`], all or, when something is wrong with one of them, none; answers in order.
    pub async fn create_jobs(&self, _specs: Vec<JobSpec>) -> Result<Vec<Created>, CreateError> {
        unimplemented!()
    }
}
