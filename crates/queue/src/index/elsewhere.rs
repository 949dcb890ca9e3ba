//! Queues whose jobs are handed out by others, whoever asks for them by queue: then what is here is for those who ask
//! by service, and for queues with limits.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_store::job::JobRow;

use super::{Index, Place};
use crate::dispatch::Query;
use crate::gate::Gate;
use crate::list::{Key, Known};

/// Jobs that are remembered as written here although they are not kept: more than are written in the time in which that
/// matters.
const WRITTEN_MAX: usize = 20_000;

/// The latest jobs that were written here and are not kept. When they are read back, they are not left to another
/// server: there is none that would hand them out first.
#[derive(Debug, Default)]
pub(super) struct Written {
    ids: HashSet<JobId>,
    order: VecDeque<JobId>,
}

impl Written {
    fn add(&mut self, id: JobId) {
        if !self.ids.insert(id) {
            return;
        }
        self.order.push_back(id);
        if self.order.len() > WRITTEN_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }

    pub(super) fn has(&self, id: JobId) -> bool {
        self.ids.contains(&id)
    }
}

impl Index {
    /// Whether others hand out from now on. What was known may have become old without a word, and is forgotten;
    /// everybody who waits asks again.
    pub(crate) fn elsewhere(&mut self, is_elsewhere: bool) {
        if self.is_elsewhere == is_elsewhere {
            return;
        }
        self.is_elsewhere = is_elsewhere;
        let is_ready = |slot: &super::Slot| slot.place == Place::Ready;
        let ready: Vec<JobId> =
            self.rows.iter().filter(|(_, slot)| is_ready(slot)).map(|(id, _)| *id).collect();
        for id in ready {
            if self.remove(id).is_some_and(|slot| slot.is_offered) {
                self.written.add(id);
            }
        }
        self.queues.doubt();
        self.services.doubt();
        self.gates.values_mut().for_each(Gate::doubt);
        self.line.wake_all();
    }

    /// Of the queues that a query asks for, those that others hand out.
    pub(crate) fn asked_elsewhere(&self, query: &Query) -> Vec<String> {
        if !self.is_elsewhere {
            return Vec::new();
        }
        let is_out = |queue: &&String| !self.paused.contains(*queue) && !self.gates.contains_key(*queue);
        query.queues.iter().filter(is_out).cloned().collect()
    }

    /// Others have so many jobs of a queue: wakes as many of those who wait for one.
    pub(crate) fn wake_elsewhere(&mut self, queue: &str, n: usize) {
        if !self.is_elsewhere || self.paused.contains(queue) || self.gates.contains_key(queue) {
            return;
        }
        let mut n = n;
        while n > 0 && self.line.wake_queue(queue) {
            n -= 1;
        }
    }

    /// Whoever was woken for one of these queues does not look: somebody else does.
    pub(crate) fn pass_on_elsewhere(&mut self, query: &Query) {
        query.queues.iter().for_each(|queue| self.wake_elsewhere(queue, 1));
    }

    /// A ready job of a queue that others hand out is kept only where somebody has asked for its service.
    pub(super) fn insert_for_service(&mut self, row: Arc<JobRow>, is_offered: bool) {
        let (key, service) = (Key::of(&row), row.job.spec.name.clone());
        let is_asked = self.services.named(&service).is_some();
        let is_kept =
            is_asked && !self.ready.is_full(&self.limits) && self.add_ready(row.clone(), is_offered);
        if !is_kept && is_offered {
            self.written.add(key.id);
        }
        if is_asked && !is_kept {
            self.cut(&row, key);
        } else if !is_asked {
            self.queues.of(&row.job.spec.queue).cut(Known::Nothing);
        }
        if !self.paused.contains(&row.job.spec.queue) {
            self.line.wake_service(&service);
        }
    }
}
