//! Fills of Redis from the store: all of it after an outage, or one queue that runs low.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_queue::redis::{HIGHEST, LOWEST, ReadyEntry, RedisConnection, RedisUpdate};
use windlass_store::job::{JobQuery, JobRow, JobStatus, ReadyCursor, ReadyQuery};
use windlass_store::page::{NameRange, Order, Part};

use super::{BATCH_MAX, LinkError, Relay};
use crate::RuntimeError;
use crate::jobs::relay::RedisRelay;
use crate::part::RuntimePart;

/// Servers reconnect together: the first one that fills Redis does it for all.
const FILL_DELAY: Duration = Duration::from_millis(300);
/// The polling interval of a server that waits until another one has filled Redis.
const FILL_POLL: Duration = Duration::from_millis(250);
/// Ready jobs of a queue that Redis is given at once; the next ones follow when these are gone.
const QUEUE_MAX: usize = 10_000;
/// Jobs of runs of a lower class that Redis holds if the store has more above them: several times as many as are popped
/// between two fills.
const CLASS_MAX: usize = 256;
/// Jobs that are shown as waiting, held or dead, of each at most: they are only shown, so the rest can be missing.
const SHOWN_MAX: usize = 10_000;
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
        let queues = self.store().queues(self.project(), NameRange::All, now).await;
        let queues = queues.map_err(RuntimeError::from)?;
        for queue in queues.iter().filter(|queue| queue.oldest_due_at.is_some()) {
            self.fill_queue(link, relay, &queue.name).await?;
        }
        // Entries from before are still valid.
        if was_empty {
            let open = [JobStatus::Pending, JobStatus::Suspended, JobStatus::Retrying, JobStatus::Running];
            self.show(link, JobQuery { statuses: open.to_vec(), ..JobQuery::default() }, now).await?;
            self.show(link, JobQuery { is_dead_letter: Some(true), ..JobQuery::default() }, now).await?;
        }
        Ok(())
    }

    /// Gives Redis the first jobs of a queue that are ready, in order, in place of those it has.
    pub(super) async fn fill_queue(
        &self,
        link: &RedisConnection,
        relay: &Relay,
        queue: &str,
    ) -> Result<(), LinkError> {
        // Before the store is read, so that jobs that are added meanwhile stay.
        link.fill(queue, &[], true, None).await?;
        let query = ReadyQuery {
            queues: vec![queue.to_owned()],
            now: self.clock().now(),
            limit: QUEUE_MAX,
            ..ReadyQuery::default()
        };
        let places =
            self.store().ready_cursors(self.project(), query.clone()).await.map_err(RuntimeError::from)?;
        // The jobs of runs among them are the first of these.
        let of_runs = ReadyQuery { is_of_runs: true, limit: places.len(), ..query };
        let runs = match places.is_empty() {
            true => Vec::new(),
            false => self.store().ready_cursors(self.project(), of_runs).await.map_err(RuntimeError::from)?,
        };
        let runs: HashSet<JobId> = runs.iter().map(|place| place.id).collect();
        let more = places.last().filter(|_| places.len() >= QUEUE_MAX).map(|last| last.priority);
        let entries: Vec<ReadyEntry> =
            places.iter().map(|place| entry(queue, place, runs.contains(&place.id))).collect();
        let mut incomplete_classes = Vec::new();
        for class in LOWEST..more.unwrap_or(LOWEST).min(HIGHEST) {
            if !runs.is_empty() {
                incomplete_classes.extend(self.first_of_class(queue, class).await?);
            }
        }
        let mut parts = entries.chunks(BATCH_MAX).peekable();
        while let Some(part) = parts.next() {
            link.fill(queue, part, false, more.filter(|_| parts.peek().is_none())).await?;
            // Between the parts: other servers may pop as fast as they arrive.
            if !incomplete_classes.is_empty() && parts.peek().is_some() {
                link.fill(queue, &std::mem::take(&mut incomplete_classes), false, None).await?;
            }
        }
        relay.n_fills.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives Redis the first jobs of runs of each class that is behind more than Redis has, for the turns that are kept
    /// for them.
    pub(super) async fn fill_classes(&self, link: &RedisConnection, queue: &str) -> Result<(), LinkError> {
        for class in LOWEST..HIGHEST {
            link.fill_class(queue, class, &self.first_of_class(queue, class).await?).await?;
        }
        Ok(())
    }

    /// The first jobs of runs of a class.
    async fn first_of_class(&self, queue: &str, class: i32) -> Result<Vec<ReadyEntry>, LinkError> {
        let start = ReadyCursor { priority: class, due_at: Timestamp(i64::MIN), id: JobId::new(Uuid::nil()) };
        let query = ReadyQuery {
            queues: vec![queue.to_owned()],
            is_of_runs: true,
            from: Some(start),
            now: self.clock().now(),
            limit: CLASS_MAX,
            ..ReadyQuery::default()
        };
        let places = self.store().ready_cursors(self.project(), query).await.map_err(RuntimeError::from)?;
        let of_class = places.iter().filter(|place| place.priority == class);
        Ok(of_class.map(|place| entry(queue, place, true)).collect())
    }

    /// Shows where jobs are that cannot be popped.
    async fn show(
        &self,
        link: &RedisConnection,
        mut query: JobQuery,
        now: Timestamp,
    ) -> Result<(), LinkError> {
        query.part = Part { order: Order::Oldest, limit: PAGE_SIZE, ..Part::default() };
        let mut n = 0;
        while n < SHOWN_MAX {
            let page = self.store().jobs(self.project(), query.clone()).await.map_err(RuntimeError::from)?;
            n += page.items.len();
            let moves: Vec<RedisUpdate> =
                page.items.iter().map(|row: &JobRow| RedisUpdate::of(&row.job, now)).collect();
            if !moves.is_empty() {
                link.apply(&moves).await?;
            }
            match page.next {
                Some(next) => query.part.cursor = Some(next),
                None => break,
            }
        }
        Ok(())
    }
}

fn entry(queue: &str, place: &ReadyCursor, is_run: bool) -> ReadyEntry {
    ReadyEntry { queue: queue.to_owned(), priority: place.priority, job: place.id, is_run }
}
