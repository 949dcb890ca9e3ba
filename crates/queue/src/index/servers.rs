//! Several servers hand out jobs of the same store: each begins with other ones, so that they seldom take the same.
//!
//! What another server hands out is not told here, and stays in the lists until the store is read again. So a server
//! passes over the shares of others as long as there is something of its own that is hardly less urgent, and reads the
//! store again before it goes on with what was theirs.

use std::collections::{HashMap, HashSet, VecDeque};

use windlass_engine::id::JobId;
use windlass_engine::time::Timestamp;
use windlass_store::hint::LEFT_MS;
use windlass_store::job::{JobRow, Portion};

use super::share::Source;
use super::{Index, Place, Slot};
use crate::dispatch::Query;
use crate::list::{Head, Key, Known, List, Mark};
use crate::lists::Lists;

/// Jobs that are looked at for one to begin with, where there is none of the own share.
const LOOK_MAX: usize = 256;
/// A job of another's share is passed by those of the own that are due so much later, or a part of the time that it has
/// been waiting if that is more.
const WAIT_MS: u64 = 1_000;
const WAIT_SHARE: u64 = 8;
/// What others may hand out is believed to be there for so long.
const TRUST_MS: u64 = 100;
/// Whoever says that nobody claims there calls others in for so long.
const OPEN_MS: u64 = 1_000;
const OPEN_MAX: usize = 1_024;

/// Readings of the own portion of a long queue, before others' are looked at again: perhaps nobody hands those out. And
/// only where what is read is handed out so soon: what is urgent and not of the own portion waits no longer.
const OWN_READINGS: u8 = 3;
const FAST_MS: u64 = 2_000;

/// This server is number `at` of so many.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Servers {
    pub(crate) at: usize,
    pub(crate) of: usize,
}

impl Default for Servers {
    fn default() -> Self {
        Servers { at: 0, of: 1 }
    }
}

impl Servers {
    /// Whether the job is of the own share.
    fn is_own(self, id: JobId) -> bool {
        self.portion().has(id)
    }

    pub(super) fn portion(self) -> Portion {
        Portion { at: self.at, of: self.of }
    }
}

/// Jobs of the own share that one claim has found behind those of others, list by list, and behind which.
#[derive(Debug, Default)]
pub(super) struct Own {
    found: HashMap<usize, (Key, VecDeque<Key>)>,
    /// The lists that some were handed out from.
    gave: HashSet<usize>,
}

/// Whether a job is as urgent as the next one, and hardly later.
fn is_alike(key: Key, next: Key, now: Timestamp) -> bool {
    let later = WAIT_MS.max(now.since(next.due()) / WAIT_SHARE);
    (key.urgency(), key.is_run) == (next.urgency(), next.is_run) && key.due() <= next.due().after(later)
}

impl Index {
    fn plain_list(&self, query: &Query, at: usize) -> Option<&List> {
        match self.source(query, &[], at)? {
            Source::Queue(queue) => self.queues.named(queue),
            Source::Service(service) => self.services.named(service),
            Source::Gate(..) => None,
        }
    }

    /// The first jobs of the own share that may be handed out instead of the next one, which is not.
    fn own_alike<'a>(
        &'a self,
        list: &'a List,
        next: Key,
        now: Timestamp,
    ) -> impl Iterator<Item = Key> + use<'a> {
        let alike = list.known_keys().take_while(move |key| {
            key.urgency() == next.urgency() && (key.is_run != next.is_run || is_alike(*key, next, now))
        });
        alike.filter(move |key| self.is_own(*key, now) && is_alike(*key, next, now))
    }

    /// Somebody else has written jobs of these queues, and nobody claims them there.
    pub(crate) fn call_to(&mut self, queues: &[String], now: Timestamp) {
        if self.open.len() >= OPEN_MAX {
            self.open.retain(|_, until| now < *until);
        }
        self.open.extend(queues.iter().map(|queue| (queue.clone(), now.after(OPEN_MS))));
        self.doubt_queues(queues);
    }

    /// Whether a job that is not of the own share is probably being handed out where it was written, for the first time.
    fn is_left(&self, key: Key, now: Timestamp) -> bool {
        let is_open = |queue: &str| self.open.get(queue).is_some_and(|until| now < *until);
        let is_new = |slot: &Slot| slot.row.job.fence == 0 && !is_open(&slot.row.job.spec.queue);
        now < key.due().after(LEFT_MS) && self.rows.get(&key.id).is_some_and(is_new)
    }

    /// Whether there is something that is left to others, for now.
    pub(crate) fn leaves_some(&self, query: &Query, now: Timestamp) -> bool {
        let is_others = |list: &List| matches!(list.head(), Some(Head::Job(key)) if !self.is_own(key, now));
        self.servers.of > 1
            && (0..query.queues.len() + query.services.len())
                .any(|at| self.plain_list(query, at).is_some_and(is_others))
    }

    /// Whether the job is of the own share, or was just written here.
    fn is_own(&self, key: Key, now: Timestamp) -> bool {
        let is_offered = || self.rows.get(&key.id).is_some_and(|slot| slot.is_offered);
        self.servers.is_own(key.id) || (now < key.due().after(LEFT_MS) && is_offered())
    }

    /// Of the jobs that are as urgent as the next one of a list and hardly later, the first of the own share; of
    /// others, each server begins with another. A queue with limits is not shared: its order is that of its keys. So
    /// many may still be wanted. `None` = what is left is probably handed out elsewhere, and the claim has got something.
    pub(super) fn preferred(
        &self,
        query: &Query,
        at: usize,
        next: Key,
        now: Timestamp,
        n: usize,
        own: &mut Own,
    ) -> Option<Key> {
        let servers = self.servers;
        if servers.of <= 1 || self.is_own(next, now) {
            return Some(next);
        }
        let Some(list) = self.plain_list(query, at) else { return Some(next) };
        let is_ready = |key: &Key| self.rows.get(&key.id).is_some_and(|slot| slot.place == Place::Ready);
        // What one claim takes does not change the order of the rest: each list is gone through once for every job
        // that is next in it.
        let (behind, found) =
            own.found.entry(at).or_insert_with(|| (next, self.own_alike(list, next, now).take(n).collect()));
        if *behind != next {
            (*behind, *found) = (next, self.own_alike(list, next, now).take(n).collect());
        }
        while let Some(key) = found.pop_front() {
            if is_ready(&key) {
                return Some(key);
            }
        }
        if own.gave.contains(&at) && next.due().after(TRUST_MS) < now {
            return None;
        }
        if self.is_left(next, now) {
            // What comes behind it does not wait for it.
            let may_give = |key: &Key| self.is_own(*key, now) || !self.is_left(*key, now);
            return list.known_keys().take(LOOK_MAX).find(|key| is_ready(key) && may_give(key));
        }
        let near: Vec<Key> =
            list.known_keys().take(LOOK_MAX).filter(|key| is_alike(*key, next, now)).collect();
        Some(near.get(near.len() * servers.at / servers.of).copied().unwrap_or(next))
    }

    /// A job of this list is handed out.
    pub(super) fn note_given(&self, at: usize, given: Key, own: &mut Own) {
        if self.servers.of > 1 && self.servers.is_own(given.id) {
            own.gave.insert(at);
        }
    }

    /// Remembers which lists have given something of the own share.
    pub(super) fn keep_given(&mut self, query: &Query, own: &Own) {
        for at in &own.gave {
            let list = match self.source(query, &[], *at) {
                Some(Source::Queue(queue)) => self.queues.named_mut(queue),
                Some(Source::Service(service)) => self.services.named_mut(service),
                Some(Source::Gate(..)) | None => None,
            };
            list.into_iter().for_each(|list| list.has_given = true);
        }
    }

    /// Where only shares of others are left, of which this server has heard a while ago, most of them are probably
    /// handed out: before they are tried in vain, the store is asked.
    pub(crate) fn doubt_others(&mut self, query: &Query, now: Timestamp) {
        let servers = self.servers;
        if servers.of <= 1 {
            return;
        }
        for at in 0..query.queues.len() + query.services.len() {
            let is_doubtful = self.plain_list(query, at).is_some_and(|list| self.is_doubtful(list, now));
            let list = match self.source(query, &[], at).filter(|_| is_doubtful) {
                Some(Source::Queue(queue)) => self.queues.named_mut(queue),
                Some(Source::Service(service)) => self.services.named_mut(service),
                Some(Source::Gate(..)) | None => None,
            };
            if let Some(list) = list {
                // With more of the own share behind, it is not the length of the queue that others are in the way.
                if list.known_keys().any(|key| servers.is_own(key.id)) {
                    list.n_own_readings = 0;
                }
                list.cut(Known::Nothing);
                list.has_given = false;
            }
        }
    }

    fn is_doubtful(&self, list: &List, now: Timestamp) -> bool {
        let is_old = |at: Timestamp| at.after(TRUST_MS) < now;
        let Some(Head::Job(next)) = list.head() else { return false };
        !list.is_filling()
            && is_old(next.due())
            && (list.has_given || is_old(list.asked_at))
            && !self.is_own(next, now)
            && self.own_alike(list, next, now).next().is_none()
    }

    /// The store is about to be asked for so many: where it takes a while until that happens again, for all of it.
    pub(crate) fn pace(&mut self, query: &Query, n: usize, now: Timestamp) {
        if self.servers.of <= 1 {
            return;
        }
        let note = |lists: &mut Lists, name: &str| {
            let Some(list) = lists.named_mut(name) else { return };
            if !list.is_filling() && !list.suffices(n) {
                if list.asked_at.after(FAST_MS) < now {
                    list.n_own_readings = 0;
                }
                list.asked_at = now;
            }
        };
        query.queues.iter().for_each(|queue| note(&mut self.queues, queue));
        query.services.iter().for_each(|service| note(&mut self.services, service));
    }

    /// What to read of lists: where there is more than is read at once, only the own portion, so that servers do not
    /// all read the same.
    pub(super) fn begin_portion(&self, query: &Query) -> Option<Portion> {
        let is_long = |list: Option<&List>| list.is_some_and(|list| list.n_own_readings > 0);
        let is_own = self.servers.of > 1
            && query.queues.iter().all(|queue| is_long(self.queues.named(queue)))
            && query.services.iter().all(|service| is_long(self.services.named(service)));
        is_own.then(|| self.servers.portion())
    }

    /// Whether others hand out their shares too. Where theirs pile up at the front, nobody does, and whoever claims has
    /// to see them.
    pub(super) fn is_shared_out(&self, rows: &[JobRow]) -> bool {
        let n_own = rows.iter().filter(|row| self.servers.is_own(row.id())).count();
        n_own.saturating_mul(self.servers.of).saturating_mul(2) >= rows.len()
    }

    /// Lists were read, and as much as was asked for was there of what is shared out, or not.
    pub(super) fn end_portion(&mut self, query: &Query, portion: Option<Portion>, is_full: bool) {
        if self.servers.of <= 1 {
            return;
        }
        let next = |list: &mut List| {
            list.has_given = false;
            list.n_own_readings = match (is_full, portion) {
                (false, _) => 0,
                (true, None) => OWN_READINGS,
                (true, Some(_)) => list.n_own_readings.saturating_sub(1),
            };
        };
        query.queues.iter().for_each(|queue| next(self.queues.of(queue)));
        query.services.iter().for_each(|service| next(self.services.of(service)));
    }

    /// The store was read so far, and these are ready: others that were known before it was asked, and have not changed
    /// since, are no longer. What is not of the portion that was read is left to whose it is.
    pub(super) fn drop_unread(
        &mut self,
        query: &Query,
        begun: u64,
        portion: Option<Portion>,
        known: Known,
        read: &HashSet<JobId>,
    ) {
        if self.is_alone {
            return;
        }
        let lists = query.queues.iter().filter_map(|queue| self.queues.named(queue));
        let lists = lists.chain(query.services.iter().filter_map(|service| self.services.named(service)));
        let is_gone = |key: &Key| {
            let slot = self.rows.get(&key.id);
            let is_others = portion.is_some_and(|portion| !portion.has(key.id));
            let is_asked = is_others || known.covers(*key);
            is_asked && !read.contains(&key.id) && slot.is_some_and(|slot| slot.since < begun)
        };
        let gone: Vec<JobId> = lists.flat_map(List::keys).filter(is_gone).map(|key| key.id).collect();
        for slot in gone.into_iter().filter_map(|id| self.remove(id)).collect::<Vec<_>>() {
            // Other lists that had it were not read: whoever gets that far there asks the store.
            let (known, spec) = (Known::Before(Mark::at(Key::of(&slot.row))), &slot.row.job.spec);
            if !query.queues.contains(&spec.queue) {
                self.queues.of(&spec.queue).cut(known);
            }
            if !query.services.contains(&spec.name) {
                self.services.of(&spec.name).cut(known);
            }
        }
    }
}
