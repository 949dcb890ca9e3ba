//! Filling lists from the store.

use std::sync::Arc;

use windlass_store::job::JobRow;

use super::{Index, list_of, weight_of};
use crate::dispatch::Query;
use crate::list::{Key, Known, List};

/// What is read at once may be this part of what is kept.
const READ_SHARE: usize = 4;
/// However large they are: reading one by one would never catch up.
const READ_ROWS_MIN: usize = 16;

impl Index {
    /// Of the lists that the query asks about, those that cannot give so many before the store is asked, and that
    /// nobody reads already. Whoever is given some reads them and says so with [`Index::filled`].
    pub(crate) fn begin_filling(&mut self, query: &Query, n: usize) -> Option<Query> {
        if self.unfilled(query, n).is_empty() {
            return None;
        }
        // Before it begins: what is dropped while it goes on would not be known afterwards. It may have to come
        // out of the very lists that are asked about.
        self.make_room(self.limits.fill_rows);
        let wanted = self.unfilled(query, n);
        for queue in &wanted.queues {
            list_of(&mut self.queues, queue, &mut self.lists_max).begin_filling();
        }
        for service in &wanted.services {
            list_of(&mut self.services, service, &mut self.lists_max).begin_filling();
        }
        self.n_filling += 1;
        Some(wanted)
    }

    /// Jobs to be read: fewer of large ones, and more by those that are handed out just now, as they are no news.
    pub(crate) fn n_to_read(&self) -> usize {
        let n_fitting = self.limits.bytes / READ_SHARE / self.bytes_per_row.max(1);
        n_fitting.clamp(READ_ROWS_MIN, self.limits.fill_rows.max(READ_ROWS_MIN)).saturating_add(self.n_taken)
    }

    /// What the store had for these lists, in order; `None` if it could not be asked.
    pub(crate) fn filled(&mut self, query: &Query, read: Option<(Vec<JobRow>, usize)>) {
        let known = read.map(|(rows, limit)| self.add_read(rows, limit));
        self.n_filling -= 1;
        if self.n_filling == 0 {
            self.gone.clear();
        }
        for queue in &query.queues {
            if let Some(list) = self.queues.get_mut(queue) {
                list.end_filling(known);
            }
        }
        for service in &query.services {
            if let Some(list) = self.services.get_mut(service) {
                list.end_filling(known);
            }
        }
        self.wake_for(query);
    }

    /// Lists without jobs are asked of the store again the next time: something may have got lost.
    pub(crate) fn doubt(&mut self) {
        let mut doubtful = Query::default();
        let in_doubt = |list: &List| list.is_empty() && !list.is_filling();
        for (name, list) in self.queues.iter_mut().filter(|(_, list)| in_doubt(list)) {
            list.cut(Known::Nothing);
            doubtful.queues.push(name.clone());
        }
        for (name, list) in self.services.iter_mut().filter(|(_, list)| in_doubt(list)) {
            list.cut(Known::Nothing);
            doubtful.services.push(name.clone());
        }
        self.wake_for(&doubtful);
    }

    /// Wakes as many of those who wait for these lists as there is something to do for: a job each, or the store to
    /// be asked.
    pub(crate) fn wake_for(&mut self, query: &Query) {
        let n_wanted = |list: Option<&List>| match list {
            Some(list) => list.len().saturating_add(usize::from(!list.is_known() && !list.is_filling())),
            None => 1,
        };
        for queue in query.queues.iter().filter(|queue| !self.paused.contains(*queue)) {
            let mut n = n_wanted(self.queues.get(queue));
            while n > 0 && self.line.wake_queue(queue) {
                n -= 1;
            }
        }
        for service in &query.services {
            let mut n = n_wanted(self.services.get(service));
            while n > 0 && self.line.wake_service(service) {
                n -= 1;
            }
        }
    }

    /// Adds what was read, as far as there is room; how much of what the store has is known then.
    fn add_read(&mut self, rows: Vec<JobRow>, limit: usize) -> Known {
        let known = match rows.last() {
            Some(last) if rows.len() >= limit => Known::Before(Key::of(last)),
            Some(_) | None => Known::All,
        };
        let (n, mut bytes) = (rows.len(), 0usize);
        let rows_max = self.limits.rows.saturating_add(self.limits.fill_rows);
        for (at, row) in rows.into_iter().enumerate() {
            let is_full = self.ready.n >= rows_max || self.ready.bytes >= self.limits.bytes;
            // One is always added, so that whoever asked gets on.
            if is_full && at > 0 {
                return Known::Before(Key::of(&row));
            }
            bytes = bytes.saturating_add(weight_of(&row));
            if !self.is_old(row.id(), row.rev) {
                self.remove(row.id());
                // The store counts a job as ready as soon as its wait is over, before anybody said so.
                self.add_ready(Arc::new(row));
            }
        }
        self.bytes_per_row = bytes.checked_div(n).unwrap_or(self.bytes_per_row);
        known
    }

    fn unfilled(&self, query: &Query, n: usize) -> Query {
        let is_unfilled =
            |queue: &&String| !self.paused.contains(*queue) && needs_filling(self.queues.get(*queue), n);
        Query {
            queues: query.queues.iter().filter(is_unfilled).cloned().collect(),
            services: query
                .services
                .iter()
                .filter(|name| needs_filling(self.services.get(*name), n))
                .cloned()
                .collect(),
        }
    }

    /// Makes room for so many: long queues are shortened to their share, and the store has the rest.
    fn make_room(&mut self, n: usize) {
        let mut share = self.limits.rows / (self.queues.len() + 1);
        loop {
            let n_after = self.ready.n.saturating_add(n);
            let is_over = n_after > self.limits.rows || self.ready.bytes >= self.limits.bytes;
            if !is_over || self.ready.n == 0 {
                return;
            }
            let long = self.queues.values().filter(|list| list.len() > share);
            let ends: Vec<Key> = long.flat_map(|list| list.keys().skip(share)).collect();
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

fn needs_filling(list: Option<&List>, n: usize) -> bool {
    list.is_none_or(|list| !list.is_filling() && !list.suffices(n))
}
