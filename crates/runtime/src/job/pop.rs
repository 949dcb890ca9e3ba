//! Claims of jobs that wait in Redis: what is popped is nobody else's, and is claimed as ever.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tokio::sync::oneshot;
use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::{limits, weight};
use windlass_queue::redis::{Move, Popped, Spot};
use windlass_queue::{Query, Taken};
use windlass_store::StoreError;
use windlass_store::job::{JobRow, ReadyQuery};

use super::Claimed;
use crate::queue::Relay;
use crate::{Runtime, RuntimeError};

/// Ids that are popped at once at most.
const POP_MAX: usize = 1_000;
/// Jobs that are read at once as long as nobody knows how large they are.
const READ_FIRST: usize = 32;
/// A claim gets no further job once those it got are so large together.
const CLAIM_BYTES: usize = 16 << 20;

impl Runtime {
    /// Claims jobs of the queues that others hand out, if they have some. Whoever goes away meanwhile gets nothing, and
    /// what was theirs is given back.
    pub(super) async fn claim_elsewhere(
        &self,
        query: &Query,
        max: usize,
        worker: &str,
        lease_ms: u64,
    ) -> Result<Option<Vec<Claimed>>, RuntimeError> {
        let queues = self.jobs().dispatch.asked_elsewhere(query);
        if queues.is_empty() {
            return Ok(None);
        }
        let (tell, heard) = oneshot::channel();
        let (runtime, worker) = (self.clone(), worker.to_owned());
        self.tasks().spawn(async move {
            let claimed = runtime.pop_jobs(queues, max, &worker, lease_ms).await;
            if let Err(Ok(claimed)) = tell.send(claimed) {
                runtime.release(claimed).await;
            }
        });
        let claimed = heard.await.unwrap_or(Err(RuntimeError::Broken))?;
        Ok(Some(claimed).filter(|claimed| !claimed.is_empty()))
    }

    async fn pop_jobs(
        &self,
        mut queues: Vec<String>,
        max: usize,
        worker: &str,
        lease_ms: u64,
    ) -> Result<Vec<Claimed>, RuntimeError> {
        let Some(relay) = &self.jobs().relay else { return Ok(Vec::new()) };
        let mut n = max.min(POP_MAX);
        // Of equal priority the first queue goes first: each is the first now and then.
        let n_queues = queues.len().max(1);
        queues.rotate_left(relay.next_turn() % n_queues);
        while let Some(link) = relay.link() {
            let popped = match link.pop(&queues, n, self.clock().now()).await {
                Ok(popped) => popped,
                Err(error) => {
                    self.lose_redis(&error);
                    break;
                }
            };
            let Popped { spots, n_nonsense, thin, low, is_lost } = popped;
            if is_lost {
                relay.want_lost();
            }
            thin.iter().for_each(|queue| relay.want(queue));
            low.iter().for_each(|queue| relay.want_classes(queue));
            if spots.is_empty() && n_nonsense == 0 {
                break;
            }
            let claimed = self.claim_popped(relay, spots, max, worker, lease_ms).await?;
            if !claimed.is_empty() {
                return Ok(claimed);
            }
            // All of it was out of date: there may be much of that.
            n = n.saturating_mul(4).min(POP_MAX);
        }
        Ok(Vec::new())
    }

    /// Claims what was popped. What is not ready is dropped, whoever made it so has told or will; what could not be
    /// claimed otherwise is given back.
    async fn claim_popped(
        &self,
        relay: &Relay,
        spots: Vec<Spot>,
        max: usize,
        worker: &str,
        lease_ms: u64,
    ) -> Result<Vec<Claimed>, RuntimeError> {
        let mut left: HashMap<JobId, Spot> = spots.iter().map(|spot| (spot.job, spot.clone())).collect();
        let read = self.read_popped(&spots, max, &mut left).await;
        let claimed = match read {
            Ok(rows) => {
                let taken =
                    Taken { rows: rows.clone(), spent: Vec::new(), turns: Vec::new(), is_sooner: false };
                let claimed = self.write_claims(taken, worker, lease_ms).await;
                let got: HashSet<JobId> = claimed.iter().flatten().map(|claimed| claimed.job).collect();
                let is_lost = |row: &&Arc<JobRow>| !got.contains(&row.id()) && self.may_be_ready(row.id());
                let lost = rows.iter().filter(is_lost);
                left.extend(lost.map(|row| (row.id(), Spot::of(&row.job))));
                claimed
            }
            Err(error) => Err(error.into()),
        };
        // The last one first, each at the head: so they are in order again.
        for spot in spots.iter().rev() {
            if let Some(spot) = left.remove(&spot.job) {
                relay.tell(Move::Back(spot));
            }
        }
        claimed
    }

    /// Reads what was popped, as far as it is ready and a claim may have so much; what was looked at is no longer left.
    async fn read_popped(
        &self,
        spots: &[Spot],
        max: usize,
        left: &mut HashMap<JobId, Spot>,
    ) -> Result<Vec<Arc<JobRow>>, StoreError> {
        let (mut rows, mut bytes, mut at) = (Vec::new(), 0usize, 0);
        while at < spots.len() && rows.len() < max && bytes < CLAIM_BYTES {
            let mean = bytes.checked_div(rows.len()).unwrap_or(CLAIM_BYTES / READ_FIRST);
            let n = (CLAIM_BYTES / mean.max(1)).clamp(READ_FIRST, POP_MAX).min(spots.len() - at);
            let ids: Vec<JobId> = spots[at..at + n].iter().map(|spot| spot.job).collect();
            at += n;
            let query =
                ReadyQuery { ids: ids.clone(), now: self.clock().now(), limit: n, ..ReadyQuery::default() };
            let read = self.store().ready(query).await?;
            ids.iter().for_each(|id| {
                left.remove(id);
            });
            for row in read {
                if rows.len() >= max || bytes >= CLAIM_BYTES {
                    left.insert(row.id(), Spot::of(&row.job));
                    continue;
                }
                bytes = bytes.saturating_add(weigh(&row));
                rows.push(Arc::new(row));
            }
        }
        Ok(rows)
    }

    /// Whether somebody could be given the job, as far as is known.
    fn may_be_ready(&self, id: JobId) -> bool {
        let row = self.jobs().dispatch.row(id);
        row.is_none_or(|row| matches!(row.job.state, State::Queued { .. }))
    }
}

/// About how large a job is.
fn weigh(row: &JobRow) -> usize {
    // What cannot be weighed is as heavy as can be.
    1_024 + weight::weigh(&row.job.spec.payload).unwrap_or(limits::SHARED_BYTES)
}
