//! Jobs: creating, listing, canceling and retrying them; the pull protocol.

use std::time::Duration;

use reqwest::Method;

use super::{Client, Repeat, with_query};
use crate::contract::{
    ClaimRequest, ClaimResponse, ExchangeRequest, ExchangeResponse, ExtendRequest, ExtendResponse,
    FinishRequest, FinishResponse, JobAttempt, JobCreated, JobDetail, JobSummary, JobsQuery, List, NewJob,
    NoBody, PageQuery,
};
use crate::error::ClientError;

/// Jobs of one server, from [`Client::jobs`].
#[derive(Debug, Clone, Copy)]
pub struct JobsApi<'c> {
    client: &'c Client,
}

impl Client {
    /// Creates, reads, claims and ends jobs.
    pub fn jobs(&self) -> JobsApi<'_> {
        JobsApi { client: self }
    }
}

impl JobsApi<'_> {
    /// Creates a job; while an open job of its queue holds the same `dedup_key`, the answer is that job.
    pub async fn create(self, job: &NewJob) -> Result<JobCreated, ClientError> {
        self.client.post(self.client.native(&["jobs"]), job, repeat([job])).await
    }

    /// Creates up to 10,000 jobs: all, or none if one of them is invalid. The answer is in their order.
    pub async fn create_batch(self, jobs: &[NewJob]) -> Result<Vec<JobCreated>, ClientError> {
        let created: List<JobCreated> =
            self.client.post(self.client.native(&["jobs"]), jobs, repeat(jobs)).await?;
        Ok(created.items)
    }

    /// Lists jobs, newest first.
    pub async fn list(self, query: &JobsQuery) -> Result<List<JobSummary>, ClientError> {
        self.client.get(with_query(self.client.native(&["jobs"]), query)).await
    }

    /// A job with its payload and its latest attempt.
    pub async fn show(self, id: &str) -> Result<JobDetail, ClientError> {
        self.client.get(self.client.native(&["jobs", id])).await
    }

    /// The attempts at a job, oldest first.
    pub async fn attempts(self, id: &str, page: &PageQuery) -> Result<List<JobAttempt>, ClientError> {
        self.client.get(with_query(self.client.native(&["jobs", id, "attempts"]), page)).await
    }

    /// Cancels a job. A running one ends when its worker has stopped, or after a grace period.
    pub async fn cancel(self, id: &str) -> Result<JobDetail, ClientError> {
        self.client.post(self.client.native(&["jobs", id, "cancel"]), &NoBody {}, Repeat::Never).await
    }

    /// Ends the wait of a job, or opens a failed or canceled one again.
    pub async fn retry(self, id: &str) -> Result<JobDetail, ClientError> {
        self.client.post(self.client.native(&["jobs", id, "retry"]), &NoBody {}, Repeat::Never).await
    }

    /// Asks for jobs; waits for some as long as the claim says.
    pub async fn claim(self, claim: &ClaimRequest) -> Result<ClaimResponse, ClientError> {
        let wait = Duration::from_millis(claim.wait_ms.unwrap_or(0));
        let url = self.client.native(&["jobs", "claim"]);
        self.client.call(Method::POST, url, Some(claim), wait, Repeat::Never).await
    }

    /// Says how jobs ended. The same end said twice is taken once.
    pub async fn finish(self, finish: &FinishRequest) -> Result<FinishResponse, ClientError> {
        self.client.post(self.client.native(&["jobs", "finish"]), finish, Repeat::Harmless).await
    }

    /// Says how jobs ended and asks for the next ones, in one request.
    pub async fn exchange(self, exchange: &ExchangeRequest) -> Result<ExchangeResponse, ClientError> {
        let wait = Duration::from_millis(exchange.claim.wait_ms.unwrap_or(0));
        let url = self.client.native(&["jobs", "exchange"]);
        self.client.call(Method::POST, url, Some(exchange), wait, Repeat::Never).await
    }

    /// Extends leases, and learns which of their jobs were canceled.
    pub async fn extend(self, extend: &ExtendRequest) -> Result<ExtendResponse, ClientError> {
        self.client.post(self.client.native(&["jobs", "extend"]), extend, Repeat::Harmless).await
    }
}

/// A job with a deduplication key is created once, however often the request is sent.
fn repeat<'a>(jobs: impl IntoIterator<Item = &'a NewJob>) -> Repeat {
    if jobs.into_iter().all(|job| !job.dedup_key.is_empty()) { Repeat::Harmless } else { Repeat::Never }
}
