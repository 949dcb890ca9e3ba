//! Fills of Redis from the store: all of it after an outage, or one queue whose window is short.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_queue::redis::{
    HIGHEST, JobMessage, LOWEST, RedisConnection, RedisUpdate, SHOWN_MAX, WaitingJob, dispatch_order,
};
use windlass_store::job::{
    JobOutline, JobQuery, JobRow, JobStatus, OutlineQuery, ReadyCursor, ReadyQuery, due_at,
};
use windlass_store::page::{NameRange, Order, Part};
use windlass_store::queue::QueueDepth;

use super::{CHECK_QUEUES_MAX, LinkError, Relay};
use crate::RuntimeError;
use crate::jobs::relay::RedisRelay;
use crate::part::RuntimePart;

/// Servers reconnect together: the first one that fills Redis does it for all.
const FILL_DELAY: Duration = Duration::from_millis(300);
/// The polling interval of a server that waits until another one has filled Redis.
const FILL_POLL: Duration = Duration::from_millis(250);
/// Ready jobs of a queue that Redis is given: its window. The next ones follow when half of these are gone.
const WINDOW: usize = 1_000;
/// Jobs of runs of a lower class that are read if the window does not reach them: more than a window has turns for.
const CLASS_MAX: usize = 256;
/// Leases that are shown after an outage.
const LEASES_MAX: usize = 10_000;
/// Jobs that are read at once, with their payloads.
const PAGE_SIZE: usize = 100;

impl RedisRelay {
    /// Fills all of Redis, unless another server has begun to.
    pub(super) async fn fill_everything(
        &self,
        link: &RedisConnection,
        relay: &Relay,
    ) -> Result<(), LinkError> {
        let since = self.clock().now();
        tokio::time::sleep(FILL_DELAY).await;
        let by = self.owner().server.to_string();
        let was_filled = loop {
            let filled_at = link.filled_at().await?;
            if filled_at.is_some_and(|at| at >= since) {
                return Ok(());
            }
            if link.begin_fill(&by).await? {
                break filled_at;
            }
            tokio::time::sleep(FILL_POLL).await;
        };
        let begun = self.clock().now();
        let filled = self.fill_all(link, relay, begun, was_filled.is_none()).await;
        link.end_fill(filled.is_ok().then_some(begun)).await?;
        filled
    }

    async fn fill_all(
        &self,
        link: &RedisConnection,
        relay: &Relay,
        now: Timestamp,
        was_empty: bool,
    ) -> Result<(), LinkError> {
        let depths = self.queue_depths(now).await?;
        for queue in depths.iter().filter(|queue| queue.oldest_due_at.is_some() && !queue.is_paused) {
            self.fill_queue(link, relay, &queue.name).await?;
        }
        // Keys from before are still valid.
        if was_empty {
            for depth in &depths {
                self.show_queue(link, depth, [0, 0]).await?;
            }
            self.show_leases(link, now).await?;
        }
        Ok(())
    }

    async fn queue_depths(&self, now: Timestamp) -> Result<Vec<QueueDepth>, LinkError> {
        let depths = self.store().queues(self.project(), NameRange::All, now).await;
        Ok(depths.map_err(RuntimeError::from)?)
    }

    /// Gives Redis the first jobs of a queue that are ready, in the order of dispatch, in place of those it has.
    pub(super) async fn fill_queue(
        &self,
        link: &RedisConnection,
        relay: &Relay,
        queue: &str,
    ) -> Result<(), LinkError> {
        relay.note_left(true);
        let filled = self.fill_window(link, relay, queue).await;
        let mut left = relay.note_left(false);
        filled?;
        left.retain(|message| message.queue == queue);
        link.remove(&left).await?;
        Ok(())
    }

    async fn fill_window(&self, link: &RedisConnection, relay: &Relay, queue: &str) -> Result<(), LinkError> {
        // Before the store is read, so that jobs that are added or popped meanwhile are told apart.
        let window = link.window(queue).await?;
        let mut popped = relay.popped();
        let query = ReadyQuery {
            queues: vec![queue.to_owned()],
            now: self.clock().now(),
            limit: WINDOW,
            ..ReadyQuery::default()
        };
        let places = self.ready_places(query.clone()).await?;
        let below = places.last().filter(|_| places.len() >= WINDOW).map(|last| last.priority);
        let mut waiting = self.with_classes(query, places, below).await?;
        // The store has these as ready until their claims are written.
        popped.extend(relay.popped());
        waiting.retain(|waiting| !popped.contains(&waiting.job));
        let mut order = dispatch_order(&waiting, window.priorities());
        order.truncate(WINDOW);
        let messages = self.messages(order, window.messages()).await?;
        if link.fill(queue, &window, below, &messages).await? {
            relay.want(queue);
        }
        relay.n_fills.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    async fn ready_places(&self, query: ReadyQuery) -> Result<Vec<ReadyCursor>, LinkError> {
        let places = self.store().ready_cursors(self.project(), query).await;
        Ok(places.map_err(RuntimeError::from)?)
    }

    /// The jobs at these places, and the first ones of the classes of runs behind them, which get turns, too.
    async fn with_classes(
        &self,
        query: ReadyQuery,
        places: Vec<ReadyCursor>,
        below: Option<i32>,
    ) -> Result<Vec<WaitingJob>, LinkError> {
        // The jobs of runs among them are the first of these.
        let of_runs = ReadyQuery { is_of_runs: true, limit: places.len(), ..query.clone() };
        let runs = if places.is_empty() { Vec::new() } else { self.ready_places(of_runs).await? };
        let runs: HashSet<JobId> = runs.iter().map(|place| place.id).collect();
        let waiting =
            |place: &ReadyCursor, is_run| WaitingJob { job: place.id, priority: place.priority, is_run };
        let mut all: Vec<WaitingJob> =
            places.iter().map(|place| waiting(place, runs.contains(&place.id))).collect();
        if runs.is_empty() {
            return Ok(all);
        }
        for class in (LOWEST..below.unwrap_or(LOWEST).min(HIGHEST)).rev() {
            let from =
                ReadyCursor { priority: class, due_at: Timestamp(i64::MIN), id: JobId::new(Uuid::nil()) };
            let query = ReadyQuery { is_of_runs: true, from: Some(from), limit: CLASS_MAX, ..query.clone() };
            let found = self.ready_places(query).await?;
            all.extend(
                found.iter().filter(|place| place.priority == class).map(|place| waiting(place, true)),
            );
        }
        Ok(all)
    }

    /// The messages of these jobs, in this order; only jobs without a known one are read.
    async fn messages(
        &self,
        jobs: Vec<JobId>,
        mut known: HashMap<JobId, JobMessage>,
    ) -> Result<Vec<JobMessage>, LinkError> {
        let unknown = jobs.iter().filter(|job| !known.contains_key(job)).copied().collect();
        let found = self.outlines(OutlineQuery::Ids(unknown)).await?;
        known.extend(found.iter().map(|outline| (outline.row.id(), message(outline))));
        Ok(jobs.iter().filter_map(|job| known.remove(job)).collect())
    }

    async fn outlines(&self, query: OutlineQuery) -> Result<Vec<JobOutline>, LinkError> {
        let outlines = self.store().job_outlines(self.project(), query).await;
        Ok(outlines.map_err(RuntimeError::from)?)
    }

    /// Shows delayed jobs and dead letters again of queues that show too few of them.
    pub(super) async fn show_again(&self, link: &RedisConnection) -> Result<(), LinkError> {
        let depths = self.queue_depths(self.clock().now()).await?;
        for part in depths.chunks(CHECK_QUEUES_MAX) {
            let names: Vec<String> = part.iter().map(|depth| depth.name.clone()).collect();
            for (depth, shown) in part.iter().zip(link.count_shown(&names).await?) {
                self.show_queue(link, depth, shown).await?;
            }
        }
        Ok(())
    }

    /// Shows delayed jobs and dead letters of a queue, if fewer than these are shown.
    async fn show_queue(
        &self,
        link: &RedisConnection,
        depth: &QueueDepth,
        [n_delayed, n_dead]: [usize; 2],
    ) -> Result<(), LinkError> {
        let (queue, now, limit) = (depth.name.clone(), self.clock().now(), SHOWN_MAX);
        let is_short = |shown: usize, all: u64| (shown as u64) < all.min(SHOWN_MAX as u64 / 2);
        let waiting = [JobStatus::Pending, JobStatus::Suspended, JobStatus::Retrying];
        if is_short(n_delayed, waiting.iter().filter_map(|status| depth.open.get(status)).sum()) {
            let found = self.outlines(OutlineQuery::Delayed { queue, now, limit }).await?;
            let delayed =
                found.iter().filter_map(|outline| Some((due_at(&outline.row.job)?, message(outline))));
            link.show_delayed(&depth.name, &delayed.collect::<Vec<_>>()).await?;
        }
        if is_short(n_dead, depth.n_dead_letters) {
            let found = self.outlines(OutlineQuery::DeadLetters { queue: depth.name.clone(), limit }).await?;
            link.show_dead(&depth.name, &found.iter().rev().map(message).collect::<Vec<_>>()).await?;
        }
        Ok(())
    }

    /// Shows who holds jobs.
    async fn show_leases(&self, link: &RedisConnection, now: Timestamp) -> Result<(), LinkError> {
        let mut query = JobQuery { statuses: vec![JobStatus::Running], ..JobQuery::default() };
        query.part = Part { order: Order::Oldest, limit: PAGE_SIZE, ..Part::default() };
        let mut n = 0;
        while n < LEASES_MAX {
            let page = self.store().jobs(self.project(), query.clone()).await.map_err(RuntimeError::from)?;
            n += page.items.len();
            let held: Vec<RedisUpdate> =
                page.items.iter().map(|row: &JobRow| RedisUpdate::of(&row.job, true, now)).collect();
            link.apply(&held).await?;
            match page.next {
                Some(next) => query.part.cursor = Some(next),
                None => break,
            }
        }
        Ok(())
    }
}

fn message(outline: &JobOutline) -> JobMessage {
    if outline.is_cut { JobMessage::of_cut(&outline.row.job) } else { JobMessage::of(&outline.row.job) }
}
