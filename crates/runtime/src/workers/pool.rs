//! The pool of live workers: it chooses the worker of each call. A plain value behind a lock: no clock, no store, no
//! waiting of its own.
//!
//! A call asks for a worker of a service and gets a ticket. It is told a worker as soon as the service may have one
//! more call, it is the call's turn, and a worker that it may go to has room. A ticket is given back exactly once,
//! whether its call waits or works.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use tokio::sync::oneshot;
use windlass_engine::plan::Priority;
use windlass_engine::time::Timestamp;
use windlass_store::signing::SigningSecret;
use windlass_store::worker::{WorkerBeat, WorkerRow};

use crate::wait_queue::WaitQueue;

mod entry;

use entry::PoolEntry;
pub(super) use entry::is_called;

/// Workers known at once: far more than one server can keep busy.
pub(super) const WORKERS_MAX: usize = 10_000;
/// Services with expected workers: more than the known workers usually have.
const EXPECTED_MAX: usize = 10 * WORKERS_MAX;
/// Calls of one service that wait at once: two of the largest fans.
const WAITING_MAX: usize = 200_000;
/// Waiting calls that are considered for one free worker: only those that avoid it are passed over, and they are few.
const LOOK_MAX: usize = 64;

/// Which limits hold.
#[derive(Debug, Clone, Copy)]
pub(super) struct PoolLimits {
    pub(super) service_calls: usize,
    pub(super) worker_calls: usize,
    pub(super) ttl_ms: u64,
    /// Servers that call the same workers: each uses its share of a worker's capacity.
    pub(super) n_servers: usize,
}

/// The request of a call for a worker.
#[derive(Debug, Clone)]
pub(super) struct WorkerRequest {
    pub(super) service: String,
    pub(super) priority: Priority,
    /// The worker to use as long as it can be called.
    pub(super) stays_with: Option<String>,
    /// Workers to be used only if there is no other.
    pub(super) avoid: Vec<String>,
    pub(super) by_load: bool,
}

/// The worker of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChosenWorker {
    pub(crate) id: String,
    pub(crate) url: String,
    /// The secret that it gave.
    pub(crate) secret: Option<SigningSecret>,
}

/// Why a call gets no worker, now or later.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoWorker {
    /// No live worker of the service can be called.
    NoneAlive,
    /// So many calls wait for the service that no more may.
    QueueFull { n_waiting: usize },
}

pub(super) type WorkerReply = Result<ChosenWorker, NoWorker>;

#[derive(Debug)]
pub(super) struct WorkerPool {
    limits: PoolLimits,
    workers: BTreeMap<String, PoolEntry>,
    services: HashMap<String, ServiceQueue>,
    working: HashMap<u64, BusyCall>,
    expected: ExpectedWorkers,
    /// The calls that single services may have at once, over all servers.
    calls_max: HashMap<String, u32>,
    last_ticket: u64,
    n_choices: u64,
}

/// Services with workers that could not send heartbeats while no server ran. Until they had the time to, calls wait for
/// them.
#[derive(Debug, Default)]
struct ExpectedWorkers {
    services: HashSet<String>,
    until: Timestamp,
}

impl ExpectedWorkers {
    fn is_for(&self, service: &str, now: Timestamp) -> bool {
        now < self.until && self.services.contains(service)
    }
}

#[derive(Debug, Default)]
struct ServiceQueue {
    members: BTreeSet<String>,
    /// The worker of the last call: the next call goes to the one after it.
    last: String,
    n_calls: usize,
    /// The number of the choice that was made for it last.
    served: u64,
    waiting: WaitQueue<WaitingCall>,
}

#[derive(Debug)]
struct WaitingCall {
    stays_with: Option<String>,
    avoid: Vec<String>,
    by_load: bool,
    reply_to: oneshot::Sender<WorkerReply>,
}

#[derive(Debug)]
struct BusyCall {
    worker: String,
    service: String,
}

impl WorkerPool {
    pub(super) fn new(limits: PoolLimits) -> Self {
        WorkerPool {
            limits,
            workers: BTreeMap::new(),
            services: HashMap::new(),
            working: HashMap::new(),
            expected: ExpectedWorkers::default(),
            calls_max: HashMap::new(),
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

    /// Single services may have so many calls at once, over all servers.
    pub(super) fn limit_services(&mut self, calls_max: HashMap<String, u32>, now: Timestamp) {
        self.calls_max = calls_max;
        let names: Vec<String> = self.services.keys().cloned().collect();
        self.serve_all(&names, now);
    }

    /// Calls that wait, by service.
    pub(super) fn waiting(&self) -> BTreeMap<String, usize> {
        let waiting = self.services.iter().filter(|(_, service)| !service.waiting.is_empty());
        waiting.map(|(name, service)| (name.clone(), service.waiting.len())).collect()
    }

    /// The calls of a service that this server may make at once: its part of the service's own limit, or the limit of
    /// every service.
    fn calls_max(&self, name: &str) -> usize {
        let own = self.calls_max.get(name).and_then(|most| usize::try_from(*most).ok());
        own.map_or(self.limits.service_calls, |most| most.div_ceil(self.limits.n_servers.max(1))).max(1)
    }

    /// Whether a worker of this id can be taken; makes room if that helps.
    pub(super) fn has_room(&mut self, id: &str, now: Timestamp) -> bool {
        if !self.workers.contains_key(id) && self.workers.len() >= WORKERS_MAX {
            self.forget_dead(now);
        }
        self.workers.contains_key(id) || self.workers.len() < WORKERS_MAX
    }

    /// Updates a worker, unless a newer row is known; `false` = the pool is full.
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
                self.workers.insert(id.clone(), PoolEntry::new(row));
                self.enter_services(&services, &id);
            }
        }
        self.serve_all(&services, now);
        true
    }

    /// These workers may still be alive: until then, calls of their services wait for a heartbeat.
    pub(super) fn expect(&mut self, rows: &[WorkerRow], until: Timestamp) {
        let called = rows.iter().filter(|row| is_called(&row.kind) && !row.url.is_empty());
        let services = called.flat_map(|row| row.services.iter().cloned()).take(EXPECTED_MAX).collect();
        self.expected = ExpectedWorkers { services, until };
    }

    /// Updates the heartbeat of a worker; `false` = the pool does not know it.
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

    /// Requests a worker. The caller has to return the ticket with [`WorkerPool::leave`].
    pub(super) fn ask(
        &mut self,
        wish: WorkerRequest,
        now: Timestamp,
    ) -> Result<(u64, oneshot::Receiver<WorkerReply>), NoWorker> {
        if !self.has_or_expects_worker(&wish.service, now) {
            return Err(NoWorker::NoneAlive);
        }
        let service = self.services.entry(wish.service.clone()).or_default();
        if service.waiting.len() >= WAITING_MAX {
            return Err(NoWorker::QueueFull { n_waiting: service.waiting.len() });
        }
        let (reply_to, reply) = oneshot::channel();
        self.last_ticket += 1;
        let waiter =
            WaitingCall { stays_with: wish.stays_with, avoid: wish.avoid, by_load: wish.by_load, reply_to };
        service.waiting.add(self.last_ticket, wish.priority, waiter);
        self.serve(&wish.service, now);
        Ok((self.last_ticket, reply))
    }

    /// Whether a worker of the service can be called, or is expected.
    fn has_or_expects_worker(&self, service: &str, now: Timestamp) -> bool {
        let members = self.services.get(service).into_iter().flat_map(|found| &found.members);
        let mut entries = members.filter_map(|id| self.workers.get(id));
        entries.any(|entry| entry.can_be_called(self.limits, now)) || self.expected.is_for(service, now)
    }

    /// Whether a worker of the service can be called beside these.
    pub(super) fn has_other(&self, service: &str, but: &[&str], now: Timestamp) -> bool {
        let members = self.services.get(service).into_iter().flat_map(|found| &found.members);
        let mut others = members.filter(|id| !but.contains(&id.as_str()));
        others.any(|id| self.workers.get(id).is_some_and(|entry| entry.can_be_called(self.limits, now)))
    }

    /// Gives a ticket back: its call is over, or does not wait any more.
    pub(super) fn leave(&mut self, service: &str, ticket: u64, now: Timestamp) {
        if let Some(waiting) = self.services.get_mut(service).map(|service| &mut service.waiting)
            && waiting.remove(ticket).is_some()
        {
            self.drop_if_idle(service);
            return;
        }
        let Some(BusyCall { worker, service }) = self.working.remove(&ticket) else { return };
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

    /// Removes dead workers, and answers calls that wait for a service without workers.
    pub(super) fn tidy(&mut self, now: Timestamp) {
        self.forget_dead(now);
        if now >= self.expected.until {
            self.expected = ExpectedWorkers::default();
        }
        let waiting = self.services.iter().filter(|(_, service)| !service.waiting.is_empty());
        let in_vain = waiting.map(|(name, _)| name).filter(|name| !self.has_or_expects_worker(name, now));
        for name in in_vain.cloned().collect::<Vec<_>>() {
            let Some(service) = self.services.get_mut(&name) else { continue };
            for waiter in service.waiting.drain() {
                // A caller that no longer listens needs no answer.
                let _ = waiter.reply_to.send(Err(NoWorker::NoneAlive));
            }
        }
        self.services.retain(|_, service| !service.is_idle());
    }

    fn forget_dead(&mut self, now: Timestamp) {
        let limits = self.limits;
        let is_dead = |entry: &PoolEntry| entry.n_calls == 0 && !entry.is_alive(limits, now);
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
        if self.services.get(service).is_some_and(ServiceQueue::is_idle) {
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
            let WorkerRow { url, secret, .. } = &entry.row;
            let chosen = ChosenWorker { id: id.clone(), url: url.clone(), secret: secret.clone() };
            self.working.insert(ticket, BusyCall { worker: id, service: name.to_owned() });
            // A caller that no longer listens is about to return the ticket.
            let _ = waiter.reply_to.send(Ok(chosen));
        }
    }

    /// The next call of a service that can be made, with its worker.
    fn next_match(&self, name: &str, now: Timestamp) -> Option<(u64, String)> {
        let service = self.services.get(name)?;
        if service.n_calls >= self.calls_max(name) {
            return None;
        }
        for (ticket, waiter) in service.waiting.in_order().take(LOOK_MAX) {
            if let Some(id) = self.choose(name, service, waiter, now) {
                return Some((ticket, id.to_owned()));
            }
            if waiter.avoid.is_empty() && waiter.stays_with.is_none() {
                return None;
            }
        }
        None
    }

    fn choose<'d>(
        &'d self,
        name: &str,
        service: &'d ServiceQueue,
        waiter: &WaitingCall,
        now: Timestamp,
    ) -> Option<&'d str> {
        let (limits, last) = (self.limits, &service.last);
        let stays_with = waiter.stays_with.as_ref().filter(|id| service.members.contains(*id));
        let stays_with = stays_with.and_then(|id| self.workers.get(id));
        if let Some(entry) = stays_with.filter(|entry| entry.can_be_called(limits, now)) {
            return entry.has_room(name, limits).then_some(entry.row.id.as_str());
        }
        // The worker of the last call comes last.
        let after = service.members.range::<String, _>((Bound::Excluded(last), Bound::Unbounded));
        let in_order = after.chain(service.members.range::<String, _>(..=last));
        let callable = || {
            let entries = in_order.clone().filter_map(|id| self.workers.get(id));
            entries.filter(move |entry| entry.can_be_called(limits, now))
        };
        let avoided = |entry: &PoolEntry| waiter.avoid.contains(&entry.row.id);
        let all_avoided = !waiter.avoid.is_empty() && callable().all(avoided);
        let mut open = callable()
            .filter(|entry| all_avoided || !avoided(entry))
            .filter(|entry| entry.has_room(name, limits));
        let entry = if waiter.by_load { open.min_by(|a, b| a.by_load(b)) } else { open.next() };
        entry.map(|entry| entry.row.id.as_str())
    }
}

impl ServiceQueue {
    fn is_idle(&self) -> bool {
        self.members.is_empty() && self.n_calls == 0 && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests;
