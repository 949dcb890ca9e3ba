//! Sender of job results. It sends several batches concurrently, and repeats each until the server has answered.
//!
//! A server that is not there is waited for, since leases are kept meanwhile. A batch that is refused is halved until
//! the one that cannot be taken stands alone; that one ends as failed, so that its run hears of it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::handler::HandlerOutcome;
use super::held_leases::{ClaimId, HeldLeases};
use super::pull::{BATCH, PAUSE, PAUSE_MAX, millis};
use crate::contract::{self, FinishRequest, JobResult, LeaseVerdict, WorkerLogLine};
use crate::error::UNSENDABLE;
use crate::{Client, ClientError};

/// Bytes of the results in one request: well below the server's limit.
const BATCH_BYTES: usize = 1 << 20;
/// Bytes of one result that are sent at all. A server hangs up on more before it can say that this is too much.
const RESULT_BYTES: usize = 32 << 20;
/// Requests at once.
const IN_FLIGHT: usize = 4;

/// The result of one job.
pub(super) struct EndedJob {
    pub(super) claim: ClaimId,
    pub(super) outcome: HandlerOutcome,
    pub(super) logs: Vec<WorkerLogLine>,
}

/// Sends results of jobs to the server.
#[derive(Clone)]
pub(super) struct ResultSender {
    pub(super) client: Client,
    pub(super) id: String,
    pub(super) held: Arc<HeldLeases>,
    /// Ends all sending.
    pub(super) end: CancellationToken,
}

impl ResultSender {
    /// Sends results, batched, until the channel is closed.
    pub(super) async fn run(self, mut results: mpsc::Receiver<EndedJob>) {
        let room = Arc::new(Semaphore::new(IN_FLIGHT));
        let sending = TaskTracker::new();
        let mut ended = Vec::new();
        while results.recv_many(&mut ended, BATCH).await > 0 {
            for batch in batches(ended.drain(..).map(result_of).map(sized)) {
                let permit = Arc::clone(&room)
                    .acquire_owned()
                    .await
                    .expect("the semaphore of a sender is never closed");
                let sender = self.clone();
                sending.spawn(async move {
                    sender.send_batch(batch).await;
                    drop(permit);
                });
            }
        }
        sending.close();
        sending.wait().await;
    }

    async fn send_batch(&self, batch: Vec<JobResult>) {
        let mut left = vec![(batch, true)];
        while let Some((mut batch, may_be_replaced)) = left.pop() {
            let Some(refused) = self.until_answered(&mut batch).await else { continue };
            if batch.len() > 1 {
                let rest = batch.split_off(batch.len() / 2);
                left.extend([(rest, true), (batch, true)]);
            } else if may_be_replaced {
                tracing::error!(worker = %self.id, error = %refused, "a result cannot be handed in: its job fails");
                left.extend(
                    batch.pop().map(|result| (vec![unsendable(&result, &refused.to_string())], false)),
                );
            } else {
                tracing::error!(worker = %self.id, error = %refused, "the end of a job is not taken: it comes back");
                self.let_go(&batch);
            }
        }
    }

    /// Sends a batch until the server has answered; returns the answer if the server refuses the batch itself.
    async fn until_answered(&self, batch: &mut Vec<JobResult>) -> Option<ClientError> {
        let mut pause = PAUSE;
        loop {
            // Lost leases belong to other workers now.
            batch.retain(|result| self.held.has(&claim_of(result)));
            if batch.is_empty() {
                return None;
            }
            let finish = FinishRequest { results: std::mem::take(batch) };
            let answer = self.end.run_until_cancelled(self.client.jobs().finish(&finish)).await;
            *batch = finish.results;
            let error = match answer {
                Some(Ok(finished)) => {
                    let lost =
                        finished.results.iter().filter(|result| result.verdict == LeaseVerdict::Lost).count();
                    if lost > 0 {
                        tracing::warn!(worker = %self.id, lost, "results came too late: others have their jobs");
                    }
                    // Results that the server could not accept now are sent again; the others are done.
                    let mut errors =
                        finished.results.iter().map(|result| result.verdict == LeaseVerdict::Error);
                    let (again, over): (Vec<_>, Vec<_>) =
                        std::mem::take(batch).into_iter().partition(|_| errors.next().unwrap_or(false));
                    self.let_go(&over);
                    *batch = again;
                    if batch.is_empty() {
                        return None;
                    }
                    tracing::warn!(worker = %self.id, n_left = batch.len(), "some results were not taken, will try again");
                    self.end.run_until_cancelled(tokio::time::sleep(pause)).await;
                    pause = (pause * 2).min(PAUSE_MAX);
                    continue;
                }
                Some(Err(error)) => error,
                None => {
                    let n_untold = batch.len();
                    tracing::error!(worker = %self.id, n_untold, "stopped before results were taken: their jobs come back");
                    self.let_go(batch);
                    return None;
                }
            };
            if is_about_the_batch(&error) {
                return Some(error);
            }
            tracing::warn!(worker = %self.id, %error, "results were not taken, will try again");
            let pause_now = error.retry_after.unwrap_or(pause).min(PAUSE_MAX);
            self.end.run_until_cancelled(tokio::time::sleep(pause_now)).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    fn let_go(&self, batch: &[JobResult]) {
        batch.iter().for_each(|result| self.held.let_go(&claim_of(result)));
    }
}

/// Whether sending less may help. Anything else says something of the server or of the way to it.
fn is_about_the_batch(error: &ClientError) -> bool {
    matches!(error.status, Some(400 | 413 | 422)) || error.code == UNSENDABLE
}

fn claim_of(result: &JobResult) -> ClaimId {
    ClaimId { job: result.id.clone(), lease: result.lease.clone() }
}

/// Groups results up to the size of one request; a larger result is sent alone.
fn batches(results: impl Iterator<Item = (usize, JobResult)>) -> Vec<Vec<JobResult>> {
    let mut batches = Vec::new();
    let (mut open, mut n_bytes) = (Vec::new(), 0_usize);
    for (size, result) in results {
        if !open.is_empty() && n_bytes.saturating_add(size) > BATCH_BYTES {
            batches.push(std::mem::take(&mut open));
            n_bytes = 0;
        }
        n_bytes = n_bytes.saturating_add(size);
        open.push(result);
    }
    if !open.is_empty() {
        batches.push(open);
    }
    batches
}

/// A result with its bytes; a failure in its place if it is too large to be sent at all.
fn sized(result: JobResult) -> (usize, JobResult) {
    let mut bytes = Counter(0);
    // Serialization errors surface when the batch is sent.
    let _written = serde_json::to_writer(&mut bytes, &result);
    if bytes.0 <= RESULT_BYTES {
        return (bytes.0, result);
    }
    let why = format!("it has {} bytes, and at most {RESULT_BYTES} are sent", bytes.0);
    (0, unsendable(&result, &why))
}

/// The end of a job whose own end cannot be handed in.
fn unsendable(result: &JobResult, why: &str) -> JobResult {
    JobResult {
        id: result.id.clone(),
        lease: result.lease.clone(),
        outcome: contract::CallOutcome::Failed,
        error: Some(format!(
            "the answer of the handler could not be handed in: {why}; answer with less, or with a reference to it"
        )),
        retryable: Some(false),
        ..JobResult::default()
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn result_of(ended: EndedJob) -> JobResult {
    let ClaimId { job: id, lease } = ended.claim;
    let logs = if ended.logs.is_empty() { Value::Null } else { json!(ended.logs) };
    let result = JobResult { id, lease, logs, ..JobResult::default() };
    match ended.outcome {
        HandlerOutcome::Done(value) => {
            JobResult { outcome: contract::CallOutcome::Done, result: value, ..result }
        }
        HandlerOutcome::Suspended { memo, recheck } => {
            let recheck_ms = recheck.map(|recheck: Duration| millis(recheck));
            JobResult { outcome: contract::CallOutcome::Suspended, memo, recheck_ms, ..result }
        }
        HandlerOutcome::Failed { message, retryable, temporary } => JobResult {
            outcome: contract::CallOutcome::Failed,
            error: Some(message),
            retryable: Some(retryable),
            temporary,
            ..result
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn of_bytes(n_bytes: usize) -> JobResult {
        JobResult { result: Value::String("x".repeat(n_bytes)), ..JobResult::default() }
    }

    #[test]
    fn batches_are_bounded_by_bytes() {
        let results = [10, BATCH_BYTES - 1_000, 2_000, 2 * BATCH_BYTES, 5, 5].map(of_bytes);
        let lengths: Vec<usize> = batches(results.into_iter().map(sized)).iter().map(Vec::len).collect();
        assert_eq!(lengths, [2, 1, 1, 2]);
        assert!(batches(std::iter::empty()).is_empty());
    }

    #[test]
    fn a_body_far_above_the_limit_fails_without_being_sent() {
        let (size, result) = sized(of_bytes(RESULT_BYTES));
        assert_eq!((size, result.outcome, result.retryable), (0, contract::CallOutcome::Failed, Some(false)));
        assert!(result.error.unwrap().contains("could not be handed in"));
    }
}
