//! Claims of jobs that wait in Redis. A popped job belongs to this claim alone; the claim is committed to the store like
//! any other, and the store may refuse it. Only the id of a popped message counts: the job is read from the store.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::limits;
use windlass_queue::redis::{JobMessage, PoppedJob, PoppedJobs, RedisUpdate};
use windlass_queue::{ClaimQuery, TakenJobs};
use windlass_store::StoreError;
use windlass_store::blob::referenced_bytes;
use windlass_store::job::{JobRow, ReadyQuery};

use super::grant::ClaimWriter;
use crate::RuntimeError;
use crate::jobs::LeasedJob;
use crate::jobs::relay::Relay;
use crate::part::RuntimePart;

/// Jobs that are popped at once at most.
const POP_MAX: usize = 1_000;
/// Jobs that are read at once while their size is unknown.
const READ_FIRST: usize = 32;
/// A claim gets no further job once those it got are so large together.
const CLAIM_BYTES: usize = 16 << 20;

impl ClaimWriter {
    /// Claims jobs of queues that are dispatched through Redis; `None` = there are none. If the request goes away
    /// meanwhile, the jobs are released.
    pub(super) async fn claim_via_redis(
        &self,
        query: &ClaimQuery,
        max: usize,
    ) -> Result<Option<Vec<LeasedJob>>, RuntimeError> {
        let queues = self.state().dispatch.queues_via_redis(query);
        if queues.is_empty() {
            return Ok(None);
        }
        let (reply, popped) = oneshot::channel();
        let writer = self.clone();
        self.tasks().spawn(async move {
            let claimed = writer.pop_jobs(queues, max).await;
            if let Err(Ok(claimed)) = reply.send(claimed) {
                writer.release(claimed).await;
            }
        });
        let claimed = popped.await.unwrap_or(Err(RuntimeError::Broken))?;
        Ok(Some(claimed).filter(|claimed| !claimed.is_empty()))
    }

    async fn pop_jobs(&self, mut queues: Vec<String>, max: usize) -> Result<Vec<LeasedJob>, RuntimeError> {
        let Some(relay) = &self.state().relay else { return Ok(Vec::new()) };
        let mut n = max.min(POP_MAX);
        // Queues of equal priority are popped in order, so the order rotates.
        let n_queues = queues.len().max(1);
        queues.rotate_left(relay.next_turn() % n_queues);
        while let Some(link) = relay.link() {
            let popped = match link.pop(&queues, n).await {
                Ok(popped) => popped,
                Err(error) => {
                    self.relay().lose_redis(&error);
                    break;
                }
            };
            let PoppedJobs { jobs, n_invalid, short, is_lost } = popped;
            if is_lost {
                relay.want_lost();
            }
            short.iter().for_each(|queue| relay.want(queue));
            if jobs.is_empty() && n_invalid == 0 {
                break;
            }
            let ids: Vec<JobId> = jobs.iter().map(|popped| popped.job).collect();
            relay.set_popped(ids.iter().copied(), true);
            let claimed = self.claim_popped(relay, jobs, max).await;
            relay.set_popped(ids, false);
            let claimed = claimed?;
            if !claimed.is_empty() {
                return Ok(claimed);
            }
            // All of it was out of date: there may be much of that.
            n = n.saturating_mul(4).min(POP_MAX);
        }
        Ok(Vec::new())
    }

    /// Claims popped jobs. A job that is not ready is dropped, because the server that changed it updates Redis; a job
    /// that could not be claimed otherwise goes back to Redis.
    async fn claim_popped(
        &self,
        relay: &Relay,
        popped: Vec<PoppedJob>,
        max: usize,
    ) -> Result<Vec<LeasedJob>, RuntimeError> {
        let mut left: HashMap<JobId, JobMessage> =
            popped.iter().map(|popped| (popped.job, popped.message.clone())).collect();
        let read = self.read_popped(&popped, max, &mut left).await;
        let claimed = match read {
            Ok(rows) => {
                let taken =
                    TakenJobs { rows: rows.clone(), spent: Vec::new(), turns: Vec::new(), is_sooner: false };
                let claimed = self.write_claims(taken).await;
                let got: HashSet<JobId> = claimed.iter().flatten().map(|claimed| claimed.job).collect();
                let is_lost = |row: &&Arc<JobRow>| !got.contains(&row.id()) && self.may_be_ready(row.id());
                let lost = rows.iter().filter(is_lost);
                left.extend(lost.map(|row| (row.id(), JobMessage::of(&row.job))));
                claimed
            }
            Err(error) => Err(error.into()),
        };
        // The last one first, each at the head: so they are in order again.
        for popped in popped.iter().rev() {
            if let Some(message) = left.remove(&popped.job) {
                relay.tell(RedisUpdate::Back(message));
            }
        }
        claimed
    }

    /// Reads popped jobs that are ready, up to the size of a claim; removes from `left` every job that was read. A forged
    /// message may name a job of another queue: it is left out.
    async fn read_popped(
        &self,
        popped: &[PoppedJob],
        max: usize,
        left: &mut HashMap<JobId, JobMessage>,
    ) -> Result<Vec<Arc<JobRow>>, StoreError> {
        let of: HashMap<JobId, &str> =
            popped.iter().map(|popped| (popped.job, popped.message.queue.as_str())).collect();
        let (mut rows, mut bytes, mut at) = (Vec::new(), 0usize, 0);
        while at < popped.len() && rows.len() < max && bytes < CLAIM_BYTES {
            let mean = bytes.checked_div(rows.len()).unwrap_or(CLAIM_BYTES / READ_FIRST);
            let n = (CLAIM_BYTES / mean.max(1)).clamp(READ_FIRST, POP_MAX).min(popped.len() - at);
            let ids: Vec<JobId> = popped[at..at + n].iter().map(|popped| popped.job).collect();
            at += n;
            let query =
                ReadyQuery { ids: ids.clone(), now: self.clock().now(), limit: n, ..ReadyQuery::default() };
            let read = self.store().ready(self.project(), query).await?;
            ids.iter().for_each(|id| {
                left.remove(id);
            });
            let is_own = |row: &JobRow| of.get(&row.id()).is_some_and(|queue| **queue == row.job.spec.queue);
            for row in read.into_iter().filter(is_own) {
                if rows.len() >= max || bytes >= CLAIM_BYTES {
                    left.insert(row.id(), JobMessage::of(&row.job));
                    continue;
                }
                bytes = bytes.saturating_add(weigh(&row));
                rows.push(Arc::new(row));
            }
        }
        Ok(rows)
    }

    /// Whether the job may still be claimable, as far as the index knows.
    fn may_be_ready(&self, id: JobId) -> bool {
        let row = self.state().dispatch.row(id);
        row.is_none_or(|row| matches!(row.job.state, State::Queued { .. }))
    }
}

/// About how large a job is.
fn weigh(row: &JobRow) -> usize {
    // A payload that cannot be weighed counts as the largest.
    let payload = row.job.spec.payload.weigh().unwrap_or(limits::SHARED_BYTES);
    (1_024 + payload).saturating_add(referenced_bytes(row))
}
