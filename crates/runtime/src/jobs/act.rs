//! Cancel and retry of one job, as people ask for them.

use windlass_engine::id::JobId;
use windlass_engine::job::{JobInput, JobRefusal};
use windlass_store::job::JobRow;
use windlass_store::{Duplicate, Refusal, StoreError};

use super::change::moved;
use super::finish::{ATTEMPTS_MAX, RETRY_DELAY};
use super::written;
use crate::RuntimeError;
use crate::jobs::Jobs;
use crate::part::RuntimePart;

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

impl From<StoreError> for JobError {
    fn from(error: StoreError) -> Self {
        JobError::Runtime(error.into())
    }
}

impl Jobs {
    /// Cancels a job. A running one is canceled when its worker stops, or its lease ends.
    pub async fn cancel_job(&self, job: JobId) -> Result<JobRow, JobError> {
        self.act(job, JobInput::Cancel).await
    }

    /// Ends the wait of a job, or opens a failed or canceled one again.
    pub async fn retry_job(&self, job: JobId) -> Result<JobRow, JobError> {
        self.act(job, JobInput::RetryNow).await
    }

    async fn act(&self, job: JobId, input: JobInput) -> Result<JobRow, JobError> {
        if matches!(input, JobInput::Cancel) {
            self.runs().admit_control()?;
        } else {
            self.runs().admit()?;
        }
        let jobs = self.clone();
        self.ctx().to_the_end(async move { jobs.act_on_stored(job, input).await }).await?
    }

    /// Always on the stored row: a refusal is never based on a cached one.
    async fn act_on_stored(&self, job: JobId, input: JobInput) -> Result<JobRow, JobError> {
        for _ in 0..ATTEMPTS_MAX {
            let row = self.reload(job).await?.ok_or(JobError::Unknown(job))?;
            if row.origin.call.is_some() || row.job.spec.run.is_some() {
                return Err(JobRefusal::BelongsToRun.into());
            }
            let Some(change) = moved(&row, input.clone(), self.clock().now())? else {
                return Ok((*row).clone());
            };
            match self.commit_jobs(vec![change.clone()]).await.pop().unwrap_or(Ok(())) {
                Ok(()) => return Ok(written(change)),
                Err(StoreError::Conflict { .. }) => {}
                Err(error) => return Err(refused(error)),
            }
        }
        Err(RuntimeError::Busy { retry_after: RETRY_DELAY }.into())
    }
}

/// The refusal of a job that cannot be opened again because another job has its key or its account cannot pay.
fn refused(error: StoreError) -> JobError {
    match error {
        StoreError::Refused(Refusal::Duplicates(mut duplicates)) => match duplicates.pop() {
            Some(Duplicate { key, existing, .. }) => JobRefusal::KeyTaken { key, existing }.into(),
            None => RuntimeError::Broken.into(),
        },
        StoreError::Refused(Refusal::InsufficientFunds { account, needed, balance, .. }) => {
            JobRefusal::InsufficientFunds { account, needed, balance }.into()
        }
        error @ (StoreError::Conflict { .. }
        | StoreError::Unavailable(_)
        | StoreError::Corrupt(_)
        | StoreError::Damaged(_)
        | StoreError::Refused(_)) => error.into(),
    }
}
