//! Queues with limits: what is counted, what is spent, and who is woken when something opens.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use windlass_engine::id::JobId;
use windlass_engine::job::State;
use windlass_engine::time::Timestamp;
use windlass_store::job::{HeldRow, JobRow};
use windlass_store::queue::{Held, QueueLimits, Spent};

use super::{Hold, Index, Place};
use crate::dispatch::{Query, Turn};
use crate::gate::Gate;
use crate::list::{Head, Key, Known, List};

/// A queue of which somebody asks who has jobs.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) queue: String,
    /// Of the gate.
    count: u64,
    n_gone_lost: u64,
}

impl Index {
    /// Sets what holds a queue back. Who has jobs of it is asked anew.
    pub(crate) fn limit(&mut self, queue: &str, limits: QueueLimits, now: Timestamp) {
        let is_limited = limits != QueueLimits::default();
        let is_same = |gate: &Gate| *gate.limits() == limits;
        if self.gates.get(queue).map_or(!is_limited, is_same) {
            return;
        }
        let is_known = match self.gates.get(queue) {
            Some(gate) => gate.all.is_known(),
            None => self.queues.is_known(queue),
        };
        let ready = self.clear(queue, is_limited && is_known);
        self.slots.retain(|_, hold| hold.queue != queue);
        self.openings.retain(|(_, of, _)| of != queue);
        let before = self.gates.remove(queue);
        if is_limited {
            self.n_gates_made += 1;
            let is_shared =
                !self.is_alone && QueueLimits { fair: false, ..limits.clone() } != QueueLimits::default();
            let gate = Gate::new(limits, before, self.n_gates_made, is_shared, now);
            self.openings.extend(gate.openings().map(|(at, lane)| (at, queue.to_owned(), lane)));
            self.gates.insert(queue.to_owned(), gate);
            self.count_taken(queue);
            if is_limited && is_known {
                self.know_all(queue, None, ready);
            }
            self.stir(queue);
        } else {
            self.queues.of(queue).cut(Known::Nothing);
            self.services.doubt();
            let services = self.line.services().cloned().collect();
            self.wake_for(&Query { queues: vec![queue.to_owned()], services });
            self.wake_elsewhere(queue, usize::MAX);
        }
    }

    /// Takes out the ready jobs of a queue: they are given back, or left to the store.
    fn clear(&mut self, queue: &str, gives_back: bool) -> Vec<Arc<JobRow>> {
        let keys: Vec<Key> = self.queues.named(queue).into_iter().flat_map(List::keys).collect();
        if gives_back {
            return keys.into_iter().filter_map(|key| Some(self.remove(key.id)?.row)).collect();
        }
        keys.into_iter().for_each(|key| self.leave_to_store(key));
        Vec::new()
    }

    /// A view has these jobs, and there are no others.
    fn know_all(&mut self, queue: &str, service: Option<&str>, rows: Vec<Arc<JobRow>>) {
        if let Some(gate) = self.gates.get_mut(queue) {
            gate.view_mut(service).learn_others(Known::All, 0, None);
        }
        for row in rows {
            let key = Key::of(&row);
            if self.rows.contains_key(&key.id) {
                if let Some(gate) = self.gates.get_mut(queue) {
                    gate.insert(&row.job.spec.limit_key, &row.job.spec.name, key);
                }
            } else {
                self.add_ready(row, false);
            }
        }
    }

    /// Of a queue that is wholly known, the services that the query asks for are known too: the store need not be
    /// asked.
    pub(super) fn know_services(&mut self, query: &Query) {
        for (queue, at) in self.gated(query) {
            let Some(service) = query.services.get(at) else { continue };
            let is_unknown = |gate: &&Gate| gate.view(Some(service)).is_none() && gate.all.is_known();
            if self.gates.get(&queue).filter(is_unknown).is_none() {
                continue;
            }
            let keys = self.queues.named(&queue).into_iter().flat_map(List::keys);
            let rows = keys.filter_map(|key| Some(&self.rows.get(&key.id)?.row));
            let rows = rows.filter(|row| row.job.spec.name == *service).cloned().collect();
            self.know_all(&queue, Some(service), rows);
        }
    }

    /// Jobs that are being handed out count before the store knows of it.
    fn count_taken(&mut self, queue: &str) {
        let is_taken = |slot: &&super::Slot| slot.place == Place::Taken && slot.row.job.spec.queue == queue;
        let taken: Vec<Arc<JobRow>> =
            self.rows.values().filter(is_taken).map(|slot| slot.row.clone()).collect();
        for row in taken {
            if let Some(gate) = self.gates.get_mut(queue) {
                gate.taken.insert(row.id());
            }
            self.occupy(row.id(), row.rev, queue, &row.job.spec.limit_key);
        }
    }

    /// Counts a job by what it is now; the queue, if it was somebody's and is not any more.
    pub(super) fn count(&mut self, row: &JobRow) -> Option<String> {
        if self.gates.is_empty() {
            return None;
        }
        if let State::Running { .. } = row.job.state {
            let spec = &row.job.spec;
            self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
            return None;
        }
        self.free(row.id())
    }

    /// Nobody has the job any more; the queue, if somebody had it.
    pub(super) fn free(&mut self, id: JobId) -> Option<String> {
        if self.slots.is_empty() {
            return None;
        }
        let Hold { queue, limit_key, .. } = self.slots.remove(&id)?;
        if let Some(gate) = self.gates.get_mut(&queue) {
            gate.free(&limit_key);
        }
        Some(queue)
    }

    fn occupy(&mut self, id: JobId, rev: u64, queue: &str, limit_key: &str) {
        let Some(gate) = self.gates.get_mut(queue).filter(|gate| gate.counts()) else { return };
        if let Some(hold) = self.slots.get_mut(&id) {
            hold.rev = rev;
            return;
        }
        let hold = Hold { queue: queue.to_owned(), limit_key: limit_key.to_owned(), rev };
        self.slots.insert(id, hold);
        gate.hold(limit_key);
    }

    /// Somebody is given the job.
    pub(super) fn spend(&mut self, row: &JobRow, now: Timestamp) {
        let spec = &row.job.spec;
        let Some(gate) = self.gates.get_mut(&spec.queue) else { return };
        gate.taken.insert(row.id());
        let openings = gate.spend(&spec.limit_key, now).into_iter().flatten();
        self.openings.extend(openings.map(|(at, lane)| (at, spec.queue.clone(), lane)));
        self.occupy(row.id(), row.rev, &spec.queue, &spec.limit_key);
    }

    /// What is used up of the rates that these jobs count for.
    pub(crate) fn spent(&self, rows: &[Arc<JobRow>]) -> Vec<Spent> {
        if self.gates.is_empty() {
            return Vec::new();
        }
        let mut spent: HashMap<(&str, String), Timestamp> = HashMap::new();
        for spec in rows.iter().map(|row| &row.job.spec) {
            let Some(gate) = self.gates.get(&spec.queue) else { continue };
            for (limit_key, full_at) in gate.full_at(&spec.limit_key).into_iter().flatten() {
                spent.insert((&spec.queue, limit_key), full_at);
            }
        }
        let spent = spent.into_iter();
        spent
            .map(|((queue, limit_key), full_at)| Spent { queue: queue.to_owned(), limit_key, full_at })
            .collect()
    }

    /// So much of a rate was used up before.
    pub(crate) fn restore(&mut self, spent: &Spent, now: Timestamp) {
        let Some(gate) = self.gates.get_mut(&spent.queue) else { return };
        if let Some((at, lane)) = gate.restore(&spent.limit_key, spent.full_at, now) {
            self.openings.insert((at, spent.queue.clone(), lane));
        }
    }

    /// When there are tokens again for somebody.
    pub(crate) fn next_opening(&self) -> Option<Timestamp> {
        self.openings.first().map(|(at, ..)| *at)
    }

    /// Opens what has tokens again, and wakes whoever waits for it.
    pub(crate) fn open(&mut self, now: Timestamp) {
        while self.openings.first().is_some_and(|(at, ..)| *at <= now) {
            let Some((_, queue, lane)) = self.openings.pop_first() else { return };
            let Some(gate) = self.gates.get_mut(&queue) else { continue };
            match gate.open(lane.as_ref(), now) {
                // The clock went back.
                Some(later) => {
                    self.openings.insert((later.max(now.after(1)), queue, lane));
                }
                None => self.stir(&queue),
            }
        }
    }

    /// Somebody begins to ask the store who has jobs of a queue.
    pub(super) fn begin_counting(&mut self, queue: &str) -> Option<Counting> {
        let gate = self.gates.get_mut(queue).filter(|gate| !gate.is_counted && !gate.is_counting)?;
        gate.is_counting = true;
        self.n_filling += 1;
        Some(Counting { queue: queue.to_owned(), count: gate.count, n_gone_lost: self.n_gone_lost })
    }

    /// Who had jobs of a queue when the store was asked; `None` if it could not be asked.
    pub(crate) fn counted(&mut self, counting: &Counting, held: Option<Held>) {
        let Counting { queue, count, n_gone_lost } = counting;
        // If not every end since then is remembered, it is counted again: what ended would never be given back.
        let held = held.filter(|_| *n_gone_lost == self.n_gone_lost);
        if let Some(gate) = self.gates.get_mut(queue).filter(|gate| gate.count == *count) {
            gate.is_counting = false;
            gate.is_counted |= held.is_some();
            let Held { turns, jobs, spent } = held.unwrap_or_default();
            if gate.is_counted && gate.is_shared() {
                gate.begin_turns(turns);
                let now = gate.now();
                self.openings.retain(|(_, of, _)| of != queue);
                spent.iter().for_each(|spent| self.restore(spent, now));
            }
            for HeldRow { job, rev, limit_key } in jobs {
                // What is newer was heard of since, and counted then.
                let is_old = self.rows.get(&job).is_some_and(|slot| slot.row.rev > rev);
                let is_gone = self.gone.get(&job).is_some_and(|gone| *gone >= rev);
                if !is_old && !is_gone && !self.slots.contains_key(&job) {
                    self.occupy(job, rev, queue, &limit_key);
                }
            }
        }
        self.end_reading();
        self.stir(queue);
    }

    /// It has to be asked again who has jobs of a queue.
    pub(crate) fn recount(&mut self, queue: &str) {
        let Some(gate) = self.gates.get_mut(queue).filter(|gate| gate.is_shared()) else { return };
        self.n_gates_made += 1;
        gate.doubt_count(self.n_gates_made);
        self.slots.retain(|_, hold| hold.queue != queue);
        self.count_taken(queue);
        self.stir(queue);
    }

    /// Of queues that others hand out from too, those that the query asks about are counted again now and then.
    pub(crate) fn recount_stale(&mut self, query: &Query, now: Timestamp) {
        if self.is_alone || self.gates.is_empty() {
            return;
        }
        let gated = self.gated(query).into_iter().map(|(queue, _)| queue);
        for queue in query.queues.iter().cloned().chain(gated) {
            let Some(gate) = self.gates.get_mut(&queue) else { continue };
            gate.tick(now);
            if gate.is_stale(now) {
                self.recount(&queue);
            }
        }
    }

    /// The turns that handing out these jobs takes, if others hand out jobs of their queues too.
    pub(crate) fn turns(&self, rows: &[Arc<JobRow>]) -> Vec<Turn> {
        if self.is_alone || self.gates.is_empty() {
            return Vec::new();
        }
        let queues: BTreeSet<&str> = rows.iter().map(|row| row.job.spec.queue.as_str()).collect();
        let turn = |queue: &str| {
            let gate = self.gates.get(queue).filter(|gate| gate.is_shared())?;
            Some(Turn { queue: queue.to_owned(), count: gate.count })
        };
        queues.into_iter().filter_map(turn).collect()
    }

    /// Which turn comes next, if the gate is still the one that the jobs were taken from.
    pub(crate) fn next_turn(&self, turn: &Turn) -> Option<u64> {
        self.gates.get(&turn.queue).filter(|gate| gate.count == turn.count)?.next_hand_out()
    }

    /// The turn was had.
    pub(crate) fn had_turn(&mut self, turn: &Turn) {
        if let Some(gate) = self.gates.get_mut(&turn.queue).filter(|gate| gate.count == turn.count) {
            gate.had_turn();
        }
    }

    /// Whether others may give back what the query waits for, and nobody would say so.
    pub(crate) fn is_shared(&self, query: &Query) -> bool {
        let shares = |queue: &String| self.gates.get(queue).is_some_and(Gate::is_shared);
        query.queues.iter().any(shares) || self.gated(query).iter().any(|(queue, _)| shares(queue))
    }

    /// Of services that the query asks for, the queues with limits that may have some: in no list of the service.
    pub(super) fn gated(&self, query: &Query) -> Vec<(String, usize)> {
        if self.gates.is_empty() {
            return Vec::new();
        }
        let is_asked = |queue: &&String| !self.paused.contains(*queue) && !query.queues.contains(queue);
        let queues: Vec<&String> = self.gates.keys().filter(is_asked).collect();
        let pairs = (0..query.services.len()).flat_map(|at| queues.iter().map(move |queue| (*queue, at)));
        pairs.map(|(queue, at)| (queue.clone(), at)).collect()
    }

    /// Whoever took something and left something wakes another for it.
    pub(super) fn pass_on(&mut self, query: &Query, gated: &[(String, usize)]) {
        if self.gates.is_empty() || self.line.len() == 0 {
            return;
        }
        for queue in query.queues.iter().chain(gated.iter().map(|(queue, _)| queue)) {
            self.stir(queue);
        }
    }

    pub(super) fn stir_freed(&mut self, freed: Option<String>) {
        if let Some(queue) = freed {
            self.stir(&queue);
        }
    }

    /// Wakes one who waits for what a queue with limits may hand out now.
    pub(super) fn stir(&mut self, queue: &str) {
        if self.line.len() == 0 || self.paused.contains(queue) {
            return;
        }
        let Some(gate) = self.gates.get(queue) else { return };
        let is_woken = match gate.head(None) {
            None => return,
            Some(Head::Job(key)) => {
                self.rows.get(&key.id).is_some_and(|slot| self.line.wake(queue, &slot.row.job.spec.name))
            }
            Some(Head::AskStore | Head::AskStoreAt(_)) => self.line.wake_queue(queue),
        };
        if is_woken {
            return;
        }
        let services: Vec<String> =
            self.line.services().filter(|service| gate.head(Some(service)).is_some()).cloned().collect();
        let _is_woken = services.iter().any(|service| self.line.wake_service(service));
    }
}
