//! Claims: somebody gets jobs, or waits for some.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use windlass_engine::id::JobId;
use windlass_engine::job::{JobInput, State};
use windlass_engine::time::Timestamp;
use windlass_queue::{Answer, Fill, Query, Question, Take, Taken, Waiter};
use windlass_store::StoreError;
use windlass_store::commit::JobChange;
use windlass_store::error::Subject;
use windlass_store::job::{JobRow, ReadyQuery, due_at};
use windlass_store::queue::Spent;
use windlass_store::record::Record;

use super::change::moved;
use super::{CLAIM_MAX, CLAIM_NAMES_MAX, Claim, Claimed, WAIT_MAX};
use crate::{Runtime, RuntimeError};

/// When to come again while too many wait.
const CROWDED: Duration = Duration::from_secs(1);
/// When to look again although nobody said anything, while the store may have something.
const UNSURE: Duration = Duration::from_secs(1);
/// When to hand out again what somebody else was just writing.
const HELD: Duration = Duration::from_millis(50);
/// Readings in a row by one claim, when nothing of what was read may be handed out: enough to go around a million
/// limit keys.
const FILLS_MAX: usize = 1_000;

/// How a wait for jobs ended.
enum Waited {
    /// It is too late.
    InVain,
    /// There may be something.
    Enough,
    /// Some worker is to go, perhaps this one.
    ToGo,
}

impl Runtime {
    /// Hands out jobs; waits for some when there are none. A worker that is to go gets none, at once.
    pub async fn claim(&self, claim: Claim) -> Result<Vec<Claimed>, RuntimeError> {
        let begun = Instant::now();
        let until = begun + claim.wait.min(WAIT_MAX);
        let query = Arc::new(Query { queues: first(claim.queues), services: first(claim.services) });
        let max = claim.max.clamp(1, CLAIM_MAX);
        let lease_ms = u64::try_from(claim.lease.as_millis()).unwrap_or(u64::MAX);
        let (mut ticket, mut may_fill, mut n_fills) = (None, true, 0usize);
        let (mut drained, mut may_go) = (self.registry().drained(), true);
        if self.begins_elsewhere(&query)
            && let Some(claimed) = self.claim_elsewhere(&query, max, &claim.worker, lease_ms).await?
        {
            return Ok(claimed);
        }
        loop {
            if self.jobs().closed.is_cancelled() {
                return Err(RuntimeError::Draining);
            }
            // Whoever was woken for a job takes it: nobody else is told of it.
            if std::mem::take(&mut may_go) && self.is_worker_draining(&claim.worker) {
                return Ok(Vec::new());
            }
            match self.jobs().dispatch.take(&query, max, may_fill, ticket, self.clock().now()) {
                Take::Jobs(taken) => {
                    if taken.is_sooner {
                        self.jobs().sooner.notify_one();
                    }
                    self.read_ahead(&query);
                    let claimed = self.grant(taken, &claim.worker, lease_ms).await?;
                    if !claimed.is_empty() {
                        // Whoever waited may have been woken for something else, which is somebody else's then.
                        ticket.inspect(|_| self.jobs().dispatch.pass_on(&query));
                        return Ok(claimed);
                    }
                    may_fill = true;
                }
                Take::Fill(fill) => {
                    self.fill(fill).await?;
                    n_fills += 1;
                    // Once is enough: what is there now is handed out before more is read.
                    may_fill = false;
                }
                // All that was read is held back by limits, and there is more.
                Take::Wait(waiter) if !may_fill && !waiter.is_sure() && n_fills < FILLS_MAX => {
                    (ticket, may_fill) = (Some(waiter.ticket()), true);
                }
                Take::Wait(waiter) => {
                    ticket = Some(waiter.ticket());
                    // Now that it would be woken: what comes after this is not missed.
                    if let Some(claimed) = self.claim_elsewhere(&query, max, &claim.worker, lease_ms).await? {
                        return Ok(claimed);
                    }
                    // Nobody is sent away while somebody else reads what there is.
                    let until = if waiter.is_sure() { until } else { until.max(begun + UNSURE) };
                    match self.wait_for_jobs(waiter, until, &mut drained).await {
                        Waited::InVain => return Ok(Vec::new()),
                        Waited::Enough => {}
                        Waited::ToGo => may_go = true,
                    }
                    may_fill = true;
                }
                Take::Crowded => {
                    let claimed = self.claim_elsewhere(&query, max, &claim.worker, lease_ms).await?;
                    let is_enough = claimed.is_some() || claim.wait.is_zero();
                    let busy = RuntimeError::Busy { retry_after: CROWDED };
                    return if is_enough { Ok(claimed.unwrap_or_default()) } else { Err(busy) };
                }
            }
        }
    }

    /// Whether the claim begins with what is in Redis: every other one that asks for something else too does.
    fn begins_elsewhere(&self, query: &Query) -> bool {
        let Some(relay) = &self.jobs().relay else { return false };
        !query.services.is_empty() && !query.queues.is_empty() && relay.next_mixed().is_multiple_of(2)
    }

    /// Waits until there may be something.
    async fn wait_for_jobs(
        &self,
        mut waiter: Waiter<'_>,
        until: Instant,
        drained: &mut watch::Receiver<()>,
    ) -> Waited {
        if Instant::now() >= until {
            return Waited::InVain;
        }
        let again =
            if waiter.is_sure() && !waiter.is_shared() { until } else { until.min(Instant::now() + UNSURE) };
        tokio::select! {
            biased;
            // Dropped without having heard, the waiter leaves its job to another. The sender lives as long as the server.
            _ = drained.changed() => Waited::ToGo,
            () = waiter.woken() => Waited::Enough,
            () = self.jobs().closed.cancelled() => Waited::Enough,
            () = tokio::time::sleep_until(again) => if again < until { Waited::Enough } else { Waited::InVain },
        }
    }

    /// When there is not much left of what is known, more is read before somebody has to wait for it.
    fn read_ahead(&self, query: &Arc<Query>) {
        if !self.jobs().dispatch.is_low(query) {
            return;
        }
        let (runtime, query) = (self.clone(), query.clone());
        self.tasks().spawn(async move {
            let Some(fill) = runtime.jobs().dispatch.fill_ahead(&query, runtime.clock().now()) else {
                return;
            };
            if let Err(error) = runtime.fill(fill).await {
                tracing::warn!(%error, "ready jobs could not be read ahead of time");
            }
        });
    }

    /// Reads what has to be known before jobs can be handed out.
    async fn fill(&self, mut fill: Fill<'_>) -> Result<(), StoreError> {
        while let Some(question) = fill.question(self.clock().now()) {
            fill.answered(match question {
                Question::Ready(query) => Answer::Ready(self.store().ready(query).await?),
                Question::ReadyByKey(query) => Answer::ReadyByKey(self.store().ready_by_key(query).await?),
                Question::Held(queue) => Answer::Held(self.store().held(queue).await?),
            });
        }
        Ok(())
    }

    /// Makes the claims durable. Whoever goes away meanwhile gets nothing, and what was theirs is given back.
    async fn grant(&self, taken: Taken, worker: &str, lease_ms: u64) -> Result<Vec<Claimed>, RuntimeError> {
        let (tell, heard) = oneshot::channel();
        let (runtime, worker) = (self.clone(), worker.to_owned());
        self.tasks().spawn(async move {
            let granted = runtime.write_claims(taken, &worker, lease_ms).await;
            if let Err(Ok(claimed)) = tell.send(granted) {
                runtime.release(claimed).await;
            }
        });
        heard.await.unwrap_or(Err(RuntimeError::Broken))
    }

    pub(super) async fn write_claims(
        &self,
        taken: Taken,
        worker: &str,
        lease_ms: u64,
    ) -> Result<Vec<Claimed>, RuntimeError> {
        let now = self.clock().now();
        let (mut changes, mut claims, mut stale) = (Vec::new(), Vec::new(), Vec::new());
        for row in &taken.rows {
            match granted(row, worker, lease_ms, now) {
                Some(change) => {
                    claims.push((row, claimed(&change)));
                    changes.push(change);
                }
                None => stale.push(row.clone()),
            }
        }
        let (mut done, mut started, mut trouble) = (Vec::new(), Vec::new(), None);
        let answers = if taken.turns.is_empty() {
            tokio::join!(self.commit_claims(changes), self.save_spent(taken.spent, now)).0
        } else {
            self.commit_turns(changes, &taken.turns, taken.spent, now).await
        };
        for ((row, claimed), answer) in claims.into_iter().zip(answers) {
            match answer {
                Ok(()) => {
                    let wait_ms = due_at(&row.job).map_or(0, |due| now.since(due));
                    started.push((row.job.spec.queue.as_str(), wait_ms));
                    done.push(claimed);
                }
                // Others had a turn: who has what is asked anew before this one is handed out.
                Err(StoreError::Conflict { what: Subject::Queue(_), .. }) => {
                    self.jobs().lost.turns.fetch_add(1, Ordering::Relaxed);
                    self.jobs().dispatch.put_back(std::slice::from_ref(row));
                }
                Err(StoreError::Conflict { .. }) => {
                    self.jobs().lost.to_others.fetch_add(1, Ordering::Relaxed);
                    stale.push(row.clone());
                }
                Err(error) => {
                    self.jobs().dispatch.put_back(std::slice::from_ref(row));
                    trouble = Some(error);
                }
            }
        }
        self.tallies().started(started, now);
        trouble = self.look_after(stale).await.or(trouble);
        match trouble {
            Some(error) if done.is_empty() => Err(error.into()),
            Some(_) | None => Ok(done),
        }
    }

    /// Looks what became of jobs that were handed out in vain; what kept it from doing so.
    async fn look_after(&self, stale: Vec<Arc<JobRow>>) -> Option<StoreError> {
        match self.still_there(&stale).await {
            Ok(held) => {
                self.put_back_later(held);
                None
            }
            // What cannot be read now is handed out again, in vain, and read then.
            Err(error) => {
                self.jobs().dispatch.put_back(&stale);
                Some(error)
            }
        }
    }

    /// Of jobs that were handed out in vain, those that can be claimed as they were: somebody is just writing them. Of
    /// the others the index hears.
    async fn still_there(&self, rows: &[Arc<JobRow>]) -> Result<Vec<Arc<JobRow>>, StoreError> {
        if rows.is_empty() {
            return Ok(Vec::new());
        }
        let ids = rows.iter().map(|row| row.id()).collect();
        let query = ReadyQuery { ids, now: self.clock().now(), limit: rows.len(), ..ReadyQuery::default() };
        let found = self.store().ready(query).await?.into_iter();
        let mut found: HashMap<JobId, JobRow> = found.map(|row| (row.id(), row)).collect();
        let (mut held, dispatch) = (Vec::new(), &self.jobs().dispatch);
        for row in rows {
            match found.remove(&row.id()) {
                Some(stored) if stored.rev == row.rev => held.push(row.clone()),
                Some(stored) => {
                    // It was handed out as something that the store never heard of.
                    if stored.rev < row.rev {
                        dispatch.forget(row.id());
                    }
                    self.jobs().heard([stored]);
                }
                // Somebody has it, or it has ended: whoever made it so goes on with it.
                None => dispatch.give_up(row),
            }
        }
        Ok(held)
    }

    /// Whatever somebody else does with these jobs is done in a moment; until then others are handed out.
    fn put_back_later(&self, rows: Vec<Arc<JobRow>>) {
        if rows.is_empty() {
            return;
        }
        let runtime = self.clone();
        self.tasks().spawn(async move {
            tokio::time::sleep(HELD).await;
            let held = runtime.still_there(&rows).await.unwrap_or(rows);
            runtime.jobs().dispatch.put_back(&held);
        });
    }

    /// Writes what was used up of rates, so that a restart does not forgive it.
    pub(super) async fn save_spent(&self, spent: Vec<Spent>, now: Timestamp) {
        if spent.is_empty() {
            return;
        }
        if let Err(error) = self.store().save(Record::Spent { spent, now }).await {
            tracing::warn!(%error, "what was used up of a rate could not be written; a restart would forgive it");
        }
    }

    /// Gives back what nobody has heard of. If that cannot be written, the leases run out.
    pub(super) async fn release(&self, claims: Vec<Claimed>) {
        let now = self.clock().now();
        let back = |claim: Claimed| {
            let row = self.jobs().dispatch.row(claim.job)?;
            moved(&row, JobInput::Release { fence: claim.fence }, now).ok().flatten()
        };
        let answers = self.commit_jobs(claims.into_iter().filter_map(back).collect()).await;
        for error in answers.into_iter().filter_map(Result::err) {
            tracing::warn!(%error, "a job could not be given back; its lease runs out");
        }
    }
}

/// As many names as are looked at.
fn first(mut names: Vec<String>) -> Vec<String> {
    names.truncate(CLAIM_NAMES_MAX);
    names
}

/// The job in the hands of a worker; `None` if it cannot be claimed.
fn granted(row: &JobRow, worker: &str, lease_ms: u64, now: Timestamp) -> Option<JobChange> {
    // The store counts a job as ready as soon as its wait is over; nobody may have said so yet.
    let due = row.job.overdue(now).and_then(|input| moved(row, input, now).ok().flatten());
    let due = due.map(|change| JobRow { rev: row.rev, job: change.job, origin: change.origin });
    let claim = JobInput::Claim { worker: worker.to_owned(), lease_ms };
    moved(due.as_ref().unwrap_or(row), claim, now).ok().flatten()
}

/// What its worker is told.
fn claimed(change: &JobChange) -> Claimed {
    let job = &change.job;
    let (lease_until, deadline) = match &job.state {
        State::Running { lease_until, deadline, .. } => (*lease_until, *deadline),
        State::Pending { .. }
        | State::Queued { .. }
        | State::Suspended { .. }
        | State::Retrying { .. }
        | State::Succeeded
        | State::Failed { .. }
        | State::Cancelled => (job.updated_at, None),
    };
    let Given { input, params, attempt, key } = given(change);
    Claimed {
        job: job.id,
        fence: job.fence,
        attempt,
        key,
        queue: job.spec.queue.clone(),
        service: job.spec.name.clone(),
        priority: job.spec.priority,
        input: Arc::new(input),
        params: Arc::new(params),
        memo: job.memo.clone(),
        created_at: job.created_at,
        started_at: job.latest().started_at.unwrap_or(job.updated_at),
        lease_until,
        deadline,
        call: change.origin.call.clone(),
    }
}

struct Given {
    input: Value,
    params: Value,
    attempt: u32,
    key: String,
}

/// What a worker is given: the payload of a plain job, or what the call of a run put into it.
fn given(change: &JobChange) -> Given {
    let (payload, latest) = (&change.job.spec.payload, change.job.latest());
    if change.origin.call.is_none() {
        let key = key_of(change.job.id);
        return Given { input: payload.clone(), params: empty(), attempt: latest.number, key };
    }
    let field = |name: &str| payload.get(name).cloned();
    let attempt = payload.get("attempt").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let key = payload.get("key").and_then(Value::as_str).map(str::to_owned);
    Given {
        input: field("input").unwrap_or_default(),
        params: field("params").unwrap_or_else(empty),
        attempt: attempt.unwrap_or(latest.number),
        key: key.unwrap_or_else(|| key_of(change.job.id)),
    }
}

fn empty() -> Value {
    Value::Object(serde_json::Map::new())
}

fn key_of(job: JobId) -> String {
    job.to_string()
}
