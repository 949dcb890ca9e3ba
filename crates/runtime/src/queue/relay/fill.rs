//! Filling Redis from the store.

use std::collections::HashSet;
use std::sync::atomic::Ordering;
use std::time::Duration;

use uuid::Uuid;
use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_queue::redis::{HIGHEST, LOWEST, Link, Move, Spot};
use windlass_store::job::{JobQuery, JobRow, JobStatus, ReadyPlace, ReadyQuery};
use windlass_store::page::{Order, Part};

use super::{BATCH, Broken, Relay};
use crate::{Runtime, RuntimeError};

/// Servers come back together: the first that fills does it for all who were back by then.
const TOGETHER: Duration = Duration::from_millis(300);
/// How often whoever waits for another one to have filled looks.
const TURN: Duration = Duration::from_millis(250);
/// Ready jobs of a queue that Redis is given at once; the next ones follow when these are gone.
const QUEUE_MAX: usize = 10_000;
/// Jobs of runs of a lower class that Redis is given at once, if the store has more above them: several times what is
/// handed out of it until it is given more.
const CLASS_MAX: usize = 256;
/// Jobs that are shown as waiting, held or dead, of each at most: they are only shown, so the rest can be missing.
const SHOWN_MAX: usize = 10_000;
/// Jobs that are read at once, with their payloads.
const PAGE: usize = 100;

impl Runtime {
    /// Gives Redis all it should have, unless somebody else has begun to since.
    pub(super) async fn fill_everything(&self, link: &Link, relay: &Relay) -> Result<(), Broken> {
        let since = self.clock().now();
        tokio::time::sleep(TOGETHER).await;
        let by = self.owner().server.to_string();
        let was_filled = loop {
            let filled_at = link.filled_at().await?;
            if filled_at.is_some_and(|at| at >= since) {
                return Ok(());
            }
            if link.begin_filling(&by).await? {
                break filled_at;
            }
            tokio::time::sleep(TURN).await;
        };
        let begun = self.clock().now();
        let filled = self.fill_all(link, relay, begun, was_filled.is_none()).await;
        link.end_filling(filled.is_ok().then_some(begun)).await?;
        filled
    }

    async fn fill_all(
        &self,
        link: &Link,
        relay: &Relay,
        now: Timestamp,
        was_empty: bool,
    ) -> Result<(), Broken> {
        let queues = self.store().queues(now).await.map_err(RuntimeError::from)?;
        for queue in queues.iter().filter(|queue| queue.oldest_due_at.is_some()) {
            self.fill_queue(link, relay, &queue.name).await?;
        }
        // What is there from before is as true as it was.
        if was_empty {
            let open = [JobStatus::Pending, JobStatus::Suspended, JobStatus::Retrying, JobStatus::Running];
            self.show(link, JobQuery { statuses: open.to_vec(), ..JobQuery::default() }, now).await?;
            self.show(link, JobQuery { is_dead_letter: Some(true), ..JobQuery::default() }, now).await?;
        }
        Ok(())
    }

    /// Gives Redis the first jobs of a queue that are ready, in order, in place of those it has.
    pub(super) async fn fill_queue(&self, link: &Link, relay: &Relay, queue: &str) -> Result<(), Broken> {
        // Before the store is read: what somebody adds meanwhile stays.
        link.fill(queue, &[], true, None).await?;
        let query = ReadyQuery {
            queues: vec![queue.to_owned()],
            now: self.clock().now(),
            limit: QUEUE_MAX,
            ..ReadyQuery::default()
        };
        let places = self.store().ready_places(query.clone()).await.map_err(RuntimeError::from)?;
        // Whatever of it is of a run is among the first of those.
        let of_runs = ReadyQuery { is_of_runs: true, limit: places.len(), ..query };
        let runs = match places.is_empty() {
            true => Vec::new(),
            false => self.store().ready_places(of_runs).await.map_err(RuntimeError::from)?,
        };
        let runs: HashSet<JobId> = runs.iter().map(|place| place.id).collect();
        let more = places.last().filter(|_| places.len() >= QUEUE_MAX).map(|last| last.priority);
        let spots: Vec<Spot> =
            places.iter().map(|place| spot(queue, place, runs.contains(&place.id))).collect();
        let mut low = Vec::new();
        for class in LOWEST..more.unwrap_or(LOWEST).min(HIGHEST) {
            if !runs.is_empty() {
                low.extend(self.first_of_class(queue, class).await?);
            }
        }
        let mut parts = spots.chunks(BATCH).peekable();
        while let Some(part) = parts.next() {
            link.fill(queue, part, false, more.filter(|_| parts.peek().is_none())).await?;
            // Not after the others: somebody may pop as fast as they come.
            if !low.is_empty() && parts.peek().is_some() {
                link.fill(queue, &std::mem::take(&mut low), false, None).await?;
            }
        }
        relay.n_fills.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Gives Redis the first jobs of runs of each class that is behind more than Redis has, for the turns that are kept
    /// for them.
    pub(super) async fn fill_classes(&self, link: &Link, queue: &str) -> Result<(), Broken> {
        for class in LOWEST..HIGHEST {
            link.fill_class(queue, class, &self.first_of_class(queue, class).await?).await?;
        }
        Ok(())
    }

    /// The first jobs of runs of a class.
    async fn first_of_class(&self, queue: &str, class: i32) -> Result<Vec<Spot>, Broken> {
        let start = ReadyPlace { priority: class, due_at: Timestamp(i64::MIN), id: JobId::new(Uuid::nil()) };
        let query = ReadyQuery {
            queues: vec![queue.to_owned()],
            is_of_runs: true,
            from: Some(start),
            now: self.clock().now(),
            limit: CLASS_MAX,
            ..ReadyQuery::default()
        };
        let places = self.store().ready_places(query).await.map_err(RuntimeError::from)?;
        let of_class = places.iter().filter(|place| place.priority == class);
        Ok(of_class.map(|place| spot(queue, place, true)).collect())
    }

    /// Shows where jobs are that cannot be popped.
    async fn show(&self, link: &Link, mut query: JobQuery, now: Timestamp) -> Result<(), Broken> {
        query.part = Part { order: Order::Oldest, limit: PAGE, ..Part::default() };
        let mut n = 0;
        while n < SHOWN_MAX {
            let page = self.store().jobs(query.clone()).await.map_err(RuntimeError::from)?;
            n += page.items.len();
            let moves: Vec<Move> = page.items.iter().map(|row: &JobRow| Move::of(&row.job, now)).collect();
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

fn spot(queue: &str, place: &ReadyPlace, is_run: bool) -> Spot {
    Spot { queue: queue.to_owned(), priority: place.priority, job: place.id, is_run }
}
