//! One worker of the pool, and the calls that this server makes to it.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use windlass_engine::time::Timestamp;
use windlass_store::worker::WorkerRow;

use super::PoolLimits;

#[derive(Debug)]
pub(super) struct PoolEntry {
    pub(super) row: WorkerRow,
    pub(super) n_calls: usize,
    n_calls_of: BTreeMap<String, usize>,
    /// The number of the choice that fell on it last.
    pub(super) chosen: u64,
}

/// Whether workers of this kind are called; the others claim.
pub(in crate::workers) fn is_called(kind: &str) -> bool {
    matches!(kind, "http" | "local" | "")
}

impl PoolEntry {
    pub(super) fn new(row: WorkerRow) -> Self {
        PoolEntry { row, n_calls: 0, n_calls_of: BTreeMap::new(), chosen: 0 }
    }

    pub(super) fn is_alive(&self, limits: PoolLimits, now: Timestamp) -> bool {
        now.since(self.row.beat_at) <= limits.ttl_ms
    }

    /// Whether it lives and is not on its way out.
    pub(super) fn takes_work(&self, limits: PoolLimits, now: Timestamp) -> bool {
        self.is_alive(limits, now) && !self.row.is_draining
    }

    pub(super) fn can_be_called(&self, limits: PoolLimits, now: Timestamp) -> bool {
        is_called(&self.row.kind) && !self.row.url.is_empty() && self.takes_work(limits, now)
    }

    /// Each service of a worker with several gets at most three quarters of its slots: a slow service leaves room for
    /// the others.
    pub(super) fn has_room(&self, service: &str, limits: PoolLimits) -> bool {
        let told = usize::try_from(self.row.capacity).ok().filter(|capacity| *capacity > 0);
        let share = told.map(|capacity| capacity.div_ceil(limits.n_servers.max(1)));
        let capacity = share.unwrap_or(limits.worker_calls).max(1);
        let kept = if self.row.services.len() > 1 { capacity / 4 } else { 0 };
        let of_service = self.n_calls_of.get(service).copied().unwrap_or(0);
        self.n_calls < capacity && of_service < capacity - kept
    }

    /// Its reported load plus the calls of this server; ties go to the worker that was chosen longest ago.
    pub(super) fn by_load(&self, other: &PoolEntry) -> Ordering {
        let load = |entry: &PoolEntry| {
            let ours = i64::try_from(entry.n_calls).unwrap_or(i64::MAX);
            entry.row.load.max(0).saturating_add(ours)
        };
        load(self).cmp(&load(other)).then(self.chosen.cmp(&other.chosen))
    }

    pub(super) fn begin(&mut self, service: &str) {
        self.n_calls += 1;
        *self.n_calls_of.entry(service.to_owned()).or_default() += 1;
    }

    pub(super) fn end(&mut self, service: &str) {
        self.n_calls = self.n_calls.saturating_sub(1);
        if let Some(n) = self.n_calls_of.get_mut(service) {
            *n = n.saturating_sub(1);
            if *n == 0 {
                self.n_calls_of.remove(service);
            }
        }
    }
}
