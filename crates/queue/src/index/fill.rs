//! Filling lists from the store.

use std::sync::Arc;

use windlass_store::job::{JobRow, Portion, ReadyPlace};

use super::limit::Counting;
use super::read::Filling;
use super::{Index, weight_of};
use crate::dispatch::Query;
use crate::gate::Gate;
use crate::list::{Key, Known, List, Mark};
use crate::lists::Lists;

/// What is read at once may be this part of what is kept.
const READ_SHARE: usize = 4;
/// However large they are: reading one by one would never catch up.
const READ_ROWS_MIN: usize = 16;

/// Something to be read from the store.
#[derive(Debug)]
pub(crate) enum Want {
    /// Lists, so much of them, without the queues that have limits: all of them, or the own portion.
    Lists {
        query: Query,
        except: Vec<String>,
        from: Option<ReadyPlace>,
        limit: usize,
        begun: u64,
        portion: Option<Portion>,
    },
    /// Jobs of runs of a lower class, so that it gets its share although there is more above it than is known.
    Class { query: Query, except: Vec<String>, from: ReadyPlace, limit: usize },
    /// A queue with limits, or one service in it.
    View(Filling),
    /// Who has jobs of a queue with limits.
    Held(Counting),
}

impl Index {
    /// Of the lists that the query asks about, those that cannot give so many before the store is asked, and that
    /// nobody reads already. Whoever is given some reads them and says so.
    pub(crate) fn begin_filling(&mut self, query: &Query, n: usize) -> Vec<Want> {
        if !self.gates.is_empty() {
            self.know_services(query);
        }
        if !self.is_low(query, n) {
            return Vec::new();
        }
        // Before it begins: what is dropped while it goes on would not be known afterwards. It may have to come
        // out of the very lists that are asked about.
        self.make_room(self.limits.fill_rows);
        let mut wants = Vec::new();
        let query_left = self.unfilled(query, n);
        if !query_left.is_empty() {
            self.queues.begin_filling(&query_left.queues);
            self.services.begin_filling(&query_left.services);
            self.n_filling += 1;
            let except = self.gates.keys().cloned().collect();
            let from = self.unknown_from(&query_left);
            self.n_readings += 1;
            let (limit, begun) = (self.n_to_read(), self.n_readings);
            let portion = self.begin_portion(&query_left);
            wants.push(Want::Lists { query: query_left, except, from, limit, begun, portion });
        }
        wants.extend(self.unread_classes(query));
        for (queue, service) in self.unfilled_views(query, n) {
            wants.extend(self.begin_counting(&queue).map(Want::Held));
            wants.extend(self.begin_reading(&queue, service.as_deref(), n).map(Want::View));
        }
        wants
    }

    /// Where the first of these lists stops to be known; `None` = at its start.
    fn unknown_from(&self, query: &Query) -> Option<ReadyPlace> {
        // Whoever is not alone is not told of what others put before it.
        if !self.is_alone {
            return None;
        }
        let queues = self.queues.unknown_from(&query.queues)?;
        let services = self.services.unknown_from(&query.services)?;
        [queues, services].into_iter().flatten().min().map(Key::place)
    }

    /// Jobs to be read: fewer of large ones, and more by those that are handed out just now, as they are no news.
    pub(super) fn n_to_read(&self) -> usize {
        let n_fitting = self.limits.bytes / READ_SHARE / self.bytes_per_row.max(1);
        n_fitting.clamp(READ_ROWS_MIN, self.limits.fill_rows.max(READ_ROWS_MIN)).saturating_add(self.n_taken)
    }

    /// What the store had for these lists, in order; `None` if it could not be asked. Begun as reading number `begun`.
    pub(crate) fn filled(
        &mut self,
        query: &Query,
        begun: u64,
        portion: Option<Portion>,
        read: Option<(Vec<JobRow>, usize)>,
    ) {
        let known = read.map(|(rows, limit)| {
            let (ids, is_full) = (rows.iter().map(JobRow::id).collect(), rows.len() >= limit);
            let last = rows.last().map(Key::of);
            let is_shared = self.is_shared_out(&rows);
            let mut known = self.add_read(rows, limit);
            if portion.is_some() && known == Known::All {
                // There may be more, though not of this portion.
                known = last.map_or(Known::Nothing, |last| Known::Before(Mark::after(last)));
            }
            self.drop_unread(query, begun, portion, known, &ids);
            self.end_portion(query, portion, is_full && is_shared);
            known
        });
        self.end_reading();
        for queue in &query.queues {
            self.queues.of(queue).end_filling(known);
        }
        for service in &query.services {
            self.services.of(service).end_filling(known);
        }
        self.wake_for(query);
    }

    /// What the store had of a lower class, in order; `None` if it could not be asked. The lists are known no further
    /// than before.
    pub(crate) fn filled_class(&mut self, read: Option<(Vec<JobRow>, usize)>) {
        if let Some((rows, limit)) = read {
            self.add_read(rows, limit);
        }
        self.end_reading();
    }

    pub(super) fn end_reading(&mut self) {
        self.n_filling -= 1;
        if self.n_filling == 0 {
            self.gone.clear();
        }
    }

    /// Lists without jobs are asked of the store again the next time: something may have got lost.
    pub(crate) fn doubt(&mut self) {
        if !self.is_alone {
            self.queues.doubt_rest();
            self.services.doubt_rest();
        }
        let (queues, services) = (self.queues.doubt_empty(), self.services.doubt_empty());
        self.gates.values_mut().for_each(Gate::doubt_empty);
        let gated: Vec<String> = self.gates.keys().cloned().collect();
        gated.iter().for_each(|queue| self.stir(queue));
        self.wake_for(&Query { queues, services });
    }

    /// The store has ready jobs of these queues. Where none is known here, it is asked, and by service too; a queue
    /// that is paused is asked when it is resumed.
    pub(crate) fn doubt_queues(&mut self, queues: &[String]) {
        let is_lost = |queue: &&String| {
            !self.paused.contains(*queue)
                && (!self.is_alone || self.queues.named(queue).is_none_or(List::is_empty))
        };
        let lost: Vec<String> = queues.iter().filter(is_lost).cloned().collect();
        if lost.is_empty() {
            return;
        }
        if !self.is_alone {
            return self.doubt_rest_of(lost);
        }
        for queue in &lost {
            match self.gates.get_mut(queue) {
                Some(gate) => gate.doubt(),
                None => self.queues.of(queue).cut(Known::Nothing),
            }
        }
        self.services.doubt();
        let services = self.line.services().cloned().collect();
        self.wake_for(&Query { queues: lost, services });
    }

    /// Somebody else has written jobs of these queues. What is known is handed out before the store is asked for them.
    fn doubt_rest_of(&mut self, queues: Vec<String>) {
        for queue in &queues {
            match self.gates.get_mut(queue) {
                Some(gate) => gate.doubt_rest(),
                None => self.queues.of(queue).doubt_rest(),
            }
        }
        self.services.doubt_rest();
        let services = self.line.services().cloned().collect();
        self.wake_for(&Query { queues, services });
    }

    /// Wakes as many of those who wait for these lists as there is something to do for: a job each, or the store to
    /// be asked.
    pub(crate) fn wake_for(&mut self, query: &Query) {
        let n_wanted = |lists: &Lists, name: &str| {
            lists.named(name).map_or(0, List::len) + usize::from(lists.needs_filling(name, 1))
        };
        let mut gated: Vec<String> = Vec::new();
        for queue in query.queues.iter().filter(|queue| !self.paused.contains(*queue)) {
            if self.gates.contains_key(queue) {
                gated.push(queue.clone());
                continue;
            }
            if self.is_elsewhere {
                continue;
            }
            let mut n = n_wanted(&self.queues, queue);
            while n > 0 && self.line.wake_queue(queue) {
                n -= 1;
            }
        }
        for service in &query.services {
            let mut n = n_wanted(&self.services, service);
            while n > 0 && self.line.wake_service(service) {
                n -= 1;
            }
        }
        gated.extend(self.gated(query).into_iter().map(|(queue, _)| queue));
        gated.iter().for_each(|queue| self.stir(queue));
    }

    /// Adds what was read, as far as there is room; how much of what the store has is known then.
    fn add_read(&mut self, rows: Vec<JobRow>, limit: usize) -> Known {
        let known = match rows.last() {
            Some(last) if rows.len() >= limit => Known::Before(Mark::at(Key::of(last))),
            Some(_) | None => Known::All,
        };
        let (n, mut bytes) = (rows.len(), 0usize);
        let rows_max = self.limits.rows.saturating_add(self.limits.fill_rows);
        for (at, row) in rows.into_iter().enumerate() {
            let is_full = self.ready.n >= rows_max || self.ready.bytes >= self.limits.bytes;
            // One is always added, so that whoever asked gets on.
            if is_full && at > 0 {
                return Known::Before(Mark::at(Key::of(&row)));
            }
            bytes = bytes.saturating_add(weight_of(&row));
            // One whose queue has got limits since is read by itself.
            if !self.gates.contains_key(&row.job.spec.queue) && !self.is_old(row.id(), row.rev) {
                let was_offered = self.remove(row.id()).is_some_and(|slot| slot.is_offered);
                let is_offered = was_offered || self.written.has(row.id());
                // The store counts a job as ready as soon as its wait is over, before anybody said so.
                self.add_ready(Arc::new(row), is_offered);
            }
        }
        self.bytes_per_row = bytes.checked_div(n).unwrap_or(self.bytes_per_row);
        known
    }

    /// Whether the store has to be asked before so many can be handed out, and nobody does.
    pub(crate) fn is_low(&self, query: &Query, n: usize) -> bool {
        !self.unfilled(query, n).is_empty()
            || self.has_unread_classes(query)
            || !self.unfilled_views(query, n).is_empty()
    }

    fn unfilled(&self, query: &Query, n: usize) -> Query {
        let is_plain = |name: &&String| {
            !self.is_elsewhere && !self.paused.contains(*name) && !self.gates.contains_key(*name)
        };
        let queues = query.queues.iter().filter(is_plain).filter(|name| self.queues.needs_filling(name, n));
        let services = query.services.iter().filter(|name| self.services.needs_filling(name, n));
        Query { queues: queues.cloned().collect(), services: services.cloned().collect() }
    }

    /// Queues with limits, whole or one service in them.
    fn unfilled_views(&self, query: &Query, n: usize) -> Vec<(String, Option<String>)> {
        if self.gates.is_empty() {
            return Vec::new();
        }
        let whole = query.queues.iter().filter(|queue| !self.paused.contains(*queue));
        let whole = whole.map(|queue| (queue.clone(), None));
        let gated = self.gated(query).into_iter();
        let parts = gated.filter_map(|(queue, at)| Some((queue, Some(query.services.get(at)?.clone()))));
        let is_low = |(queue, service): &(String, Option<String>)| {
            self.gates.get(queue).is_some_and(|gate| gate.needs_filling(service.as_deref(), n))
        };
        whole.chain(parts).filter(is_low).collect()
    }

    /// Makes room for so many: long queues are shortened to their share, and the store has the rest.
    fn make_room(&mut self, n: usize) {
        let n_queues = self.queues.all().filter(|(_, list)| !list.is_empty()).count();
        let mut share = self.limits.rows / (n_queues + 1);
        loop {
            let n_after = self.ready.n.saturating_add(n);
            let is_over = n_after > self.limits.rows || self.ready.bytes >= self.limits.bytes;
            if !is_over || self.ready.n == 0 {
                return;
            }
            let long = self.queues.all().filter(|(_, list)| list.len() > share);
            let ends = |(queue, list): (&String, &'_ List)| -> Vec<Key> {
                list.spares(share, self.n_kept(queue)).collect()
            };
            let ends: Vec<Key> = long.flat_map(ends).collect();
            for key in ends {
                self.leave_to_store(key);
            }
            if share == 0 {
                return;
            }
            share /= 2;
        }
    }
}
