//! Who is there, who is busy, and who gets the next call. A plain value behind a lock: no clock, no store, no waiting
//! of its own.
//!
//! A call asks for a worker of a service and gets a ticket. It is told a worker as soon as the service may have one
//! more call, it is the call's turn, and a worker that it may go to has room. A ticket is given back exactly once,
//! whether its call waits or works.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use tokio::sync::oneshot;
use windlass_engine::plan::Priority;
use windlass_engine::time::Timestamp;
use windlass_store::worker::{WorkerBeat, WorkerRow};

use crate::waiting::Waiting;

mod entry;

use entry::Entry;
pub(super) use entry::is_called;

/// Workers known at once: far more than one server can keep busy.
pub(super) const WORKERS_MAX: usize = 10_000;
/// Services whose workers are waited for at once: more than workers that are known at once usually have.
const EXPECTED_MAX: usize = 10 * WORKERS_MAX;
/// Calls of one service that wait at once: two of the largest fans.
const WAITING_MAX: usize = 200_000;
/// Calls that are looked at for one free worker: only those that avoid it are passed over, and they are few.
const LOOK_MAX: usize = 64;

/// Which limits hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) service_calls: usize,
    pub(super) worker_calls: usize,
    pub(super) ttl_ms: u64,
    /// Servers that call the same workers: each has its share of what a worker said it can do.
    pub(super) n_servers: usize,
}

/// What a call wants.
#[derive(Debug, Clone)]
pub(super) struct Wish {
    pub(super) service: String,
    pub(super) priority: Priority,
    /// Workers to go to only if there is nobody else.
    pub(super) avoid: Vec<String>,
    pub(super) by_load: bool,
}

/// The worker of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub(crate) id: String,
    pub(crate) url: String,
}

/// Why a call gets no worker, now or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nobody {
    /// No live worker of the service can be called.
    Alive,
    /// So many calls wait for the service that no more may.
    Free { n_waiting: usize },
}

pub(super) type Told = Result<Chosen, Nobody>;

#[derive(Debug)]
pub(super) struct Desk {
    limits: Limits,
    workers: BTreeMap<String, Entry>,
    services: HashMap<String, Service>,
    working: HashMap<u64, Working>,
    expected: Expected,
    last_ticket: u64,
    n_choices: u64,
}

/// Services whose workers could not say that they live, because no server was there to hear it. Until they have had
/// the time to, calls wait for them.
#[derive(Debug, Default)]
struct Expected {
    services: HashSet<String>,
    until: Timestamp,
}

impl Expected {
    fn is_for(&self, service: &str, now: Timestamp) -> bool {
        now < self.until && self.services.contains(service)
    }
}

#[derive(Debug, Default)]
struct Service {
    members: BTreeSet<String>,
    /// Who had the last call: the next one goes to whoever comes after it.
    last: String,
    n_calls: usize,
    /// The number of the choice that was made for it last.
    served: u64,
    waiting: Waiting<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    avoid: Vec<String>,
    by_load: bool,
    tell: oneshot::Sender<Told>,
}

#[derive(Debug)]
struct Working {
    worker: String,
    service: String,
}

impl Desk {
    pub(super) fn new(limits: Limits) -> Self {
        Desk {
            limits,
            workers: BTreeMap::new(),
            services: HashMap::new(),
            working: HashMap::new(),
            expected: Expected::default(),
            last_ticket: 0,
            n_choices: 0,
        }
    }

    pub(super) fn worker(&self, id: &str) -> Option<&WorkerRow> {
        self.workers.get(id).map(|entry| &entry.row)
    }

    /// So many servers call the same workers from now on.
    pub(super) fn shared_by(&mut self, n_servers: usize) {
        self.limits.n_servers = n_servers;
    }

    /// Whether a worker of this id can be taken; makes room if that helps.
    pub(super) fn has_room(&mut self, id: &str, now: Timestamp) -> bool {
        if !self.workers.contains_key(id) && self.workers.len() >= WORKERS_MAX {
            self.forget_dead(now);
        }
        self.workers.contains_key(id) || self.workers.len() < WORKERS_MAX
    }

    /// Takes over what is known of a worker, unless something newer is; `false` = there are too many.
    pub(super) fn put(&mut self, row: WorkerRow, now: Timestamp) -> bool {
        if !self.has_room(&row.id, now) {
            return false;
        }
        let services = row.services.clone();
        match self.workers.get_mut(&row.id) {
            Some(entry) if entry.row.beat_at > row.beat_at => return true,
            Some(entry) => {
                let before = std::mem::replace(&mut entry.row, row);
                let left = before.services.iter().filter(|service| !services.contains(service));
                for service in left {
                    self.leave_service(service, &before.id);
                }
                self.enter_services(&services, &before.id);
            }
            None => {
                let id = row.id.clone();
                self.workers.insert(id.clone(), Entry::new(row));
                self.enter_services(&services, &id);
            }
        }
        self.serve_all(&services, now);
        true
    }

    /// These workers may still live: until then, calls of their services wait for a sign of life.
    pub(super) fn expect(&mut self, rows: &[WorkerRow], until: Timestamp) {
        let called = rows.iter().filter(|row| is_called(&row.kind) && !row.url.is_empty());
        let services = called.flat_map(|row| row.services.iter().cloned()).take(EXPECTED_MAX).collect();
        self.expected = Expected { services, until };
    }

    /// Takes over a sign of life; `false` = nobody of that id is known here.
    pub(super) fn beat(&mut self, beat: &WorkerBeat, now: Timestamp) -> bool {
        let Some(entry) = self.workers.get_mut(&beat.id) else { return false };
        if let Some(url) = &beat.url {
            entry.row.url.clone_from(url);
        }
        entry.row.load = beat.load.unwrap_or(entry.row.load);
        entry.row.beat_at = entry.row.beat_at.max(beat.at);
        let services = entry.row.services.clone();
        self.serve_all(&services, now);
        true
    }

    /// A worker is on its way out, or back.
    pub(super) fn drain(&mut self, id: &str, is_draining: bool, now: Timestamp) {
        let Some(entry) = self.workers.get_mut(id) else { return };
        entry.row.is_draining = is_draining;
        let services = entry.row.services.clone();
        self.serve_all(&services, now);
    }

    /// The least loaded live worker of a service, whether it is called or claims; the one not chosen for longest if
    /// there are several.
    pub(super) fn allocate(&mut self, service: &str, now: Timestamp) -> Option<WorkerRow> {
        let members = &self.services.get(service)?.members;
        let entries = members.iter().filter_map(|id| self.workers.get(id));
        let live = entries.filter(|entry| entry.takes_work(self.limits, now));
        let id = live.min_by(|a, b| a.by_load(b))?.row.id.clone();
        self.n_choices += 1;
        let entry = self.workers.get_mut(&id)?;
        entry.chosen = self.n_choices;
        Some(entry.row.clone())
    }

    /// Asks for a worker. The ticket has to be given back with [`Desk::leave`].
    pub(super) fn ask(
        &mut self,
        wish: Wish,
        now: Timestamp,
    ) -> Result<(u64, oneshot::Receiver<Told>), Nobody> {
        if !self.is_there_anybody(&wish.service, now) {
            return Err(Nobody::Alive);
        }
        let service = self.services.entry(wish.service.clone()).or_default();
        if service.waiting.len() >= WAITING_MAX {
            return Err(Nobody::Free { n_waiting: service.waiting.len() });
        }
        let (tell, told) = oneshot::channel();
        self.last_ticket += 1;
        let waiter = Waiter { avoid: wish.avoid, by_load: wish.by_load, tell };
        service.waiting.add(self.last_ticket, wish.priority, waiter);
        self.serve(&wish.service, now);
        Ok((self.last_ticket, told))
    }

    /// Whether somebody can be called, or is expected to come.
    fn is_there_anybody(&self, service: &str, now: Timestamp) -> bool {
        let members = self.services.get(service).into_iter().flat_map(|found| &found.members);
        let mut entries = members.filter_map(|id| self.workers.get(id));
        entries.any(|entry| entry.can_be_called(self.limits, now)) || self.expected.is_for(service, now)
    }

    /// Gives a ticket back: its call is over, or does not wait any more.
    pub(super) fn leave(&mut self, service: &str, ticket: u64, now: Timestamp) {
        if let Some(waiting) = self.services.get_mut(service).map(|service| &mut service.waiting)
            && waiting.remove(ticket).is_some()
        {
            self.drop_if_idle(service);
            return;
        }
        let Some(Working { worker, service }) = self.working.remove(&ticket) else { return };
        if let Some(service) = self.services.get_mut(&service) {
            service.n_calls = service.n_calls.saturating_sub(1);
        }
        let mut others = vec![service.clone()];
        if let Some(entry) = self.workers.get_mut(&worker) {
            entry.end(&service);
            others.extend(entry.row.services.iter().filter(|other| **other != service).cloned());
        }
        self.serve_all(&others, now);
        self.drop_if_idle(&service);
    }

    /// Forgets workers that are dead, and tells calls that wait for nobody that they do.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.forget_dead(now);
        if now >= self.expected.until {
            self.expected = Expected::default();
        }
        let waiting = self.services.iter().filter(|(_, service)| !service.waiting.is_empty());
        let in_vain = waiting.map(|(name, _)| name).filter(|name| !self.is_there_anybody(name, now));
        for name in in_vain.cloned().collect::<Vec<_>>() {
            let Some(service) = self.services.get_mut(&name) else { continue };
            for waiter in service.waiting.drain() {
                // Whoever does not listen any more needs not be told.
                let _ = waiter.tell.send(Err(Nobody::Alive));
            }
        }
        self.services.retain(|_, service| !service.is_idle());
    }

    fn forget_dead(&mut self, now: Timestamp) {
        let limits = self.limits;
        let is_dead = |entry: &Entry| entry.n_calls == 0 && !entry.is_alive(limits, now);
        let dead = self.workers.extract_if(.., |_, entry| is_dead(entry)).collect::<Vec<_>>();
        for (id, entry) in dead {
            for service in &entry.row.services {
                self.leave_service(service, &id);
            }
        }
    }

    fn enter_services(&mut self, services: &[String], id: &str) {
        for service in services {
            self.services.entry(service.clone()).or_default().members.insert(id.to_owned());
        }
    }

    fn leave_service(&mut self, service: &str, id: &str) {
        if let Some(found) = self.services.get_mut(service) {
            found.members.remove(id);
        }
        self.drop_if_idle(service);
    }

    fn drop_if_idle(&mut self, service: &str) {
        if self.services.get(service).is_some_and(Service::is_idle) {
            self.services.remove(service);
        }
    }

    /// Gives free places away, to the service first that has gone without for longest.
    fn serve_all(&mut self, services: &[String], now: Timestamp) {
        let waiting =
            |name: &&String| self.services.get(*name).is_some_and(|found| !found.waiting.is_empty());
        let mut names: Vec<&String> = services.iter().filter(waiting).collect();
        names.sort_by_key(|name| self.services.get(*name).map(|service| service.served));
        for name in names {
            self.serve(name, now);
        }
    }

    fn serve(&mut self, name: &str, now: Timestamp) {
        while let Some((ticket, id)) = self.next_match(name, now) {
            let (Some(service), Some(entry)) = (self.services.get_mut(name), self.workers.get_mut(&id))
            else {
                return;
            };
            let Some(waiter) = service.waiting.serve(ticket) else { return };
            self.n_choices += 1;
            service.n_calls += 1;
            service.served = self.n_choices;
            service.last.clone_from(&id);
            entry.begin(name);
            entry.chosen = self.n_choices;
            let chosen = Chosen { id: id.clone(), url: entry.row.url.clone() };
            self.working.insert(ticket, Working { worker: id, service: name.to_owned() });
            // Whoever does not listen any more is about to give the ticket back.
            let _ = waiter.tell.send(Ok(chosen));
        }
    }

    /// The next call of a service that can be made, and who makes it.
    fn next_match(&self, name: &str, now: Timestamp) -> Option<(u64, String)> {
        let service = self.services.get(name)?;
        if service.n_calls >= self.limits.service_calls.max(1) {
            return None;
        }
        for (ticket, waiter) in service.waiting.in_turn().take(LOOK_MAX) {
            if let Some(id) = self.choose(name, service, waiter, now) {
                return Some((ticket, id.to_owned()));
            }
            if waiter.avoid.is_empty() {
                return None;
            }
        }
        None
    }

    fn choose<'d>(
        &'d self,
        name: &str,
        service: &'d Service,
        waiter: &Waiter,
        now: Timestamp,
    ) -> Option<&'d str> {
        let (limits, last) = (self.limits, &service.last);
        // Whoever had the last call comes last.
        let after = service.members.range::<String, _>((Bound::Excluded(last), Bound::Unbounded));
        let in_turn = after.chain(service.members.range::<String, _>(..=last));
        let callable = || {
            let entries = in_turn.clone().filter_map(|id| self.workers.get(id));
            entries.filter(move |entry| entry.can_be_called(limits, now))
        };
        let avoided = |entry: &Entry| waiter.avoid.contains(&entry.row.id);
        let all_avoided = !waiter.avoid.is_empty() && callable().all(avoided);
        let mut open = callable()
            .filter(|entry| all_avoided || !avoided(entry))
            .filter(|entry| entry.has_room(name, limits));
        let entry = if waiter.by_load { open.min_by(|a, b| a.by_load(b)) } else { open.next() };
        entry.map(|entry| entry.row.id.as_str())
    }
}

impl Service {
    fn is_idle(&self) -> bool {
        self.members.is_empty() && self.n_calls == 0 && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests;
